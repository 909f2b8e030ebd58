"""Which of the actions that are to run start now: one of each key, when what they take is free.

Joins the assessments with what the machine has and the project's pools. Starts nothing itself, and knows no thread and
no process. One object for each build.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from buildsys.assess import Assessment
from buildsys.errors import BuildError
from buildsys.model import MEMORY, ActionId, ActionKey, Rule, RuleName
from buildsys.plan.turns import Turn, Turns
from buildsys.run import landlock, machine
from buildsys.spec.sizes import size_text


class Starts:
    """rules: those that are wanted. pools: name -> size. jobs: threads for all but chat actions, which have plenty.

    environ: says which GPUs may be used.
    """

    def __init__(
        self, rules: Iterable[Rule], pools: Mapping[str, int], jobs: int, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._rules = list(rules)
        self._pools = pools
        self._jobs = jobs
        self._environ = environ
        self._turns: Turns[Assessment] | None = None
        self._new: list[Assessment] = []
        # The one that runs or is to, then those that wait for what it makes.
        self._of_key: dict[ActionKey, list[ActionId]] = {}

    def add(self, assessment: Assessment) -> None:
        """It is to run; but where its equal is, it waits for that: equal keys are equal work, which is done once."""
        same = self._of_key.setdefault(assessment.key, [])
        same.append(assessment.action)
        if len(same) == 1:
            self._new.append(assessment)

    def behind(self, action: ActionId, key: ActionKey) -> list[ActionId]:
        """Those that waited for what this action made of the key that it ran under; none where it didn't run."""
        if action not in self._of_key.get(key, [])[:1]:
            return []
        return self._of_key.pop(key)[1:]

    def next(self, may_run: Callable[[RuleName], bool], *, last: bool) -> list[Turn[Assessment]]:
        """Those that start now. What they take is occupied until `give_back`.

        may_run: whether any action of a rule may yet have to run. last: no more of them can be known now. Raises
        BuildError where a rule that may run takes more than there is: before anything starts, so far as that is known.
        """
        if self._turns is None:
            if not self._new or (self._lacking and not last):
                return []
            for name, error in self._lacking.items():
                if may_run(name):
                    raise error
            self._turns = Turns({**self._pools, MEMORY: self._memory}, self._gpus, self._jobs)
        new, self._new = self._new, []
        for assessment in new:
            rule = assessment.prepared.rule
            if rule.name in self._lacking:
                raise self._lacking[rule.name]
            self._turns.ask(assessment, dict(rule.resources), seated=rule.kind != "chat")
        return self._turns.next()

    def give_back(self, turn: Turn[Assessment]) -> None:
        """It has ended."""
        assert self._turns is not None
        self._turns.give_back(turn)

    @cached_property
    def _lacking(self) -> dict[RuleName, BuildError]:
        """The rules that this machine can't serve."""
        found = ((rule.name, self._lack(rule)) for rule in self._rules)
        return {name: error for name, error in found if error}

    @cached_property
    def _gpus(self) -> tuple[str, ...]:
        needed = any(rule.gpus for rule in self._rules)
        return machine.gpus(self._environ) if needed else ()

    @cached_property
    def _memory(self) -> int:
        return machine.memory()

    def _lack(self, rule: Rule) -> BuildError | None:
        """What to say where the rule takes more of something than the machine has, or what it has not."""
        n_gpus, n_bytes = rule.gpus, rule.memory
        if n_gpus and n_gpus > len(self._gpus):
            visible = self._environ.get(machine.VISIBLE)
            wanted = f"{n_gpus} GPU{'s' * (n_gpus > 1)}"
            return BuildError(
                f"[rule.{rule.name}] takes {wanted}, and this machine has {len(self._gpus) or 'none'}",
                facts=[] if visible is None else [(machine.VISIBLE, visible)],
                place=rule.place,
                hint="build on a machine that has them, or lower gpu in its resources",
            )
        if n_bytes and n_bytes > self._memory:
            wanted = f"{size_text(n_bytes)} of memory"
            return BuildError(
                f"[rule.{rule.name}] takes {wanted}, and this machine has {size_text(self._memory)}",
                place=rule.place,
                hint="build on a machine that has more, or lower memory in its resources",
            )
        if rule.sandbox and not landlock.version():
            return BuildError(
                f"[rule.{rule.name}] runs in a sandbox, and this machine has none: its kernel has no Landlock",
                place=rule.place,
                hint="build on Linux 5.13 or later, where Landlock is switched on, or leave sandbox out",
            )
        return None
