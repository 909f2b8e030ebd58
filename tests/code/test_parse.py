"""What one source text imports, defines and is."""

from __future__ import annotations

import pytest

from buildsys.code.parse import Broken, Module, parse
from buildsys.code.scopes import Alias
from buildsys.code.units import Function, Unit
from buildsys.errors import FAILED, Place


def parsed(text: str) -> Module:
    return parse("scripts/one.py", text)


# ---------------------------------------------------------------- broken texts


@pytest.mark.parametrize(
    ("text", "problem", "line", "column"),
    [
        ("try:\n    a()\nb()\n", "expected 'except' or 'finally' block", 3, 1),
        ("def f(:\n    pass\n", "invalid syntax", 1, 7),
        ("x = (1,\n", "'(' was never closed", 1, 5),
    ],
)
def test_a_text_that_is_no_python_is_told_by_line_and_column(text: str, problem: str, line: int, column: int) -> None:
    with pytest.raises(Broken) as caught:
        parsed(text)
    error = caught.value
    assert (error.problem, error.place) == (problem, Place("scripts/one.py", line, column))
    assert f"→ {line} │ {text.splitlines()[line - 1]}" in error.excerpt
    assert error.exit_code == FAILED


def test_a_null_byte_is_broken_and_no_bug() -> None:
    with pytest.raises(Broken, match="null bytes"):
        parsed("x = 1\0")


@pytest.mark.parametrize("text", ["x = " + "(" * 300 + ")" * 300, "x = a" + ".b()" * 20_000], ids=["round", "chained"])
def test_what_is_nested_too_deeply_for_python_is_broken_and_no_bug(text: str) -> None:
    with pytest.raises(Broken, match="nested"):
        parsed(text)


def test_what_is_nested_as_deeply_as_python_can_has_a_digest() -> None:
    arms = [f"elif x == {n}:\n    y = {n}\n" for n in range(600)]
    text = "if x:\n    y = 1\n" + "".join(arms)
    compile(text, "one.py", "exec")
    assert parsed(text).digest == parsed(text).digest != parsed(text.replace("y = 7\n", "y = 8\n")).digest


def test_an_invalid_escape_in_a_script_is_no_warning_of_ours() -> None:
    assert parsed("x = '\\d'").defines == {"x"}


# ---------------------------------------------------------------- the digests

TEXT = "def f(a, b=1):\n    return [a, 'b', 16]\n"


def digests(text: str, *, docs: bool = False, notes: bool = False) -> list[object]:
    """All that a slice can hold of a text."""

    def of(piece: Unit | Function) -> list[object]:
        code = piece.body if isinstance(piece, Function) else piece.code
        inner = [of(one) for one in (*piece.functions, *(piece.members if isinstance(piece, Unit) else ()))]
        return [code.digest, *inner, *([code.docs] if docs else []), *([code.notes] if notes else [])]

    return [of(unit) for unit in parsed(text).units]


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n" + TEXT,
        TEXT + "\n\n\n# the end",
        TEXT.replace("\n", "\r\n"),
        'def f(a,\n      b = 1,):\n        return [  a , "b", 0x10, ]',
        "def f(a, b=1): return ([a, ('b'), 1_6])",
        "# -*- coding: utf-8 -*-\n" + TEXT.replace("'b'", "'' 'b'"),
        "'''A docstring.'''\n" + TEXT,
        TEXT.replace("    return", "    'what it gives'\n    return"),
        TEXT.replace("    return", "    pass\n    ...\n    return"),
        TEXT.replace("a,", "a: int,", 1),
        TEXT.replace("1):", "1) -> list[int]:"),
        TEXT + "pass\n",
        TEXT + "if TYPE_CHECKING:\n    import a\n",
    ],
)
def test_what_nothing_can_see_does_not_count(text: str) -> None:
    assert digests(text) == digests(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("16", "17"),
        TEXT.replace("16", "16.0"),
        TEXT.replace("16", "-16"),
        TEXT.replace("16", hex(10**5000)),
        TEXT.replace("'b'", "b'b'"),
        TEXT.replace("'b'", "b"),
        TEXT.replace("'b'", "'b' 'a'"),
        TEXT.replace("b=1", "b=True"),
        TEXT.replace("b=1", "*, b=1"),
        TEXT.replace("b=1", "b"),
        TEXT.replace("a, b", "b, a", 1),
        TEXT.replace("def", "async def"),
        TEXT.replace("return", "yield"),
        "@cache\n" + TEXT,
        TEXT + "f(1)\n",
        "",
    ],
)
def test_all_else_counts(text: str) -> None:
    assert digests(text) != digests(TEXT)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n    'one'", "def f():\n    'two'"),
        ("def f():\n    def g():\n        'one'", "def f():\n    def g():\n        'two'"),
        ("class C:\n    'one'", "class C:\n    'two'"),
        ("if x:\n    class C:\n        'one'", "if x:\n    class C:\n        'two'"),
    ],
)
def test_docstrings_are_told_apart(before: str, after: str) -> None:
    assert digests(before) == digests(after)
    assert digests(before, docs=True) != digests(after, docs=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(a: int): ...", "def f(a: str): ..."),
        ("def f() -> int: ...", "def f() -> str: ..."),
        ("def f(*a: int, **b: int): ...", "def f(*a: int, **b: str): ..."),
        ("x: int = 1", "x: str = 1"),
        ("class C:\n    def f(self, a: int): ...", "class C:\n    def f(self, a: str): ..."),
    ],
)
def test_annotations_are_told_apart(before: str, after: str) -> None:
    assert digests(before) == digests(after)
    assert digests(before, notes=True) != digests(after, notes=True)


def test_annotations_of_a_class_body_always_count() -> None:
    assert digests("class C:\n    x: int = 1") != digests("class C:\n    x: str = 1")


# ---------------------------------------------------------------- imports

A = Alias("a", "a", "*chain")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a", A),
        ("import a.b.c", Alias("a", "a.b.c", "*chain")),
        ("import a.b.c as d", Alias("d", "a.b.c")),
        ("from a import b", Alias("b", "a", "b")),
        ("from a.b import c as d", Alias("d", "a.b", "c")),
        ("from a import *", Alias("", "a", "*")),
        ("from . import a", Alias("a", "", "a", 1)),
        ("from ...a.b import c", Alias("c", "a.b", "c", 3)),
        ("if x:\n    import a", A),
        ("try:\n    b()\nexcept E:\n    import a", A),
        ("with x:\n    import a", A),
        ("class C:\n    import a", A),
        ("class C:\n    if x:\n        import a", A),
        ("if TYPE_CHECKING:\n    b()\nelse:\n    import a", A),
        ("if TYPE_CHECKING:\n    b()\nelif x:\n    import a", A),
        ("if not TYPE_CHECKING:\n    import a", A),
        ("if not typing.TYPE_CHECKING:\n    import a", A),
        ("if __name__ == '__main__':\n    import a", A),
        ("import_module('a')", Alias("", "a", "*module")),
    ],
)
def test_an_import_is_found_wherever_it_stands(text: str, found: Alias) -> None:
    assert parsed(text).imports == (found,)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import a",
        "async def f():\n    import a",
        "def f():\n    if x:\n        import a",
        "class C:\n    def f(self):\n        import a",
        "if x:\n    class C:\n        def f(self):\n            import a",
        "def f():\n    def g():\n        import a",
        "def f():\n    class C:\n        import a",
    ],
)
def test_an_import_that_waits_for_a_call_is_deferred(text: str) -> None:
    module = parsed(text)
    assert (module.imports, module.deferred) == ((), (A,))


@pytest.mark.parametrize("text", ["if TYPE_CHECKING:\n    import a", "if typing.TYPE_CHECKING:\n    import a"])
def test_what_only_type_checkers_import_is_none(text: str) -> None:
    module = parsed(text)
    assert (module.imports, module.deferred) == ((), ())


def test_one_statement_may_be_several_imports() -> None:
    assert parsed("import a, b.c as d").imports == (A, Alias("d", "b.c"))


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "dynamic"),
    [
        ("__import__(a)", True),
        ("__import__('a')", False),
        ("exec('import a')", True),
        ("run = eval", True),
        ("import importlib\nimportlib.import_module(a)", True),
        ("import importlib\nimportlib.import_module('a')", False),
        ("import importlib\nimportlib.import_module('.a', 'b')", True),
        ("import importlib\nget = importlib.import_module", True),
        ("import importlib as il\nil.import_module(a)", True),
        ("from importlib import import_module\nget = import_module", True),
        ("from importlib import import_module as get", True),
        ("import importlib.util", False),
        ("def f():\n    import runpy\n    runpy.run_module(a)", True),
        ("import pkgutil\npkgutil.walk_packages(a)", True),
        ("import a\na.b()", False),
        ("model.eval()", False),
        ("cursor.exec('x')", False),
        ("'__import__'", False),
        ("import importlib_metadata", False),
        ("from . import importer", False),
    ],
)
def test_a_module_is_dynamic_where_it_may_import_by_a_computed_name(text: str, dynamic: bool) -> None:
    assert ("import" in parsed(text).computed) is dynamic


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(): pass", {"f"}),
        ("async def f(): pass", {"f"}),
        ("class C:\n    def method(self): ...\n    x = 1", {"C"}),
        ("def f():\n    def g(): ...\n    x = 1", {"f"}),
        ("f = lambda x: x", {"f"}),
        ("f = g = 1", {"f", "g"}),
        ("f, (g, *h) = x", {"f", "g", "h"}),
        ("f: int = 1", {"f"}),
        ("f += 1", {"f"}),
        ("(f := 1)", {"f"}),
        ("x.f = 1\ny['g'] = 2", set()),
        ("import f", {"f"}),
        ("import f.g", {"f"}),
        ("import x.y as f", {"f"}),
        ("from x import f, y as g", {"f", "g"}),
        ("from x import *", set()),
        ("if x:\n    def f(): ...\nelse:\n    f = None", {"f"}),
        ("try:\n    from x import f\nexcept E:\n    def g(): ...", {"f", "g"}),
        ("with open(x) as f: pass", {"f"}),
        ("for f in x: pass", {"f"}),
        ("f", set()),
    ],
)
def test_a_module_defines_what_its_top_level_binds(text: str, names: set[str]) -> None:
    assert parsed(text).defines == names
