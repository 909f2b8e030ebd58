"""What a terminal can do: colour, lines cut to its width, and a region at the bottom that is painted over.

Knows nothing of builds. A line is a list of spans, so that it is cut before it is coloured.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TextIO

Style = Literal["", "bold", "dim", "red", "green", "yellow", "cyan"]
_CODES: Final[dict[Style, str]] = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "yellow": "33", "cyan": "36"}


class Span(NamedTuple):
    text: str
    style: Style = ""


Line = Sequence[Span]


def wants_region(stream: TextIO) -> bool:
    """A terminal that can go back to an earlier line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def wants_colour(stream: TextIO) -> bool:
    """A terminal that can show colour, whose user has not said NO_COLOR (https://no-color.org)."""
    return wants_region(stream) and not os.environ.get("NO_COLOR")


def painted(line: Line, colour: bool) -> str:
    """One line as text, without its end and without blanks there."""
    if not colour:
        return "".join(span.text for span in line).rstrip()
    return "".join(f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style and text else text for text, style in line)


def show(lines: Iterable[Line], stream: TextIO) -> None:
    """Print lines, in colour where the stream shows it."""
    colour = wants_colour(stream)
    for line in lines:
        print(_writable(painted(line, colour), stream), file=stream)


def _writable(text: str, stream: TextIO) -> str:
    """The text with what the stream has no form for, such as half a character, as an escape."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def cut(line: Line, width: int) -> list[Span]:
    """The line in `width` columns; what does not fit gives way to an ellipsis."""
    if sum(columns(span.text) for span in line) <= width:
        return list(line)
    kept: list[Span] = []
    left = max(width - 1, 0)
    for text, style in line:
        short = _fitting(text, left)
        kept.append(Span(short, style))
        left -= columns(short)
        if short != text:
            break
    return [*kept, Span("…", "dim")]


def columns(text: str) -> int:
    """How many columns a terminal needs for a text without control characters."""
    if text.isascii():
        return len(text)
    import unicodedata  # nothing to do, and most of what there is to tell, is told without it

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _fitting(text: str, width: int) -> str:
    used = 0
    for i, character in enumerate(text):
        used += columns(character)
        if used > width:
            return text[:i]
    return text


def error_lines(text: str) -> list[Line]:
    """A rendered error in colour: what is wrong stands out, and so do the line that it is at and the hint."""
    return [_error_line(line) for line in text.splitlines()]


def _error_line(line: str) -> Line:
    for start, style in _STARTS.items():
        if line.startswith(start):
            return [Span(start, style), Span(line.removeprefix(start), "bold" if style == "red" else "")]
    return [Span(line, "bold" if line.lstrip().startswith("→") else "")]


_STARTS: Final[dict[str, Style]] = {"error:": "red", "warning:": "yellow", "note:": "cyan", "hint:": "cyan"}


class Screen:
    """A stream that may be a terminal: lines that stay, and below them a region that is painted anew.

    When nobody listens any more (the terminal is gone, the pipe is closed) it falls silent: what is told about a build
    must never end the build. Not for several threads at once.
    """

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self._stream = stream
        self._colour = colour
        self._region: list[int] = []
        self._silent = False

    def write(self, lines: Sequence[Line], region: Sequence[Line] = ()) -> None:
        """Add lines that stay, and replace the region below them."""
        width, height = self._size() if region or self._region else (0, 0)
        shown = [cut(line, width - 1) for line in region[: height - 1]]
        text = "".join(f"{painted(line, self._colour)}\n" for line in (*lines, *shown))
        self._send(self._erase(width) + text)
        self._region = [sum(columns(span.text) for span in line) for line in shown]

    def _erase(self, width: int) -> str:
        """Back to the region's first line. A terminal that has become narrower has wrapped the lines of the region."""
        if not self._region:
            return ""
        n_rows = sum(max(1, -(-n // width)) for n in self._region)
        return f"\x1b[{n_rows}F\x1b[J"

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return size.columns or 80, size.lines or 24

    def _send(self, text: str) -> None:
        if self._silent or not text:
            return
        try:
            self._stream.write(_writable(text, self._stream))
            self._stream.flush()
        except OSError:
            self._silent = True
