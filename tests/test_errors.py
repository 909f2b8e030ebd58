"""How an error for people reads."""

from __future__ import annotations

import pytest

from buildsys.errors import FAILED, USAGE, BuildError, Place, excerpt_of, nearest

TEXT = "\n".join(f"line {n}" for n in range(1, 12))


# ---------------------------------------------------------------- render


def test_an_error_of_nothing_but_a_problem_is_one_line() -> None:
    assert BuildError("two rules make one output").render() == "error: two rules make one output"


def test_an_error_reads_problem_place_excerpt_facts_hint() -> None:
    error = BuildError(
        "two rules make one output",
        facts=[("output", "build/0003.parquet"), ("by", "tokens")],
        place=Place("rules/eagle3.toml", 2, 1),
        excerpt=excerpt_of("[rule.tokens]\noutputs = 1", 2),
        hint="give one of them another pattern",
    )
    assert error.render() == (
        "error: two rules make one output\n"
        "  rules/eagle3.toml:2:1\n"
        "      1 │ [rule.tokens]\n"
        "    → 2 │ outputs = 1\n"
        "  output: build/0003.parquet\n"
        "  by:     tokens\n"
        "hint: give one of them another pattern"
    )


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"place": Place("a.py")}, "  a.py"),
        ({"excerpt": "→ 1 │ x"}, "    → 1 │ x"),
        ({"facts": [("a", "b")]}, "  a: b"),
        ({"hint": "do this"}, "hint: do this"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_each_part_stands_alone(part: dict[str, object], line: str) -> None:
    assert BuildError("x", **part).render() == f"error: x\n{line}"


def test_an_error_that_nobody_rendered_still_reads_well() -> None:
    error = BuildError("x", hint="do this")
    assert str(error) == error.render()


def test_an_error_keeps_its_facts_when_they_come_from_a_generator() -> None:
    error = BuildError("x", facts=((name, name) for name in "ab"))
    assert error.render() == error.render() == "error: x\n  a: a\n  b: b"


def test_an_error_is_one_of_usage_unless_it_says_otherwise() -> None:
    assert BuildError("x").exit_code == USAGE
    assert BuildError("x", exit_code=FAILED).exit_code == FAILED


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("a.py"), "a.py"),
        (Place("a.py", 3), "a.py:3"),
        (Place("a.py", 3, 5), "a.py:3:5"),
    ],
)
def test_a_place_is_named_as_editors_read_it(place: Place, text: str) -> None:
    assert str(place) == text


# ---------------------------------------------------------------- excerpt_of


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (1, "→ 1 │ line 1\n  2 │ line 2\n  3 │ line 3"),
        (2, "  1 │ line 1\n→ 2 │ line 2\n  3 │ line 3\n  4 │ line 4"),
        (9, "   7 │ line 7\n   8 │ line 8\n→  9 │ line 9\n  10 │ line 10\n  11 │ line 11"),
        (11, "   9 │ line 9\n  10 │ line 10\n→ 11 │ line 11"),
        (0, ""),
        (12, ""),
        (-1, ""),
    ],
)
def test_an_excerpt_shows_two_lines_around_and_stays_in_the_text(line: int, shown: str) -> None:
    assert excerpt_of(TEXT, line) == shown


def test_an_excerpt_shows_as_many_lines_around_as_are_asked_for() -> None:
    assert excerpt_of(TEXT, 5, around=0) == "→ 5 │ line 5"


@pytest.mark.parametrize("text", ["a\r\n\r\nc\r\n", "a   \n\nc\t\n"])
def test_an_excerpt_has_no_blanks_at_the_ends_of_lines(text: str) -> None:
    assert excerpt_of(text, 2) == "  1 │ a\n→ 2 │\n  3 │ c"


def test_lines_are_those_that_python_and_toml_count() -> None:
    assert excerpt_of("a\x0cb\x0b\x1c\u2028c\nd", 2, around=0) == "→ 2 │ d"


@pytest.mark.parametrize(("text", "n_lines"), [("a", 1), ("a\n", 1), ("a\n\n", 2), ("\n", 1), ("a\nb", 2)])
def test_what_ends_the_last_line_begins_no_other(text: str, n_lines: int) -> None:
    assert excerpt_of(text, n_lines, around=0).startswith(f"→ {n_lines} │")
    assert excerpt_of(text, n_lines + 1) == ""


def test_an_empty_text_has_one_empty_line() -> None:
    assert excerpt_of("", 1) == "→ 1 │"


@pytest.mark.parametrize(
    ("text", "column", "width", "marks"),
    [
        ("x = y", 5, 1, "    ^"),
        ("total = cout", 9, 4, "        ^^^^"),
        ("\tx = y", 6, 1, "\t    ^"),
        ("量 = y", 5, 1, "     ^"),
        ("x = 量", 5, 1, "    ^^"),
        ("x = y", 5, 40, "    ^"),
        ("x = y   ", 5, 40, "    ^"),
        ("x = y", 9, 1, "        ^"),
        ("", 1, 1, "^"),
    ],
)
def test_carets_stand_below_what_is_meant(text: str, column: int, width: int, marks: str) -> None:
    shown = excerpt_of(f"a\n{text}\nb", 2, column=column, width=width).split("\n")
    assert shown == ["  1 │ a", f"→ 2 │ {text}".rstrip(), f"    │ {marks}", "  3 │ b"]


# ---------------------------------------------------------------- nearest


@pytest.mark.parametrize(
    ("name", "valid", "hint"),
    [
        ("ouput", ["inputs", "outputs", "params"], 'did you mean "outputs"?'),
        ("tokens", ["token", "tokens_2"], 'did you mean "token"?'),
        ("x", ["inputs", "outputs"], "valid here: inputs, outputs"),
        ("x", ["inputs"], "valid here: inputs"),
        ("x", [], ""),
        ("x", [f"name_{n}" for n in range(30)], "valid here: " + ", ".join(f"name_{n}" for n in range(30))),
        ("x", [f"name_{n}" for n in range(31)], ""),
        ("nam_7", [f"name_{n}" for n in range(31)], 'did you mean "name_7"?'),
    ],
    ids=["typo", "the nearest of two", "all", "one", "none", "thirty", "too many", "typo among many"],
)
def test_a_wrong_name_gets_the_nearest_or_all(name: str, valid: list[str], hint: str) -> None:
    assert nearest(name, valid) == hint
