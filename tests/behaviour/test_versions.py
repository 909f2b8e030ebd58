"""The versions of distributions: which of them are in the keys, and that all others are recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from buildsys.errors import USAGE
from buildsys.project import Project
from buildsys.query import sql
from buildsys.survey import survey
from tests.behaviour.conftest import Space
from tests.behaviour.installing import install, site

pytestmark = pytest.mark.timeout(60)

RULE = """
[rule.made]
python  = ".venv/bin/python"
run     = "work.py::make"
outputs = {{ made = "made.txt" }}
{}
"""
WORK = "import outer\n\ndef make(made):\n    made.write_text(outer.WORD)\n"
VERSIONS = "SELECT name, version FROM versions WHERE name <> 'python' AND keyed = {} ORDER BY name"


@pytest.fixture
def space(space: Space, bare: Path) -> Space:
    """A project whose script imports `outer`, which requires `inner`; `beside` has nothing to do with it."""
    shutil.copytree(bare, space.root / ".venv", symlinks=True)
    put(
        space,
        "outer",
        "1.0",
        "WORD = 'word'",
        requires=["inner ; python_version > '3'", "never ; python_version < '3'"],
    )
    put(space, "inner", "1.0")
    put(space, "beside", "1.0")
    space.write("work.py", WORK)
    return space


def put(space: Space, name: str, version: str, source: str = "", **more: object) -> None:
    install(space.root / ".venv", name, version, source, **more)  # type: ignore[arg-type]


def rule(space: Space, line: str) -> None:
    space.write("rules/r.toml", RULE.format(line))


def recorded(space: Space, *, keyed: bool) -> dict[str, str]:
    return dict(sql(space.root, VERSIONS.format(keyed)).rows)


@pytest.mark.parametrize(
    ("line", "moving", "ran"),
    [
        ("", "outer", True),
        ("", "inner", False),
        ("", "beside", False),
        ('versions = "closure"', "outer", True),
        ('versions = "closure"', "inner", True),
        ('versions = "closure"', "beside", False),
        ('versions = ["inner"]', "outer", False),
        ('versions = ["inner"]', "inner", True),
        ('versions = ["beside", "Outer"]', "outer", True),
        ('versions = ["beside", "Outer"]', "beside", True),
        ("versions = []", "outer", False),
    ],
)
def test_the_rule_says_which_versions_count(space: Space, line: str, moving: str, ran: bool) -> None:
    rule(space, line)
    assert space.build().ran == ["made"]
    put(space, moving, "1.0.post1", "WORD = 'word'", requires=["inner"] if moving == "outer" else ())
    assert space.build().ran == (["made"] if ran else [])


def test_versions_of_the_closure_that_are_in_no_key_are_recorded(space: Space) -> None:
    rule(space, 'versions = ["beside"]')
    space.build()
    assert recorded(space, keyed=True) == {"beside": "1.0"}
    assert recorded(space, keyed=False) == {"outer": "1.0", "inner": "1.0"}
    rule(space, 'versions = "closure"')
    space.build()
    assert recorded(space, keyed=True) == {"outer": "1.0", "inner": "1.0"}
    assert recorded(space, keyed=False) == {}


def test_two_runs_are_compared_by_versions_that_are_in_no_key(space: Space) -> None:
    rule(space, "")
    space.build()
    put(space, "inner", "2.0")
    space.build(force=["made"])
    found = sql(space.root, "SELECT kind, name, a, b FROM compare(1, 2)").rows
    assert found == [("version", "inner", "1.0", "2.0")]


def test_a_name_that_is_nothing_known_is_refused_with_the_nearest(space: Space) -> None:
    rule(space, 'versions = ["outr"]')
    built = space.build()
    assert (built.outcome, built.ran) == ("refused", [])
    assert built.error is not None
    assert built.error.exit_code == USAGE
    assert built.error.problem == 'versions of [rule.made] name "outr", which is neither installed nor imported'
    assert built.error.hint == 'did you mean "outer"?'
    assert "rules/r.toml:2" in built.error.render()


def test_what_is_imported_may_be_named_where_it_is_not_installed(space: Space) -> None:
    space.write("work.py", f"try:\n    import gone\nexcept ImportError:\n    gone = None\n{WORK}")
    rule(space, 'versions = ["gone"]')
    assert space.build().ran == ["made"]
    assert recorded(space, keyed=True) == {"gone": "not installed"}
    put(space, "gone", "1.0")
    assert space.build().ran == ["made"]


def test_a_distribution_without_a_version_counts_by_having_none(space: Space) -> None:
    rule(space, "")
    put(space, "outer", "", "WORD = 'word'")
    assert space.build().ran == ["made"]
    assert recorded(space, keyed=True) == {"outer": "without a version"}
    assert space.build().ran == []


def test_all_that_share_a_namespace_count(space: Space) -> None:
    put(space, "one", "1.0", files={"shared/one.py": "WORD = 'word'"})
    put(space, "two", "1.0", files={"shared/two.py": ""})
    space.write("work.py", "from shared import one as outer\n" + WORK.partition("\n")[2])
    rule(space, "")
    assert space.build().ran == ["made"]
    assert recorded(space, keyed=True) == {"one": "1.0", "two": "1.0"}
    shutil.rmtree(site(space.root / ".venv") / "two-1.0.dist-info")
    assert space.build().ran == ["made"]


def test_a_command_counts_by_what_its_scripts_import(space: Space) -> None:
    space.write("work.py", "import outer\nprint(outer.WORD)\n")
    rule(space, 'versions = "closure"')
    space.replace("rules/r.toml", 'run     = "work.py::make"', 'shell   = "{python} work.py > {outputs.made}"')
    assert space.build().ran == ["made"]
    put(space, "inner", "2.0")
    assert space.build().ran == ["made"]
    put(space, "beside", "2.0")
    assert space.build().ran == []


def test_a_command_without_scripts_may_name_what_it_runs(space: Space) -> None:
    rule(space, 'versions = ["outer"]')
    space.replace("rules/r.toml", 'run     = "work.py::make"', 'shell   = "echo x > {outputs.made}"')
    assert space.build().ran == ["made"]
    put(space, "inner", "2.0")
    assert space.build().ran == []
    put(space, "outer", "2.0")
    assert space.build().ran == ["made"]


COMPUTES = "import importlib\n\ndef make(made):\n    made.write_text(importlib.import_module({}).WORD)\n"


def test_a_distribution_that_a_computed_name_imports_counts_once_it_was(space: Space) -> None:
    put(space, "plugin", "1.0", "WORD = 'plugged'")
    space.write("plugins.txt", "plug in")
    space.write("work.py", COMPUTES.format("open('plugins.txt').read().replace(' ', '')"))
    rule(space, "")
    assert space.build().ran == ["made"]
    assert space.build().ran == []
    put(space, "beside", "2.0")
    assert space.build().ran == []
    put(space, "plugin", "2.0", "WORD = 'plugged in'")
    (planned,) = survey(Project(space.root)).actions
    assert (
        planned.reason == "package plugin of .venv/bin/python changed, which its last run imported by a computed name"
    )
    assert space.build().ran == ["made"]
    assert space.read("made.txt") == "plugged in"
    put(space, "beside", "1.0", "WORD = 'other'")
    space.write("plugins.txt", "bes ide")
    assert space.build().ran == ["made"]
    put(space, "plugin", "1.0", "WORD = 'plugged'")
    assert space.build().ran == []


def test_a_rule_that_lists_its_versions_counts_no_others(space: Space) -> None:
    put(space, "plugin", "1.0", "WORD = 'plugged'")
    space.write("work.py", COMPUTES.format("'plug' + 'in'"))
    rule(space, "versions = []")
    assert space.build().ran == ["made"]
    put(space, "plugin", "2.0", "WORD = 'plugged'")
    assert space.build().ran == []
