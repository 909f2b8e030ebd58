"""What lies in a project beside rules and scripts: left by editors, or not to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from buildsys.errors import BuildError
from buildsys.project import Project
from tests.behaviour.conftest import Space

RULES = """
[rule.copy]
run     = "scripts/copy.py::copy"
inputs  = { source = "data/source.txt" }
outputs = { copy = "build/copy.txt" }
"""


@pytest.fixture
def copied(space: Space) -> Space:
    space.write("rules/r.toml", RULES)
    space.write("data/source.txt", "data")
    space.write("scripts/copy.py", "def copy(source, copy):\n    copy.write_text(source.read_text())\n")
    return space


def test_the_lock_that_an_editor_leaves_beside_a_rule_file_is_none(copied: Space) -> None:
    (copied.root / "rules/.#r.toml").symlink_to("me@host.1:2")
    assert copied.build().ran == ["copy"]


def test_a_folder_with_hidden_rule_files_alone_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/.r.toml").touch()
    with pytest.raises(BuildError, match="no buildsys project"):
        Project.find(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_a_rule_file_that_can_not_be_read_is_told_by_its_name(copied: Space, kind: str) -> None:
    file = copied.root / "rules/z.toml"
    file.mkdir() if kind == "folder" else file.symlink_to("nowhere")
    error = copied.build().error
    assert error is not None
    assert error.problem.startswith("can't be read: ")
    assert str(error.place) == "rules/z.toml"


def test_a_script_that_is_a_link_to_itself_blocks_its_rule(copied: Space) -> None:
    copied.remove("scripts/copy.py")
    copied.write("scripts/entry.py", "from copying import copy\n")
    (copied.root / "scripts/copying.py").symlink_to("copying.py")
    copied.replace("rules/r.toml", "copy.py", "entry.py")
    built = copied.build()
    assert built.actions("blocked") == ["copy"]
    assert "can't be read" in built.errors


@pytest.mark.parametrize(
    ("pattern", "odd"),
    [
        ("data/{shard}.txt", "data/my file.txt"),
        ("data/{shard}/part.txt", "data/größe/part.txt"),
        ("data/no-{shard}.txt", "data/no-a+b.txt"),
    ],
)
def test_a_file_that_no_shard_can_be_named_after_is_refused_by_its_name(space: Space, pattern: str, odd: str) -> None:
    space.write(
        "rules/r.toml",
        f"""
        [rule.copy]
        each    = {{ shard = "{pattern}" }}
        run     = "scripts/copy.py::copy"
        inputs  = {{ source = "{pattern}" }}
        outputs = {{ copy = "build/{{shard}}.txt" }}
        """,
    )
    space.write("scripts/copy.py", "def copy(source, copy):\n    copy.write_text(source.read_text())\n")
    for name in ("one", "two"):
        space.write(pattern.replace("{shard}", name), "")
    space.write("data/.hidden one.txt", "left by an editor")
    built = space.build()
    assert built.ran == ["copy[one]", "copy[two]"], built.error

    space.write(odd, "")
    error = space.build().error
    assert error is not None
    assert error.problem == f"[rule.copy] can't have a shard of this name: {odd}"
    assert "A-Z a-z 0-9 . _ -" in error.hint


@pytest.mark.parametrize(
    ("rules", "problem", "line"),
    [
        ('[rule.a]\nrun = "s.py::f"\ninputs = { x = "data/none.txt" }\noutputs = { o = "b/o" }\n', "is missing", 3),
        ('[rule.a]\nrun = "none.py::f"\noutputs = { o = "b/o" }\n', "names a script that is missing", 1),
        (
            '[rule.a]\nrun = "s.py::f"\ninputs = { x = "@b" }\noutputs = { o = "b/o" }\n'
            '[rule.b]\nrun = "s.py::f"\ninputs = { x = "@a" }\noutputs = { o = "b/p" }\n',
            "in a circle",
            1,
        ),
    ],
    ids=["a missing input", "a missing script", "a circle"],
)
def test_an_error_of_a_rule_shows_its_lines(space: Space, rules: str, problem: str, line: int) -> None:
    space.write("rules/r.toml", rules)
    space.write("s.py", "def f(o):\n    o.write_text('')\n")
    error = space.build().error
    assert error is not None
    assert problem in error.problem
    assert f"→ {line} │ {rules.splitlines()[line - 1]}" in error.render()
