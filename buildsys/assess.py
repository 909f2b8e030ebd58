"""What stands between an action and its outputs: its inputs as they are now, its key, and what that key made before.

Joins files, store and earlier results with the pure stages. Both the build and the commands that only read ask it, so
that `plan` can't tell another story than `build`. It changes nothing in the workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from buildsys.counting import Asked, Counted, Counting
from buildsys.digest import Digest, digest_of
from buildsys.errors import BuildError
from buildsys.model import (
    NO_SHARD,
    ActionId,
    Check,
    Decision,
    Discovered,
    Evidence,
    Made,
    Output,
    Part,
    Result,
    Rule,
    RuleName,
    Service,
    Shard,
    digest_of_discovered,
    natural_key,
)
from buildsys.past import Past
from buildsys.plan.decide import REJECTED, Where, decide, differences
from buildsys.plan.key import Given, action_key
from buildsys.prepare import Prepared, Preparer, ServiceHalf, service_key
from buildsys.project import PASSED_ON
from buildsys.run.checks import check_key
from buildsys.spec.graph import FromFile, FromRule, Graph, Source
from buildsys.spec.pattern import fill
from buildsys.state.discoveries import Discoveries
from buildsys.state.files import Files, Seen
from buildsys.state.rows import LastVerdict
from buildsys.state.store import Store

_ASK_AGAIN: Final = Decision("run", "some of its requests were refused")


@dataclass(frozen=True)
class Bound:
    """One input role with what is in it. many: the code gets a list. seen: the files that are read in place."""

    name: str
    many: bool
    given: tuple[Given, ...]
    seen: tuple[Seen, ...]


@dataclass(frozen=True)
class Served:
    """A service that actions need, with its inputs, the rest of its key, and the key that says how it answers."""

    service: Service
    inputs: tuple[Bound, ...]
    half: ServiceHalf
    key: Digest

    @property
    def parts(self) -> tuple[Part, ...]:
        """All that its key holds."""
        return *self.half.parts, *input_parts(self.inputs)

    @property
    def instance(self) -> Digest:
        """The key of one that runs: it is started anew where its files were written to, even under the same key."""
        return digest_of(self.key, [list(seen.stat) for bound in self.inputs for seen in bound.seen])


@dataclass(frozen=True)
class Keyed(Asked):
    """An action with its inputs as they are now, the services that it needs, and its key."""

    inputs: tuple[Bound, ...]
    services: tuple[Served, ...]

    @property
    def reads(self) -> tuple[Bound, ...]:
        """Its inputs, and those of its services."""
        return *self.inputs, *(bound for served in self.services for bound in served.inputs)


@dataclass(frozen=True)
class Assessment(Keyed):
    """What is to be done for it.

    result: what was made before and counts; its artifacts have the paths of this workspace. narrowed: what it counts
    by, where it was made under another key. changes: how the key differs from the one that holds now, where nothing
    counts. unchecked: the names of the checks that are not known to hold. failed: those of them that were asked, and
    failed. warned: the names of those that failed and hold nothing back, as was told. dropped: the result holds, but
    its ephemeral outputs are not all in place.
    """

    result: Result | None
    decision: Decision
    narrowed: Evidence | None = None
    changes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    dropped: bool = False

    def counted(self, discovered: Sequence[Discovered] = ()) -> Digest:
        """What its outputs count by where they are ephemeral: made anew, they are what they were made as at first.

        discovered: its discovered inputs, where they are made for the first time.
        """
        if self.result:
            return self.result.counted
        return digest_of(self.key, digest_of_discovered(discovered)) if discovered else Digest(self.key)


class Assessor:
    """Assesses actions in the order in which they become ready. `settle` tells it what an action's outputs are.

    counting: which earlier results count. answers: what is discovered, as it is now. retry_refused: what rests on
    requests that were refused runs, to ask them again.
    """

    def __init__(
        self, graph: Graph, preparer: Preparer, files: Files, store: Store, past: Past, *, retry_refused: bool = False
    ) -> None:
        self.graph = graph
        self.retry_refused = retry_refused
        self.preparer = preparer
        self._files = files
        self._store = store
        self._past = past
        passed_on = {name: preparer.environ.get(name) for name in PASSED_ON}
        looks, environ = preparer.looks, preparer.environ
        self.answers = Discoveries(
            files, looks, self._is_no_name, environ, passed_on, only=True, versions=preparer.provided
        )
        self.counting = Counting(preparer, past, self.answers)
        self._made: dict[ActionId, tuple[Digest, tuple[Made, ...]]] = {}
        self._of_rule: dict[RuleName, dict[ActionId, None]] = {}
        self._served: dict[str, Served] = {}
        self._prepared: dict[RuleName, Prepared] = {}
        self._changed: dict[tuple[Digest, Digest, Digest], list[str]] = {}

    def settle(self, action: ActionId, counted: Digest, outputs: tuple[Made, ...]) -> None:
        """The outputs of an action, and what they count by where they are ephemeral, for those that need them.

        Once more where they were made anew.
        """
        self._made[action] = counted, outputs
        self._of_rule.setdefault(action.rule, {})[action] = None

    def counted(self, action: ActionId) -> Digest | None:
        """What the outputs of an action that is settled count by, else None."""
        return self._made[action][0] if action in self._made else None

    def assess(self, actions: Sequence[ActionId]) -> list[Assessment | BuildError]:
        """One answer an action, in order; an error where its inputs can't be had. All are looked up together."""
        keyed = [self._keyed(action) for action in actions]
        known = [one for one in keyed if isinstance(one, Keyed)]
        found = self.counting.find(known)
        changes = self.changes([one for one in known if one.action not in found])
        assessed = self._checked(
            [
                one
                if isinstance(one, BuildError)
                else self._decided(one, found.get(one.action), changes.get(one.action, ()))
                for one in keyed
            ]
        )
        return self._asking_again(assessed) if self.retry_refused else assessed

    def _checked(self, assessed: Sequence[Assessment | BuildError]) -> list[Assessment | BuildError]:
        """The same, with what is known of the checks for what is there."""
        keys = {
            (one.action, check): check_key(check, one.result.outputs)
            for one in assessed
            if not isinstance(one, BuildError) and one.result
            for check in one.prepared.rule.checks
        }
        known = self._past.verdicts(list(keys.values()))
        of_action: dict[ActionId, dict[Check, LastVerdict | None]] = {}
        for (action, check), key in keys.items():
            of_action.setdefault(action, {})[check] = known.get(key)
        return [
            one if isinstance(one, BuildError) else _with_verdicts(one, of_action.get(one.action, {}))
            for one in assessed
        ]

    def _asking_again(self, assessed: Sequence[Assessment | BuildError]) -> list[Assessment | BuildError]:
        """The same, but that what rests on refusals runs."""
        made = {
            one.action: (one.result.key, one.result.run_id)
            for one in assessed
            if not isinstance(one, BuildError) and one.result and one.prepared.rule.kind == "chat"
        }
        refused = self._past.refused([key for key, _ in made.values()])
        return [
            one
            if isinstance(one, BuildError) or one.decision.do == "run" or made.get(one.action) not in refused
            else replace(one, decision=_ASK_AGAIN, dropped=False)
            for one in assessed
        ]

    def changes(self, keyed: Sequence[Keyed]) -> dict[ActionId, list[str]]:
        """How each action's key differs from the one that holds now, in lines; no entry where it was never built."""
        before = {one.action: self._past.newest[one.action] for one in keyed if one.action in self._past.newest}
        inputs = self._past.inputs([result.key for result in before.values()])
        self.counting.learn(before.values())
        found = {}
        for one in keyed:
            if old := before.get(one.action):
                lines = self.rule_changes(old, one.prepared)
                lines = [*lines, *differences(inputs.get(old.key, ()), input_parts(one.inputs))]
                lines += [discovered_line(moved) for moved in self.counting.changed(old)]
                found[one.action] = lines or ["how its inputs and outputs are handed to it changed"]
        return found

    def rule_changes(self, before: Result, prepared: Prepared) -> list[str]:
        """How the half of the key that all actions of the rule share differs from an earlier one, where it matters.

        Where that result counts no more for another reason, that comes first.
        """
        which = before.context, prepared.context, before.evidence
        if which not in self._changed:
            same = before.context == prepared.context
            parts = prepared.parts if same else self._past.context(before.context)
            self._changed[which] = self.counting.code_changes(before, prepared, parts)
        return [REJECTED, *self._changed[which]] if before.rejected else self._changed[which]

    def _keyed(self, action: ActionId) -> Keyed | BuildError:
        try:
            prepared = self.prepared(self.graph.rules[action.rule])
            inputs = tuple(self.bind(source) for source in self.graph.sources(action))
        except BuildError as error:
            return error
        names = [self.output_path(action, output.name, NO_SHARD).rpartition("/")[2] for output in self._plain(action)]
        given = [(one.name, one.given) for one in inputs]
        key, rest = action_key(prepared.hasher, given, names), Digest(action_key(prepared.rest, given, names))
        services = tuple(self.served(service) for service in self.graph.services_of(prepared.rule))
        return Keyed(action, prepared, key, rest, inputs, services)

    def _plain(self, action: ActionId) -> list[Output]:
        """The outputs whose file names the code of this action sees, sorted by role; an origin sees folders."""
        rule = self.graph.rules[action.rule]
        plain = [output for output in rule.outputs if not (rule.is_origin and "{shard}" in output.pattern)]
        return sorted(plain, key=lambda output: output.name)

    def prepared(self, rule: Rule) -> Prepared:
        """The rule's half of its keys; what its services need must be settled."""
        if rule.name not in self._prepared:
            keys = {service.name: self.served(service).key for service in self.graph.services_of(rule)}
            self._prepared[rule.name] = self.preparer.prepare(rule, keys)
        return self._prepared[rule.name]

    def served(self, service: Service) -> Served:
        """A service with its inputs as they were when it was first asked for: all actions mean the same one."""
        if service.name not in self._served:
            inputs = tuple(self.bind(source) for source in self.graph.service_sources(service))
            half = self.preparer.service_half(service)
            key = service_key(half, [(one.name, one.given) for one in inputs])
            self._served[service.name] = Served(service, inputs, half, key)
        return self._served[service.name]

    def look_again(self, rule: Rule) -> None:
        """Forget what was known of the rule's services, whose files have changed since."""
        stale = {service.name for service in self.graph.services_of(rule)}
        self._served = {name: served for name, served in self._served.items() if name not in stale}
        for other in list(self._prepared):
            if stale.intersection(service.name for service in self.graph.services_of(self.graph.rules[other])):
                del self._prepared[other]

    def is_settled(self, source: FromRule) -> bool:
        """Whether what makes an input that is no fold is done."""
        return self.graph.maker(source) in self._made

    def bind(self, source: Source) -> Bound:
        """One input as it is now. Raises BuildError where it is missing."""
        if isinstance(source, FromFile):
            return self._bind_files(source)
        if source.many:
            makers = sorted(self._of_rule.get(source.rule, ()), key=lambda action: natural_key(action.shard))
        else:
            makers = [self.graph.maker(source)]
        given = [
            self._given(source, maker, made)
            for maker in makers
            for made in self._made[maker][1]
            if made.name == source.output and (source.many or made.shard in ("", source.shard))
        ]
        return Bound(source.name, source.many, tuple(given), ())

    def _given(self, source: FromRule, maker: ActionId, made: Made) -> Given:
        lent = self.graph.rules[maker.rule].ephemeral
        return Given(
            name=source.name,
            file=made.artifact.file,
            digest=self._made[maker][0] if lent else made.artifact.digest,
            path=made.artifact.path,
            maker=maker,
            artifact=made.artifact,
            many=source.many,
            lent=made.name if lent else "",
        )

    def output_path(self, action: ActionId, name: str, shard: Shard) -> str:
        """Where an output belongs in the workspace."""
        pattern = next(output.pattern for output in self.graph.rules[action.rule].outputs if output.name == name)
        return fill(pattern, {"profile": self.graph.profile, "shard": shard or action.shard})

    def placed(self, result: Result, action: ActionId) -> Result:
        """The result as one of this action, with the paths that its artifacts have in this workspace."""
        outputs = tuple(
            replace(made, artifact=replace(made.artifact, path=self.output_path(action, made.name, made.shard)))
            for made in result.outputs
        )
        return replace(result, action=action, outputs=outputs)

    def where(self, rule: Rule, outputs: Sequence[Made]) -> Where:
        """Whether all outputs are in place, else whether the store has those that are not, or need not have them."""
        absent = [made.artifact for made in outputs if not self._files.holds(made.artifact)]
        if not absent:
            return "workspace"
        if rule.ephemeral:
            return "dropped"
        return "store" if all(map(self._store.has, absent)) else "nowhere"

    def _bind_files(self, source: FromFile) -> Bound:
        paths = self._files.expand(source.path) if source.many else [source.path]
        seen = []
        for path in paths:
            found = self._files.look(path)
            if found is None:
                raise BuildError(f'input "{source.name}" is missing: {path}')
            seen.append(found)
        if not seen:
            raise BuildError(f'input "{source.name}" matches no file: {source.path}')
        given = tuple(Given(source.name, _name(one.path), one.digest, one.path, many=source.many) for one in seen)
        return Bound(source.name, source.many, given, tuple(seen))

    def _decided(self, one: Keyed, counted: Counted | None, changes: Sequence[str]) -> Assessment:
        result = self.placed(counted.result, one.action) if counted else None
        where = self.where(one.prepared.rule, result.outputs) if result else "nowhere"
        holds = counted is not None and self._is_newest(one.action, counted.result)
        narrowed = counted.evidence if counted else None
        decision = decide(result, where, changes, holds=holds, narrowed=narrowed is not None)
        return Assessment(
            action=one.action,
            prepared=one.prepared,
            key=one.key,
            rest=one.rest,
            inputs=one.inputs,
            services=one.services,
            result=result,
            decision=decision,
            narrowed=narrowed,
            changes=tuple(changes),
            dropped=where == "dropped",
        )

    def _is_newest(self, action: ActionId, result: Result) -> bool:
        held = self._past.newest.get(action)
        return held is not None and (held.key, held.evidence) == (result.key, result.evidence)

    def _is_no_name(self, path: str) -> bool:
        """What builds put there is no part of what a folder holds."""
        return self.graph.is_made(path) or self.graph.leads_to_outputs(path)


def discovered_line(one: Discovered) -> str:
    """That a discovered input is no more what it was, for people."""
    if one.kind == "package":
        return f"package {one.name} changed, which its last run imported by a computed name"
    what = "path" if one.kind == "exists" else one.kind
    return f"{what} {one.name} changed, which its last run read undeclared"


def _with_verdicts(one: Assessment, known: Mapping[Check, LastVerdict | None]) -> Assessment:
    """What has yet to be checked, and is dropped, has to be made once more for that."""
    settled = {check.name for check, last in known.items() if last and last.settles(check.severity)}
    unchecked = tuple(check.name for check in known if check.name not in settled)
    if unchecked and one.dropped:
        decision = Decision("run", "its outputs were dropped before they passed their checks")
        return replace(one, decision=decision, dropped=False)
    failed = [check.name for check, last in known.items() if last and not last.passed]
    return replace(
        one,
        unchecked=unchecked,
        failed=tuple(name for name in failed if name not in settled),
        warned=tuple(name for name in failed if name in settled),
    )


def input_parts(inputs: Iterable[Bound]) -> tuple[Part, ...]:
    """The inputs as people read them, one part a file."""
    return tuple(Part("input", given.name, given.digest, given.path) for bound in inputs for given in bound.given)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
