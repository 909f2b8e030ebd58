"""A requirement as metadata writes it: which distribution it asks for, with which extras, and whether it does so here.

Knows nothing of what is installed. Markers are those of the packaging specifications (PEP 508); one that can't be read
counts as true, since to count a version too many costs a run, and one too few serves stale results.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

_NAMED: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?\s*(@?)")
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"[^"]*"|'[^']*')|(?P<sign>===|[=!~<>]=|[<>()])|(?P<word>[A-Za-z_][A-Za-z0-9_.]*))"""
)
_VERSION: Final = re.compile(r"(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc|dev)[._-]?(\d*))?(?:\+.*)?", re.IGNORECASE)
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "===": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "~=": operator.ge,
}
_STAGES: Final = ("dev", "a", "b", "rc", None)
"""In the order in which they come; the last is the release itself."""


class Requirement(NamedTuple):
    """One that holds here. name: as `canonical` gives it. extras: of that distribution, which it asks for."""

    name: str
    extras: frozenset[str]


class _Unreadable(Exception):
    pass


def canonical(name: str) -> str:
    """The one spelling of a distribution's name, or of an extra's: "Foo.bar_baz" is "foo-bar-baz"."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(line: str, environment: Mapping[str, str], extras: Collection[str] = ()) -> Requirement | None:
    """What a line of requirements asks for; None where its marker is false, or where it is no such line.

    environment: the variables of markers, as the interpreter has them. extras: those of the distribution that requires
    it which are asked for.
    """
    found = _NAMED.match(line)
    if not found:
        return None
    name, asked, url = found.groups()
    marker = line.partition(" ;" if url else ";")[2]
    if not any(holds(marker, {**environment, "extra": extra}) for extra in ("", *extras)):
        return None
    return Requirement(canonical(name), frozenset(canonical(extra) for extra in re.findall(r"[^\s,]+", asked or "")))


def holds(marker: str, environment: Mapping[str, str]) -> bool:
    """Whether a marker is true; an empty one is."""
    try:
        return not marker.strip() or _Marker(marker, environment).value()
    except _Unreadable:
        return True


class _Marker:
    """Reads a marker from left to right."""

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._tokens = []
        end, text = 0, text.rstrip()
        while end < len(text):
            token = _TOKEN.match(text, end)
            if not token:
                raise _Unreadable
            self._tokens.append(token[0].strip())
            end = token.end()

    def value(self) -> bool:
        found = self._either()
        if self._tokens:
            raise _Unreadable
        return found

    def _either(self) -> bool:
        found = self._both()
        while self._taken("or"):
            found = self._both() or found
        return found

    def _both(self) -> bool:
        found = self._one()
        while self._taken("and"):
            found = self._one() and found
        return found

    def _one(self) -> bool:
        if self._taken("("):
            found = self._either()
            if not self._taken(")"):
                raise _Unreadable
            return found
        left, is_extra = self._operand()
        sign = self._next()
        if sign == "not" and self._taken("in"):
            sign = "not in"
        right, is_extra_too = self._operand()
        if sign not in (*_ORDERS, "in", "not in"):
            raise _Unreadable
        if is_extra or is_extra_too:
            left, right = canonical(left), canonical(right)
        return _compared(left, sign, right)

    def _operand(self) -> tuple[str, bool]:
        """The text of a literal or a variable, and whether that is the one of extras."""
        token = self._next()
        if token[0] in "\"'":
            return token[1:-1], False
        if token not in self._environment:
            raise _Unreadable
        return self._environment[token], token == "extra"

    def _next(self) -> str:
        if not self._tokens:
            raise _Unreadable
        return self._tokens.pop(0)

    def _taken(self, token: str) -> bool:
        if self._tokens[:1] != [token]:
            return False
        del self._tokens[0]
        return True


def _compared(left: str, sign: str, right: str) -> bool:
    """As versions where both are, else as texts."""
    if sign in ("in", "not in"):
        return (left in right) is (sign == "in")
    if sign in ("==", "!=") and right.endswith(".*"):
        wanted = right.removesuffix(".*").split(".")
        return (left.split(".")[: len(wanted)] == wanted) is (sign == "==")
    mine, other = _ordered(left), _ordered(right)
    if mine is None or other is None or sign == "===":
        return _ORDERS[sign](left, right)
    series = right.split(".")[:-1]
    return _ORDERS[sign](mine, other) and (sign != "~=" or left.split(".")[: len(series)] == series)


def _ordered(version: str) -> tuple[tuple[int, ...], int, int] | None:
    """A version as it is ordered: the release without trailing zeros, and its stage; None for no version."""
    found = _VERSION.fullmatch(version.strip())
    if not found:
        return None
    release, stage, number = found.groups()
    numbers = [int(part) for part in release.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), _STAGES.index(stage and stage.lower()), int(number or 0)
