"""What is computed in a script: the code that it may reach by it counts, and what can't be known is not refused."""

from __future__ import annotations

import sys

import pytest

from buildsys.code.parse import Broken, parse
from buildsys.code.slice import slice_of
from tests.code.texts import SCRIPT, Texts, reach_of, texts


def taken(script: str, beside: dict[str, str]) -> str:
    """The files in reach but the script, relative to its folder; `lib/x.py` lies beside the folder."""
    tree = Texts({**texts(script, beside), "lib/x.py": "import y\n", "lib/y.py": "", "setup.py": "("})
    found = reach_of(SCRIPT, tree)
    assert found is not None
    return " ".join(sorted(path.removeprefix("scripts/") for path in found.texts if path != SCRIPT))


# ---------------------------------------------------------------- star imports of packages

SUB = "sub = 1\n"


@pytest.mark.parametrize(
    ("script", "init", "found"),
    [
        ("from pkg import *", "", ""),
        ("from pkg import *", "x = 1", ""),
        ("from pkg import *", "__all__ = ['sub']", "pkg/sub.py"),
        ("from pkg import *", "__all__: list = ('sub', 'name')", "pkg/sub.py"),
        ("from pkg import *", "__all__ = []\n__all__ += ['sub']", "pkg/sub.py"),
        ("from pkg import *", "__all__ = ['deep']", "pkg/deep/__init__.py"),
        ("from pkg import *", "__all__ = sorted(NAMES)", "pkg/deep/__init__.py pkg/sub.py"),
        ("from pkg import *", "__all__ = ['sub'] + NAMES", "pkg/deep/__init__.py pkg/sub.py"),
        ("from pkg import *", "__all__ = []\n__all__.append('sub')", "pkg/deep/__init__.py pkg/sub.py"),
        ("from pkg import *", "globals()['__all__'] = NAMES", "pkg/deep/__init__.py pkg/sub.py"),
        ("from pkg import *", "from names import __all__", "pkg/deep/__init__.py pkg/sub.py"),
        ("import pkg", "__all__ = ['sub']", ""),
    ],
)
def test_a_star_import_takes_the_modules_that_the_package_lists(script: str, init: str, found: str) -> None:
    beside = {"pkg/__init__.py": init, "pkg/sub.py": SUB, "pkg/deep/__init__.py": ""}
    assert taken(script, beside).split() == sorted(["pkg/__init__.py", *found.split()])


# ---------------------------------------------------------------- code elsewhere

EVERYTHING = "a.py lib/x.py lib/y.py setup.py"


@pytest.mark.parametrize(
    "script",
    [
        "import sys\nsys.path.insert(0, 'lib')\nimport x",
        "import sys as system\nsystem.path[:0] = ['lib']",
        "from sys import path\npath.append('lib')",
        "import site\nsite.addsitedir('lib')",
        "from importlib.util import spec_from_file_location as spec",
        "import importlib.machinery as m\nm.SourceFileLoader('x', name)",
        "import runpy\nrunpy.run_path(name)",
        "exec(open(name).read())",
        "__path__.append('lib')",
        "import subprocess, sys\nsubprocess.run([sys.executable, 'lib/x.py'])",
        "run(f'lib/{name}.py')",
        "os.system('python lib/x.py --fast')",
    ],
)
def test_a_script_that_may_run_code_of_other_folders_takes_all_of_the_project(script: str) -> None:
    assert taken(script, {"a.py": ""}) == EVERYTHING


@pytest.mark.parametrize(
    "script", ["import os\nos.path.join('a')", "self.path", "import sys\nsys.argv", "x = 'a.pyc'", '"""See x.py."""']
)
def test_a_script_that_runs_no_code_of_other_folders_takes_none(script: str) -> None:
    assert taken(script, {"a.py": ""}) == ""


def test_what_may_be_ours_or_installed_is_not_imported_before_it_is_asked_for() -> None:
    tree = Texts({SCRIPT: "import sys, x, torch, pack.z\nsys.path.append('lib')", "lib/x.py": "", "lib/pack/z.py": ""})
    assert slice_of(SCRIPT, "", tree).preload == {"torch"}


# ---------------------------------------------------------------- computed imports


@pytest.mark.parametrize(
    "script",
    [
        "import builtins\nbuiltins.__import__('a')",
        "__builtins__.__import__('a')",
        "import importlib as il\nil.import_module('a')",
        "from importlib import import_module as im\nim('a')",
        "tools.import_module('a')",
    ],
)
def test_a_computed_import_is_seen_under_any_name(script: str) -> None:
    assert taken(script, {"a.py": ""}) == "a.py"


# ---------------------------------------------------------------- computed definitions


@pytest.mark.parametrize(
    "script",
    [
        "from impl import *",
        "globals()['f'] = g",
        "globals().update(names)",
        "vars().update(names)",
        "exec(code)",
        "import sys\nsetattr(sys.modules[__name__], 'f', g)",
        "import sys\nsys.modules[__name__] = other",
        "def __getattr__(name): ...",
        "def make():\n    global f\n    f = 1\nmake()",
    ],
)
def test_a_function_that_may_be_defined_is_not_refused(script: str) -> None:
    assert slice_of(SCRIPT, "f", texts(script, {"impl.py": "def f(): ...\n"})).fingerprint


@pytest.mark.parametrize("script", ["vars(args)", "model.eval()", "def make():\n    global g\n    g = 1"])
def test_a_function_that_can_not_be_defined_is_refused(script: str) -> None:
    with pytest.raises(Broken, match='defines no "f"'):
        slice_of(SCRIPT, "f", texts(script))


# ---------------------------------------------------------------- long expressions


def called_from(depth: int, text: str) -> str:
    return called_from(depth - 1, text) if depth else parse(SCRIPT, text).units[0].code.digest


def test_a_long_expression_has_one_digest_wherever_it_is_asked_for() -> None:
    text = "x = " + " + ".join(["y"] * 1_500)
    assert called_from(0, text) == called_from(sys.getrecursionlimit() // 5, text)
    assert called_from(0, text) == called_from(0, text.replace("+", " +  ") + "  # formatted"), "formatting is nothing"
    assert called_from(0, text) != called_from(0, text[:-1] + "z")
