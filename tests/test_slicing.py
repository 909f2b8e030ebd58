"""Slices are made anew only where something has changed that they were made of."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from buildsys import slicing
from buildsys.code.slice import Slice
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
