"""Edits of a text: each does what it is called, where it stands, and nothing else."""

from __future__ import annotations

import ast
import random

import pytest

from tests.mutation.mutants import Edit, mutations, no_ops, parsed, places

TEXT = '''"""A module — with a dash."""
import functools


@functools.cache
def h(x, n=2):
    """What it does."""
    é = "ä"; y = x + n
    if x > (
        1
    ):
        return [y, é]
    def inner():
        return 5
    return inner
'''


def edits_of(text: str, name: str) -> list[Edit]:
    place = next(place for place in places(parsed(text)) if place.name == name)
    return mutations(text, place, 100, random.Random(0))


def test_a_function_is_mutated_in_every_way_and_those_in_it_are_not() -> None:
    found = {(edit.kind, edit.line): edit.text for edit in edits_of(TEXT, "h")}
    assert found["default", 6] == TEXT.replace("n=2", "n=(3)")
    assert found["constant", 8] == TEXT.replace('"ä"', "('äx')")
    assert found["arithmetic", 8] == TEXT.replace("x + n", "(x - n)")
    assert found["comparison", 9] == TEXT.replace("x > (\n        1\n    )", "(x <= 1)")
    assert found["condition", 9] == TEXT.replace("x > (\n        1\n    )", "(not (x > 1))")
    assert found["return", 12] == TEXT.replace("return [y, é]", "return None")
    assert ("return", 14) not in found
    assert [edit.text for edit in edits_of(TEXT, "inner")] in (
        [TEXT.replace("5", "(6)"), TEXT.replace("return 5", "return None")],
        [TEXT.replace("return 5", "return None"), TEXT.replace("5", "(6)")],
    )


def test_a_function_is_known_by_the_line_of_its_decorator() -> None:
    assert sorted((place.line, place.name) for place in places(parsed(TEXT))) == [(5, "h"), (13, "inner")]


@pytest.mark.parametrize("seed", range(5))
def test_an_edit_that_means_nothing_keeps_the_syntax_but_for_docstrings(seed: int) -> None:
    for edit in no_ops(TEXT, random.Random(seed)):
        assert edit.text != TEXT
        same = ast.dump(parsed(edit.text)) == ast.dump(parsed(TEXT))
        assert same == (edit.kind != "docstring")
    assert {edit.kind for edit in no_ops(TEXT, random.Random(seed))} == {
        "comment",
        "blank lines",
        "layout",
        "docstring",
    }


def test_another_docstring_keeps_all_lines_where_they_are() -> None:
    text = 'def f():\n    r"""One.\n\n    Two.\n    """\n    return 1\n'
    (edit,) = (edit for edit in no_ops(text, random.Random(0)) if edit.kind == "docstring")
    assert edit.text == text.replace("One", "Note: One")
