"""Who waits for ephemeral outputs: actions that rest until theirs are needed, and users that wait until they are there.

Knows which bytes are where (`ephemeral`) and what needs what; starts nothing itself. One object for each build.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from buildsys.assess import Assessment, Assessor
from buildsys.digest import Digest
from buildsys.ephemeral import Copy, Ephemeral, budget_exceeded
from buildsys.errors import FAILED, BuildError
from buildsys.model import NO_SHARD, ActionId, Decision, Made, Result, RuleName
from buildsys.plan.frontier import Frontier
from buildsys.spec.graph import Graph, Wanted

_MARGIN: Final = 2


class Supply:
    """The ephemeral outputs of one build. budget: bytes that all of them may use, None for no limit."""

    def __init__(
        self,
        graph: Graph,
        wanted: Wanted,
        frontier: Frontier,
        assessor: Assessor,
        ephemeral: Ephemeral,
        budget: int | None,
    ) -> None:
        self._graph = graph
        self._wanted = wanted
        self._frontier = frontier
        self._assessor = assessor
        self._ephemeral = ephemeral
        self._budget = budget
        self._settled: set[ActionId] = set()
        self._resting: dict[ActionId, Assessment] = {}
        self._waiting: dict[ActionId, tuple[Assessment, set[ActionId]]] = {}
        self._reserved: dict[ActionId, int] = {}
        self._to_run: set[ActionId] = set()
        self._refused: dict[RuleName, deque[Assessment]] = {rule: deque() for rule in reversed(list(wanted.shards))}

    # ------------------------------------------------------------ rest and demand

    def rest(self, assessment: Assessment) -> None:
        """Its result holds, and its outputs are dropped: it is settled when they are needed, else at the end."""
        self._resting[assessment.action] = assessment
        self._reserved.pop(assessment.action, None)

    def awake(self) -> list[Assessment]:
        """Those that nothing needed; they rest no longer."""
        resting, self._resting = self._resting, {}
        return list(resting.values())

    def lacking(self, assessment: Assessment) -> list[ActionId]:
        """The actions whose ephemeral outputs it reads, and which are nowhere."""
        given = [given for bound in assessment.reads for given in bound.given if given.lent]
        return list(dict.fromkeys(one.maker for one in given if one.maker and not self._ephemeral.locate(one)))

    def wake(self, action: ActionId, user: ActionId) -> Assessment | None:
        """A resting action, to be run because `user` needs it; None where it rests no longer."""
        found = self._resting.pop(action, None)
        return found and replace(found, decision=Decision("run", f"dropped, and {user} needs it"), dropped=False)

    def wait(self, assessment: Assessment, makers: Sequence[ActionId]) -> None:
        """It can start once these are settled."""
        self._waiting[assessment.action] = assessment, set(makers)

    def is_awaited(self, action: ActionId) -> bool:
        """Something waits for its outputs, and they are still nowhere."""
        return any(action in makers and action in self.lacking(user) for user, makers in self._waiting.values())

    def settled(self, action: ActionId) -> list[Assessment]:
        """An action ended: those that waited for it, and now for nothing more."""
        self._reserved.pop(action, None)
        self._settled.add(action)
        free = []
        for user, (assessment, makers) in list(self._waiting.items()):
            makers.discard(action)
            if not makers:
                del self._waiting[user]
                free.append(assessment)
        return free

    # ------------------------------------------------------------ room

    def placed(self, assessment: Assessment, outputs: tuple[Made, ...], run_id: int, counted: Digest) -> None:
        """What an action made in this run is in place, and counts so."""
        who = assessment.key, assessment.action, run_id
        self._ephemeral.placed(Result(*who, outputs, assessment.prepared.context, counts_as=counted))

    def has_room(self, assessment: Assessment) -> bool:
        """There is room for what it makes, which is reserved until it is settled; else it is refused, and kept.

        What nothing needs at the moment is dropped to make room, the oldest first.
        """
        self._to_run.add(assessment.action)
        if self._budget is None or not assessment.prepared.rule.ephemeral or assessment.action in self._reserved:
            return True
        refused = self._refused[assessment.action.rule]
        if refused or not self._reserve(assessment):
            refused.append(assessment)
            return False
        return True

    def admitted(self, *, last: bool = False) -> Assessment | None:
        """One that was refused and that there is room for by now, of the rule that is furthest downstream.

        last: nothing runs that could make room.
        """
        for refused in self._refused.values():
            if refused and self._reserve(refused[0], last=last):
                return refused.popleft()
        return None

    def _spare(self, rule: RuleName) -> int:
        """Bytes to be left for what is made of its outputs and is ephemeral too: until that is there, these can't go.

        Without it, a rule that has many shards takes all room, and no user of them gets any.
        """
        users = [user for user in self._users_of(rule) if self._graph.rules[user].ephemeral]
        return max(((self._ephemeral.largest_size(user) or 0) + self._spare(user) for user in users), default=0)

    def refused(self) -> list[Assessment]:
        """Those that there is no room for, and are not kept any longer."""
        refused = [one for of_rule in self._refused.values() for one in of_rule]
        for of_rule in self._refused.values():
            of_rule.clear()
        return refused

    def _reserve(self, assessment: Assessment, *, last: bool = False) -> bool:
        """Reserve room for what it makes; of a rule whose sizes nobody knows yet, one action at a time.

        last: or else it fails. So no room is spared for what will read it, and what may yet turn out to be needed goes,
        too: it can be made again.
        """
        assert self._budget is not None
        action = assessment.action
        size = self._expected(action, last=last)
        spare = 0 if last else self._spare(action.rule)
        if size is None and any(other.rule == action.rule for other in self._reserved):
            return False
        copies = [copy for copy in self._ephemeral.copies() if not self._is_replaced(copy, action)]
        excess = sum(copy.size for copy in copies) + sum(self._reserved.values()) + (size or 0) + spare - self._budget
        for copy in copies:
            if excess > 0 and not self._is_needed(copy, last=last):
                excess -= self._ephemeral.drop(copy)
        if excess > 0:
            return False
        self._reserved[action] = size or 0
        return True

    def _expected(self, action: ActionId, *, last: bool) -> int | None:
        """Bytes to reserve for what an action makes, None if nothing is known of its rule.

        For one that was never made this is twice the largest of its rule: two that came out larger than was thought
        could keep each other from ever being read. last: then it is what such outputs mostly take.
        """
        if last or self._ephemeral.is_known(action):
            return self._ephemeral.size_of(action)
        largest = self._ephemeral.largest_size(action.rule)
        return None if largest is None else _MARGIN * largest

    def _is_replaced(self, copy: Copy, action: ActionId) -> bool:
        """It lies where the action's outputs will, or did under another name of theirs."""
        if copy.result.action != action:
            return False
        outputs = self._graph.rules[action.rule].outputs
        paths = {self._assessor.output_path(action, output.name, NO_SHARD) for output in outputs}
        return copy.profile == self._graph.profile or any(made.artifact.path in paths for made in copy.result.outputs)

    def no_room(self, assessment: Assessment) -> BuildError:
        """The error for an action that no end of another will make room for."""
        copies = [copy for copy in self._ephemeral.copies() if not self._is_replaced(copy, assessment.action)]
        needed = sum(copy.size for copy in copies) + (self._ephemeral.size_of(assessment.action) or 0)
        return budget_exceeded(str(assessment.action), needed, self._budget or 0)

    def _is_needed(self, copy: Copy, *, last: bool) -> bool:
        """Something of this build may still read it, under this profile or because it has the same key there.

        last: what is not known to be needed is not.
        """
        action, counted = copy.result.action, copy.result.counted
        mine = copy.profile == self._graph.profile
        is_known = last or action in self._to_run or self._assessor.counted(action) is not None
        if mine and action in self._wanted and not is_known:
            return True
        same = [one for one in self._frontier.actions(action.rule) if self._assessor.counted(one) == counted]
        return any(self._has_users(one) for one in same)

    def _has_users(self, action: ActionId) -> bool:
        """Actions that read its outputs are yet to be settled."""
        return any(
            not self._frontier.is_drawn(rule)
            or any(
                user not in self._settled and action in self._frontier.needs(user)
                for user in self._frontier.actions(rule)
            )
            for rule in self._users_of(action.rule)
        )

    def _users_of(self, rule: RuleName) -> list[RuleName]:
        return [user for user in self._wanted.shards if rule in self._graph.upstream(user)]


def outputs_gone(maker: ActionId, user: ActionId) -> BuildError:
    return BuildError(
        f"the outputs of {maker} were removed or changed before {user} could read them",
        hint="build again: they are made once more",
        exit_code=FAILED,
    )
