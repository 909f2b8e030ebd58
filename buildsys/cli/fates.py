"""What actions are in for, in words: those of a rule that share their fate are told once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from buildsys.phrases import listed
from buildsys.terminal import Line, Span, Style, error_lines

if TYPE_CHECKING:
    from buildsys.model import RuleName
    from buildsys.survey import Fate, Planned, Survey

WORDS: Final[dict[Fate, tuple[str, str, Style]]] = {
    "reuse": ("is up to date", "up to date", "dim"),
    "run": ("will run", "to run", "green"),
    "maybe": ("may run", "to run, unless equal", "cyan"),
    "check": ("will be checked", "to check", "cyan"),
    "restore": ("will be restored", "to restore", "cyan"),
    "blocked": ("is blocked", "blocked", "yellow"),
    "skipped": ("will be skipped", "to skip", "yellow"),
}
"""For each fate: what is said of one action, what is said of a number of them, and its colour."""


_ORDER: Final[tuple[Fate, ...]] = ("blocked", "run", "maybe", "check", "restore", "skipped", "reuse")


@dataclass(frozen=True)
class Alike:
    """Actions of one rule with one fate."""

    actions: Sequence[Planned]

    @property
    def first(self) -> Planned:
        return self.actions[0]

    def changes(self) -> list[str]:
        """Every difference that any of them has, once; none where the reason says it all."""
        found = list(dict.fromkeys(change for planned in self.actions for change in planned.changes))
        return [] if found == [self.first.reason] else found

    def name(self, n_of_rule: int) -> str:
        """`vocab`, `tokens[0003]`, or `tokens (8 actions)` where it is all of the rule's."""
        if len(self.actions) == 1:
            return str(self.first.action)
        if len(self.actions) == n_of_rule:
            return f"{self.first.action.rule} ({n_of_rule:,} actions)"
        return listed((str(planned.action) for planned in self.actions), most=4)


def alike(actions: Iterable[Planned], by: Callable[[Planned], Hashable]) -> list[Alike]:
    """Groups of a rule's actions that are equal by fate and `by`, in the order of their first ones."""
    groups: dict[Hashable, list[Planned]] = {}
    for planned in actions:
        groups.setdefault((planned.action.rule, planned.fate, by(planned)), []).append(planned)
    return [Alike(group) for group in groups.values()]


def known(found: Survey) -> list[Planned]:
    """The actions but those that only stand in for a rule whose shards are not known yet; what is blocked is known."""
    unknown = set(unknown_shards(found))
    return [planned for planned in found.actions if planned.action.rule not in unknown or planned.fate == "blocked"]


def unknown_shards(found: Survey) -> list[RuleName]:
    """Rules whose shards will be made by the build, and were never made before."""
    with_shards = {planned.action.rule for planned in found.actions if planned.action.shard}
    return [rule for rule in found.guessed if rule not in with_shards]


def counts(n_by_fate: Mapping[Fate, int]) -> Line:
    """`36 actions: 8 to run, 11 to run, unless equal, 17 up to date`, up to date last."""
    spans: list[Span] = []
    for fate in _ORDER:
        if n := n_by_fate.get(fate):
            _, words, style = WORDS[fate]
            spans += [Span("; " if spans else ""), Span(f"{n:,} {words}", style)]
    return spans


def diagnostics(actions: Iterable[Planned]) -> list[Line]:
    """Each error text once."""
    texts = dict.fromkeys(planned.error for planned in actions if planned.error)
    return [line for text in texts for line in error_lines(text)]
