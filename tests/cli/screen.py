"""A terminal in a file: what a stream of text and cursor movements leaves to be seen."""

from __future__ import annotations

import re

_PIECES = re.compile(r"\x1b\[(?P<n>[0-9;]*)(?P<code>[A-Za-z])|(?P<end>\r?\n)|(?P<text>[^\x1b\r\n]+)")


def seen(output: str, width: int) -> list[str]:
    """The lines from the first one on, also those that a real terminal has scrolled away."""
    rows, row = [""], 0
    for piece in _PIECES.finditer(output):
        if piece["end"]:
            row += 1
            rows += [""] if row == len(rows) else []
        elif piece["text"]:
            assert len(rows[row] + piece["text"]) <= width, f"wraps: {rows[row] + piece['text']}"
            rows[row] += piece["text"]
        elif piece["code"] == "F":
            row -= int(piece["n"])
        elif piece["code"] == "J":
            rows[row:] = [""]
    return rows[:-1]
