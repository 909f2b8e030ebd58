"""What is wrong with one source text, as far as it alone can tell: whether it is Python, and which names are nowhere.

Python's own compiler decides whether it is; what a linter said of it is judged (`undefined`). Knows no other text, no
file, and not how the linter is asked.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from buildsys.code.outline import Outline, outline
from buildsys.code.undefined import Kind, Names
from buildsys.code.wording import reworded

_NAME: Final = re.compile(r"`(?P<name>[^`]+)`")
_NEW: Final = re.compile(r">= (\d+)\.(\d+)")
_QUIET: Final = re.compile(r"#\s*noqa(?P<codes>\s*:[\w\s,]*)?", re.IGNORECASE)
_KNOWN: Final = re.compile(
    r"#\s*type:\s*ignore\[[^]]*\bname-defined\b|#\s*pyright:\s*ignore\[[^]]*\breportUndefinedVariable\b"
)
_CODES: Final = ("F821", "F823", "F405")
SYNTAX: Final = "invalid-syntax"
_MOST_NEAR: Final = 3


class Said(NamedTuple):
    """One thing that ruff said. code: its rule, or "invalid-syntax". Lines and columns from 1, in characters."""

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int


class Fault(NamedTuple):
    """Why a text is not Python: the first thing that the compiler stumbles over. line: 0 where that is not told."""

    problem: str
    hint: str = ""
    line: int = 0
    column: int = 0
    width: int = 1


class Suspect(NamedTuple):
    """A name that seems to be bound nowhere. kind, sure, main, called, annotation, since: as in `undefined.Verdict`.

    star: only a star import could bring it. new_in: the minor version of Python that brought a builtin of this name.
    near: names like it that are bound there.
    """

    name: str
    line: int
    column: int
    kind: Kind
    sure: bool
    main: bool
    called: bool
    annotation: bool
    star: bool
    since: int
    new_in: int
    near: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """One text. outline: None where it has a fault. suspects: None while no linter was asked."""

    fault: Fault | None = None
    outline: Outline | None = None
    suspects: tuple[Suspect, ...] | None = None


def read(text: str) -> Findings:
    """What this Python finds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a user's script is no business of the build's
            tree = ast.parse(text)
            compile(tree, "", "exec", dont_inherit=True)
            return Findings(outline=outline(text, tree))
    except SyntaxError as error:
        end = error.end_lineno, error.end_offset
        return Findings(fault_of(text, error.msg, error.lineno or 0, error.offset or 0, end))
    except ValueError as error:
        return Findings(fault_of(text, str(error)))
    except (RecursionError, MemoryError):
        return Findings(Fault("nested too deeply for Python"))


def fault_of(
    text: str, message: str, line: int = 0, column: int = 0, end: tuple[int | None, int | None] = (None, None)
) -> Fault:
    """Python's message in our words. column: 0 or less where a whole line is meant, as it is for an indentation."""
    lines = text.removesuffix("\n").split("\n")
    line = min(line, len(lines))
    written = lines[line - 1] if line else ""
    margin = len(written) - len(written.lstrip())
    if line and not 1 <= column <= len(written):
        column = margin + 1 if column < 1 or not written.strip() else max(len(written), 1)
    elif "indent" in message and "expected an indented block" not in message:
        column = margin + 1
    width = (end[1] or 0) - column if end[0] == line else 0
    return Fault(*reworded(message, lines, line, column), line, column, max(width, 1))


def refined(fault: Fault, said: Iterable[Said]) -> Fault:
    """The fault, told by what ruff expected where Python only says that something is invalid."""
    of_line = [one for one in said if one.code == SYNTAX and one.line == fault.line]
    if not of_line or fault.problem != "invalid syntax" or fault.hint:
        return fault
    message = of_line[0].message
    return fault._replace(problem=message[:1].lower() + message[1:])


def suspects(text: str, said: Iterable[Said]) -> tuple[Suspect, ...]:
    """The names that ruff found undefined, judged; none of a text that is not Python."""
    found = [one for one in said if one.code in _CODES]
    if not found:
        return ()
    lines = text.split("\n")
    try:
        names = Names(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_judged(found, names, lines))


def _judged(said: Sequence[Said], names: Names, lines: Sequence[str]) -> Iterator[Suspect]:
    for one in said:
        line = lines[one.line - 1] if one.line <= len(lines) else ""
        name = _NAME.search(one.message)
        if name is None or is_quiet(line) or hasattr(builtins, name["name"]):  # Python has some that ruff does not know
            continue
        verdict = names.judge(name["name"], (one.line, len(line[: one.column - 1].encode("utf-8", "surrogatepass"))))
        if verdict is None:
            continue
        new_in = _NEW.search(one.message)
        yield Suspect(
            name=name["name"],
            line=one.line,
            column=one.column,
            kind=verdict.kind,
            sure=verdict.sure,
            main=verdict.main,
            called=verdict.called,
            annotation=verdict.annotation,
            star=one.code == "F405",
            since=verdict.since,
            new_in=int(new_in[2]) if new_in else 0,
            near=tuple(difflib.get_close_matches(name["name"], verdict.visible, _MOST_NEAR)),
        )


def is_quiet(line: str) -> bool:
    """A comment says that its names are well as they are: `# noqa`, `# noqa: F821`, or that of a type checker."""
    if _KNOWN.search(line):
        return True
    found = _QUIET.search(line)
    return bool(found) and (not found["codes"] or any(code in found["codes"].upper() for code in _CODES))  # type: ignore[index]
