"""What a worker imports: exactly the sources that it was given, named as Python would name them."""

from __future__ import annotations

import pytest

from tests.run.conftest import Space

pytestmark = pytest.mark.timeout(60)


def call(space: Space, target: str, *unseen: str) -> object:
    result = space.workers().call(space.job(target, unseen=unseen))
    assert result.ok, result.error + result.traceback
    return result.value


def test_the_frozen_text_runs_though_the_file_changed_meanwhile(space: Space) -> None:
    script = space.write("scripts/a.py", "import b\n\ndef f(): return ['old', b.X, __file__]\n")
    neighbour = space.write("scripts/b.py", "X = 'old'\n")
    job = space.job("scripts/a.py::f")
    script.write_text("def f(): return 'new'\n")
    neighbour.unlink()
    assert space.workers().call(job).value == ["old", "old", str(script)]


def test_the_source_that_inspect_shows_is_the_frozen_one(space: Space) -> None:
    script = space.write("scripts/a.py", "import inspect\n\ndef f(): return inspect.getsource(f)\n")
    job = space.job("scripts/a.py::f")
    script.write_text("\n\n\n\ndef f(): return 'new'\n")
    assert space.workers().call(job).value == "def f(): return inspect.getsource(f)\n"


def test_annotations_are_evaluated_as_in_a_plain_import(space: Space) -> None:
    space.write("scripts/a.py", "def g(x: int): ...\n\ndef f(): return g.__annotations__['x'] is int\n")
    assert call(space, "scripts/a.py::f") is True


def test_no_bytecode_is_read_or_written(space: Space) -> None:
    space.write("scripts/a.py", "import pack.b\n\ndef f(): return 1\n")
    space.write("scripts/pack/__init__.py", "")
    space.write("scripts/pack/b.py", "")
    call(space, "scripts/a.py::f")
    assert not list(space.root.rglob("*.pyc"))


def test_packages_relative_imports_and_namespace_packages(space: Space) -> None:
    space.write("scripts/a.py", "import pack, spread.deep.leaf\n\ndef f(): return [pack.X, spread.deep.leaf.Y]\n")
    space.write("scripts/pack/__init__.py", "from .inner import X\n")
    space.write("scripts/pack/inner.py", "from . import sub\nfrom .sub.leaf import X\n")
    space.write("scripts/pack/sub/__init__.py", "")
    space.write("scripts/pack/sub/leaf.py", "X = 'x'\n")
    space.write("scripts/spread/deep/leaf.py", "Y = 'y'\n")
    assert call(space, "scripts/a.py::f") == ["x", "y"]


def test_a_package_wins_over_a_module_of_its_name(space: Space) -> None:
    space.write("scripts/a.py", "import b\n\ndef f(): return b.X\n")
    space.write("scripts/b.py", "X = 'module'\n")
    space.write("scripts/b/__init__.py", "X = 'package'\n")
    assert call(space, "scripts/a.py::f") == "package"


def test_data_beside_a_package_is_read_from_disk(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import importlib.resources, pkgutil, pack

        def f():
            file = importlib.resources.files("pack") / "x.txt"
            return [file.read_text(), pkgutil.get_data("pack", "x.txt")]
        """,
    )
    space.write("scripts/pack/__init__.py", "")
    space.write("scripts/pack/x.txt", "data")
    assert call(space, "scripts/a.py::f") == ["data", b"data"]


def test_a_script_whose_name_is_no_identifier_is_one_module_for_all(space: Space) -> None:
    space.write(
        "scripts/01b_make.py", "import other\n\nSEEN = []\n\ndef f(): return [__name__, other.script() is SEEN]\n"
    )
    space.write(
        "scripts/other.py", "import importlib\n\ndef script(): return importlib.import_module('01b_make').SEEN\n"
    )
    assert call(space, "scripts/01b_make.py::f") == ["01b_make", True]


def test_a_script_in_the_project_folder_itself(space: Space) -> None:
    space.write("a.v2.py", "import b\n\ndef f(): return b.X\n")
    space.write("b.py", "X = 1\n")
    assert call(space, "a.v2.py::f") == 1


def test_a_first_party_module_goes_before_an_installed_one_of_its_name(space: Space) -> None:
    space.write("scripts/a.py", "import colorsys, queue\n\ndef f(): return [colorsys.X, queue.X]\n")
    space.write("scripts/colorsys.py", "X = 'ours'\n")
    space.write("scripts/queue.py", "X = 'ours'\n")
    job = space.job("scripts/a.py::f", preload=("colorsys", "queue"))
    assert space.workers().call(job).value == ["ours", "ours"]


@pytest.mark.parametrize(
    "code",
    [
        "importlib.import_module('hid' + 'den')",
        "exec('import hidden')",
        "__import__('pack.hidden')",
        "__import__('pack.closed.leaf')",
        "__import__('space.hidden')",
    ],
)
def test_a_first_party_import_that_the_source_does_not_show_is_refused(space: Space, code: str) -> None:
    space.write("scripts/a.py", f"import importlib\n\ndef f(): {code}\n")
    space.write("scripts/pack/__init__.py", "")
    hidden = ["hidden.py", "pack/hidden.py", "pack/closed/__init__.py", "space/hidden.py"]
    for path in hidden:
        space.write(f"scripts/{path}", "")
    space.write("scripts/pack/closed/leaf.py", "")
    unseen = tuple(f"scripts/{path}" for path in hidden)
    result = space.workers().call(space.job("scripts/a.py::f", unseen=unseen))
    assert result.error.startswith("ImportError: first-party module ")
    assert "can't be seen from the source" in result.error
    assert "import it plainly" in result.error


def test_what_is_installed_is_still_found(space: Space) -> None:
    space.write("scripts/a.py", "import xxhash\n\ndef f():\n    import colorsys.no_such\n")
    result = space.workers().call(space.job("scripts/a.py::f"))
    assert result.error == "ModuleNotFoundError: No module named 'colorsys.no_such'; 'colorsys' is not a package"


def test_a_script_that_does_not_parse_tells_where(space: Space) -> None:
    space.write("scripts/a.py", "def f():\n    try:\n        pass\n    x = 1\n")
    result = space.workers().call(space.job("scripts/a.py::f"))
    assert result.error == "SyntaxError: expected 'except' or 'finally' block"
    assert "line 4\n    x = 1\n" in result.traceback


def test_processes_that_a_script_forks_have_the_frozen_modules_too(space: Space) -> None:
    script = space.write(
        "scripts/a.py",
        """
        import multiprocessing

        def late(n):
            import b
            return b.X + n

        def f():
            with multiprocessing.get_context("fork").Pool(1) as pool:
                return pool.map(late, [1, 2])
        """,
    )
    neighbour = space.write("scripts/b.py", "X = 1\n")
    job = space.job("scripts/a.py::f")
    script.unlink()
    neighbour.write_text("X = 10\n")
    assert space.workers().call(job).value == [2, 3]
