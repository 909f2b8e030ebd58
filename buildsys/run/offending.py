"""The rows that a check asked for, as they are kept and as people read them: whatever their values, in few short lines.

Knows nothing of checks and SQL: rows come in as DuckDB gives them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final

from buildsys.errors import columns_of
from buildsys.model import Cell

MOST_ROWS: Final = 5
MOST_CHARACTERS: Final = 60
"""Of one value."""
_WIDEST: Final = 110
_MOST_LINES: Final = 30

Row = Sequence[object]


def kept(value: object) -> Cell:
    """As JSON has it; a text, or what JSON writes otherwise, cut."""
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case bytes():
            text = value[:MOST_CHARACTERS].hex()
        case list() | tuple() | dict():
            text = _json(value)
        case _:
            text = str(value)
    return _cut(text)


def shown(names: Sequence[str], rows: Sequence[Row], n_rows: int) -> str:
    """How many there are, and the first of them: as a table, or one below the other where that would be too wide.

    A text is in quotes, with escapes for what would break its line.
    """
    texts = [[_text(value) for value in row] for row in rows]
    names = [_cut(" ".join(name.split())) for name in names]
    lines = _table(names, texts)
    n_shown = len(texts)
    if max(map(_width, lines)) > _WIDEST:
        n_shown = min(n_shown, max(1, _MOST_LINES // len(names)))
        lines = _list(names, texts[:n_shown])
    head = f"{n_rows:,} offending row{'' if n_rows == 1 else 's'}"
    if n_shown < n_rows:
        head += f", the first {n_shown}" if n_shown > 1 else ", the first"
    return "\n".join([f"{head}:", *lines])


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except TypeError:  # The keys of a MAP may be of any type.
        return str(value)


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str | bool):
        return _cut(json.dumps(kept(value), ensure_ascii=False), MOST_CHARACTERS + len('"…"'))
    return str(kept(value))


def _table(names: Sequence[str], texts: Sequence[Sequence[str]]) -> list[str]:
    """The last column is not filled up: there is room for a long text."""
    lines = [names, *texts]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    widths[-1] = 0
    return [
        "  " + "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]


def _list(names: Sequence[str], texts: Sequence[Sequence[str]]) -> list[str]:
    """Each value in a line of its own; a row begins with a dash."""
    width = max(map(_width, names))
    return [
        f"{'  ' if n else '- '}{name}{' ' * (width - _width(name))}  {text}"
        for row in texts
        for n, (name, text) in enumerate(zip(names, row, strict=True))
    ]


def _width(text: str) -> int:
    return sum(map(columns_of, text))


def _cut(text: str, most: int = MOST_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
