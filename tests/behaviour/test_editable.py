"""What is installed as editable is code of the project: its edits are seen, and it runs as it was fingerprinted."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from buildsys.events import ActionStarted, Event
from buildsys.query import sql
from buildsys.request import Request, Variation
from buildsys.state import stamp
from tests.behaviour.conftest import Space
from tests.behaviour.installing import install, install_editable, site

pytestmark = pytest.mark.timeout(60)

RULE = """
[rule.made]
python  = ".venv/bin/python"
run     = "scripts/work.py::make"
outputs = { made = "made.txt" }
"""
COMMAND = """
[rule.made]
python  = ".venv/bin/python"
shell   = "{python} scripts/work.py > {outputs.made}"
outputs = { made = "made.txt" }
"""
WORK = "import lib.deep\n\ndef make(made):\n    made.write_text(lib.deep.WORD)\n"
SAY = "import lib.deep\nprint(lib.deep.WORD, end='')\n"


@pytest.fixture
def lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a distribution outside the project, with a package."""
    folder = tmp_path_factory.mktemp("elsewhere") / "lib"
    (folder / "src/lib").mkdir(parents=True)
    (folder / "src/lib/__init__.py").write_text("")
    (folder / "src/lib/deep.py").write_text("WORD = 'old'\n\ndef unused():\n    return 1\n")
    return folder


@pytest.fixture
def space(space: Space, bare: Path) -> Space:
    shutil.copytree(bare, space.root / ".venv", symlinks=True)
    space.write("rules/r.toml", RULE)
    space.write("scripts/work.py", WORK)
    return space


def put(space: Space, lib: Path, how: str) -> None:
    mapping = {"lib": lib / "src/lib"} if how == "hook" else None
    install_editable(space.root / ".venv", "My.Lib", lib / "src", mapping)


@pytest.mark.parametrize("how", ["path", "hook"])
@pytest.mark.parametrize("rule", [RULE, COMMAND], ids=["run", "shell"])
def test_an_edit_of_it_is_seen_and_comments_are_not(space: Space, lib: Path, how: str, rule: str) -> None:
    put(space, lib, how)
    space.write("rules/r.toml", rule)
    space.write("scripts/work.py", WORK if rule is RULE else SAY)
    built = space.build()
    assert (built.ran, built.errors) == (["made"], "")
    assert space.read("made.txt") == "old"
    assert space.build().ran == []
    deep = lib / "src/lib/deep.py"
    deep.write_text(f"# said\n{deep.read_text()}")
    assert space.build().ran == []
    deep.write_text(deep.read_text().replace("old", "new"))
    built = space.build()
    assert built.ran == ["made"]
    assert space.read("made.txt") == "new"
    (reason,) = [event.reason for event in built.events if isinstance(event, ActionStarted)]
    assert "<my-lib>/lib/deep.py" in reason


def test_one_that_nothing_imports_is_no_code_of_a_rule(space: Space, lib: Path) -> None:
    put(space, lib, "path")
    space.write("scripts/work.py", "import json\n\ndef make(made):\n    made.write_text(json.dumps(1))\n")
    space.build()
    (lib / "src/lib/deep.py").write_text("WORD = 'new'\n")
    assert space.build().ran == []
    assert sql(space.root, "SELECT DISTINCT split_part(path, ':', 1) FROM code_deps").rows == [("scripts/work.py",)]


def test_a_stamp_looks_at_it(space: Space, lib: Path) -> None:
    put(space, lib, "path")
    time.sleep(0.01)  # What is as young as a build that looks at it is not trusted.
    space.build()
    space.build()
    request = Request((), Variation())
    assert stamp.current(space.root, request)
    (lib / "src/lib/deep.py").write_text("WORD = 'new'\n")
    assert stamp.current(space.root, request) is None


@pytest.mark.parametrize("how", ["path", "hook"])
def test_where_it_lies_and_how_it_is_installed_is_in_no_key(space: Space, lib: Path, how: str) -> None:
    put(space, lib, how)
    space.build()
    moved = lib.rename(lib.with_name("moved"))
    (moved / "src").rename(moved / "python")
    folder = moved / "python"
    site_packages = site(space.root / ".venv")
    for old in site_packages.glob("__editable__*"):
        old.unlink()
    install_editable(space.root / ".venv", "My.Lib", folder, {"lib": folder / "lib"} if how == "path" else None)
    assert space.build().ran == []
    (folder / "lib/deep.py").write_text("WORD = 'new'\n")
    assert space.build().ran == ["made"]
    assert space.read("made.txt") == "new"


@pytest.mark.parametrize("rule", [RULE, COMMAND], ids=["run", "shell"])
def test_it_runs_as_it_was_fingerprinted_whatever_is_saved_meanwhile(space: Space, lib: Path, rule: str) -> None:
    put(space, lib, "path")
    space.write("rules/r.toml", rule)
    space.write("scripts/work.py", WORK if rule is RULE else SAY)

    def save(event: Event) -> None:
        if isinstance(event, ActionStarted):
            (lib / "src/lib/deep.py").write_text("WORD = 'new'\n")

    assert space.build(on_event=save).ran == ["made"]
    assert space.read("made.txt") == "old"
    assert space.build().ran == ["made"]
    assert space.read("made.txt") == "new"


@pytest.mark.parametrize("rule", [RULE, COMMAND], ids=["run", "shell"])
def test_data_beside_it_is_found(space: Space, lib: Path, rule: str) -> None:
    put(space, lib, "path")
    space.write("rules/r.toml", rule)
    space.write("scripts/work.py", WORK if rule is RULE else SAY)
    data = "from pathlib import Path\nWORD = (Path(__file__).parent / 'data/word.txt').read_text()\n"
    (lib / "src/lib/data").mkdir()
    (lib / "src/lib/data/word.txt").write_text("data")
    (lib / "src/lib/deep.py").write_text(data)
    assert space.build().errors == ""
    assert space.read("made.txt") == "data"


def test_a_compiled_module_of_it_counts_by_its_bytes(space: Space, lib: Path) -> None:
    put(space, lib, "path")
    fast = lib / "src/lib/fast.cpython-311-x86_64-linux-gnu.so"
    fast.write_bytes(b"one")
    assert space.build().ran == ["made"]
    fast.write_bytes(b"two")
    assert space.build().ran == ["made"]
    assert space.build().ran == []


def test_its_version_is_no_part_of_a_key(space: Space, lib: Path) -> None:
    put(space, lib, "path")
    space.build()
    (metadata,) = site(space.root / ".venv").glob("My.Lib-*.dist-info")
    text = (metadata / "METADATA").read_text().replace("1.0", "1.0.dev7+gabcdef")
    (metadata / "METADATA").write_text(text)
    assert space.build().ran == []
    assert sql(space.root, "SELECT name FROM versions").rows == [("python",)]


def test_what_a_distribution_runs_of_it_is_seen(space: Space, lib: Path) -> None:
    put(space, lib, "path")
    source = "import lib.deep\n\ndef word():\n    return lib.deep.WORD\n"
    install(space.root / ".venv", "outer", "1.0", source, requires=["my-lib"])
    space.write("scripts/work.py", "import outer\n\ndef make(made):\n    made.write_text(outer.word())\n")
    built = space.build()
    assert (built.ran, built.errors) == (["made"], "")
    (lib / "src/lib/deep.py").write_text("WORD = 'new'\n")
    assert space.build().ran == ["made"]
    assert space.read("made.txt") == "new"


@pytest.mark.parametrize(("folder", "told"), [("lib", "libs/lib/deep.py"), ("impl", "<lib>/lib/deep.py")])
@pytest.mark.parametrize("rule", [RULE, COMMAND], ids=["run", "shell"])
def test_that_of_the_project_has_its_path_there(space: Space, rule: str, folder: str, told: str) -> None:
    space.write("rules/r.toml", rule)
    space.write("scripts/work.py", WORK if rule is RULE else SAY)
    space.write(f"libs/{folder}/__init__.py", "")
    space.write(f"libs/{folder}/deep.py", "WORD = 'old'\n")
    install_editable(space.root / ".venv", "lib", space.root / "libs", {"lib": space.root / "libs" / folder})
    assert space.build().errors == ""
    space.replace(f"libs/{folder}/deep.py", "old", "new")
    built = space.build()
    assert built.ran == ["made"]
    assert space.read("made.txt") == "new"
    (reason,) = [event.reason for event in built.events if isinstance(event, ActionStarted)]
    assert told in reason


def test_the_project_itself_may_be_installed(space: Space) -> None:
    space.write("lib/__init__.py", "")
    space.write("lib/deep.py", "WORD = 'old'\n")
    install_editable(space.root / ".venv", "lib", space.root)
    for rule, work in ((RULE, WORK), (COMMAND, SAY)):
        space.write("rules/r.toml", rule)
        space.write("scripts/work.py", work)
        assert space.build().errors == ""
        space.write("lib/deep.py", "WORD = 'new'\n")
        assert space.build().ran == ["made"]
        assert space.read("made.txt") == "new"
        space.write("lib/deep.py", "WORD = 'old'\n")


def test_parts_of_a_namespace_may_be_editable_and_others_not(space: Space, lib: Path) -> None:
    (lib / "src/shared").mkdir()
    (lib / "src/shared/mine.py").write_text("WORD = 'old'\n")
    put(space, lib, "path")
    install(space.root / ".venv", "plain", "1.0", files={"shared/other.py": "WORD = ' and other'\n"})
    script = "from shared import mine, other\n\ndef make(made):\n    made.write_text(mine.WORD + other.WORD)\n"
    space.write("scripts/work.py", script)
    built = space.build()
    assert (built.ran, built.errors) == (["made"], "")
    assert space.read("made.txt") == "old and other"
    (lib / "src/shared/mine.py").write_text("WORD = 'new'\n")
    assert space.build().ran == ["made"]
    install(space.root / ".venv", "plain", "2.0", files={"shared/other.py": "WORD = ' and another'\n"})
    assert space.build().ran == ["made"]
    assert space.read("made.txt") == "new and another"


def test_what_is_installed_for_another_interpreter_is_nothing_to_a_rule(space: Space, lib: Path, bare: Path) -> None:
    shutil.copytree(bare, space.root / ".other", symlinks=True)
    install(space.root / ".other", "lib", "1.0", files={"lib/__init__.py": "", "lib/deep.py": "WORD = 'plain'\n"})
    put(space, lib, "path")
    other = RULE.replace(".venv", ".other").replace("made", "other")
    space.write("rules/r.toml", RULE + other.replace("other = ", "made = "))
    assert space.build().errors == ""
    assert (space.read("made.txt"), space.read("other.txt")) == ("old", "plain")
    (lib / "src/lib/deep.py").write_text("WORD = 'new'\n")
    assert space.build().ran == ["made"]


def test_a_module_of_it_that_does_not_parse_is_told_where_it_lies(space: Space, lib: Path) -> None:
    put(space, lib, "path")
    deep = lib / "src/lib/deep.py"
    deep.write_text("try:\n    pass\nx = 1\n")
    built = space.build()
    assert (built.ran, built.actions("blocked")) == ([], ["made"])
    assert f"{deep}:3" in built.errors


@pytest.mark.parametrize("words", ["-m lib.deep", "-c 'import lib'"])
def test_a_command_that_names_it_as_a_module_is_refused(space: Space, lib: Path, words: str) -> None:
    put(space, lib, "path")
    space.write("rules/r.toml", COMMAND.replace("scripts/work.py", words))
    built = space.build()
    assert built.outcome == "refused"
    assert built.error is not None
    assert "a module of the project" in built.error.problem


def test_commands_of_equal_code_share_one_frozen_copy(space: Space, lib: Path) -> None:
    put(space, lib, "path")
    rules = [COMMAND.replace("rule.made", f"rule.made{n}").replace("made.txt", f"made{n}.txt") for n in range(4)]
    space.write("rules/r.toml", "".join(rules))
    space.write("scripts/work.py", SAY)
    assert len(space.build(jobs=4).ran) == 4
    assert len(list((space.root / ".buildsys/frozen").iterdir())) == 1
