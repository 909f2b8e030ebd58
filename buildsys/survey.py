"""What a build would do, without doing it: the same traversal and decisions as a build, over the last snapshot.

Joins the pure stages with files and the published manifest, and only reads. An action that would run has outputs that
nobody knows yet; what needs them runs "unless equal". Where the origin of a rule's shards would run, the shards of the
last build stand for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from buildsys.assess import Assessment, Assessor, Served
from buildsys.diagnostics import Diagnosis
from buildsys.digest import Digest
from buildsys.ephemeral import ASKED_FOR, Ephemeral, budget_exceeded
from buildsys.errors import NOT_UP_TO_DATE, BuildError
from buildsys.model import GPU, NO_LIMITS, ActionId, Limits, Made, Rule, RuleName, Service, Shard, shards_of
from buildsys.past import Past
from buildsys.plan.decide import reason_of
from buildsys.plan.estimate import Estimate, estimate
from buildsys.plan.limits import Amount, Limit, against
from buildsys.preflight import preflight
from buildsys.prepare import Preparer
from buildsys.project import Project
from buildsys.run import machine
from buildsys.shared import Shared
from buildsys.spec.graph import FromRule, Graph, Origin, Wanted
from buildsys.state.files import Files
from buildsys.state.manifest import Manifest
from buildsys.state.store import Store
from buildsys.workload import Workload, spent

Fate = Literal["run", "maybe", "check", "restore", "reuse", "blocked", "skipped"]
"""maybe: runs unless what it waits for comes out as it was, or as it once was.
check: its outputs are there, and have yet to pass their checks."""


@dataclass(frozen=True)
class Planned:
    """One action's fate, why in one line, and every difference to the result that holds now, one line each."""

    action: ActionId
    fate: Fate
    reason: str
    changes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Room:
    """What ephemeral outputs need on disk. needed: bytes at once, for `user`; budget: None where there is none.

    What was never made has an unknown size, and counts as nothing.
    """

    needed: int = 0
    user: str = ""
    budget: int | None = None

    def refuse(self) -> None:
        """Raises BuildError, with the bytes that are needed, where they are more than there may be."""
        if self.budget is not None and self.needed > self.budget:
            raise budget_exceeded(self.user, self.needed, self.budget)


@dataclass(frozen=True)
class Survey:
    """All wanted actions, upstream first. guessed: rules whose shards are those of the last build, or not known.

    limits_passed: limits of requests that those of the estimate would pass, and what they come to.
    """

    actions: tuple[Planned, ...]
    guessed: tuple[RuleName, ...]
    room: Room = Room()
    estimate: Estimate | None = None
    limits_passed: tuple[Limit, ...] = ()

    @property
    def up_to_date(self) -> bool:
        return all(planned.fate == "reuse" for planned in self.actions)


def survey(
    project: Project,
    targets: Sequence[str] = (),
    jobs: int | None = None,
    limits: Limits = NO_LIMITS,
    *,
    retry_refused: bool = False,
) -> Survey:
    """What `build` with these targets would do now. Raises BuildError like it.

    jobs: with an estimate of what it takes, where so many actions run at a time. limits: those that win over the
    declared ones. retry_refused: of a build that asks again what was refused.
    """
    graph = project.graph(limits)
    with surveyed(project, graph, graph.wanted(targets), targets, retry_refused=retry_refused) as surveyor:
        estimated = surveyor.estimate(jobs) if jobs else None
        passed = _passed(graph, estimated) if estimated else ()
        return Survey(tuple(surveyor.planned.values()), tuple(surveyor.guessed), surveyor.room(), estimated, passed)


def _passed(graph: Graph, found: Estimate) -> tuple[Limit, ...]:
    """The limits that the requests of an estimate pass, as far as their number and tokens are known."""
    amount = Amount(found.requests, found.input_tokens, found.output_tokens)
    return tuple(limit for limit in against(graph.limits, graph.prices, amount) if limit.is_passed)


def room_needed(
    project: Project, graph: Graph, wanted: Wanted, targets: Sequence[str], past: Past, *, retry_refused: bool
) -> Room:
    """What a build of the wanted actions needs. targets: what a user asked for."""
    surveyor = Surveyor(project, graph, wanted, targets, past, retry_refused=retry_refused)
    surveyor.look()
    return surveyor.room()


@contextmanager
def surveyed(
    project: Project, graph: Graph, wanted: Wanted, targets: Sequence[str], *, retry_refused: bool = False
) -> Iterator[Surveyor]:
    """A surveyor that has seen all wanted actions. targets: what a user asked for. Raises BuildError like `build`."""
    with closing(Manifest.read(project.state)) as manifest:
        past = Past(lambda question: question(manifest), graph.profile)
        surveyor = Surveyor(project, graph, wanted, targets, past, retry_refused=retry_refused)
        surveyor.look()
        yield surveyor


class Surveyor:
    """Walks over the wanted actions as a build does. assessor, files, ephemeral: what that has told them.

    planned: the fate of each. keyed: those whose inputs are known. woken: those that are only made for their users.
    """

    def __init__(
        self,
        project: Project,
        graph: Graph,
        wanted: Wanted,
        targets: Sequence[str],
        past: Past,
        *,
        retry_refused: bool = False,
    ) -> None:
        """targets: what a user asked for, so that it is made again where it is dropped."""
        self.graph = graph
        self._root = project.root
        self.planned: dict[ActionId, Planned] = {}
        self.guessed: list[RuleName] = []
        self.past = past
        self._preparer = Preparer(project, graph)
        self.files = Files(project.root, past.files, project.looks)
        store = Store(project.state)
        self.assessor = Assessor(graph, self._preparer, self.files, store, past, retry_refused=retry_refused)
        self._frontier = preflight(project, graph, wanted, self._preparer, self.files, past)
        self._blocked = Diagnosis(project, graph, self._preparer, wanted.shards).blocked
        with project.excerpts():
            self._shared = Shared(project, self.assessor, wanted, past)
        self.ephemeral = Ephemeral(graph, self.files, past)
        self.keyed: dict[ActionId, Assessment] = {}
        self._held = {action.rule for action in past.newest}
        self._made: dict[Digest, set[Shard]] = {}
        self._resting: set[ActionId] = set()
        self.woken: set[ActionId] = set()
        self._new: set[ActionId] = set()
        self._asked_for = frozenset(graph.target(text) for text in targets)

    def look(self) -> None:
        """The traversal of a build, with nothing done; then what rests is looked at from its users."""
        while ready := self._frontier.ready():
            assessable = []
            for action in ready:
                if early := self._early(action):
                    self._settle(action, early, ())
                else:
                    assessable.append(action)
            screened = self._shared.screen(self.assessor.assess(assessable))
            for action, assessed in zip(assessable, screened, strict=True):
                self._settle(action, *self._fate(action, assessed))
        for planned in reversed(list(self.planned.values())):
            if planned.fate in ("run", "maybe"):
                self._wake(planned)

    def needs(self, action: ActionId) -> Sequence[ActionId]:
        """The actions whose outputs it reads."""
        return self._frontier.needs(action)

    def room(self) -> Room:
        """What the actions that run need at once, each of them: the ephemeral outputs that it reads and makes."""
        needed, user = 0, ""
        for planned in self.planned.values():
            if planned.fate in ("run", "maybe"):
                taken = [planned.action, *self._frontier.needs(planned.action)]
                size = self.ephemeral.size_together(filter(self._is_ephemeral, taken))
                needed, user = max((needed, user), (size, str(planned.action)))
        return Room(needed, user if needed else "", self.graph.keeping.ephemeral_budget)

    def estimate(self, jobs: int) -> Estimate:
        """What all that runs takes, if all runs that may."""
        retry_refused = self.assessor.retry_refused
        workload = Workload(self.graph, self.past, self._root, self.keyed, retry_refused=retry_refused)
        loads = [
            workload.load(action, certain=planned.fate == "run", needs=self._frontier.needs(action))
            for action, planned in self.planned.items()
            if planned.fate in ("run", "maybe")
        ]
        before = spent(self.past)
        gpus = machine.gpus(os.environ) if any(load.gpus for load in loads) else ()
        found = estimate(loads, before, jobs, self.graph.prices, {**self.graph.pools, GPU: len(gpus)})
        kept = [action for action, planned in self.planned.items() if planned.fate == "reuse"]
        n_kept = sum(before[action.rule].requests.get(action, 0) for action in kept if action.rule in before)
        return replace(found, answered=found.answered + n_kept)

    def _wake(self, user: Planned) -> None:
        """What it reads of dropped outputs is made again, unless another profile has it."""
        for need in self._read_of_dropped(user.action):
            self.planned[need] = Planned(need, user.fate, f"dropped, and {user.action} needs it")
            self._resting.discard(need)
            self.woken.add(need)
            self._wake(self.planned[need])

    def _read_of_dropped(self, action: ActionId) -> list[ActionId]:
        """The resting actions of whose outputs it reads some that are nowhere; see `Supply.lacking`."""
        if self._resting.isdisjoint(self._frontier.needs(action)):
            return []
        services = self.graph.services_of(self.graph.rules[action.rule])
        sources = [*self.graph.sources(action), *self.graph.service_sources(*services)]
        given = [
            given
            for source in sources
            if isinstance(source, FromRule) and (source.many or self.graph.maker(source) in self._resting)
            for given in self.assessor.bind(source).given
        ]
        makers = [one.maker for one in given if one.maker in self._resting and not self.ephemeral.locate(one)]
        return [maker for maker in dict.fromkeys(makers) if maker]

    def _is_ephemeral(self, action: ActionId) -> bool:
        return self.graph.rules[action.rule].ephemeral

    def served(self, service: Service) -> Served:
        """What a build would start the service with. Raises BuildError, exit 4, where it would first make its inputs.

        The rules that make them must be among the wanted ones.
        """
        makers = [source.rule for source in self.graph.service_sources(service) if isinstance(source, FromRule)]
        waits = [action.rule for action, planned in self.planned.items() if planned.fate not in ("reuse", "restore")]
        if missing := [rule for rule in dict.fromkeys(makers) if rule in waits]:
            raise BuildError(
                f'service "{service.name}" reads what is not up to date: {", ".join(missing)}',
                place=service.place,
                hint=f"buildsys build {' '.join(missing)}",
                exit_code=NOT_UP_TO_DATE,
            )
        return self.assessor.served(service)

    def _early(self, action: ActionId) -> Planned | None:
        """The fate of an action that can't be assessed, because its code is broken or its inputs are not known yet."""
        rule = self.graph.rules[action.rule]
        if wrong := self._blocked.get(rule.name):
            return Planned(action, "blocked", wrong.problem, error=wrong.render())
        needs = [self.planned[need] for need in self._frontier.needs(action)]
        if bad := next((need for need in needs if need.fate in ("blocked", "skipped")), None):
            # Of the same shard it goes without saying, and actions that differ in nothing else are told together.
            needed = bad.action.rule if bad.action.shard == action.shard else bad.action
            return Planned(action, "skipped", f"needs {needed}, which is {bad.fate}")
        waits = [need for need in needs if need.fate in ("run", "maybe")]
        if not waits:
            return None
        changes = self._rule_changes(action)
        if changes or action not in self.past.newest:
            if self._may_be_made(action):
                return Planned(action, "maybe", f"{reason_of(changes)}, unless made before", tuple(changes))
            return Planned(action, "run", reason_of(changes), tuple(changes))
        if anew := [need.action.rule for need in waits if need.action in self._new and self._is_ephemeral(need.action)]:
            return Planned(action, "run", f"inputs: {', '.join(dict.fromkeys(anew))}, made under another key")
        names = ", ".join(dict.fromkeys(need.action.rule for need in waits))
        return Planned(action, "maybe", f"inputs: {names}, unless equal")

    def _rule_changes(self, action: ActionId) -> list[str]:
        """What changed but the inputs; not known where a service waits for its own inputs."""
        rule = self.graph.rules[action.rule]
        before = self.past.newest.get(action)
        if before is None or self._services_wait(rule):
            return []
        return self.assessor.rule_changes(before, self.assessor.prepared(rule))

    def _may_be_made(self, action: ActionId) -> bool:
        """The rule as it is now has made something, so this may be there: an edit was taken back, a rule was renamed.

        A shard of which nothing was made like this, by any rule or under any profile, is taken to be new.
        """
        rule = self.graph.rules[action.rule]
        if self._services_wait(rule):
            return False
        prepared = self.assessor.prepared(rule)
        context = prepared.context
        if context not in self._made:
            alike = {context, *self.assessor.counting.akin(prepared)}
            self._made[context] = {shard for one in alike for shard in self.past.shards_made(one)}
        is_added = action not in self.past.newest and action.rule in self._held
        return action.shard in self._made[context] if is_added else bool(self._made[context])

    def _services_wait(self, rule: Rule) -> bool:
        sources = self.graph.service_sources(*self.graph.services_of(rule))
        makers = [self.graph.maker(source) for source in sources if isinstance(source, FromRule)]
        return any(self.planned[maker].fate in ("run", "maybe") for maker in makers)

    def _fate(self, action: ActionId, assessed: Assessment | BuildError) -> tuple[Planned, tuple[Made, ...]]:
        if isinstance(assessed, BuildError):
            return Planned(action, "run", assessed.problem, error=assessed.render()), ()
        self.keyed[action] = assessed
        decision = assessed.decision
        if not assessed.result:
            self._new.add(action)
        if assessed.dropped and not self._asked_for.isdisjoint((action, action.rule)):
            return Planned(action, "run", ASKED_FOR), ()
        if assessed.dropped:
            self._resting.add(action)
        outputs = assessed.result.outputs if assessed.result and decision.do != "run" else ()
        if outputs and assessed.unchecked:
            return Planned(action, "check", _why_checked(assessed)), outputs
        return Planned(action, decision.do, decision.reason, assessed.changes), outputs

    def _settle(self, action: ActionId, planned: Planned, outputs: tuple[Made, ...]) -> None:
        self.planned[action] = planned
        if outputs:
            self.assessor.settle(action, self.keyed[action].counted(), outputs)
        shards: list[Shard] | None = None
        if self.graph.rules[action.rule].is_origin:
            if not outputs:
                self.guessed += [rule for rule, origin in self.graph.origins.items() if origin == Origin(action.rule)]
            if not outputs and action in self.past.newest:
                outputs = self.past.newest[action].outputs
            shards = shards_of(outputs) or None
        self._frontier.settle(action, shards)


def _why_checked(assessed: Assessment) -> str:
    """What is known of the checks that its outputs have yet to pass."""
    unknown = [name for name in assessed.unchecked if name not in assessed.failed]
    known = {"failed for it before": assessed.failed, "not known to hold for it": unknown}
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in known.items() if names)
