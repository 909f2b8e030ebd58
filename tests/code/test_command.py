"""The words that a shell may make of a command, where a script may be named in any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from buildsys.code.command import HIDDEN, Command


def words(
    template: str, values: Mapping[str, str | Sequence[str]] | None = None, files: Sequence[str] = ()
) -> list[str]:
    command = Command(template, values or {})
    return [word.text.replace(HIDDEN, "?") for word in command.words(files.__contains__)]


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("{python} a.py --n 3", ["?", "a.py", "--n", "3"]),
        ("{python} a.py>{outputs.o}", ["?", "a.py", "?"]),
        ("({python} a.py;{python} b.py)&&c|d", ["?", "a.py", "?", "b.py", "$", "c", "d"]),
        ("{python} \\\n  a.py \\\n  b", ["?", "a.py", "b"]),
        ("a\nb", ["a", "b"]),
        ("'a b.py' \"c d.py\" e\\ f.py", ["a", "b.py", "c", "d.py", "e", "f.py"]),
        ("a'b'\"c\"d", ["abcd"]),
        ("bash -c \"{python} 'a.py'\"", ["bash", "-c", "?", "a.py"]),
        ("bash -c \"sh -c '{python} a.py>b'\"", ["bash", "-c", "sh", "-c", "?", "a.py", "b"]),
        ('x="$({python} a.py)"', ["x=$", "?", "a.py", "$"]),
        ("$(dirname x)/a.py `b`/a.py", ["$", "dirname", "x", "$/a.py", "$b", "$/a.py"]),
        ("a # b.py\nc", ["a", "c"]),
        ("a#b", ["a#b"]),
        ("printf '# a.py'", ["printf", "#", "a.py"]),
        ('echo "don\'t a.py"', ["echo", "dont", "a.py"]),
        ("{{ a; }}", ["{", "a", "}"]),
        ("'' a", ["a"]),
    ],
)
def test_a_command_is_cut_into_words_also_within_quotes(template: str, found: list[str]) -> None:
    assert words(template) == found


def test_a_quoted_word_that_is_a_file_is_one_word() -> None:
    assert words("'a b.py' 'c d.py'", files=["a b.py"]) == ["a b.py", "c", "d.py"]


def test_values_are_words_as_they_are_and_their_text_ends_no_quote() -> None:
    values = {"params.x": "it's; a.py", "params.l": ["b c", "d"], "settings.s": "e"}
    assert words("{params.x} x{settings.s}.py {params.l}", values) == ["it's; a.py", "xe.py", "b c", "d"]
    assert Command("{params.x} {params.l}", values).text == "'it'\"'\"'s; a.py' 'b c' d"


def test_a_quote_that_is_not_closed_is_an_error() -> None:
    with pytest.raises(ValueError, match="a quote is not closed"):
        words("echo 'a")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{python} a.py>b", "python there/a.py>b"),
        ('{python} ./a.py "a.py"', 'python there/./a.py "there/a.py"'),
        ("bash -c \"{python} 'a.py'\" \\a.py", "bash -c \"python 'there/a.py'\" there/\\a.py"),
        ("{params.a} {params.about}", "there/a.py 'about a.py'"),
        ("--script=a.py", "--script=there/a.py"),
        ("{params.l}", "there/a.py b there/a.py"),
        ("{{a}} xa.py a.pyc", "{a} xa.py a.pyc"),
    ],
)
def test_words_are_named_within_a_folder_and_nothing_else_is_changed(template: str, text: str) -> None:
    values = {"python": "python", "params.a": "a.py", "params.about": "about a.py", "params.l": ["a.py", "b", "a.py"]}
    command = Command(template, values)
    pieces = [piece for word in command.words(lambda _: False) for piece in word.pieces()]
    assert command.within("there", [piece for piece in pieces if piece.text in ("a.py", "./a.py")]) == text
