"""What one source text imports, defines and is."""

from __future__ import annotations

import pytest

from buildsys.code.parse import Broken, Import, Module, parse
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


# ---------------------------------------------------------------- the digest

TEXT = "def f(a, b=1):\n    return [a, 'b', 16]\n"


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n" + TEXT,
        TEXT + "\n\n\n# the end",
        TEXT.replace("\n", "\r\n"),
        'def f(a,\n      b = 1,):\n        return [  a , "b", 0x10, ]',
        "def f(a, b=1): return ([a, ('b'), 1_6])",
        "# -*- coding: utf-8 -*-\n" + TEXT.replace("'b'", "'' 'b'"),
    ],
)
def test_comments_and_formatting_do_not_count(text: str) -> None:
    assert parsed(text).digest == parsed(TEXT).digest


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("16", "17"),
        TEXT.replace("16", "16.0"),
        TEXT.replace("'b'", "b'b'"),
        TEXT.replace("'b'", "b"),
        TEXT.replace("b=1", "b=True"),
        TEXT.replace("b=1", "*, b=1"),
        TEXT.replace("a, b", "b, a", 1),
        TEXT.replace("def", "async def"),
        TEXT.replace("a,", "a: int,", 1),
        TEXT.replace("    return", "    'what it gives'\n    return"),
        "@cache\n" + TEXT,
        TEXT + "f(1)\n",
        "from __future__ import annotations\n" + TEXT,
        "'''A docstring.'''\n" + TEXT,
        "",
    ],
)
def test_all_else_counts_also_docstrings_and_annotations(text: str) -> None:
    assert parsed(text).digest != parsed(TEXT).digest


def test_the_path_does_not_count() -> None:
    assert parse("a.py", TEXT).digest == parse("b/c.py", TEXT).digest


# ---------------------------------------------------------------- imports


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a", Import("a")),
        ("import a.b.c", Import("a.b.c")),
        ("import a.b.c as d", Import("a.b.c")),
        ("from a import b", Import("a", ("b",))),
        ("from a.b import c as d, e", Import("a.b", ("c", "e"))),
        ("from a import *", Import("a", ("*",))),
        ("from . import a", Import("", ("a",), 1)),
        ("from ...a.b import c", Import("a.b", ("c",), 3)),
        ("if x:\n    import a", Import("a")),
        ("try:\n    b()\nexcept E:\n    import a", Import("a")),
        ("with x:\n    import a", Import("a")),
        ("class C:\n    import a", Import("a")),
        ("def f():\n    import a", Import("a", deferred=True)),
        ("async def f():\n    import a", Import("a", deferred=True)),
        ("def f():\n    if x:\n        import a", Import("a", deferred=True)),
        ("class C:\n    def f(self):\n        import a", Import("a", deferred=True)),
        ("if TYPE_CHECKING:\n    import a", Import("a", deferred=True)),
        ("if typing.TYPE_CHECKING:\n    import a", Import("a", deferred=True)),
        ("if TYPE_CHECKING:\n    b()\nelse:\n    import a", Import("a")),
        ("if TYPE_CHECKING:\n    b()\nelif x:\n    import a", Import("a")),
        ("if not TYPE_CHECKING:\n    import a", Import("a")),
        ("if not typing.TYPE_CHECKING:\n    import a", Import("a")),
    ],
)
def test_an_import_is_found_wherever_it_stands(text: str, found: Import) -> None:
    assert parsed(text).imports == (found,)


def test_one_statement_may_be_several_imports() -> None:
    assert parsed("import a, b.c as d").imports == (Import("a"), Import("b.c"))


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "dynamic"),
    [
        ("__import__('a')", True),
        ("exec('import a')", True),
        ("run = eval", True),
        ("import importlib\nimportlib.import_module('a')", True),
        ("from importlib import import_module as get", True),
        ("import importlib.util", True),
        ("def f():\n    import runpy", True),
        ("from pkgutil import walk_packages", True),
        ("import a\na.b()", False),
        ("model.eval()", False),
        ("cursor.exec('x')", False),
        ("'__import__'", False),
        ("import importlib_metadata", False),
        ("from . import importer", False),
    ],
)
def test_a_module_is_dynamic_where_it_may_import_by_a_computed_name(text: str, dynamic: bool) -> None:
    assert parsed(text).dynamic is dynamic


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
        ("from x import *", {"*"}),
        ("if x:\n    def f(): ...\nelse:\n    f = None", {"f"}),
        ("try:\n    from x import f\nexcept E:\n    def g(): ...", {"f", "g"}),
        ("with open(x) as f: pass", {"f"}),
        ("for f in x: pass", {"f"}),
        ("f", set()),
    ],
)
def test_a_module_defines_what_its_top_level_binds(text: str, names: set[str]) -> None:
    assert parsed(text).defines == names
