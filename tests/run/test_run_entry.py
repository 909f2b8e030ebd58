"""One call outside of a build: in the project as it is on disk, and told as workers tell it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from buildsys.run.traced import EntryRun, Touch, run_entry
from tests.run.conftest import Space

pytestmark = pytest.mark.timeout(60)


def run(space: Space, target: str = "pack.one:run", **environ: str) -> EntryRun:
    module, _, function = target.partition(":")
    return run_entry(space.root, module, function, {**os.environ, **environ})


def test_an_entry_runs_in_its_project_and_tells_what_it_did(space: Space) -> None:
    space.write("pack/__init__.py", "")
    space.write(
        "pack/one.py",
        """
        import os, sys
        from .two import helper

        def run():
            helper()
            assert [sys.path[0], os.getcwd()] == [os.environ["ROOT"]] * 2
            assert "__file__" not in vars(sys.modules["__main__"])
            open("data.txt").close()

        def unused(): pass
        """,
    )
    space.write("pack/two.py", "class A:\n    def m(self): pass\n\ndef helper(): A().m()\n")
    space.write("data.txt", "x")
    done = run(space, ROOT=str(space.root))
    assert done.error == ""
    assert done.traced.trace.modules == {"pack/__init__.py", "pack/one.py", "pack/two.py"}
    assert done.traced.trace.functions == {"pack/one.py:run", "pack/two.py:helper", "pack/two.py:A.m"}
    assert done.traced.trace.unseen == ()
    found = (space.root / "data.txt").stat()
    assert done.traced.touches == (
        Touch("file", "data.txt", (1, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)),
    )
    assert [one.name for one in done.traced.variables if one.ours] == ["ROOT"]


def test_what_it_prints_goes_to_stderr_and_no_bytecode_is_left(space: Space) -> None:
    space.write("one.py", "def run(): print('said')\n")
    code = (
        "import os, pathlib; from buildsys.run.traced import run_entry\n"
        f"print(repr(run_entry(pathlib.Path({str(space.root)!r}), 'one', 'run', os.environ).error))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (said.stdout, said.stderr) == ("''\n", "said\n")
    assert not list(space.root.rglob("*.pyc"))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise ValueError('one\\ntwo')", "ValueError: one"),
        ("sys.exit(2)", "SystemExit: the code called sys.exit(2)"),
        ("os._exit(3)", "the run ended in the middle: exit code 3"),
        ("import no_such", "ModuleNotFoundError: No module named 'no_such'"),
    ],
)
def test_an_entry_that_fails_tells_as_well(space: Space, body: str, error: str) -> None:
    space.write("one.py", f"import os, sys\n\ndef run():\n    before()\n    {body}\n\ndef before(): pass\n")
    done = run(space, "one:run")
    assert done.error == error
    if "_exit" in body:
        assert done.traced.trace.unseen == ("the worker ended in the middle",)
    else:
        assert done.traced.trace.functions == {"one.py:run", "one.py:before"}


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("one:missing", "AttributeError: module 'one' has no attribute 'missing'"),
        ("two:run", "ModuleNotFoundError: No module named 'two'"),
        ("broken:run", "SyntaxError: invalid syntax"),
    ],
)
def test_an_entry_that_is_not_there_is_an_error(space: Space, target: str, error: str) -> None:
    space.write("one.py", "")
    space.write("broken.py", "def run(:\n")
    assert run(space, target).error == error


def test_installed_packages_and_environments_below_the_project_are_not_ours(space: Space) -> None:
    space.write(
        "one.py",
        """
        import sys, thing, other.mine

        def run():
            sys.path.append("env/lib")
            import within
            thing.ask(), within.ask(), other.mine.ask()
        """,
    )
    space.write("vendor/thing.py", "def ask(): open(__file__).close()\n")
    space.write("vendor/thing-1.0.dist-info/METADATA", "")
    space.write("env/pyvenv.cfg", "")
    space.write("env/lib/within.py", "def ask(): open(__file__).close()\n")
    space.write("other/mine.py", "def ask(): pass\n")
    done = run(space, "one:run")
    assert done.error == ""
    assert done.traced.trace.functions == {"one.py:run", "other/mine.py:ask"}
    assert done.traced.packages == {"thing", "within"}
    assert done.traced.touches == ()


def test_a_file_that_reads_the_code_of_others_makes_the_run_unseen_only_where_it_is_imported(space: Space) -> None:
    space.write("one.py", "def run(): pass\n\ndef reads():\n    import two\n")
    space.write("two.py", "def fast():\n    import numba\n")
    assert run(space, "one:run").traced.trace.unseen == ()
    assert run(space, "one:reads").traced.trace.unseen == ("numba in two.py",)


def test_a_package_behind_a_link_is_ours(space: Space, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere: Path = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "__init__.py").write_text("def ask(): pass\n")
    (elsewhere / "round").symlink_to(elsewhere)
    space.write("one.py", "import linked\n\ndef run(): linked.ask()\n")
    (space.root / "linked").symlink_to(elsewhere)
    assert run(space, "one:run").traced.trace.functions == {"one.py:run", "linked/__init__.py:ask"}


def test_more_functions_than_a_text_had_when_it_was_looked_at_are_told_as_unseen(space: Space) -> None:
    """A module that the run itself writes larger than it was."""
    space.write("two.py", "")
    space.write(
        "one.py",
        """
        from pathlib import Path

        def run():
            Path("two.py").write_text("def ask(): pass\\n" * 50)
            import two
            two.ask()
        """,
    )
    done = run(space, "one:run")
    assert done.error == ""
    assert done.traced.trace.unseen == ("functions of two.py that can't be followed",)
