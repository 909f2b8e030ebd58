"""Carries out one action: arguments, the call in a worker, outputs into the store.

Joins workers, services and the request engine with files and store. Has no opinion on what is stale: it gets an action
with everything it needs by digest, and gives back digests. Called from several threads at once.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from buildsys.assess import Assessment, Assessor, Bound
from buildsys.canary import Canary, Follower, followers
from buildsys.commands import command_values, fill_command
from buildsys.digest import NO_DIGEST, digest_of
from buildsys.discover import NOTHING_FOUND, Discoverer, Discovery
from buildsys.errors import FAILED, INTERRUPTED, BuildError, refused
from buildsys.events import Event, LimitReached, Notice
from buildsys.handover import Handover
from buildsys.launch import Launcher
from buildsys.measured import measured
from buildsys.model import ActionKey, Decision, Made, Observed, Rule, RuleName, Trace, Usage
from buildsys.plan.key import Given
from buildsys.project import Project
from buildsys.run.brake import Brake
from buildsys.run.call import Cancelled
from buildsys.run.chat import ChatEngine
from buildsys.run.checks import Checks
from buildsys.run.conversation import Asked, Record, read_records
from buildsys.run.endpoint import Endpoint
from buildsys.run.process import last_lines
from buildsys.run.replies import ReplyLog
from buildsys.run.secret import secret
from buildsys.run.spending import HeldBack, Spending
from buildsys.run.traced import Traced, together
from buildsys.run.workers import CANCELLED, Job, JobResult, Sandbox, Share, Workers
from buildsys.sandbox import refusal, sandbox_of
from buildsys.staged import targets, written
from buildsys.state.files import Files, Seen
from buildsys.state.logs import folder_of
from buildsys.state.rows import MetricsRow
from buildsys.state.scratch import Note, Scratch
from buildsys.state.store import Damaged, Store
from buildsys.teller import Teller

_LAST_LINES = 25
_MISSING = (
    "install what the script imports for the interpreter that runs it: buildsys' own unless the rule has `python`"
)
_LONGEST_SUMMARY = 80
_UNMEASURED = "replies do not tell how many tokens they hold: a limit of tokens or cost can't count them"


@dataclass(frozen=True)
class Executed:
    """How an action went. Empty outputs mean that it made none; error says why to people, "" where it was stopped.

    outputs: stored, with the paths where they belong. staged: their files, in the same order.
    moved: a source file that changed while the action ran: its result is of no known inputs and must not be recorded.
    started: seconds since 1970. identity, requests: of a chat action. metrics: numbers of its outputs. trace: of the
    code that ran, None where nobody listens. discovery: what it read that is not declared. observed: both, as they are
    recorded.
    """

    outputs: tuple[Made, ...] = ()
    staged: tuple[Path, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    cancelled: bool = False
    moved: str = ""
    log: str = ""
    started: float = 0.0
    summary: str = ""
    identity: str = ""
    requests: tuple[Asked, ...] = ()
    metrics: tuple[MetricsRow, ...] = ()
    trace: Trace | None = None
    discovery: Discovery = NOTHING_FOUND
    observed: Observed | None = None


@dataclass(frozen=True)
class Call:
    """One attempt at an action. devices: its GPUs. paths: output name -> where it is written. urls: of its services.

    scratch: the folder that outlives it, where its rule has one. sandbox: what it may read and write, where that is
    limited. followers: what its canary tries.
    """

    assessment: Assessment
    again: bool
    devices: tuple[str, ...]
    paths: Mapping[str, Path]
    urls: Mapping[str, str]
    log: Path
    scratch: Path | None = None
    sandbox: Sandbox | None = None
    followers: tuple[Follower, ...] = ()

    @property
    def rule(self) -> Rule:
        return self.assessment.prepared.rule

    @property
    def share(self) -> Share:
        return Share(self.devices, self.rule.memory)


class Executor:
    """Carries out the actions of one run."""

    def __init__(
        self,
        project: Project,
        run_id: int,
        assessor: Assessor,
        files: Files,
        store: Store,
        handover: Handover,
        workers: Workers,
        launcher: Launcher,
        scratch: Scratch,
        emit: Callable[[Event], None],
    ) -> None:
        self._project = project
        self._root = project.root
        self._run_id = run_id
        self._log_folder = folder_of(project.state / "logs", run_id, assessor.graph.profile)
        self._assessor = assessor
        self._files = files
        self._store = store
        self._handover = handover
        self._workers = workers
        self._launcher = launcher
        self._emit = emit
        self._scratch = scratch
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._cancelled = False
        self._discoverer = Discoverer(assessor.graph, project.looks, assessor.answers)
        self._chat_engine: tuple[ChatEngine, ReplyLog] | None = None
        self._told: set[str] = set()
        self._checks = Checks()
        self._canaries: dict[RuleName, Canary] = {}
        self._brakes: defaultdict[RuleName, Brake] = defaultdict(Brake)

    def execute(
        self,
        assessment: Assessment,
        again: bool = False,
        devices: tuple[str, ...] = (),
        following: Sequence[Follower] = (),
    ) -> Executed:
        """Run one action to its end. What the action does wrong is in the result, never raised.

        again: an input moved while it ran before, so what a worker may have kept of it is not to be trusted.
        devices: its GPUs. following: as `expect` gave it.
        """
        action, rule = assessment.action, assessment.prepared.rule
        log = self._log_folder / rule.name / f"{action.shard or rule.name}.log"
        staging = self._project.state / "staging" / f"{self._run_id}-{next(self._numbers)}"
        started = time.time()
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()
            done = self._carried_out(assessment, again, devices, following, staging, log)
        except Damaged:
            lost = BuildError("the store lost an input of it", hint="build again: what made it will run")
            done = Executed(error=_failed(assessment, lost))
        except BuildError as error:
            # A service that was asked for while the build was being ended says so.
            stopped = error.exit_code == INTERRUPTED
            done = Executed(cancelled=True) if stopped else Executed(error=_failed(assessment, error))
        except OSError as error:
            told = refused(error)
            if told is None:
                raise
            done = Executed(error=_failed(assessment, told))
        finally:
            self.leave(assessment)
        return replace(done, started=started, log=log.relative_to(self._root).as_posix())

    def expect(self, assessment: Assessment) -> Sequence[Follower]:
        """Say that an action is about to run, in the order in which they are to begin; gives what its canary tries.

        `execute` or `leave` has to follow. Not for several threads at once, unlike all else.
        """
        rule = assessment.prepared.rule
        if not rule.asking.canary:
            return ()
        self._canary(rule).expect(assessment.action)
        return followers(self._assessor, assessment.action)

    def leave(self, assessment: Assessment) -> None:
        """That it was to run is over."""
        if assessment.prepared.rule.asking.canary:
            self._canary(assessment.prepared.rule).leave(assessment.action)

    def limit_reached(self) -> LimitReached | None:
        """The limit that held requests back, None where none did. To be asked when nothing runs."""
        return self._chat_engine[0].spending.reached() if self._chat_engine else None

    def cancel(self) -> None:
        """End the requests in flight; no more are sent."""
        with self._lock:
            self._cancelled = True
        if self._chat_engine:
            self._chat_engine[0].cancel()
        self._checks.cancel()

    def close(self) -> None:
        if self._chat_engine:
            engine, replies = self._chat_engine
            told = len(replies.notices)
            engine.close()
            replies.close()
            for notice in replies.notices[told:]:
                self._emit(Notice("warning", notice))

    def _carried_out(
        self,
        assessment: Assessment,
        again: bool,
        devices: tuple[str, ...],
        following: Sequence[Follower],
        staging: Path,
        log: Path,
    ) -> Executed:
        rule = assessment.prepared.rule
        urls = {served.service.name: self._launcher.launch(served) for served in assessment.services}
        inputs = assessment.reads
        # A server may have read files that are not those of its key: nothing it says may be kept.
        seen = [*(seen for bound in inputs for seen in bound.seen), *self._lent(inputs)]
        if moved := self._moved(seen):
            return Executed(moved=moved)
        paths = targets(rule, assessment.action, self._assessor.graph.profile, staging)
        call = {"run": self._run, "shell": self._shell, "chat": self._chat}[rule.kind]
        scratch = self._scratch.open(assessment.key, self._note(assessment, inputs)) if rule.scratch else None
        limits = (self._root, assessment.prepared, inputs, self._handover, staging, scratch)
        sandbox = sandbox_of(*limits) if rule.sandbox else None
        done, traced = call(Call(assessment, again, devices, paths, urls, log, scratch, sandbox, tuple(following)))
        if sandbox:
            shutil.rmtree(sandbox.temporary, ignore_errors=True)
        moved = self._moved(seen)
        if scratch and moved:
            self._scratch.discard(assessment.key)
        elif scratch:
            self._scratch.rest(assessment.key)
        if done.error or done.cancelled:
            return done
        if moved:
            return replace(done, moved=moved)
        if traced:
            try:
                done = replace(done, trace=traced.trace, discovery=self._discoverer.discover(assessment, traced))
            except BuildError as error:
                return replace(done, error=_failed(assessment, error))
        return self._stored(assessment, paths, done)

    def _note(self, assessment: Assessment, inputs: Iterable[Bound]) -> Note:
        seen = [[one.path, list(one.stat)] for bound in inputs for one in bound.seen]
        return Note(*assessment.action, self._assessor.graph.profile, self._run_id, digest_of(seen))

    def _lent(self, inputs: Iterable[Bound]) -> Iterator[Seen]:
        """The ephemeral outputs among the inputs as they are now: read in place, like source files."""
        for given in (given for bound in inputs for given in bound.given if given.lent):
            if seen := self._files.look(self._handover.located(given)):
                yield seen

    def _moved(self, inputs: Iterable[Seen]) -> str:
        """The first file that was written to since it was seen, "" where there is none."""
        return next((seen.path for seen in inputs if not self._files.unmoved(seen)), "")

    def _stored(self, assessment: Assessment, paths: Mapping[str, Path], done: Executed) -> Executed:
        """Every declared output into the store, and its numbers read where they are metrics.

        Those of an ephemeral rule are only measured.
        """
        keep = self._store.measure if assessment.prepared.rule.ephemeral else self._store.put
        outputs: list[Made] = []
        staged: list[Path] = []
        for output in assessment.prepared.rule.outputs:
            for shard, path in written(assessment.prepared.rule, output, paths[output.name]):
                where = self._assessor.output_path(assessment.action, output.name, shard)
                outputs.append(Made(output.name, shard, replace(keep(path), path=where)))
                staged.append(path)
        metrics, flaws = measured(assessment.prepared.rule, zip(outputs, staged, strict=True))
        for flaw in flaws:
            self._emit(Notice("warning", flaw))
        return replace(done, outputs=tuple(outputs), staged=tuple(staged), metrics=tuple(metrics))

    # ------------------------------------------------------------ the three kinds of rules

    def _run(self, call: Call) -> tuple[Executed, Traced | None]:
        result = self._called(call)
        return self._judged(call, result), result.trace

    def _called(self, call: Call) -> JobResult:
        arguments: dict[str, object] = {bound.name: self._handover.argument(bound) for bound in call.assessment.inputs}
        arguments |= {name: self._relative(path) for name, path in call.paths.items()}
        if call.rule.services:
            arguments["services"] = {name: call.urls[name] for name in call.rule.services}
        if call.scratch:
            arguments["scratch"] = self._relative(call.scratch)
        return self._workers.call(self._job(call, arguments))

    def _shell(self, call: Call) -> tuple[Executed, Traced | None]:
        """What programs read is not traced: it is for the rule to declare."""
        return self._judged(call, self._commanded(call)), None

    def _commanded(self, call: Call) -> JobResult:
        prepared = call.assessment.prepared
        values: dict[str, str | Sequence[str]] = {"python": prepared.python}
        values |= {f"inputs.{bound.name}": self._handover.words(bound) for bound in call.assessment.inputs}
        values |= {f"outputs.{name}": str(self._relative(path)) for name, path in call.paths.items()}
        values |= command_values(call.rule.params, call.rule.settings)
        values |= {f"services.{name}": url for name, url in call.urls.items()}
        if call.scratch:
            values["scratch"] = str(self._relative(call.scratch))
        code, homes = prepared.code, prepared.homes
        command = fill_command(call.rule.command, values, code, partial(self._handover.freeze, homes=homes))
        env = self._handover.environment(code, homes, prepared.env)
        return self._workers.shell(command, env, self._root, call.log, call.share, call.sandbox)

    def _chat(self, call: Call) -> tuple[Executed, Traced | None]:
        job = self._job(call, {})
        records = [record for given in call.assessment.inputs[0].given for record in self._records(given)]
        endpoint = self._endpoint(call)
        traced: list[Traced] = []

        def build(turns: Sequence[tuple[object, object]]) -> list[dict[str, object] | None]:
            result = self._workers.map(job, turns)
            if not result.ok:
                raise _BadCall(result)
            traced.append(result.trace)
            return result.value  # type: ignore[return-value]

        canary = self._canary(call.rule) if call.rule.asking.canary else None
        teller = Teller(call.assessment.action, self._emit, self._warn_of_unmeasured, canary, call.followers)
        done = Executed()
        started = time.monotonic()
        try:
            answered = self._engine().answer(
                records,
                build,
                endpoint,
                call.rule.samples,
                first=call.rule.asking.canary,
                reuse_shorter=call.rule.asking.reuse_shorter,
                listener=teller,
                brake=self._brake(call.rule),
            )
        except _BadCall as bad:
            done = self._judged(call, bad.result)
        except (Cancelled, HeldBack):
            done = Executed(cancelled=True)
        except BuildError as error:
            done = Executed(error=_failed(call.assessment, error))
        else:
            with open(call.paths[call.rule.outputs[0].name], "wb") as file:
                file.writelines(row.line() + b"\n" for row in answered.rows)
        asked = teller.requests
        n_sent, n_reused = sum(one.sent and one.status > 0 for one in asked), sum(not one.sent for one in asked)
        usage = Usage(time.monotonic() - started, requests_sent=n_sent, requests_reused=n_reused)
        return replace(done, usage=usage, identity=endpoint.identity, requests=asked), together(traced)

    # ------------------------------------------------------------ what they need

    def _job(self, call: Call, arguments: Mapping[str, object]) -> Job:
        """A call by value. Actions whose code, params, environment and shared inputs are equal share a worker."""
        prepared, rule = call.assessment.prepared, call.rule
        code = prepared.code
        assert code is not None
        values = (*rule.params, *rule.settings)
        own = self._assessor.graph.own_inputs(rule)
        shared = [
            [bound.name, [[given.path, given.digest] for given in bound.given]]
            for bound in call.assessment.inputs
            if bound.name not in own or call.again
        ]
        return Job(
            python=prepared.python,
            combination=digest_of(prepared.warm, shared, call.again),
            preload=tuple(sorted(code.preload)),
            sources=code.sources,
            folder=rule.script.rpartition("/")[0],
            script=rule.script,
            function=rule.function,
            arguments={**arguments, **{value.name: value.value for value in values}},
            env=prepared.env,
            log=call.log,
            group=rule.name,
            share=call.share,
            homes=tuple((home.module, home.stem, home.path) for home in prepared.homes),
            sandbox=call.sandbox,
        )

    def _relative(self, path: Path) -> Path:
        return path.relative_to(self._root)

    def _records(self, given: Given) -> Sequence[Record]:
        """The records of a JSONL file, read as frozen as the action's other inputs."""
        path = self._handover.link(given, given.artifact) if given.artifact else self._root / given.path
        return read_records(path.read_bytes(), given.path)

    def _endpoint(self, call: Call) -> Endpoint:
        """Who is asked, and as whom the replies are kept: a service by its key, a URL by the rule's identity."""
        prepared, rule = call.assessment.prepared, call.rule
        variable = dict(rule.secrets).get("api_key", "")
        api_key = secret(variable, prepared.env, self._root) if variable else None
        how: Any = {"in_flight": rule.asking.in_flight, "stream": rule.asking.stream}
        if rule.endpoint.startswith("service:"):
            name = rule.endpoint.removeprefix("service:")
            url, identity = call.urls[name], f"service:{prepared.service_keys[name]}"
            return Endpoint(url, identity, api_key, variable, gone=lambda: self._launcher.gone(url), **how)
        if variable and not api_key:
            self._tell_once(f"{variable} is not set: {rule.name} asks {rule.endpoint} without an API key")
        return Endpoint(rule.endpoint, rule.identity, api_key, variable, others=rule.asking.others, **how)

    def _engine(self) -> ChatEngine:
        """One engine and one log of replies for all shards, opened when the first request is to be made."""
        with self._lock:
            if self._cancelled:
                raise Cancelled
            if self._chat_engine is None:
                replies = ReplyLog(self._project.state / "replies")
                for notice in replies.notices:
                    self._emit(Notice("warning", notice))
                spending = Spending(self._assessor.graph.limits, self._assessor.graph.prices)
                again = self._assessor.retry_refused
                self._chat_engine = ChatEngine(replies, spending=spending, retry_refused=again), replies
            return self._chat_engine[0]

    def _brake(self, rule: Rule) -> Brake:
        """One for all actions of a rule."""
        with self._lock:
            return self._brakes[rule.name]

    def _canary(self, rule: Rule) -> Canary:
        """One for all actions of a rule."""
        with self._lock:
            if rule.name not in self._canaries:
                folder = self._project.state / "staging" / f"{self._run_id}-{rule.name}"
                profile = self._assessor.graph.profile
                tell = partial(Notice, "info")
                self._canaries[rule.name] = Canary(
                    rule,
                    self._brakes[rule.name],
                    profile,
                    folder,
                    self._root,
                    self._checks,
                    self._try,
                    lambda text: self._emit(tell(text)),
                )
            return self._canaries[rule.name]

    def _try(self, one: Follower, inputs: Sequence[Bound], paths: Mapping[str, Path]) -> BuildError | None:
        """Carry out what a canary tries; nothing of it is kept."""
        log = self._log_folder / one.rule.name / "canary.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        staging = next(iter(paths.values())).parent.parent
        sandbox = (
            sandbox_of(self._root, one.prepared, inputs, self._handover, staging, None) if one.rule.sandbox else None
        )
        key = ActionKey(NO_DIGEST)
        why = Decision("run", "canary")
        assessment = Assessment(one.action, one.prepared, key, NO_DIGEST, tuple(inputs), (), None, why)
        call = Call(assessment, False, (), paths, {}, log, sandbox=sandbox)
        result = self._called(call) if one.rule.kind == "run" else self._commanded(call)
        if result.exit == CANCELLED:
            raise Cancelled
        return None if result.ok else self._wrong(call, result)

    def _warn_of_unmeasured(self) -> None:
        """A limit that goes by tokens is blind where replies don't tell them: said once."""
        with self._lock:
            spending = self._chat_engine[0].spending if self._chat_engine else Spending()
        if spending.counts_tokens and spending.n_unmeasured:
            self._tell_once(_UNMEASURED)

    def _tell_once(self, warning: str) -> None:
        with self._lock:
            if warning in self._told:
                return
            self._told.add(warning)
        self._emit(Notice("warning", warning))

    def _judged(self, call: Call, result: JobResult) -> Executed:
        usage = Usage(result.wall_s, result.cpu_s, result.max_rss)
        if result.ok:
            return Executed(usage=usage, summary="" if call.assessment.action.shard else _last_words(call.log))
        if result.exit == CANCELLED:
            return Executed(cancelled=True, usage=usage)
        return Executed(error=_failed(call.assessment, self._wrong(call, result)), usage=usage)

    def _wrong(self, call: Call, result: JobResult) -> BuildError:
        problem = result.error or f"it ended with {result.exit}"
        hint = _MISSING if problem.startswith("ModuleNotFoundError") else ""
        facts = [("log", self._relative(call.log).as_posix())]
        if result.refused:
            facts.insert(0, ("error", problem))
            problem, hint = refusal(self._root, self._assessor.graph, call.rule, result.refused)
        excerpt = result.traceback or last_lines(call.log, _LAST_LINES)
        return BuildError(problem, excerpt=excerpt, facts=facts, hint=hint)


class _BadCall(Exception):
    """A `build_request` that went wrong in its worker."""

    def __init__(self, result: JobResult) -> None:
        super().__init__(result.error)
        self.result = result


def _failed(assessment: Assessment, error: BuildError) -> str:
    """The error as that of the action."""
    return BuildError(
        f"{assessment.action} failed: {error.problem}",
        facts=[("because", assessment.decision.reason), *error.facts],
        place=error.place,
        excerpt=error.excerpt,
        hint=error.hint,
    ).render()


def moved_twice(path: str) -> BuildError:
    return BuildError(
        f"{path} changed while the action ran, twice",
        hint="wait until it is written, then build again",
        exit_code=FAILED,
    )


def _last_words(log: Path) -> str:
    """The last line that was printed, as a summary; progress bars, which go back over their line, are none."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LONGEST_SUMMARY - 2))
        *whole, rest = file.read().decode(errors="replace").split("\n")
    last = whole[-1].strip() if len(whole) > 1 and not rest else ""
    return "" if "\r" in last or len(last) > _LONGEST_SUMMARY else last
