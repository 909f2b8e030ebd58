"""What a worker imports: exactly the sources that it was given, named as Python would name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from buildsys.run.frozen import Home
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


# ---------------------------------------------------------------- what is installed as editable


def elsewhere(space: Space, target: str, homes: Sequence[Home], sources: Mapping[str, str]) -> object:
    """What a function gives with these modules in reach, whose files lie in the homes only as they are on disk."""
    job = space.job(target)
    result = space.workers().call(replace(job, sources={**job.sources, **sources}, homes=tuple(homes)))
    assert result.ok, result.error + result.traceback
    return result.value


def test_an_editable_package_outside_is_served_from_its_frozen_texts(
    space: Space, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lib = tmp_path_factory.mktemp("elsewhere") / "impl"
    lib.mkdir()
    (lib / "__init__.py").write_text("WORD = 'new'\n")
    (lib / "data.txt").write_text("data")
    text = "from .deep import WORD\nfrom pathlib import Path\nDATA = (Path(__file__).parent / 'data.txt').read_text()\n"
    space.write("scripts/a.py", "import lib.deep\n\ndef f(): return [lib.WORD, lib.DATA, lib.deep.__file__]\n")
    sources = {"<lib>/lib/__init__.py": text, "<lib>/lib/deep.py": "WORD = 'old'\n"}
    found = elsewhere(space, "scripts/a.py::f", [("lib", "<lib>/lib", str(lib))], sources)
    assert found == ["old", "data", str(lib / "deep.py")]


def test_a_folder_of_editable_modules_is_searched_after_that_of_the_script(space: Space) -> None:
    space.write("scripts/a.py", "import one, two\n\ndef f(): return [one.X, two.X]\n")
    space.write("scripts/one.py", "X = 'own'\n")
    sources = {"<lib>/one/__init__.py": "X = 'lib'", "<lib>/two.py": "import one\nX = one.X + ' by lib'\n"}
    assert elsewhere(space, "scripts/a.py::f", [("", "<lib>", "/nowhere/src")], sources) == ["own", "own by lib"]


def test_editable_code_of_the_project_is_found_by_the_name_that_it_is_installed_under(space: Space) -> None:
    space.write("scripts/a.py", "import tool.x\nfrom own import y\n\ndef f(): return [tool.x.X, y.Y]\n")
    homes = [("tool", "libs/tool/impl", "/another/spelling"), ("", "src", "/another/spelling/src")]
    sources = {"libs/tool/impl/__init__.py": "", "libs/tool/impl/x.py": "X = 1", "src/own/y.py": "Y = 2"}
    assert elsewhere(space, "scripts/a.py::f", homes, sources) == [1, 2]


def test_parts_of_a_namespace_are_found_wherever_they_lie(space: Space) -> None:
    script = """
    import ns.own, ns.one, ns.two
    from xml import sax

    def f():
        return [ns.own.X, ns.one.X, ns.two.X, sax.__name__]
    """
    space.write("scripts/a.py", script)
    space.write("scripts/ns/own.py", "X = 'own'\n")
    homes = [("ns.one", "<one>/ns/one", "/nowhere/one"), ("", "<two>", "/nowhere/two")]
    sources = {"<one>/ns/one.py": "X = 'one'", "<two>/ns/two/__init__.py": "X = 'two'", "<two>/xml/x.py": ""}
    assert elsewhere(space, "scripts/a.py::f", homes, sources) == ["own", "one", "two", "xml.sax"]


def test_a_part_of_a_namespace_that_is_installed_is_found_beside_editable_ones(space: Space) -> None:
    script = """
    import sys
    sys.path.append("installed")
    import ns.two, ns.three

    def f():
        return [ns.two.X, ns.three.X]
    """
    space.write("scripts/a.py", script)
    space.write("installed/ns/three.py", "X = 'three'\n")
    sources = {"<two>/ns/two.py": "X = 'two'"}
    assert elsewhere(space, "scripts/a.py::f", [("", "<two>", "/nowhere/two")], sources) == ["two", "three"]


def test_a_module_of_an_editable_package_that_was_not_seen_is_refused(
    space: Space, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lib = tmp_path_factory.mktemp("elsewhere") / "lib"
    lib.mkdir()
    (lib / "other.py").write_text("")
    space.write("scripts/a.py", "import lib, importlib\n\ndef f(): importlib.import_module('lib.other')\n")
    job = space.job("scripts/a.py::f")
    homes = (("lib", "<lib>/lib", str(lib)),)
    result = space.workers().call(replace(job, sources={**job.sources, "<lib>/lib/__init__.py": ""}, homes=homes))
    assert "first-party module lib.other was imported in a way that can't be seen" in result.error
