"""Whether the replies of a `chat` rule are worth going on: the first ones, and now and then those that have come.

Joins the rules that are made shard by shard of the replies with their checks. What they make here is looked at and
thrown away: nothing is recorded, so that code which is mended is asked anew, and the replies are in the log.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from buildsys.assess import Assessor, Bound
from buildsys.code.parse import Broken
from buildsys.digest import NO_DIGEST
from buildsys.errors import FAILED, BuildError
from buildsys.model import ActionId, Check, CheckVerdict, Rule, RuleName
from buildsys.phrases import counted
from buildsys.plan.key import Given
from buildsys.prepare import Prepared
from buildsys.run import checks
from buildsys.run.brake import Brake
from buildsys.run.call import Cancelled
from buildsys.run.conversation import Row
from buildsys.spec.graph import FromRule
from buildsys.staged import targets, written

EVERY: Final = 256
"""Replies of a rule, after which those that have come are looked at again."""
MOST_ROWS: Final = 1024
FEWEST_ROWS: Final = 64
"""Of a shard: from so many on, its checks say something of all that is to come."""
_LONGEST_REPLY: Final = 1500


@dataclass(frozen=True)
class Follower:
    """An action that reads the replies of a chat action, or what another one made of them.

    inputs: those that are there. made: (input, rule, output) of those that are made of the replies.
    """

    action: ActionId
    prepared: Prepared
    inputs: tuple[Bound, ...]
    made: tuple[tuple[str, RuleName, str], ...]

    @property
    def rule(self) -> Rule:
        return self.prepared.rule


def followers(assessor: Assessor, action: ActionId) -> list[Follower]:
    """What a canary of a chat action tries, in order: actions of its shard that have checks, and those on the way.

    Left out is what needs more than the replies of one shard and what is settled, or resources, or a server. Not for
    several threads at once.
    """
    graph = assessor.graph
    found: dict[RuleName, Follower] = {}
    for name in graph.order:
        rule = graph.rules[name]
        if graph.origins[name] != graph.origins[action.rule] or rule.kind == "chat" or rule.ephemeral:
            continue
        if rule.resources or rule.scratch or graph.services_of(rule):
            continue
        if not rule.default and graph.rules[action.rule].default:
            continue  # It is built on request only, and must not keep anything else from being built.
        if one := _follower(assessor, ActionId(name, action.shard), {action.rule, *found}):
            found[name] = one
    needed: set[RuleName] = set()
    for name in reversed(found):
        if found[name].rule.checks or name in needed:
            needed |= {name, *(rule for _, rule, _ in found[name].made)}
    return [one for name, one in found.items() if name in needed]


def _follower(assessor: Assessor, action: ActionId, tried: set[RuleName]) -> Follower | None:
    rule = assessor.graph.rules[action.rule]
    inputs, made = [], []
    for source in assessor.graph.sources(action):
        if isinstance(source, FromRule) and source.rule in tried and not source.many:
            made.append((source.name, source.rule, source.output))
        elif isinstance(source, FromRule) and (source.many or not assessor.is_settled(source)):
            return None
        else:
            inputs.append(source)
    # What is wrong with it besides is told when it is its turn.
    with suppress(BuildError):
        if made and not isinstance(assessor.preparer.code(rule), Broken):
            bound = tuple(assessor.bind(source) for source in inputs)
            if not any(given.lent for one in bound for given in one.given):
                return Follower(action, assessor.prepared(rule), bound, tuple(made))
    return None


CarryOut = Callable[[Follower, Sequence[Bound], Mapping[str, Path]], BuildError | None]
"""Run a follower with these inputs, in their order, to write these outputs; what went wrong, None where nothing did."""


@dataclass(frozen=True)
class _Fault:
    """What was wrong with rows. verdict: of the check that failed; None where the code did."""

    action: ActionId
    error: BuildError
    check: Check | None = None
    verdict: CheckVerdict | None = None


class Canary:
    """One chat rule in one build. For the threads of all its actions at once.

    tell: gets a line for people when replies were found good.
    """

    def __init__(
        self,
        rule: Rule,
        brake: Brake,
        profile: str,
        folder: Path,
        root: Path,
        sql: checks.Checks,
        carry_out: CarryOut,
        tell: Callable[[str], None],
    ) -> None:
        self.brake = brake
        self._rule = rule
        self._profile = profile
        self._folder = folder
        self._root = root
        self._checks = sql
        self._carry_out = carry_out
        self._tell = tell
        self._changed = threading.Condition()
        self._expected: list[ActionId] = []
        self._passed = False
        self._numbers = count(1)
        self._n_new = 0

    def expect(self, action: ActionId) -> None:
        """An action is about to run: those that were expected earlier come first. `leave` has to follow."""
        with self._changed:
            self._expected.append(action)

    def begin(self, action: ActionId) -> bool:
        """Whether it is for this action to ask its first records, and have them judged.

        Waits while that is for another one. Raises the error that the brake was pulled for.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._passed or self.brake.is_pulled or self._expected[0] == action)
        self.brake.check()
        return not self._passed

    def judge(self, action: ActionId, following: Sequence[Follower], rows: Sequence[Row]) -> None:
        """Of the one who began. Raises where the first rows are no good."""
        self._look(action, following, rows)
        with self._changed:
            self._passed = True
            self._changed.notify_all()
        rules = [self._rule, *(one.rule for one in following)]
        n = sum(len(_asked(rule)) for rule in rules)
        through = f" went through {', '.join(rule.name for rule in rules[1:])} and" if following else ""
        self._tell(f"{self._rule.name}: the first {counted(len(rows), 'reply')}{through} passed {counted(n, 'check')}")

    def leave(self, action: ActionId) -> None:
        """It has ended, whether it asked or not. May be said twice."""
        with self._changed:
            if action in self._expected:
                self._expected.remove(action)
            self._changed.notify_all()

    def resume(self, action: ActionId, following: Sequence[Follower], rows: Sequence[Row]) -> None:
        """Look at what an earlier build left. Raises where that is no good."""
        if len(rows) >= FEWEST_ROWS:
            self._look(action, following, rows)

    def note(self, n_new: int) -> bool:
        """So many more replies have come; whether it is time to look at those that have."""
        with self._changed:
            self._n_new += n_new
            due = self._n_new >= EVERY
            self._n_new = 0 if due else self._n_new
        return due

    def look_again(self, action: ActionId, following: Sequence[Follower], rows: Sequence[Row]) -> None:
        """Pull the brake where they are no good."""
        if len(rows) >= FEWEST_ROWS and not self.brake.is_pulled:
            with suppress(BuildError):
                self._look(action, following, rows)

    def _look(self, action: ActionId, following: Sequence[Follower], rows: Sequence[Row]) -> None:
        fault = self._fault(action, following, rows)
        if fault:
            self.brake.stop()  # Now: to find the culprit takes a while.
            culprit = rows[0]
            try:
                culprit = self._culprit(fault, action, following, rows)
            finally:
                self.brake.pull(self._error(fault, rows, culprit))
            self.brake.check()

    def _fault(self, action: ActionId, following: Sequence[Follower], rows: Sequence[Row]) -> _Fault | None:
        """The first thing that goes wrong with these rows."""
        folder = self._folder / f"canary-{next(self._numbers)}"
        try:
            made = targets(self._rule, action, self._profile, folder / self._rule.name)
            with made[self._rule.outputs[0].name].open("wb") as file:
                file.writelines(row.line() + b"\n" for row in rows)
            paths = {(self._rule.name, name): path for name, path in made.items()}
            if fault := self._checked(action, self._rule, made):
                return fault
            for one in following:
                made = targets(one.rule, one.action, self._profile, folder / one.rule.name)
                given = [self._given(name, paths[rule, output]) for name, rule, output in one.made]
                if error := self._carry_out(one, [*one.inputs, *given], made):
                    return _Fault(one.action, error)
                try:
                    for output in one.rule.outputs:
                        written(one.rule, output, made[output.name])
                except BuildError as error:
                    return _Fault(one.action, error)
                paths |= {(one.rule.name, name): path for name, path in made.items()}
                if fault := self._checked(one.action, one.rule, made):
                    return fault
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                self._folder.rmdir()
        return None

    def _checked(self, action: ActionId, rule: Rule, made: Mapping[str, Path]) -> _Fault | None:
        asked = _asked(rule)
        if not asked:
            return None
        try:
            verdicts = self._checks.run(asked, (), {name: [path] for name, path in made.items()})
        except checks.Cancelled:
            raise Cancelled from None
        for check, verdict in zip(asked, verdicts, strict=True):
            if not verdict.answered and not all(path.is_dir() or path.stat().st_size for path in made.values()):
                continue  # Few rows may leave none, and what is empty has no columns to ask for.
            if verdict.holds_back:
                error = BuildError(f'check "{check.name}" failed', place=check.place, exit_code=FAILED)
                return _Fault(action, error, check, verdict)
        return None

    def _culprit(self, fault: _Fault, action: ActionId, following: Sequence[Follower], rows: Sequence[Row]) -> Row:
        """A row that goes wrong in the same way alone, as far as halving finds one."""
        while len(rows) > 1:
            half = len(rows) // 2
            for part in (rows[:half], rows[half:]):
                found = self._fault(action, following, part)
                if found and (found.action, found.check) == (fault.action, fault.check):
                    rows = part
                    break
            else:
                break
        return rows[0]

    def _given(self, name: str, path: Path) -> Bound:
        given = Given(name, path.name, NO_DIGEST, path.relative_to(self._root).as_posix())
        return Bound(name, False, (given,), ())

    def _error(self, fault: _Fault, rows: Sequence[Row], culprit: Row) -> BuildError:
        error, verdict = fault.error, fault.verdict
        raw = b" ".join(culprit.replies).decode("utf-8", "replace") or str(culprit.error)
        shown = raw if len(raw) <= _LONGEST_REPLY else f"{raw[:_LONGEST_REPLY]} ..."
        facts = list(error.facts)
        if fault.check:
            facts.append(("sql", " ".join(fault.check.sql.split())))
        facts += [("record", culprit.record_id), ("its reply", " ".join(shown.split()))]
        kept = "no more is sent, and all replies are kept: mend the code or the check, and they are used"
        if fault.check:
            kept += f"; {fault.check.name} = {{ sql = ..., canary = false }} is asked of whole shards only"
        return BuildError(
            f"{error.problem} for {fault.action} on {counted(len(rows), 'reply')}",
            place=error.place,
            excerpt=verdict.detail if verdict else error.excerpt,
            facts=facts,
            hint=f"{kept}; {error.hint}" if error.hint else kept,
            exit_code=FAILED,
        )


def _asked(rule: Rule) -> list[Check]:
    return [check for check in rule.checks if check.canary]
