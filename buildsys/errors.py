"""The one error that is meant for people; everything else is a bug and shows its traceback.

Knows nothing of rules, files or builds. Raised anywhere, rendered in one place (`cli`).
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

FAILED: Final = 1
USAGE: Final = 2
NO_SUCH_TARGET: Final = 3
NOT_UP_TO_DATE: Final = 4
LOCKED: Final = 5
LIMIT: Final = 6
INTERRUPTED: Final = 130

_MOST_NAMES: Final = 30
_FULL = "make room, then do it again: nothing that was recorded is lost"
_LOCKED_UP = "make it writable, then do it again"
_IN_THE_WAY = "move away what is in the way, then do it again"
_TO_DO: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: _LOCKED_UP,
    errno.EACCES: _LOCKED_UP,
    errno.EPERM: _LOCKED_UP,
    errno.EISDIR: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EIO: "look after the disk",
}
"""What the file system may refuse through no fault of ours, and what people do about it."""


@dataclass(frozen=True)
class Place:
    """A spot in a text file. `line` and `column` count from 1; 0 means the whole file, or the whole line."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join([self.path, *(str(n) for n in (self.line, self.column) if n)])


class BuildError(Exception):
    """What is wrong, the facts, where, and what to do about it.

    problem: one line, lower case, no full stop.
    facts: (label, text) pairs, printed aligned below the problem.
    place, excerpt: where, and the lines there (see `excerpt_of`).
    hint: one sentence that says what to do.
    exit_code: what the program ends with.
    """

    def __init__(
        self,
        problem: str,
        *,
        facts: Iterable[tuple[str, str]] = (),
        place: Place | None = None,
        excerpt: str = "",
        hint: str = "",
        exit_code: int = USAGE,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.facts = tuple(facts)
        self.place = place
        self.excerpt = excerpt
        self.hint = hint
        self.exit_code = exit_code

    def render(self) -> str:
        """The error as people read it, without colour: `error:`, place, excerpt, facts, `hint:`."""
        return render("error", self.problem, self.place, self.excerpt, self.facts, self.hint)

    def __str__(self) -> str:
        return self.render()


def render(
    level: str,
    problem: str,
    place: Place | None = None,
    excerpt: str = "",
    facts: Sequence[tuple[str, str]] = (),
    hint: str = "",
) -> str:
    """What is wrong as people read it, without colour: the level, place, excerpt, facts, `hint:`."""
    lines = [f"{level}: {problem}"]
    if place:
        lines.append(f"  {place}")
    lines += [f"    {line}" for line in excerpt.splitlines()]
    width = max((len(label) for label, _ in facts), default=0) + 1
    lines += [f"  {label + ':':<{width}} {text}" for label, text in facts]
    if hint:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


def excerpt_of(text: str, line: int, *, around: int = 2, column: int = 0, width: int = 1) -> str:
    """The lines about `line` (from 1) with their numbers and an arrow at it; empty where there is no such line.

    column: from 1, in characters: carets stand below so many of the line from there on. 0 for none.
    """
    lines = text.removesuffix("\n").split("\n")
    if not 1 <= line <= len(lines):
        return ""
    first, last = max(1, line - around), min(len(lines), line + around)
    digits = len(str(last))
    shown = [f"{'→' if n == line else ' '} {n:>{digits}} │ {lines[n - 1]}".rstrip() for n in range(first, last + 1)]
    if column:
        marks = _carets(lines[line - 1], column, width)
        shown.insert(line - first + 1, f"  {'':>{digits}} │ {marks}")
    return "\n".join(shown)


def _carets(text: str, column: int, width: int) -> str:
    """Blanks as wide as what stands before the column, and carets as wide as what begins there."""
    before, marked = text[: column - 1], text[column - 1 : column - 1 + width].rstrip()
    blanks = "".join(c if c == "\t" else " " * columns_of(c) for c in before.ljust(column - 1))
    return blanks + "^" * max(1, sum(map(columns_of, marked)))


def columns_of(character: str) -> int:
    """How many columns of a terminal it takes."""
    if character.isascii():
        return 1
    import unicodedata  # few lines are wrong, and few of them need it

    return 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1


def nearest(name: str, valid: Sequence[str]) -> str:
    """A hint for a name that does not exist: the nearest valid one, else all of them where they are not too many."""
    import difflib

    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{close[0]}"?'
    if len(valid) > _MOST_NAMES:
        return ""
    return f"valid here: {', '.join(valid)}" if valid else ""


def refused(error: OSError) -> BuildError | None:
    """What the file system refused, for people: a disk is full, a folder read-only ... None for any other error."""
    if error.errno not in _TO_DO:
        return None
    said = (error.strerror or str(error)).strip()
    file = [("file", str(error.filename))] if error.filename else []
    return BuildError(said[:1].lower() + said[1:], facts=file, hint=_TO_DO[error.errno], exit_code=FAILED)
