"""Rules that run in another interpreter: its Python, its packages, and nothing of ours needed there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from buildsys.errors import USAGE
from buildsys.events import ActionStarted
from buildsys.request import Request, Variation
from buildsys.state import interpreters, stamp
from buildsys.state.inventory import distributions
from tests.behaviour.conftest import Space
from tests.behaviour.installing import install

pytestmark = pytest.mark.timeout(60)

RULES = """
[rule.made]
python  = ".venv/bin/python"
run     = "scripts/work.py::make"
outputs = { made = "build/made.json" }

[rule.said]
python  = ".venv/bin/python"
shell   = "{python} scripts/say.py > {outputs.said}"
outputs = { said = "build/said.txt" }
"""
WORK = """
import json, sys
import greeting

def make(made):
    made.write_text(json.dumps([sys.prefix, greeting.WORD, "buildsys" in sys.modules]))
"""
SAY = """
import sys
print(sys.prefix)
"""


@pytest.fixture
def two(space: Space, bare: Path) -> Space:
    """A project with an environment of its own."""
    shutil.copytree(bare, space.root / ".venv", symlinks=True)
    install(space.root / ".venv", "greeting", "1.0", 'WORD = "hello"')
    space.write("rules/two.toml", RULES)
    space.write("scripts/work.py", WORK)
    space.write("scripts/say.py", SAY)
    return space


def test_functions_and_commands_run_in_the_interpreter_of_their_rule(two: Space) -> None:
    built = two.build()
    assert built.errors == ""
    prefix = str(two.root / ".venv")
    assert json.loads(two.read("build/made.json")) == [prefix, "hello", False]
    assert two.read("build/said.txt").strip() == prefix


def test_a_version_there_is_in_the_key_of_what_imports_it(two: Space) -> None:
    two.build()
    install(two.root / ".venv", "greeting", "2.0", 'WORD = "good day"')
    install(two.root / ".venv", "unrelated", "1.0")
    built = two.build()
    assert built.ran == ["made"]
    assert "good day" in two.read("build/made.json")
    reasons = [event.reason for event in built.events if isinstance(event, ActionStarted)]
    assert reasons == ["version of greeting changed: 1.0 → 2.0"]


def test_where_nothing_changed_there_no_process_is_started(two: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    two.build()
    monkeypatch.setattr(interpreters.subprocess, "run", lambda *args, **more: pytest.fail("it was asked"))
    assert two.build().ran == []


def test_a_stamp_is_of_what_is_installed_there_too(two: Space) -> None:
    request = Request((), Variation())
    two.build()
    time.sleep(0.01)  # What is as young as a build that looks at it is not trusted.
    two.build()
    assert stamp.current(two.root, request)
    install(two.root / ".venv", "greeting", "2.0", 'WORD = "good day"')
    assert stamp.current(two.root, request) is None


def test_where_an_interpreter_lies_is_in_no_key(two: Space) -> None:
    two.build()
    (two.root / ".venv").rename(two.root / ".environment")
    two.replace("rules/two.toml", ".venv", ".environment")
    assert two.build().ran == []


def test_an_interpreter_that_is_missing_is_said_before_anything_runs(two: Space) -> None:
    two.replace("rules/two.toml", '".venv/bin/python"\nshell', '".venv/bin/pythonn"\nshell')
    built = two.build()
    assert (built.outcome, built.ran) == ("refused", [])
    assert built.error is not None
    assert built.error.exit_code == USAGE
    assert built.error.problem == "the interpreter .venv/bin/pythonn is missing"
    assert "rules/two.toml:7" in built.error.render()


def test_a_program_that_is_no_python_is_said_before_anything_runs(two: Space) -> None:
    two.write(".venv/bin/other", "#!/bin/sh\necho no snake >&2; exit 3\n").chmod(0o755)
    two.replace("rules/two.toml", ".venv/bin/python", ".venv/bin/other")
    built = two.build()
    assert built.outcome == "refused"
    assert built.error is not None
    assert "can't be used" in built.error.problem
    assert "no snake" in built.error.render()


def python(version: str) -> str:
    """The path of an installed Python of another version; skips the test where there is none."""
    folders = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin"))
    found = shutil.which(f"python{version}", path=str(folders[0]) if folders else None)
    if not found:
        pytest.skip(f"there is no Python {version}")
    return found


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_workers_serve_every_python_from_3_9_on(space: Space, version: str) -> None:
    space.write(
        "rules/other.toml",
        f"""
        [rule.good]
        python  = "{python(version)}"
        run     = "scripts/work.py::good"
        params  = {{ numbers = [1, 2] }}
        outputs = {{ o = "good.txt" }}

        [rule.bad]
        python  = "{python(version)}"
        run     = "scripts/work.py::bad"
        outputs = {{ o = "bad.txt" }}
        """,
    )
    space.write(
        "scripts/work.py",
        """
        import sys

        def good(numbers, o):
            o.write_text("{}.{} {}".format(*sys.version_info[:2], numbers))

        def bad(o):
            raise ValueError("as expected")
        """,
    )
    built = space.build(keep_going=True, jobs=1)
    assert (built.ran, built.failed) == (["good"], ["bad"])
    assert space.read("good.txt") == f"{version} [1, 2]"
    assert "ValueError: as expected" in built.errors
    assert "in bad" in built.errors


def test_another_python_is_another_key(space: Space) -> None:
    minor = 13 if sys.version_info[1] == 12 else 12
    rule = '[rule.v]\npython = "{}"\nrun = "v.py::v"\noutputs = {{ o = "v.txt" }}\n'
    space.write("v.py", "import sys\ndef v(o):\n    o.write_text(str(sys.version_info[1]))\n")
    space.write("rules/v.toml", rule.format(sys.executable))
    space.build()
    space.write("rules/v.toml", rule.format(python(f"3.{minor}")))
    assert space.build().ran == ["v"]
    assert space.read("v.txt") == str(minor)


def test_a_python_that_is_too_old_is_refused(space: Space) -> None:
    space.write("v.py", "def v(o):\n    o.touch()\n")
    space.write("rules/v.toml", f'[rule.v]\npython = "{python("3.8")}"\nrun = "v.py::v"\noutputs = {{ o = "v.txt" }}\n')
    built = space.build()
    assert built.error is not None
    assert "too old: Python 3.8" in built.error.render()


def test_what_is_installed_is_read_as_the_library_reads_it() -> None:
    code = "from importlib import metadata as m; import json; print(json.dumps(m.packages_distributions()))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = {(top, name) for top, names in json.loads(said.stdout).items() for name in names if is_module(top)}
    ours = {(top, str(one["name"])) for one in distributions() for top in one["tops"]}
    assert told <= ours
    more = [find_spec(top) for top, _ in ours - told]
    assert not any(one and one.origin and one.origin.endswith(".py") for one in more), (
        "older libraries miss only others"
    )


def is_module(name: str) -> bool:
    return name.isidentifier() and name != "__pycache__"
