"""Texts with `{names}` in braces: paths of inputs and outputs, and shell commands.

Knows nothing of rules: which names are right in which text is for its readers to say. A literal brace is doubled, and
stays doubled until `fill`; so a pattern may be carried about, compared and stored as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def names_in(pattern: str) -> list[str]:
    """The names in braces, in order, each as often as it is there.

    Raises ValueError where a brace is neither part of a name nor doubled.
    """
    names = []
    for token in _TOKEN.finditer(pattern):
        if token.group() in ("{", "}"):
            raise ValueError(f'a single "{token.group()}"')
        if token.group(1) is not None:
            names.append(token.group(1))
    return names


def fields(pattern: str) -> frozenset[str]:
    """The names in braces. Raises ValueError where a brace is neither part of a name nor doubled."""
    return frozenset(names_in(pattern))


def fill(pattern: str, values: Mapping[str, str]) -> str:
    """The text with every `{name}` replaced by its value and doubled braces made single.

    Values are put in as they are: whoever fills a shell command quotes them before. Raises KeyError for a name that has
    no value.
    """
    return _TOKEN.sub(lambda token: token.group()[0] if token.group(1) is None else values[token.group(1)], pattern)


def rename(pattern: str, old: str, new: str) -> str:
    """The pattern with `{old}` called `{new}`."""
    return _TOKEN.sub(lambda token: f"{{{new}}}" if token.group(1) == old else token.group(), pattern)


def shard_part(pattern: str) -> str:
    """The pattern from its first part with `{shard}` on: "a/b/{shard}/x.jsonl" -> "{shard}/x.jsonl"."""
    parts = pattern.split("/")
    first = next(n for n, part in enumerate(parts) if "{shard}" in part)
    return "/".join(parts[first:])


def may_meet(one: str, other: str) -> bool:
    """Whether two path patterns can name one path, or a path and something in the folder of that name.

    A name in braces stands for one or more characters other than "/", in each pattern on its own. So two patterns of
    one `{profile}` are compared as if the profiles differed, which can only refuse too much.
    """
    return all(map(_segments_meet, one.split("/"), other.split("/")))


def _segments_meet(one: str, other: str) -> bool:
    if "{" not in one and "{" not in other:
        return one == other
    left, right = _symbols(one), _symbols(other)

    @cache
    def meet(i: int, j: int) -> bool:
        if i == len(left) or j == len(right):
            return set(left[i:] + right[j:]) <= {_STAR}
        if left[i] is _STAR:
            return meet(i + 1, j) or meet(i, j + 1)
        if right[j] is _STAR:
            return meet(i, j + 1) or meet(i + 1, j)
        return (left[i] == right[j] or left[i] is _ANY or right[j] is _ANY) and meet(i + 1, j + 1)

    return meet(0, 0)


_ANY = "any"
_STAR = "star"


def _symbols(segment: str) -> tuple[str, ...]:
    """Single characters, and for each name in braces one `_ANY` and a `_STAR`."""
    symbols: list[str] = []
    start = 0
    for token in _TOKEN.finditer(segment):
        symbols += segment[start : token.start()]
        symbols += token.group()[0] if token.group(1) is None else (_ANY, _STAR)
        start = token.end()
    return (*symbols, *segment[start:])
