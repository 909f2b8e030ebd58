"""Which earlier results count for an action as it is now: those of its key, and those that nothing they used has left.

Joins what is recorded of earlier runs with the code and the machine as they are. It answers for one build, and changes
nothing. See docs/decisions/0018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from buildsys.digest import NO_DIGEST, Digest
from buildsys.model import ActionId, ActionKey, Discovered, Evidence, Observed, Part, Result, Trace
from buildsys.past import Past
from buildsys.plan.decide import differences
from buildsys.plan.key import CODE
from buildsys.prepare import Prepared, Preparer
from buildsys.state.discoveries import Discoveries


@dataclass(frozen=True)
class Asked:
    """An action as it is now. rest: digest of its key without the code."""

    action: ActionId
    prepared: Prepared
    key: ActionKey
    rest: Digest


@dataclass(frozen=True)
class Counted:
    """A result that counts. evidence: for the sources as they are now, where it counts under a key not its own."""

    result: Result
    evidence: Evidence | None = None


class Counting:
    """answers: what discovered inputs are worth now."""

    def __init__(self, preparer: Preparer, past: Past, answers: Discoveries) -> None:
        self._preparer = preparer
        self._past = past
        self._answers = answers
        self._evidence: dict[Digest, Evidence] = {}
        self._traces: dict[Digest, Trace] = {}
        self._discovered: dict[Digest, Sequence[Discovered]] = {}
        self._changed: dict[Digest, tuple[Discovered, ...]] = {}

    def find(self, asked: Sequence[Asked]) -> dict[ActionId, Counted]:
        """For each action that has one the result that counts: rather that which holds, then that of its own key."""
        newest = self._past.newest
        found = self._first(asked, lambda one: [newest[one.action]] if self.is_under_key(one) else ())
        left = [one for one in asked if one.action not in found]
        made = self._past.find([one.key for one in left])
        found |= self._first(left, lambda one: made.get(one.key, ()))
        left = [one for one in left if one.action not in found and one.prepared.code]
        akin = self._past.akin([one.rest for one in left])
        return found | self._first(left, lambda one: self._holding_first(one.action, akin.get(one.rest, ())))

    def is_under_key(self, one: Asked) -> bool:
        """What holds for the action was made, or is held, under the key that it has now."""
        held = self._past.newest.get(one.action)
        return held is not None and one.key in (held.key, held.alias.key if held.alias else "")

    def changed(self, result: Result) -> tuple[Discovered, ...]:
        """The discovered inputs of a result that are no more what they were."""
        evidence = self._own(result)
        return self._moved(evidence.discovered) if evidence else ()

    def discovered(self, result: Result) -> Sequence[Discovered]:
        """The discovered inputs of a result."""
        evidence = self._own(result)
        return self._discovered.get(evidence.discovered, ()) if evidence else ()

    def evidence_now(self, result: Result, prepared: Prepared) -> Evidence | None:
        """What a result rests on, as it would be had it been made by the code as it is now; None where it has none."""
        seen = self._own(result)
        used = self._used(prepared, seen) if seen and seen.used else NO_DIGEST
        return seen and seen._replace(sources=prepared.sources, used=used)

    def code_changes(self, result: Result, prepared: Prepared, before: Sequence[Part]) -> list[str]:
        """How the half of the key that all actions of a rule share differs from that of a result, whose half is given.

        Its code does not where nothing of it that the run used has changed.
        """
        now = prepared.parts
        others = differences(_without_code(before), _without_code(now))
        used = self._uses_as_before(result, prepared)
        if used is None:
            return differences(before, now)
        if used:
            return others
        return differences(before, now) or ["code changed that only its last run shows to be its own"]

    def akin(self, prepared: Prepared) -> set[Digest]:
        """The contexts, of whichever rule, that differ in nothing but code that some of their runs did not use."""
        if not prepared.code or prepared.rule.kind == "shell":
            return set()
        others = _without_code(prepared.parts)
        return {
            context
            for context, seen in self._past.evidence_of(prepared.rule.script)
            if self._uses(prepared, seen) and _without_code(self._past.context(context)) == others
        }

    def observed(self, prepared: Prepared, trace: Trace, discovered: tuple[Discovered, ...]) -> Observed:
        """What is to be recorded of a run that has ended."""
        return Observed(prepared.sources, self._preparer.used(prepared.rule, trace), trace, discovered)

    # ------------------------------------------------------------ one result

    def _first(
        self, asked: Iterable[Asked], candidates: Callable[[Asked], Sequence[Result]]
    ) -> dict[ActionId, Counted]:
        """For each action the first of its candidates that counts."""
        of_action = [(one, candidates(one)) for one in asked]
        self.learn([result for _, results in of_action for result in results])
        found = {}
        for one, results in of_action:
            if counted := next(filter(None, (self._counted(one, result) for result in results)), None):
                found[one.action] = counted
        return found

    def _counted(self, one: Asked, result: Result) -> Counted | None:
        """The result, if it counts for the action; its rest is that of the action's key."""
        if result.rejected:
            return None
        alias = result.alias if result.alias and result.alias.key == one.key else None
        is_of_key = alias is not None or result.key == one.key
        seen = (self._evidence.get(alias.evidence) if alias else None) or self._evidence.get(result.evidence)
        if seen is None:
            return Counted(result) if is_of_key else None
        if self._moved(seen.discovered):
            return None
        if seen.sources != one.prepared.sources and not (self._uses(one.prepared, seen) if seen.used else is_of_key):
            return None
        return Counted(result, None if is_of_key else seen._replace(sources=one.prepared.sources))

    def _uses_as_before(self, result: Result, prepared: Prepared) -> bool | None:
        """Whether nothing has changed of the code that a result's run used; None where its trace can't tell."""
        seen = self._own(result)
        if seen is None or not seen.used:
            return None
        return seen.sources == prepared.sources or self._uses(prepared, seen)

    def _uses(self, prepared: Prepared, seen: Evidence) -> bool:
        return self._used(prepared, seen) == seen.used

    def _used(self, prepared: Prepared, seen: Evidence) -> Digest:
        """What `seen.used` would be by the code as it is now."""
        if seen.trace not in self._traces:
            self._traces |= self._past.traces([seen.trace])
        return self._preparer.used(prepared.rule, self._traces[seen.trace])

    def _moved(self, discovered: Digest) -> tuple[Discovered, ...]:
        if discovered == NO_DIGEST:
            return ()
        if discovered not in self._changed:
            all_of_it = self._discovered[discovered]
            self._changed[discovered] = tuple(one for one in all_of_it if not self._answers.is_unchanged(one))
        return self._changed[discovered]

    def _holding_first(self, action: ActionId, results: Sequence[Result]) -> Sequence[Result]:
        """The same results, rather that which holds for the action, which needs no restoring."""
        held = self._past.newest.get(action)
        which = held and (held.key, held.evidence)
        if held and any((one.key, one.evidence) == which for one in results):
            return [held, *(one for one in results if (one.key, one.evidence) != which)]
        return results

    # ------------------------------------------------------------ what is recorded

    def learn(self, results: Iterable[Result]) -> None:
        """Have at hand what these results rest on, asked for together."""
        named = {digest for one in results for digest in (one.evidence, one.alias.evidence if one.alias else NO_DIGEST)}
        found = self._past.evidence([digest for digest in named if digest and digest not in self._evidence])
        self._evidence |= found
        sets = {one.discovered for one in found.values() if one.discovered}
        self._discovered |= self._past.discovered(list(sets.difference(self._discovered)))

    def _own(self, result: Result) -> Evidence | None:
        self.learn([result])
        return self._evidence.get(result.evidence)


def _without_code(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if part.group != CODE]
