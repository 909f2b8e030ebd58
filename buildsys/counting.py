"""Which earlier results count for an action as it is now: those of its key, and those that nothing they used has left.

Joins what is recorded of earlier runs with the code and the machine as they are. It answers for one build, and changes
nothing. See docs/decisions/0018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from buildsys.digest import NO_DIGEST, Digest
from buildsys.model import ActionId, ActionKey, Alias, Discovered, Evidence, Observed, Part, Result, Trace
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
        evidence = self._of([result]).get(result.evidence)
        return self._moved(evidence.discovered) if evidence else ()

    def discovered(self, result: Result) -> Sequence[Discovered]:
        """The discovered inputs of a result."""
        evidence = self._of([result]).get(result.evidence)
        self._load_discovered([evidence.discovered] if evidence else [])
        return self._discovered.get(evidence.discovered, ()) if evidence else ()

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
        self._of([result for _, results in of_action for result in results])
        found = {}
        for one, results in of_action:
            if counted := next(filter(None, (self._counted(one, result) for result in results)), None):
                found[one.action] = counted
        return found

    def _counted(self, one: Asked, result: Result) -> Counted | None:
        """The result, if it counts for the action; its rest is that of the action's key."""
        alias = result.alias if result.alias and result.alias.key == one.key else None
        own = self._evidence.get(result.evidence)
        seen = self._seen(result, alias)
        if seen is None:
            return Counted(result) if alias or result.key == one.key else None
        if self._moved(seen.discovered):
            return None
        if seen.sources == one.prepared.sources:
            return self._under(one, result, alias, own)
        if not seen.used:
            return Counted(result) if alias or result.key == one.key else None
        if self._uses(one.prepared, seen):
            return self._under(one, result, alias, own)
        return None

    def _under(self, one: Asked, result: Result, alias: Alias | None, own: Evidence | None) -> Counted:
        if alias or result.key == one.key or own is None:
            return Counted(result)
        return Counted(result, own._replace(sources=one.prepared.sources))

    def _seen(self, result: Result, alias: Alias | None) -> Evidence | None:
        return (self._evidence.get(alias.evidence) if alias else None) or self._evidence.get(result.evidence)

    def _uses_as_before(self, result: Result, prepared: Prepared) -> bool | None:
        """Whether nothing has changed of the code that a result's run used; None where its trace can't tell."""
        seen = self._of([result]).get(result.evidence)
        if seen is None or not seen.used:
            return None
        return seen.sources == prepared.sources or self._uses(prepared, seen)

    def _uses(self, prepared: Prepared, seen: Evidence) -> bool:
        self._load_traces([seen.trace])
        return self._preparer.used(prepared.rule, self._traces[seen.trace]) == seen.used

    def _moved(self, discovered: Digest) -> tuple[Discovered, ...]:
        if discovered == NO_DIGEST:
            return ()
        if discovered not in self._changed:
            self._load_discovered([discovered])
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

    def _of(self, results: Sequence[Result]) -> Mapping[Digest, Evidence]:
        """All evidence that is known by now, that of these results included, with its discovered inputs."""
        named = {digest for one in results for digest in (one.evidence, one.alias.evidence if one.alias else NO_DIGEST)}
        missing = [digest for digest in named if digest and digest not in self._evidence]
        found = self._past.evidence(missing)
        self._evidence |= found
        self._load_discovered([one.discovered for one in found.values()])
        return self._evidence

    def _load_discovered(self, digests: Iterable[Digest]) -> None:
        missing = {digest for digest in digests if digest and digest not in self._discovered}
        self._discovered |= self._past.discovered(list(missing))

    def _load_traces(self, digests: Iterable[Digest]) -> None:
        missing = {digest for digest in digests if digest not in self._traces}
        self._traces |= self._past.traces(list(missing))


def _without_code(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if part.group != CODE]
