"""What Python and ruff say of a text that is not Python, in our words: the problem in a line, and what to do.

Python decides what is wrong and mostly says it well; where it only says "invalid syntax", ruff says what was expected.
Knows their messages, of all versions that are in use; one that it does not know stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_KNOWN: Final[Sequence[tuple[str, str, str]]] = (
    (
        "expected 'except' or 'finally' block",
        "try block without except or finally",
        "{try_}give it its `except` back, or its lines their indentation",
    ),
    (
        r"expected an indented block after (?:'(?P<a>\w+\*?)' (?:statement|clause)|(?P<b>[\w ]+?)) on line (?P<n>\d+)",
        "nothing is indented below the {what} in line {n}",
        "indent what belongs to it, or write `pass`",
    ),
    (
        "unindent does not match any outer indentation level",
        "the indentation fits no line above",
        "indent it like the block that it belongs to",
    ),
    ("unexpected indent", "the line is indented, and none above opens a block", "indent it like the line above"),
    ("inconsistent use of tabs and spaces", "tabs and spaces are mixed in the indentation", "indent with spaces alone"),
    ("too many levels of indentation", "too many levels of indentation", ""),
    (r"expected ':'", "a colon is missing", ""),
    (r"'(?P<a>.)' was never closed", "`{a}` is never closed", ""),
    (
        r"closing parenthesis '(?P<a>.)' does not match opening parenthesis '(?P<b>.)'(?: on line (?P<n>\d+))?",
        "`{a}` closes what `{b}` opened{line}",
        "",
    ),
    (r"unmatched '(?P<a>.)'", "`{a}` closes nothing", ""),
    (r"unterminated triple-quoted (?:f-)?string literal", "the string has no closing quotes", ""),
    (r"unterminated (?:f-)?string literal", "the string has no closing quote", ""),
    (r"invalid syntax\. Perhaps you forgot a comma", "invalid syntax", "is a comma missing?"),
    (r"invalid syntax\. Maybe you meant '==' or ':='", "`=` can't be within an expression", "write `==` to compare"),
    (
        r"(?P<a>cannot (?:assign to|delete) .*?)(?: here)?\. Maybe you meant '==' instead of '='\?",
        "{a}",
        "write `==` to compare",
    ),
    (r"'(?P<a>\w+)' outside (?P<b>.+)", "`{a}` outside {b}", "has its line lost its indentation?"),
    (r"'continue' not properly in loop", "`continue` outside loop", "has its line lost its indentation?"),
    (r"duplicate argument '(?P<a>\w+)' in function definition", "two arguments are called `{a}`", ""),
    (r"keyword argument repeated: (?P<a>\w+)", "the keyword `{a}` is given twice", ""),
    (r"Missing parentheses in call to '(?P<a>\w+)'.*", "`{a}` is called without parentheses", "write `{a}(...)`"),
    (
        r"multiple exception types must be parenthesized",
        "several exceptions without parentheses",
        "write `except (A, B):`",
    ),
    (r"invalid non-printable character (?P<a>U\+\w+)", "a character that can't be seen: {a}", "delete it"),
    (r"invalid character '(?P<a>.)' \((?P<b>U\+\w+)\)", "`{a}` is no character of Python ({b})", "{plain}"),
    (
        "source code (?:string )?cannot contain null bytes",
        "the file holds null bytes",
        "it is no text; was it cut short?",
    ),
    (
        r"from __future__ imports must occur at the beginning of the file",
        "`from __future__` comes too late",
        "put it first",
    ),
)
"""Python's message as a pattern, the problem, and what to do; `{a}` is what the pattern found."""

_PLAIN: Final = {"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "−": "-", "…": "..."}
_ALONE: Final = {"except": "try", "finally": "try", "else": "if", "elif": "if"}
_CONFLICT: Final = re.compile(r"(<{7}|={7}|>{7}|\|{7})( |$)")
_WORD: Final = re.compile(r"(\s*)(\w+)")
_ELSE_IF: Final = re.compile(r"\s*else\s+if\b")
_TRY: Final = re.compile(r"([ \t]*)try[ \t]*:")


def reworded(message: str, lines: Sequence[str], line: int, column: int, ruff: str = "") -> tuple[str, str]:
    """The problem, and what to do or "". message: Python's, with its place; ruff: what ruff says of that line."""
    text = lines[line - 1] if 1 <= line <= len(lines) else ""
    if _CONFLICT.match(text):
        return "a merge conflict that nobody resolved", "keep one of its sides, and remove the marks"
    word = _WORD.match(text)
    if word and word[2] in _ALONE and message == "invalid syntax" and column == len(word[1]) + 1:
        return f"`{word[2]}` without `{_ALONE[word[2]]}` above it", f"indent it like its `{_ALONE[word[2]]}`"
    if message.startswith("expected ':'") and _ELSE_IF.match(text):
        return "`else if` is no Python", "write `elif`"
    for pattern, problem, hint in _KNOWN:
        if found := re.match(pattern, message):
            given = {name: value or "" for name, value in found.groupdict().items()}
            given["what"] = f"`{given['a']}`" if given.get("a") else given.get("b", "")
            given["line"] = f" in line {given['n']}" if given.get("n") else ""
            given["try_"] = _try_above(lines, line)
            given["plain"] = f"write `{_PLAIN[given['a']]}`" if given.get("a") in _PLAIN else ""
            return problem.format_map(given), hint.format_map(given)
    if message == "invalid syntax" and ruff:
        return _lowered(ruff), ""
    return _lowered(message), ""


def _try_above(lines: Sequence[str], line: int) -> str:
    """Where the `try` is that lacks something: the nearest above that is indented as much as the line, else any."""
    text = lines[line - 1] if line <= len(lines) else ""
    margin = len(text) - len(text.lstrip())
    above = [(n + 1, len(found[1])) for n in range(line - 1, -1, -1) if (found := _TRY.match(lines[n]))]
    nearest = next((n for n, indent in above if indent >= margin), above[0][0] if above else 0)
    return f"the `try` is in line {nearest}: " if nearest else ""


def _lowered(message: str) -> str:
    return message if message[:2].isupper() else message[:1].lower() + message[1:]
