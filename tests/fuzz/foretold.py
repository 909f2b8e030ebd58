"""What a plan said of each action, held against how it ended.

Knows what a plan can't know, and so where it may be wrong; what a build may do at all is in `chronicle`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from buildsys.survey import Survey
from tests.fuzz import model
from tests.fuzz.chronicle import Permit
from tests.fuzz.model import Who
from tests.fuzz.world import World


class Foretold:
    """One plan, and what its build did. seen: how each action ended. called: how often each function was called."""

    def __init__(self, world: World, planned: Survey, seen: Mapping[Who, str], called: Counter[Who]) -> None:
        self._world = world
        self._planned = {Who(*one.action): one for one in planned.actions}
        self._guessed = set(planned.guessed)
        self._seen = seen
        self._called = called
        self._unchecked = {
            who.rule for who, one in self._planned.items() if one.fate == "check" and seen.get(who) == "failed"
        }

    def flaw(self, permits: Mapping[Who, Permit]) -> str:
        """The first thing that the plan knew enough to say and that was not so; "" where there is none."""
        other = {who for who in self._planned.keys() ^ self._seen.keys() if who.rule not in self._guessed}
        if other:
            return f"the plan has other actions: {sorted(map(str, other))}"
        for who, one in self._planned.items():
            if who in self._seen and not (self._came_true(who) or self._is_excused(who, permits.get(who))):
                return f"planned to {one.fate} {who} ({one.reason}), and it {self._seen[who]}"
        return ""

    def _came_true(self, who: Who) -> bool:
        outcome = self._seen[who]
        match fate := self._planned[who].fate:
            case "run":
                return bool(self._called[who]) or outcome == "skipped"  # what it waits for may have failed
            case "reuse":
                return outcome == "reused"
            case "restore":
                return outcome in ("restored", "ran")  # the bytes are looked at when they are restored
            case "blocked" | "skipped":
                return outcome == fate
            case _:
                return True

    def _is_excused(self, who: Who, permit: Permit | None) -> bool:
        """The plan could not know better.

        That stored bytes are damaged, so that what made them wakes dropped outputs, is seen only when they are
        restored. Of actions with equal keys one runs, and all are planned to; where they lost the same bytes, one may
        make them for the other. Outputs that have yet to pass their checks are taken to, as what runs to succeed.
        """
        if self._is_held_back(who) or self._is_unneeded(who):
            return True
        if permit is None:
            return False
        is_woken = self._planned[who].fate == "reuse" and True in permit.calls
        return is_woken or permit.is_luck

    def _is_held_back(self, who: Who) -> bool:
        upstream = {*model.wanted(self._world, [who.rule])} - {who.rule}
        return self._seen[who] == "skipped" and not self._unchecked.isdisjoint(upstream)

    def _is_unneeded(self, who: Who) -> bool:
        """It was dropped and was to be made for another, which was skipped or in turn unneeded."""
        users = [user for user in self._seen if self._planned[who].reason == f"dropped, and {user} needs it"]
        return self._seen[who] == "reused" and any(
            self._seen[user] == "skipped" or self._is_unneeded(user) for user in users
        )
