"""Slices are made anew only where something has changed that they were made of."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from buildsys import slicing
from buildsys.code.slice import Slice
from buildsys.model import Trace
from buildsys.slicing import Parsed, Slicer
from tests.code.texts import SCRIPT, Texts

TEXT = "import a, numpy\nfrom pkg import *\ndef f():\n    return a.x + numpy.pi\n"
TREE = {SCRIPT: TEXT, "scripts/a.py": "x = 1\n", "scripts/pkg/__init__.py": "y = 1\n"}


class Counted:
    """Makes slices of a tree, and counts how many and of how many parsed texts."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.n_made = self.n_parsed = 0

    def slice(self, tree: dict[str, str]) -> Slice:
        made, parsed = slicing.slice_of, slicing.parse
        with (
            mock.patch.object(slicing, "slice_of", wraps=made) as slice_of,
            mock.patch.object(slicing, "parse", wraps=parsed) as parse,
        ):
            found = Slicer(Texts(tree), self.cache, Parsed(self.cache)).slice(SCRIPT, "f")
        self.n_made, self.n_parsed = slice_of.call_count, parse.call_count
        return found


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    counted = Counted(tmp_path / "cache")
    counted.slice(TREE)
    assert (counted.n_made, counted.n_parsed) == (1, 3)
    return counted


def test_the_same_tree_is_read_and_nothing_is_made(counted: Counted) -> None:
    before = counted.slice(TREE)
    assert (counted.n_made, counted.n_parsed) == (0, 0)
    assert before == Slicer(Texts(TREE), None, slicing.parse).slice(SCRIPT, "f")


@pytest.mark.parametrize(
    ("path", "text", "n_parsed"),
    [
        (SCRIPT, TEXT + "# a comment\n", 1),
        ("scripts/a.py", "x = 2\n", 1),
        ("scripts/numpy.py", "pi = 3\n", 1),
        ("scripts/pkg/numpy.py", "", 0),
        ("scripts/a/__init__.py", "x = 1\n", 0),
    ],
    ids=["the script", "a module", "one that shadows an installed one", "one more in a package", "a package instead"],
)
def test_what_it_was_made_of_is_made_anew(counted: Counted, path: str, text: str, n_parsed: int) -> None:
    tree = {**TREE, path: text}
    found = counted.slice(tree)
    assert found == Slicer(Texts(tree), None, slicing.parse).slice(SCRIPT, "f")
    assert counted.n_parsed == n_parsed


def test_a_file_that_nothing_asked_for_makes_nothing_anew(counted: Counted) -> None:
    counted.slice({**TREE, "scripts/b.py": "x = 1\n"})
    assert counted.n_made == 0


@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b"[]"])
def test_a_damaged_cache_is_made_anew(counted: Counted, damage: bytes) -> None:
    for file in counted.cache.rglob("*"):
        if file.is_file():
            file.write_bytes(damage)
    assert counted.slice(TREE) == Slicer(Texts(TREE), None, slicing.parse).slice(SCRIPT, "f")
    assert counted.n_made == 1


def test_another_version_of_what_makes_them_makes_them_anew(counted: Counted) -> None:
    with mock.patch.object(slicing, "maker", return_value="another"):
        counted.slice(TREE)
    assert (counted.n_made, counted.n_parsed) == (1, 3)


def test_what_a_run_has_used_is_kept_too_for_each_trace(tmp_path: Path) -> None:
    (tmp_path / ".buildsys").mkdir()
    cache = tmp_path / ".buildsys" / "cache"
    one, other = Trace(frozenset({SCRIPT}), frozenset({f"{SCRIPT}:f"})), Trace(frozenset({SCRIPT}))

    def used(tree: dict[str, str], trace: Trace) -> tuple[Slice, int]:
        with mock.patch.object(slicing, "used_of", wraps=slicing.used_of) as used_of:
            return Slicer(Texts(tree), cache, Parsed(cache)).used_slice(SCRIPT, "f", trace), used_of.call_count

    made, n_made = used(TREE, one)
    assert (n_made, made) == (1, slicing.used_of(SCRIPT, "f", Texts(TREE), one))
    assert used(TREE, one) == (made, 0)
    assert used(TREE, other)[1] == 1
    assert used({**TREE, "scripts/a.py": "x = 2\n"}, one)[1] == 1


def test_a_tree_is_asked_once_for_what_several_slices_were_made_of(counted: Counted) -> None:
    Slicer(Texts(TREE), counted.cache, Parsed(counted.cache)).slice(SCRIPT, "")
    slicer = Slicer(Texts(TREE), counted.cache, Parsed(counted.cache))
    with mock.patch.object(slicing, "answer", wraps=slicing.answer) as answer:
        slicer.slice(SCRIPT, "f")
        n_asked = answer.call_count
        slicer.slice(SCRIPT, "")
    assert 0 < answer.call_count < n_asked + 3
