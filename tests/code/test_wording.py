"""What Python says of a broken text is told in our words, at the line that a user has to look at."""

from __future__ import annotations

import sys

import pytest

from buildsys.code.findings import Fault, Said, fault_of, is_quiet, read, refined, suspects

LOST_LINES = """\
def f(reply):
    try:
        message = reply["message"]
    reasoning = message.get("reasoning")
    return reasoning
"""


def fault(text: str) -> Fault:
    found = read(text).fault
    assert found is not None
    return found


def test_a_try_that_lost_its_lines_is_told_where_they_are_missed() -> None:
    found = fault(LOST_LINES)
    assert found.problem == "try block without except or finally"
    assert (found.line, found.column) == (4, 5)
    assert "line 2" in found.hint


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("def f():\n    try:\n        a = 1\n\ndef g():\n    pass\n", "try block without except or finally", 5),
        ("def f():\n    try:\n        a = 1\n", "try block without except or finally", 3),
        ("if a:\n    try:\n        b = 1\nelse:\n    b = 2\n", "try block without except or finally", 4),
        (
            "def f():\n    try:\n        a = 1\n    except E:\n    return a\n",
            "nothing is indented below the `except` in line 4",
            5,
        ),
        ("for a in b:\nprint(a)\n", "nothing is indented below the `for` in line 1", 2),
        ("def f():\n\nx = 1\n", "nothing is indented below the function definition in line 1", 3),
        ("def f():\n    a = 1\n    except E:\n        a = 2\n", "`except` without `try` above it", 3),
        ("def f():\n    else:\n        a = 2\n", "`else` without `if` above it", 2),
        ("if a:\n        b = 1\n    c = 2\n", "the indentation fits no line above", 3),
        ("a = 1\n    b = 2\n", "the line is indented, and none above opens a block", 2),
        ("if a:\n        b = 1\n\tc = 2\n", "tabs and spaces are mixed in the indentation", 3),
        ("def f()\n    pass\n", "a colon is missing", 1),
        ("if a:\n    pass\nelse if b:\n    pass\n", "`else if` is no Python", 3),
        ("a = f(1,\nb = 2\n", "`(` is never closed", 1),
        ("a = [1, 2)\n", "`)` closes what `[` opened", 1),
        ("a = 1)\n", "`)` closes nothing", 1),
        ("a = 'b\n", "the string has no closing quote", 1),
        ("a = '''b\n\n", "the string has no closing quotes", 1),
        ("return 1\n", "`return` outside function", 1),
        ("def f():\n    break\n", "`break` outside loop", 2),
        ("def f(a, a):\n    pass\n", "two arguments are called `a`", 1),
        ("print 'a'\n", "`print` is called without parentheses", 1),
        ("a = “b”\n", "`“` is no character of Python (U+201C)", 1),
        ("def f():\n<<<<<<< HEAD\n    pass\n", "a merge conflict that nobody resolved", 2),
        ("a = 1\n\0\n", "the file holds null bytes", 0),
    ],
)
def test_a_broken_text_is_told_in_our_words(text: str, problem: str, line: int) -> None:
    found = fault(text)
    assert (found.problem, found.line) == (problem, line)


def test_deep_nesting_is_a_fault_and_no_crash() -> None:
    assert "too" in fault("a = " + "(" * 9000 + ")" * 9000).problem


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="it is Python there")
def test_several_exceptions_are_told_how_to_be_written() -> None:
    found = fault("try:\n    pass\nexcept A, B:\n    pass\n")
    assert found.hint == "write `except (A, B):`"


def test_where_python_only_says_that_it_is_invalid_ruff_is_asked() -> None:
    bare = fault("def class(x):\n    pass\n")
    said = [Said("invalid-syntax", "Expected an identifier, but found a keyword `class`", 1, 5, 1, 10)]
    assert bare.problem == "invalid syntax"
    assert refined(bare, said).problem == "expected an identifier, but found a keyword `class`"
    assert refined(bare, []) == bare
    assert refined(fault("a = 1)\n"), [said[0]._replace(line=1)]).problem == "`)` closes nothing"


def test_a_message_that_nobody_knows_stays_as_it_is() -> None:
    assert fault_of("a b\n", "Something new", 1, 3).problem == "something new"


@pytest.mark.parametrize(
    ("line", "quiet"),
    [
        ("x = y  # noqa", True),
        ("x = y  # noqa: F821", True),
        ("x = y  # NOQA:E501,F821", True),
        ("x = y  # noqa: E501", False),
        ("x = y", False),
        ("x = y  # type: ignore[attr-defined, name-defined]", True),
        ("x = y  # pyright: ignore[reportUndefinedVariable]", True),
        ("x = y  # type: ignore", False),
    ],
)
def test_a_comment_keeps_names_quiet(line: str, quiet: bool) -> None:
    assert is_quiet(line) == quiet


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("x = y", ["y"]),
        ("x = y  # type: ignore[name-defined]", []),
        ("x = y  # noqa: F821", []),
    ],
)
def test_what_ruff_says_of_a_quiet_line_counts_for_nothing(line: str, names: list[str]) -> None:
    said = [Said("F405", "`y` may be undefined, or defined from star imports", 1, 5, 1, 6)]
    assert [one.name for one in suspects(f"{line}\n", said)] == names


def test_what_this_python_has_as_a_builtin_is_there_whatever_ruff_says(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [Said("F821", "Undefined name `brand_new`", 1, 5, 1, 14)]
    assert suspects("x = brand_new\n", said)[0].sure
    monkeypatch.setattr("builtins.brand_new", 1, raising=False)
    assert suspects("x = brand_new\n", said) == ()
