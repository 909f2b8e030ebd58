"""A shell command with its values filled in: the words that a shell may make of it, and where scripts are named in it.

Reads as a shell reads, only far enough to overlook no word: also those of a command within quotes. Knows no file
system: whoever asks says which words are scripts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

HIDDEN: Final = "\0"
"""In the text of a word: a value that is not to be looked into, as the path of an input."""
_TRANSPARENT: Final = ("params.", "settings.")
_SEPARATES: Final = frozenset("();<>&|`")
_TOKEN: Final = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")
_PIECE: Final = re.compile(r"[^=,:\[\]{}]+")


class _Sign(NamedTuple):
    """One character of a word. at: its place in the filled command, -1 within a value. given: of a value."""

    char: str
    at: int
    given: bool = False


@dataclass(frozen=True)
class Word:
    """One word of a command, without its quotes."""

    signs: tuple[_Sign, ...]

    @property
    def text(self) -> str:
        return "".join(sign.char for sign in self.signs)

    @property
    def at(self) -> int:
        """Where in the filled command it begins; -1 where that is in the middle of a value."""
        return self.signs[0].at if self.signs else -1

    @property
    def is_value(self) -> bool:
        return all(sign.given for sign in self.signs)

    def pieces(self) -> Iterator[Word]:
        """What may be a path in it, as in `--script=a.py` and `a.py::test`."""
        for piece in _PIECE.finditer(self.text):
            yield Word(self.signs[piece.start() : piece.end()])


class Command:
    """A command, filled in.

    values: "params.x", "inputs.y" ... -> text, or a list of texts, which become words of their own. What has no value
    is not known yet; a command with such is only looked at. text: what a shell is given.
    """

    def __init__(self, template: str, values: Mapping[str, str | Sequence[str]]) -> None:
        self.text = ""
        self._signs: list[_Sign] = []
        end = 0
        for token in _TOKEN.finditer(template):
            self._write(template[end : token.start()])
            end = token.end()
            if token[1] is None:
                self._write(token.group()[0])
            else:
                self._fill(token[1], values.get(token[1], HIDDEN))
        self._write(template[end:])

    def words(self, is_file: Callable[[str], bool]) -> list[Word]:
        """All words in their order; for a quoted one that is not a file as a whole, those of the command within it.

        Raises ValueError where a quote is not closed.
        """
        return [leaf for word in _split(self._signs, strict=True) for leaf in _leaves(word, is_file)]

    def within(self, folder: str, words: Iterable[Word]) -> str:
        """The text with these words, which are relative paths, as paths within a folder, whose name needs no quotes."""
        text = self.text
        for at in sorted({word.at for word in words}, reverse=True):
            text = f"{text[:at]}{folder}/{text[at:]}"
        return text

    def _write(self, text: str) -> None:
        self._signs += [_Sign(char, len(self.text) + n) for n, char in enumerate(text)]
        self.text += text

    def _fill(self, name: str, value: str | Sequence[str]) -> None:
        for n, text in enumerate([value] if isinstance(value, str) else value):
            if n:
                self._write(" ")
            shown = text if name.startswith(_TRANSPARENT) else HIDDEN
            self._signs += [_Sign(char, -1 if n else len(self.text), True) for n, char in enumerate(shown)]
            self.text += shlex.quote(text)


def _leaves(word: Word, is_file: Callable[[str], bool]) -> Iterator[Word]:
    within = _split(word.signs)
    if is_file(word.text) or [one.text for one in within] == [word.text]:
        yield word
    else:
        for one in within:
            yield from _leaves(one, is_file)


def _split(signs: Sequence[_Sign], *, strict: bool = False) -> list[Word]:
    """The words of a command. strict: it is one for certain; else what is quoted may be prose, or code of a language.

    Raises ValueError where it is strict, and a quote is not closed.
    """
    found: list[list[_Sign]] = []
    word: list[_Sign] | None = None
    quote = ""
    n = 0
    while n < len(signs):
        sign = signs[n]
        char = "" if sign.given else sign.char  # A value is quoted: it neither begins nor ends anything.
        n += 1
        if char == quote != "":
            quote = ""
            continue
        if not quote and char and (char.isspace() or char in _SEPARATES):
            # What follows the output of a command without a blank is no path of its own.
            word = [sign._replace(char="$")] if char in ")`" else None
            found += [word] if word else []
            continue
        if not quote and char == "#" and word is None and strict:
            while n < len(signs) and signs[n].char != "\n":
                n += 1
            continue
        if char == "\\" and quote != "'" and n < len(signs):
            sign = signs[n]._replace(at=sign.at)
            n += 1
            if sign.char == "\n":
                continue
        if word is None:
            word = []
            found.append(word)
        if not quote and char and char in "\"'":
            quote = char
        else:
            word.append(sign)
    if quote and strict:
        raise ValueError("a quote is not closed")
    return [Word(tuple(word)) for word in found]
