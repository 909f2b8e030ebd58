"""The outline of a text: what it imports and binds, and what it may do that no statement shows."""

from __future__ import annotations

import ast

import pytest

from buildsys.code.outline import Imported, Outline, outline


def outlined(text: str) -> Outline:
    return outline(text, ast.parse(text))


def imported(text: str) -> dict[str, Imported]:
    return {one.written: one for one in outlined(text).imports}


def test_every_import_is_told_with_its_place() -> None:
    found = outlined("import os, torch.nn as nn\n\ndef f():\n    from ..lib import a, b\n").imports
    assert found == (
        Imported("os", (), 0, 1, 1, 25),
        Imported("torch.nn", (), 0, 1, 1, 25),
        Imported("lib", ("a", "b"), 2, 4, 5, 22, called=True),
    )


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import x\nexcept ImportError:\n    pass\n",
        "try:\n    pass\nexcept ImportError:\n    import x\n",
        "try:\n    import x\nexcept:\n    pass\n",
        "if a:\n    import x\n",
        "if a:\n    pass\nelse:\n    import x\n",
        "with suppress(ImportError):\n    import x\n",
        "match a:\n    case 1:\n        import x\n",
        "def f():\n    if a:\n        import x\n",
    ],
)
def test_what_the_text_can_do_without_is_optional(text: str) -> None:
    assert imported(text)["x"].optional


@pytest.mark.parametrize(
    "text",
    [
        "import x\n",
        "try:\n    import x\nexcept ValueError:\n    pass\n",
        "try:\n    import x\nfinally:\n    pass\n",
        "for a in b:\n    import x\n",
        "class A:\n    import x\n",
        "with a:\n    import x\n",
    ],
)
def test_what_it_can_not_do_without_is_not(text: str) -> None:
    assert not imported(text)["x"].optional


def test_imports_for_type_checkers_are_none_and_those_of_a_program_are_marked() -> None:
    assert imported("if typing.TYPE_CHECKING:\n    import x\n") == {}
    assert imported("if __name__ == '__main__':\n    import x\n")["x"].main


def test_all_names_that_a_module_binds_are_told() -> None:
    text = """
import a.b, c as d
from e import f as g
h = i, *j = 1, 2
for k in h: l: int = 1
with open(k) as m: pass
try: pass
except ValueError as n: pass
match h:
    case [o, *p]: pass
    case {"q": r, **s}: pass
def t(no):
    global u
    u = no2 = 1
class v:
    no3 = 1
[w := x for x in h]
y = lambda no4: no4
"""
    assert outlined(text).binds == frozenset("a d g h i j k l m n o p r s t u v w x y".split())


@pytest.mark.parametrize(
    "text",
    [
        "globals()['x'] = 1\n",
        "exec('x = 1')\n",
        "@enum.global_enum\nclass A: ...\n",
        "import sys\nsys.modules[__name__] = 1\n",
        "E._convert_('E', __name__, str)\n",
        "vars()['x'] = 1\n",
    ],
)
def test_a_module_that_may_bind_more_is_opaque(text: str) -> None:
    assert outlined(text).opaque


@pytest.mark.parametrize(
    "text",
    [
        "import builtins\nbuiltins.x = 1\n",
        "__builtins__['x'] = 1\n",
        "import gettext\ngettext.install('x')\n",
        "import sys\nsetattr(sys.modules[a], b, 1)\n",
        "from sys import *\n",
        "import inspect\ninspect.currentframe().f_back.f_globals['x'] = 1\n",
        "def f(): ...\nf.__globals__.update(x=1)\n",
        "import sys as system\nsystem.modules\n",
        "from sys import modules\n",
        "import a\nsetattr(a, b, 1)\n",
        "import a\nvars(a)[b] = 1\n",
        "import a\na.__dict__[b] = 1\n",
    ],
)
def test_a_module_that_may_give_others_names_meddles(text: str) -> None:
    assert outlined(text).meddles


def test_what_it_sets_in_others_is_told() -> None:
    assert outlined("import a\na.x = a.y.z = b.n = 1\na.w += 1\n").sets == {"x", "w"}


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.path.insert(0, 'x')\n",
        "from sys import path\n",
        "import site\nsite.addsitedir('x')\n",
        "__path__ = []\n",
    ],
)
def test_a_module_that_may_import_from_anywhere_moves(text: str) -> None:
    assert outlined(text).moves


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.path.join('x')\n",
        "from sys import argv, exit\n",
        "self.modules()\nmodel.eval()\nsetattr(self, 'x', 1)\nvars(args)\nself.__dict__\n",
    ],
)
def test_what_only_looks_like_it_is_plain(text: str) -> None:
    found = outlined(text)
    assert (found.opaque, found.meddles, found.moves) == (False, False, False)
