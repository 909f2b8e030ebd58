"""The lines of a diff, with the numbers that they have in the file."""

from __future__ import annotations

import pytest

from buildsys.code.difference import unified

OLD = [f"line {n}" for n in range(20)]


def numbered(lines: list[str], start: int = 1) -> list[tuple[int, str]]:
    return list(enumerate(lines, start))


def test_each_hunk_names_the_line_of_its_first_change() -> None:
    new = [*OLD[:5], "five", *OLD[6:15], *OLD[16:]]
    assert unified("a.py", OLD, numbered(new, 101)) == [
        "@@ a.py:106 @@",
        *(" line 2", " line 3", " line 4", "-line 5", "+five", " line 6", " line 7", " line 8"),
        "@@ a.py:116 @@",
        *(" line 12", " line 13", " line 14", "-line 15", " line 16", " line 17", " line 18"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ([], [], []),
        (["a"], [(3, "a")], []),
        ([], [(3, "a")], ["@@ a.py:3 @@", "+a"]),
        (["a"], [], ["@@ a.py @@", "-a"]),
        (["a", "b"], [(3, "a")], ["@@ a.py:4 @@", " a", "-b"]),
        (["a", "b"], [(3, "a"), (9, "c")], ["@@ a.py:9 @@", " a", "-b", "+c"]),
    ],
    ids=["nothing", "equal", "new", "gone", "the last line", "lines apart"],
)
def test_what_is_new_and_what_is_gone_has_its_sign(old: list[str], new: list[tuple[int, str]], told: list[str]) -> None:
    assert unified("a.py", old, new) == told
