"""The loop that joins the pure stages and the effects: what is ready is assessed, and run, reused or restored.

One thread, the main one, owns what changes; workers, recorder and request engine send it what happened, as calls to be
made. The loop has no opinion on what is stale (`plan.decide`), on how an action is carried out (`execute`), nor on how
its outputs get to their place (`deliver`).
"""

from __future__ import annotations

import os
import queue
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

from buildsys.assess import Assessment, Assessor
from buildsys.canary import Follower
from buildsys.deliver import Delivered, alias_rows
from buildsys.diagnostics import Diagnosis
from buildsys.digest import Digest
from buildsys.discover import Disclosure
from buildsys.ephemeral import ASKED_FOR, Ephemeral
from buildsys.errors import BuildError
from buildsys.events import (
    ActionFinished,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Diagnosed,
    Event,
    LimitReached,
    Notice,
    ShardsKnown,
)
from buildsys.execute import Executed, moved_twice
from buildsys.model import NO_LIMITS, ActionId, Decision, Limits, Made, Outcome, RuleName, shards_of
from buildsys.past import Past
from buildsys.plan.turns import Turn
from buildsys.preflight import preflight, refuse_unwanted, unknown_shard
from buildsys.prepare import Preparer
from buildsys.project import Project
from buildsys.readers import Readers
from buildsys.request import Request
from buildsys.shared import Shared
from buildsys.spec.graph import Graph, Wanted
from buildsys.starts import Starts
from buildsys.state import logs, stamp
from buildsys.state.files import Files
from buildsys.state.layout import bring_up_to_date
from buildsys.state.lock import hold
from buildsys.state.manifest import Manifest
from buildsys.state.recorder import Recorder
from buildsys.state.rows import ActionRow, FileRow, PricesRow, ServiceRow
from buildsys.state.store import Store
from buildsys.supply import Supply, outputs_gone
from buildsys.survey import room_needed
from buildsys.tidy import obsolete, paths_kept, tidy
from buildsys.workshop import Workshop

GOOD: frozenset[Outcome] = frozenset({"ran", "reused", "restored"})
_ENDED = {"failed": "failed", "skipped": "was skipped", "blocked": "is blocked", "cancelled": "was cancelled"}
_DRAIN_S = 10.0


@dataclass(frozen=True)
class Options:
    """jobs: actions at a time. force: targets that run though up to date. limits: these win over the declared ones.

    retry_failed: ask again what servers refused.
    """

    targets: tuple[str, ...] = ()
    force: tuple[str, ...] = ()
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    keep_going: bool = False
    command: str = "buildsys build"
    limits: Limits = NO_LIMITS
    retry_failed: bool = False


def build(project: Project, options: Options, emit: Callable[[Event], None]) -> BuildFinished:
    """Bring the targets up to date. Raises BuildError for what is wrong before anything runs."""
    draft = stamp.Draft(project.looks)
    graph = project.graph(options.limits)
    wanted = graph.wanted(options.targets)
    refuse_unwanted(graph, wanted, options.force)
    with hold(project.state / "lock", options.command):
        bring_up_to_date(project.state)
        with ExitStack() as stack:
            one = Build(project, graph, wanted, options, emit, stack)
            finished = one.run()
        if finished.outcome == "done" and not options.force and one.is_settled:
            draft.write(Request(options.targets, project.variation), one.n_actions)
    return finished


class Build:
    """One build. `run` may be called once. is_settled: what its runs discovered is still as they found it."""

    def __init__(
        self,
        project: Project,
        graph: Graph,
        wanted: Wanted,
        options: Options,
        emit: Callable[[Event], None],
        stack: ExitStack,
    ) -> None:
        """stack: what the build opens is closed with it."""
        self._project = project
        self._graph = graph
        self._wanted = wanted
        self._options = options
        self._emit = emit
        self._stack = stack
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._recorder = Recorder(lambda: Manifest.open(project.state), self._fail)
        stack.callback(self._recorder.close)
        self._past = Past(self._recorder.ask, graph.profile)
        self._files = Files(project.root, self._past.files, project.looks)
        self._store = Store(project.state, graph.keeping.link_above)
        self._preparer = Preparer(project, graph)
        retry = options.retry_failed
        self._assessor = Assessor(graph, self._preparer, self._files, self._store, self._past, retry_refused=retry)
        self._frontier = preflight(project, graph, wanted, self._preparer, self._files, self._past)
        self._diagnosis = Diagnosis(project, graph, self._preparer, wanted.shards)
        self._blocked = self._diagnosis.blocked
        self._diagnosis.keep()
        with project.excerpts():
            self._shared = Shared(project, self._assessor, wanted, self._past)
        self._ephemeral = Ephemeral(graph, self._files, self._past)
        budget = graph.keeping.ephemeral_budget
        if budget is not None:
            room_needed(project, graph, wanted, options.targets, self._past, retry_refused=retry).refuse()
        self._supply = Supply(graph, wanted, self._frontier, self._assessor, self._ephemeral, budget)
        self._asked_for = frozenset(graph.target(text) for text in options.targets)
        self._forced = frozenset(graph.target(text) for text in options.force)
        self._stopping = False
        if unknown := self._unknown_target():
            raise unknown
        self._workshop: Workshop | None = None
        self.is_settled = True
        self._disclosure = Disclosure(self._past, self._assessor.counting, self._assessor.answers)
        self._outcomes: dict[ActionId, Outcome] = {}
        self._available: set[ActionId] = set()
        self._paths: set[str] = set()
        self._rows: list[ActionRow] = []
        self._again: set[ActionId] = set()
        self._starts = Starts([graph.rules[rule] for rule in wanted.shards], graph.pools, options.jobs)
        self._refused: BuildError | None = None
        self._without_room: set[ActionId] = set()
        self._n_left: dict[RuleName, int] = {}
        self._n_busy = 0
        self._readers = Readers(graph, self._recorder, emit)

    # ------------------------------------------------------------ the loop

    @property
    def n_actions(self) -> Mapping[str, int]:
        """The actions of each rule that are settled, rules upstream first."""
        n = Counter(action.rule for action in self._outcomes)
        return {rule: n[rule] for rule in self._wanted.shards}

    def run(self) -> BuildFinished:
        """KeyboardInterrupt ends what runs; it is reported, not raised."""
        started = time.monotonic()
        self._emit(self._beginning())
        self._tell_diagnostics()
        self._readers.tell()
        unknown: BuildError | None = None
        try:
            self._loop()
            assert self._stopping or not self._frontier.n_waiting, "actions wait for what will never be settled"
            unknown = self._refused or self._unknown_target()
            outcome = self._outcome()
            if outcome == "done" and not self._options.targets:
                self._tidy()
        except KeyboardInterrupt:
            outcome = "interrupted"
            self._interrupt()
        self._finish(outcome)
        if unknown:
            with self._project.excerpts():
                raise unknown
        if reached := self._limit_reached:
            self._emit(reached)
        finished = BuildFinished(self._run_id, outcome, time.monotonic() - started, Counter(self._outcomes.values()))
        self._emit(finished)
        return finished

    @property
    def _limit_reached(self) -> LimitReached | None:
        return self._workshop.executor.limit_reached() if self._workshop else None

    def _outcome(self) -> str:
        if self._refused:
            return "failed"
        failed = {action for action, outcome in self._outcomes.items() if outcome == "failed"}
        if (failed or self._limit_reached) and failed == self._without_room:
            return "limit"
        return "done" if all(outcome in GOOD for outcome in self._outcomes.values()) else "failed"

    def _beginning(self) -> BuildStarted:
        rules, graph = tuple(self._wanted.shards), self._graph
        gpus = {name: rule.gpus for name in rules if (rule := graph.rules[name]).gpus}
        return BuildStarted(self._options.command, self._options.targets, rules, graph.prices, gpus, graph.limits)

    def _tell_diagnostics(self) -> None:
        """At once: what is found later costs an hour more."""
        for one in self._diagnosis.news:
            self._emit(Diagnosed(one))
        if self._diagnosis.trouble:
            self._emit(Notice("warning", self._diagnosis.trouble))

    def _loop(self) -> None:
        self._advance()
        while self._n_busy or self._go_on():
            try:
                self._inbox.get(timeout=self._readers.due_in_s() if self._rows else None)()
            except queue.Empty:
                self._flush()
                self._readers.show_soon()
            self._advance()

    def _go_on(self) -> bool:
        """Nothing runs: settle what waits for room, or rests and was not needed. True where something runs then."""
        self._admit()
        if not self._n_busy and (admitted := self._supply.admitted(last=True)):
            self._take_up_again([admitted.action])
        self._begin()
        if self._n_busy:
            return True
        for assessment in self._supply.refused():
            if not self._stopping:
                self._without_room.add(assessment.action)
                error = self._supply.no_room(assessment).render()
                self._settle(assessment.action, "failed", assessment.decision.reason, error, of=assessment)
        for assessment in self._supply.awake():
            self._reuse(assessment)
        self._advance()
        return self._n_busy > 0

    def _advance(self) -> None:
        """Decide all that is ready. What needs no run settles at once, which may make more ready."""
        while ready := self._frontier.ready():
            for rule in self._frontier.drawn():
                n = self._n_left[rule] = len(self._frontier.actions(rule))
                self._emit(ShardsKnown(rule, n))
            assessable = []
            for action in ready:
                if obstacle := self._obstacle(action):
                    self._settle(action, *obstacle)
                else:
                    assessable.append(action)
            self._take_up(assessable)
            self._begin()
        self._begin(last=True)

    def _take_up(self, actions: Sequence[ActionId], decided: Decision | None = None) -> None:
        """Assess actions, and do what their assessments say, or what was decided before."""
        for action, assessed in zip(actions, self._shared.screen(self._assessor.assess(actions)), strict=True):
            if isinstance(assessed, BuildError):
                self._settle(action, "failed", assessed.problem, assessed.render())
            elif decided:
                self._start(replace(assessed, decision=decided, dropped=False))
            elif assessed.decision.do == "run":
                self._start(assessed)
            elif not self._forced.isdisjoint((action, action.rule)):
                self._start(replace(assessed, decision=Decision("run", "forced")))
            elif assessed.dropped and not self._asked_for.isdisjoint((action, action.rule)):
                self._start(replace(assessed, decision=Decision("run", ASKED_FOR)))
            else:
                self._take(assessed)

    def _take_up_again(self, actions: Sequence[ActionId]) -> None:
        """Those that waited for their turn; what they were to make may be there by now, from one of the same key."""
        awaited = [action for action in actions if self._supply.is_awaited(action)]
        self._take_up([action for action in actions if action not in awaited])
        self._take_up(awaited, Decision("run", "dropped, and needed"))

    def _obstacle(self, action: ActionId) -> tuple[Outcome, str, str] | None:
        """Why an action can't even be assessed: outcome, reason, error; None where it can."""
        if wrong := self._blocked.get(action.rule):
            return "blocked", wrong.problem, wrong.render()
        bad = next((need for need in self._frontier.needs(action) if not self._is_good(need)), None)
        return ("skipped", self._needs(bad), "") if bad else None

    def _needs(self, bad: ActionId) -> str:
        return f"needs {bad}, which {_ENDED[self._outcomes[bad]]}"

    def _is_good(self, action: ActionId) -> bool:
        """Its outputs may be read, though they may not be in place yet."""
        return self._outcomes.get(action, "ran") in GOOD

    # ------------------------------------------------------------ what a decision leads to

    def _start(self, assessment: Assessment) -> None:
        """Have it run, once what it reads is there, and room for what it makes."""
        if not self._stopping and not self._waits(assessment) and self._supply.has_room(assessment):
            self._starts.add(assessment)

    def _waits(self, assessment: Assessment) -> bool:
        """It reads ephemeral outputs that are not there, and waits until they are made again."""
        lacking = self._supply.lacking(assessment)
        if not lacking:
            return False
        if gone := next((maker for maker in lacking if maker in self._outcomes), None):
            error = outputs_gone(gone, assessment.action).render()
            self._settle(assessment.action, "failed", assessment.decision.reason, error, of=assessment)
            return True
        self._supply.wait(assessment, lacking)
        for maker in lacking:
            if resting := self._supply.wake(maker, assessment.action):
                self._start(resting)
        return True

    def _begin(self, *, last: bool = False) -> None:
        """Have those run whose turn it is. last: until something has run, no more can be decided."""
        try:
            turns = [] if self._stopping else self._starts.next(self._may_run, last=last)
        except BuildError as error:
            self._refused, self._stopping = error, True
            return
        for turn in turns:
            workshop = self._open_workshop()
            self._n_busy += 1
            rule = turn.who.prepared.rule
            pool = workshop.chat_pool if rule.kind == "chat" else workshop.pool
            pool.submit(self._execute, workshop, turn, workshop.executor.expect(turn.who))

    def _may_run(self, rule: RuleName) -> bool:
        """Not all of its actions are known to be up to date."""
        actions = self._frontier.actions(rule)
        return not actions or any(one not in self._outcomes and one not in self._available for one in actions)

    def _execute(self, workshop: Workshop, turn: Turn[Assessment], following: Sequence[Follower]) -> None:
        """In a thread of a pool."""
        assessment = turn.who
        try:
            if self._stopping:
                workshop.executor.leave(assessment)
                executed = Executed(cancelled=True)
            else:
                self._emit(ActionStarted(assessment.action, assessment.decision.reason))
                again = assessment.action in self._again
                executed = workshop.executor.execute(assessment, again, turn.devices, following)
        except BaseException as error:
            workshop.executor.leave(assessment)
            self._fail(error)
            return
        self._inbox.put(lambda: self._executed(workshop, turn, executed))

    def _executed(self, workshop: Workshop, turn: Turn[Assessment], executed: Executed) -> None:
        self._n_busy -= 1
        self._starts.give_back(turn)
        assessment = turn.who
        action, reason = assessment.action, assessment.decision.reason
        if not executed.outputs:
            workshop.delivery.record_requests(assessment, executed)
        if executed.outputs:
            executed = self._observed(assessment, executed)
            self._n_busy += 1
            self._past.learn(assessment.key, assessment.rest)
            workshop.delivery.deliver_new(assessment, executed, self._when_delivered(assessment, "ran", executed))
            if not (assessment.prepared.rule.checks or assessment.prepared.rule.ephemeral):
                self._make_available(action, assessment.counted(executed.discovery.inputs), executed.outputs)
        elif executed.moved and action not in self._again:
            self._again.add(action)
            self._emit(Notice("info", f"{executed.moved} changed while {action} ran: it runs again"))
            self._assessor.look_again(assessment.prepared.rule)
            self._take_up([action, *self._starts.behind(action, assessment.key)])
        elif executed.cancelled:
            self._settle(action, "cancelled", reason, of=assessment, executed=executed)
        else:
            error = executed.error or moved_twice(executed.moved).render()
            self._settle(action, "failed", reason, error, of=assessment, executed=executed)

    def _observed(self, assessment: Assessment, executed: Executed) -> Executed:
        """With what is to be recorded of the run; what its rule should declare is told, once."""
        if executed.trace is None:
            return executed
        found = self._disclosure.settled(assessment.action, executed.trace, executed.discovery)
        observed = self._assessor.counting.observed(assessment.prepared, executed.trace, found.inputs)
        for text in self._disclosure.news(assessment.action.rule, found.undeclared):
            self._emit(Notice("warning", text))
        self.is_settled &= found.is_settled
        return replace(executed, observed=observed)

    def _take(self, assessment: Assessment) -> None:
        """Reuse or restore. What is in place, holds already and has passed its checks costs nothing more."""
        assert assessment.result is not None
        outputs = assessment.result.outputs
        checked = not assessment.unchecked
        unmeasured = self._past.unmeasured(assessment.prepared.rule, outputs)
        reuse = assessment.decision.do == "reuse"
        if reuse and checked and not unmeasured and self._is_in_order(assessment):
            if assessment.narrowed:
                self._recorder.record(alias_rows(self._graph.profile, assessment, self._run_id))
            self._reuse(assessment)
            return
        then = self._when_delivered(assessment, "reused" if reuse else "restored", Executed())
        self._n_busy += 1
        self._open_workshop().delivery.deliver_known(assessment, outputs, checked, unmeasured, then)

    def _is_in_order(self, assessment: Assessment) -> bool:
        """Its result is what holds already, and where outputs were dropped nothing else lies, nor a part of them."""
        assert assessment.result is not None
        if self._past.newest.get(assessment.action) != assessment.result:
            return False
        paths = [made.artifact.path for made in assessment.result.outputs]
        return not (assessment.dropped and any(os.path.lexists(self._project.root / path) for path in paths))

    def _reuse(self, assessment: Assessment) -> None:
        """Its result holds, and what is to be in place is; where that is dropped it rests."""
        assert assessment.result is not None
        action, outputs = assessment.action, assessment.result.outputs
        if assessment.dropped and action not in self._available:
            self._supply.rest(assessment)
            self._make_available(action, assessment.counted(), outputs)
        else:
            self._settle(action, "reused", assessment.decision.reason, of=assessment, outputs=outputs)

    def _when_delivered(
        self, assessment: Assessment, outcome: Outcome, executed: Executed
    ) -> Callable[[Delivered], None]:
        return lambda got: self._inbox.put(lambda: self._delivered(assessment, got, outcome, executed))

    def _delivered(self, assessment: Assessment, got: Delivered, outcome: Outcome, executed: Executed) -> None:
        self._n_busy -= 1
        action, reason = assessment.action, assessment.decision.reason
        if got.damaged:
            self._emit(Notice("warning", f"the store lost outputs of {action}: it runs again"))
            self._start(replace(assessment, decision=Decision("run", "the store lost its outputs")))
        elif got.cancelled:
            self._settle(action, "cancelled", reason, of=assessment, executed=executed)
        elif got.error:
            self._settle(action, "failed", reason, got.error, of=assessment, executed=executed)
        elif assessment.dropped and outcome == "reused":
            self._reuse(assessment)
        else:
            if assessment.prepared.rule.ephemeral:
                counted = assessment.counted(executed.discovery.inputs)
                self._supply.placed(assessment, got.outputs, self._open_workshop().run_id, counted)
            self._settle(action, outcome, reason, of=assessment, executed=executed, outputs=got.outputs)

    # ------------------------------------------------------------ the two transitions

    def _make_available(self, action: ActionId, counted: Digest, outputs: tuple[Made, ...]) -> None:
        """Its outputs are in the store, and are recorded before what is made from them: others may read them."""
        self._available.add(action)
        self._assessor.settle(action, counted, outputs)
        shards = None
        if self._graph.rules[action.rule].is_origin:
            shards = shards_of(outputs)
        self._frontier.settle(action, shards)

    def _settle(
        self,
        action: ActionId,
        outcome: Outcome,
        reason: str,
        error: str = "",
        *,
        of: Assessment | None = None,
        executed: Executed | None = None,
        outputs: tuple[Made, ...] = (),
    ) -> None:
        """An action is done with: every way to end one passes here. of: how it was assessed, if it was."""
        done = executed or Executed()
        key = of.key if of else None
        self._outcomes[action] = outcome
        if outcome != "reused":
            self._open_workshop()
        gpus = self._graph.rules[action.rule].gpus
        how = reason, done.usage, done.log, error, done.started, gpus
        self._rows.append(ActionRow(0, self._graph.profile, action, outcome, key, *how))
        self._emit(ActionFinished(action, outcome, reason, done.usage, error, done.log, done.summary))
        if outcome in GOOD:
            self._paths.update(made.artifact.path for made in outputs)
        if outcome == "failed" and not self._options.keep_going:
            self._stopping = True
        self._n_left[action.rule] -= 1
        if self._workshop and not self._n_left[action.rule]:
            self._workshop.workers.retire(action.rule)
        if action not in self._available and outcome in GOOD:
            assert of is not None
            self._make_available(action, of.counted(done.discovery.inputs), outputs)
        elif action not in self._available:
            self._frontier.settle(action, None)
        elif of and outcome == "ran":  # Bytes that were made anew may be others.
            self._assessor.settle(action, of.counted(done.discovery.inputs), outputs)
        if key:
            self._take_up_again(self._starts.behind(action, key))
        for waiting in self._supply.settled(action):
            if not self._is_lost(waiting):
                self._take_up([waiting.action], waiting.decision)
        self._admit()

    def _admit(self) -> None:
        """Take up what was refused room, and has it by now."""
        while admitted := self._supply.admitted():
            self._take_up_again([admitted.action])

    def _is_lost(self, waiting: Assessment) -> bool:
        """What it waited for could not be made again, so it is skipped."""
        makers = self._supply.lacking(waiting)
        bad = next((maker for maker in makers if not self._is_good(maker)), None)
        if bad:
            self._settle(waiting.action, "skipped", self._needs(bad), of=waiting)
        return bad is not None

    # ------------------------------------------------------------ before and after

    @property
    def _run_id(self) -> int:
        """0 where nothing is to be done so far."""
        return self._workshop.run_id if self._workshop else 0

    def _open_workshop(self) -> Workshop:
        if self._workshop is None:
            options, graph = self._options, self._graph
            stamp.discard(self._project.state)
            overrides = [f"{key}={value}" for key, value in self._project.variation.overrides]
            run_id = self._recorder.ask(
                lambda manifest: manifest.begin_run(
                    command=options.command, profile=graph.profile, targets=options.targets, overrides=overrides
                )
            )
            if graph.prices:
                self._recorder.record([PricesRow(run_id, graph.prices)])
            what_there_is = self._project, self._assessor, self._files, self._store, self._recorder, self._ephemeral
            self._workshop = Workshop.open(*what_there_is, run_id, options.jobs, self._emit, self._fail)
            self._stack.callback(self._workshop.close)
            if run_id % logs.PRUNED_EVERY == 0:
                self._stack.callback(logs.prune, self._project.state / "logs", graph.keeping.keep_logs)
        return self._workshop

    def _flush(self) -> None:
        """Record how the actions ended that are not recorded yet; nothing where nothing was done."""
        if self._workshop:
            run_id = self._workshop.run_id
            rows, self._rows = self._rows, []
            self._recorder.record([replace(row, run_id=run_id) for row in rows])

    def _finish(self, outcome: str) -> None:
        """Record what is left to say. A build that did nothing and learned nothing of any file leaves no trace."""
        self._flush()
        learned = [FileRow(*row) for row in self._files.learned()]
        self._recorder.record(learned)
        if self._workshop:
            run_id, now = self._workshop.run_id, time.time()
            self._recorder.record([ServiceRow(run_id, *up, now) for up in self._workshop.launcher.launched()])
            self._recorder.ask(lambda manifest: manifest.finish_run(run_id, outcome))
        if self._workshop or learned or not self._recorder.ask(lambda manifest: manifest.is_published()):
            self._readers.show()

    def _interrupt(self) -> None:
        """End what runs and take in what it leaves; a second interrupt ends it at once, and gets through."""
        self._stopping = True
        try:
            if self._workshop:
                self._emit(Notice("info", "ending what runs; Ctrl-C again leaves at once"))
                self._workshop.cancel()
            # An interrupt between taking a call and making it has lost that call: it will not come again.
            with suppress(queue.Empty):
                while self._n_busy:
                    self._inbox.get(timeout=_DRAIN_S)()
        except KeyboardInterrupt:
            if self._workshop:
                self._workshop.kill()
            raise

    def _unknown_target(self) -> BuildError | None:
        return unknown_shard(self._graph, self._frontier, (*self._options.targets, *self._options.force))

    def _tidy(self) -> None:
        """After a valid build of everything: what nothing makes any more holds no longer, and goes.

        Also where nothing else is to be done: one that failed, or was of some targets, leaves what it made obsolete.
        """
        gone = obsolete(self._past, self._graph, self._wanted, self._outcomes)
        if gone:
            self._open_workshop()
            self._recorder.ask(lambda manifest: manifest.release(self._graph.profile, gone))
        kept = paths_kept(self._past, self._paths, gone, self._outcomes)
        tidy(self._past, kept, self._files, self._store, self._ephemeral, self._tell_left)

    def _tell_left(self, path: str) -> None:
        text = "is made by no rule any more, and is not in the store as it is: it is left"
        self._emit(Notice("warning", f"{path} {text}"))

    def _fail(self, error: BaseException) -> None:
        """From any thread: a bug, or a manifest that can't be written, ends the build."""

        def fail() -> None:
            raise error

        self._inbox.put(fail)
