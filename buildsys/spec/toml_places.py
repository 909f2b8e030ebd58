"""TOML text -> where each of its keys is written.

`tomllib` gives values without positions, so this walks over the text a second time and keeps the positions alone. Knows
nothing of values, and trusts that the text is valid: it is read after `tomllib` has accepted it.
"""

from __future__ import annotations

import re
import tomllib
from typing import NamedTuple

Keys = tuple[str | int, ...]
"""A path into a document: keys of tables, and indices of arrays and arrays of tables."""


class Position(NamedTuple):
    """Both count from 1, in lines that end with a line feed and in characters."""

    line: int
    column: int


def key_positions(text: str) -> dict[Keys, Position]:
    """Where each key path of a valid TOML document is written, the elements of arrays included.

    A table that several headers and dotted keys add to is where its own header is, else where it is first named.
    """
    scanner = _Scanner(text)
    scanner.document()
    return {keys: _position(text, offset) for keys, offset in scanner.offsets.items()}


def _position(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*'""")
_SCALAR = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
    r"|[^,\]}#\n]+",
    re.DOTALL,
)


class _Scanner:
    """Walks over a valid document; `offsets` grows as keys are met."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.offsets: dict[Keys, int] = {}
        self.tables_in: dict[Keys, int] = {}
        """Arrays of tables: how many tables each has so far."""

    def document(self) -> None:
        table: Keys = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self._next_is("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _header(self) -> Keys:
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        parts = self._dotted_key()
        self.at += brackets
        *parents, (name, offset) = parts
        table = self._note_parents((), parents)
        if brackets == 2:
            table = (*table, name)
            self.offsets.setdefault(table, offset)
            index = self.tables_in.get(table, 0)
            self.tables_in[table] = index + 1
            table = (*table, index)
        else:
            table = (*table, name)
        self.offsets[table] = offset
        return table

    def _note_parents(self, table: Keys, parts: list[tuple[str, int]]) -> Keys:
        """Notes the tables that a dotted key passes through; one that is an array stands for its last table."""
        for name, offset in parts:
            table = (*table, name)
            self.offsets.setdefault(table, offset)
            if table in self.tables_in:
                table = (*table, self.tables_in[table] - 1)
        return table

    def _pair(self, table: Keys) -> None:
        *parents, (name, offset) = self._dotted_key()
        keys = (*self._note_parents(table, parents), name)
        self.offsets[keys] = offset
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(keys)

    def _value(self, keys: Keys) -> None:
        if self._next_is("["):
            self._array(keys)
        elif self._next_is("{"):
            self._inline_table(keys)
        else:
            self._skip(_SCALAR)

    def _array(self, keys: Keys) -> None:
        index = 0
        self._enter()
        while not self._next_is("]"):
            element = (*keys, index)
            self.offsets[element] = self.at
            self._value(element)
            self._separator()
            index += 1
        self.at += 1

    def _inline_table(self, keys: Keys) -> None:
        self._enter()
        while not self._next_is("}"):
            self._pair(keys)
            self._separator()
        self.at += 1

    def _enter(self) -> None:
        self.at += 1
        self._skip(_BLANK)

    def _separator(self) -> None:
        self._skip(_BLANK)
        if self._next_is(","):
            self._enter()

    def _dotted_key(self) -> list[tuple[str, int]]:
        parts = []
        while True:
            self._skip(_SPACE)
            offset = self.at
            parts.append((_plain(self._skip(_KEY)), offset))
            self._skip(_SPACE)
            if not self._next_is("."):
                return parts
            self.at += 1

    def _next_is(self, character: str) -> bool:
        return self.text.startswith(character, self.at)

    def _skip(self, what: re.Pattern[str]) -> str:
        match = what.match(self.text, self.at)
        if match is None:
            raise ValueError(f"not valid TOML at offset {self.at}")
        self.at = match.end()
        return match.group()


def _plain(key: str) -> str:
    """The key without its quotes and escapes."""
    if key[0] == '"':
        return str(tomllib.loads(f"key = {key}")["key"])
    return key[1:-1] if key[0] == "'" else key
