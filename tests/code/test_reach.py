"""Imports as written -> the files that they run, over a project that is a dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from buildsys.code.parse import Broken
from buildsys.code.reach import Reach
from tests.code.texts import FOLDER, SCRIPT, Texts, reach_of, texts

BROKEN = "try:\n"
PKG = "pkg/__init__.py"
SUB = "pkg/sub/__init__.py"


def reached(script: str, beside: str | Mapping[str, str] = "") -> Reach:
    found = reach_of(SCRIPT, texts(script, beside))
    assert found is not None
    return found


def files(found: Reach) -> str:
    """The modules in reach beside the script, by their paths from its folder."""
    assert SCRIPT in found.modules
    return " ".join(sorted(path.removeprefix(f"{FOLDER}/") for path in found.modules if path != SCRIPT))


# ---------------------------------------------------------------- absolute imports


@pytest.mark.parametrize(
    ("line", "beside", "found"),
    [
        ("import a", "a.py b.py", "a.py"),
        ("import a, b", "a.py b.py", "a.py b.py"),
        ("import a as b", "a.py b.py", "a.py"),
        ("import pkg", "pkg/__init__.py pkg/x.py", PKG),
        ("import pkg.x", "pkg/__init__.py pkg/x.py", f"{PKG} pkg/x.py"),
        ("import pkg.sub.x as y", f"{PKG} {SUB} pkg/sub/x.py pkg/y.py y.py", f"{PKG} {SUB} pkg/sub/x.py"),
        ("from pkg.sub.x import y", f"{PKG} {SUB} pkg/sub/x.py pkg/y.py", f"{PKG} {SUB} pkg/sub/x.py"),
        ("from pkg.sub import x", f"{PKG} {SUB} pkg/sub/x.py", f"{PKG} {SUB} pkg/sub/x.py"),
        ("from pkg import sub", f"{PKG} {SUB} pkg/sub/x.py", f"{PKG} {SUB}"),
        ("from pkg import name", f"{PKG} pkg/x.py", PKG),
        ("from pkg import x as y, z", f"{PKG} pkg/x.py pkg/y.py pkg/z.py", f"{PKG} pkg/x.py pkg/z.py"),
        ("from a import *", "a.py b.py", "a.py"),
        ("import one", "", ""),
        ("import a.x", "a.py x.py", "a.py"),
    ],
)
def test_an_import_reaches_the_module_and_all_packages_above_it(line: str, beside: str, found: str) -> None:
    assert files(reached(line, beside)) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import ns.x", "ns/x.py"),
        ("from ns import x", "ns/x.py"),
        ("from ns.x import name", "ns/x.py"),
        ("import ns.deep.y", "ns/deep/y.py"),
        ("from ns.deep import y", "ns/deep/y.py"),
        ("import ns", ""),
        ("from ns import *", ""),
    ],
)
def test_a_folder_without_an_init_is_a_package_too(line: str, found: str) -> None:
    assert files(reached(line, "ns/x.py ns/deep/y.py")) == found


def test_a_package_wins_over_a_module_of_its_name_and_a_module_over_a_bare_folder() -> None:
    assert files(reached("import a", "a.py a/__init__.py")) == "a/__init__.py"
    assert files(reached("import a", "a.py a/x.py")) == "a.py"


def test_a_module_beside_the_script_wins_over_an_installed_one() -> None:
    found = reached("import json, torch.nn", "json.py torch/__init__.py torch/nn.py")
    assert files(found) == "json.py torch/__init__.py torch/nn.py"
    assert found.external == found.preload == set()


def test_modules_are_named_from_the_script_s_folder_alone() -> None:
    tree = Texts({"deep/scripts/one.py": "import a\nimport deep.b", "a.py": "", "deep/a.py": "", "deep/b.py": ""})
    found = reach_of("deep/scripts/one.py", tree)
    assert found is not None
    assert set(found.modules) == {"deep/scripts/one.py"}
    assert found.external == {"a", "deep"}


def test_a_script_in_the_project_s_folder_reaches_what_is_beside_it() -> None:
    found = reach_of("one.py", texts("import a\nfrom pkg import x", f"a.py {PKG} pkg/x.py", folder=""))
    assert found is not None
    assert set(found.modules) == {"one.py", "a.py", PKG, "pkg/x.py"}


# ---------------------------------------------------------------- relative imports

TREE = (PKG, "pkg/x.py", "pkg/y.py", SUB, "pkg/sub/m.py", "pkg/sub/x.py", "pkg/other/__init__.py", "pkg/other/z.py")


@pytest.mark.parametrize(
    ("module", "line", "more"),
    [
        ("pkg/sub/m.py", "from . import x", "pkg/sub/x.py"),
        ("pkg/sub/m.py", "from .x import name", "pkg/sub/x.py"),
        ("pkg/sub/m.py", "from . import name", ""),
        ("pkg/sub/m.py", "from . import *", ""),
        ("pkg/sub/m.py", "from .. import y", "pkg/y.py"),
        ("pkg/sub/m.py", "from ..y import name", "pkg/y.py"),
        ("pkg/sub/m.py", "from .. import x, y as x", "pkg/x.py pkg/y.py"),
        ("pkg/sub/m.py", "from ..other import z", "pkg/other/__init__.py pkg/other/z.py"),
        ("pkg/sub/m.py", "from ..other.z import name", "pkg/other/__init__.py pkg/other/z.py"),
        ("pkg/sub/m.py", "from ..other import *", "pkg/other/__init__.py"),
        (SUB, "from . import x", "pkg/sub/x.py"),
        (SUB, "from .x import name", "pkg/sub/x.py"),
        (SUB, "from .. import y", "pkg/y.py"),
        (SUB, "from ..other.z import name", "pkg/other/__init__.py pkg/other/z.py"),
        (PKG, "from . import x", "pkg/x.py"),
        (PKG, "from .x import name as other", "pkg/x.py"),
        (PKG, "from .other import z", "pkg/other/__init__.py pkg/other/z.py"),
        (PKG, "from . import name", ""),
        (PKG, "import x", ""),
    ],
)
def test_a_relative_import_counts_its_dots_from_the_file_that_it_is_in(module: str, line: str, more: str) -> None:
    beside = dict.fromkeys(TREE, "") | {module: line}
    always = [PKG, SUB, "pkg/sub/m.py"]
    assert files(reached("import pkg.sub.m", beside)) == " ".join(sorted({*always, *more.split()}))


def test_a_relative_import_is_never_one_of_a_distribution() -> None:
    found = reached("import pkg", {PKG: "from .missing import a\nfrom . import torch"})
    assert (files(found), found.external) == (PKG, set())


# ---------------------------------------------------------------- what is followed


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import a",
        "def f():\n    def g():\n        from a import b",
        "class C:\n    def f(self):\n        import a",
        "async def f():\n    import a",
        "if x:\n    y\nelse:\n    import a",
        "try:\n    import missing\nexcept ImportError:\n    import a",
        "try:\n    x\nfinally:\n    import a",
        "while x:\n    import a",
        "with x:\n    import a",
        "match x:\n    case 1:\n        import a",
        "if False:\n    import a",
        "if __name__ == '__main__':\n    import a",
    ],
)
def test_an_import_counts_wherever_it_stands(text: str) -> None:
    assert files(reached(text, "a.py b.py")) == "a.py"


def test_imports_are_followed_through_modules() -> None:
    beside = {
        "a.py": "import b",
        "b.py": "from pkg.x import y",
        PKG: "import c",
        "pkg/x.py": "",
        "c.py": "",
        "d.py": "",
    }
    assert files(reached("import a", beside)) == "a.py b.py c.py pkg/__init__.py pkg/x.py"


@pytest.mark.parametrize(
    "beside",
    [
        {"a.py": "import one"},
        {"a.py": "import b", "b.py": "import a"},
        {"a.py": "from b import *", "b.py": "from a import *"},
        {"a.py": "import pkg", PKG: "from . import x", "pkg/x.py": "from . import x\nimport a"},
    ],
    ids=["through the script", "two modules", "stars", "a package and its module"],
)
def test_modules_that_import_each_other_are_all_reached(beside: dict[str, str]) -> None:
    assert files(reached("import a", beside)) == " ".join(sorted(beside))


# ---------------------------------------------------------------- computed imports

AROUND = "b.py pkg/__init__.py pkg/x.py"


@pytest.mark.parametrize(
    "text",
    [
        "__import__(name)",
        "import importlib\nimportlib.import_module(x)",
        "def f():\n    from importlib import import_module as get",
        "exec(code)",
    ],
)
def test_a_computed_import_may_name_any_module_of_the_folder(text: str) -> None:
    assert files(reached(text, AROUND)) == AROUND


def test_a_computed_import_in_a_module_in_reach_widens_too() -> None:
    beside = {"a.py": "eval('b')", **dict.fromkeys(AROUND.split(), "")}
    assert files(reached("import a", beside)) == f"a.py {AROUND}"


def test_a_computed_import_out_of_reach_does_not_widen() -> None:
    assert files(reached("import a", {"a.py": "", "b.py": "import importlib\nimportlib.import_module(x)"})) == "a.py"


def test_a_computed_import_widens_to_the_script_s_folder_alone() -> None:
    tree = Texts(
        {SCRIPT: "import importlib\nimportlib.import_module(x)", "scripts/a.py": "", "b.py": "", "scripts2/c.py": ""}
    )
    found = reach_of(SCRIPT, tree)
    assert found is not None
    assert set(found.modules) == {SCRIPT, "scripts/a.py"}


# ---------------------------------------------------------------- broken modules


@pytest.mark.parametrize(
    ("script", "beside", "place"),
    [
        (BROKEN, {}, SCRIPT),
        ("import a", {"a.py": BROKEN}, "scripts/a.py"),
        ("def f():\n    import a", {"a.py": BROKEN}, "scripts/a.py"),
        ("import a", {"a.py": "import b", "b.py": BROKEN}, "scripts/b.py"),
        ("import pkg.x", {PKG: BROKEN, "pkg/x.py": ""}, f"scripts/{PKG}"),
        ("import importlib, a", {"a.py": BROKEN}, "scripts/a.py"),
        ("import importlib, a", {"a.py": "import b", "b.py": BROKEN}, "scripts/b.py"),
        ("import importlib\nimportlib.import_module(x)", {"a.py": "import b", "b.py": BROKEN}, "scripts/b.py"),
    ],
)
def test_a_broken_module_that_is_named_is_told_by_its_place(script: str, beside: dict[str, str], place: str) -> None:
    with pytest.raises(Broken) as caught:
        reached(script, beside)
    assert caught.value.place is not None
    assert caught.value.place.path == place


def test_a_broken_module_out_of_reach_is_no_matter() -> None:
    found = reached("import a", {"a.py": "", "b.py": BROKEN})
    assert (files(found), found.broken) == ("a.py", ())


def test_a_broken_module_that_a_computed_import_may_name_counts_by_its_text() -> None:
    found = reached("import importlib\nimportlib.import_module(x)", {"a.py": "", "b.py": BROKEN, "c.py": BROKEN})
    assert (files(found), found.broken) == ("a.py", ("scripts/b.py", "scripts/c.py"))
    assert found.texts["scripts/b.py"] == BROKEN


def test_a_missing_script_has_no_reach() -> None:
    assert reach_of("scripts/two.py", texts("")) is None


def test_the_texts_are_those_of_all_that_is_in_reach() -> None:
    beside = {"a.py": "x = 1", "b.py": "x = 2"}
    assert reached("import a", beside).texts == {SCRIPT: "import a", "scripts/a.py": "x = 1"}


# ---------------------------------------------------------------- what is not ours


@pytest.mark.parametrize(
    ("text", "external", "preload"),
    [
        ("import torch", "torch", "torch"),
        ("import torch.nn as nn", "torch", "torch.nn"),
        ("from torch import nn, save as s", "torch", "torch:nn torch:save"),
        ("from torch.nn import *", "torch", "torch.nn"),
        ("import os.path", "os", "os.path"),
        ("def f():\n    import torch", "torch", ""),
        ("class C:\n    import torch", "torch", "torch"),
        ("class C:\n    def f(self):\n        import torch", "torch", ""),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch", "torch"),
        ("if TYPE_CHECKING:\n    import torch", "", ""),
        ("if TYPE_CHECKING:\n    import torch\nelse:\n    import numpy", "numpy", "numpy"),
        ("import torch\ndef f():\n    import torch.nn", "torch", "torch"),
        ("import pkg.missing", "", ""),
        ("import a\nimport pkg", "a2", "a2"),
    ],
)
def test_names_that_are_not_ours_are_told_and_whether_importing_needs_them(
    text: str, external: str, preload: str
) -> None:
    found = reached(text, {PKG: "", "a.py": "import a2"})
    assert (found.external, found.preload) == (set(external.split()), set(preload.split()))


# ---------------------------------------------------------------- editable installs

LIB = "<lib>/lib/__init__.py"


def reached_with(script: str, elsewhere: Mapping[str, str], beside: str = "", needs: Sequence[str] = ()) -> Reach:
    tree = Texts(texts(script, beside) | elsewhere)
    tree.needs = {"outside": needs}
    found = reach_of(SCRIPT, tree)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("line", "elsewhere", "found"),
    [
        ("import lib", {LIB: "", "<lib>/lib/x.py": ""}, LIB),
        ("import lib.x", {LIB: "", "<lib>/lib/x.py": ""}, f"{LIB} <lib>/lib/x.py"),
        ("from lib import x", {LIB: "", "<lib>/lib/x.py": ""}, f"{LIB} <lib>/lib/x.py"),
        ("import lib", {"<lib>/lib.py": ""}, "<lib>/lib.py"),
        ("import lib", {LIB: "from .x import *", "<lib>/lib/x.py": "import other"}, f"{LIB} <lib>/lib/x.py"),
        ("import lib", {LIB: "import lib.x", "<lib>/lib/x.py": ""}, f"{LIB} <lib>/lib/x.py"),
        ("import ns.a, ns.b", {"<a>/ns/a.py": "", "<b>/ns/b.py": ""}, "<a>/ns/a.py <b>/ns/b.py"),
        ("from ns import a, b", {"<a>/ns/a.py": "", "<b>/ns/b.py": ""}, "<a>/ns/a.py <b>/ns/b.py"),
        ("from lib import *", {LIB: "__all__ = ['x']", "<lib>/lib/x.py": ""}, f"{LIB} <lib>/lib/x.py"),
    ],
)
def test_what_is_installed_as_editable_is_first_party_code(line: str, elsewhere: dict[str, str], found: str) -> None:
    reached = reached_with(line, elsewhere)
    assert files(reached) == found
    assert reached.external <= {"other"}


def test_a_module_beside_the_script_hides_an_editable_one() -> None:
    assert files(reached_with("import lib", {LIB: ""}, "lib.py")) == "lib.py"


def test_an_editable_module_finds_what_lies_beside_the_script() -> None:
    assert files(reached_with("import lib", {LIB: "import own"}, "own.py")) == f"{LIB} own.py"


def test_a_computed_import_in_an_editable_package_takes_all_of_it() -> None:
    elsewhere = {LIB: "import importlib\nimportlib.import_module(x)", "<lib>/lib/x.py": "", "<lib>/more.py": ""}
    assert files(reached_with("import lib", elsewhere)) == f"{LIB} <lib>/lib/x.py"


def test_what_a_distribution_needs_that_is_editable_is_in_reach_with_all_its_modules() -> None:
    found = reached_with("import outside", {LIB: "", "<lib>/lib/x.py": "", "<lib>/one.py": ""}, needs=["<lib>/lib"])
    assert files(found) == f"{LIB} <lib>/lib/x.py"
    assert found.external == {"outside"}
    assert found.preload == set(), "a zygote would run it"
