"""From staged outputs to their place: recorded, checked, verdicts recorded, and only then renamed into the workspace.

Joins store, manifest and checks. Whatever moment the process is killed at, what is recorded is in the store, and what
is in the workspace was recorded; the next build finishes what is left. Knows nothing of why an action ran.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor as Pool
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from buildsys.assess import Assessment
from buildsys.digest import NO_DIGEST, Digest
from buildsys.ephemeral import Ephemeral
from buildsys.errors import FAILED, BuildError, render
from buildsys.events import CheckFinished, Event, Notice
from buildsys.execute import Executed
from buildsys.measured import measured
from buildsys.model import ActionId, ActionKey, Check, CheckVerdict, Made, RuleName
from buildsys.plan.decide import NARROWED
from buildsys.run.checks import Cancelled, Checks
from buildsys.state import disk
from buildsys.state.files import Files
from buildsys.state.publish import publish, set_aside
from buildsys.state.recorder import Recorder
from buildsys.state.rows import (
    AliasRow,
    CheckRow,
    Context,
    Hold,
    InputRow,
    RequestRow,
    ResultRow,
    Row,
    SettingRow,
    VersionRow,
)
from buildsys.state.scratch import Scratch
from buildsys.state.store import Damaged, Store


@dataclass(frozen=True)
class Delivered:
    """How a delivery ended. error: for people, "" where the outputs are in place.

    damaged: the store lost bytes that were to be restored; the action has to run.
    cancelled: it was stopped before anything was put in place.
    """

    outputs: tuple[Made, ...]
    error: str = ""
    damaged: bool = False
    cancelled: bool = False


_MOST_SHOWN = 3
Then = Callable[[Delivered], None]


@dataclass(frozen=True)
class _Parcel:
    """What is on its way. executed: the run that made it just now, None where it was made before."""

    assessment: Assessment
    outputs: tuple[Made, ...]
    then: Then
    executed: Executed | None = None

    @property
    def staged(self) -> Mapping[Made, Path]:
        return dict(zip(self.executed.outputs, self.executed.staged, strict=True)) if self.executed else {}

    @property
    def checks(self) -> Sequence[Check]:
        """Those that are to be asked: of what is known, not again those whose answer is."""
        checks = self.assessment.prepared.rule.checks
        return checks if self.executed else [check for check in checks if check.name in self.assessment.unchecked]

    @property
    def result(self) -> tuple[ActionKey, Digest]:
        """Key and evidence of the result that it is of."""
        if self.executed:
            observed = self.executed.observed
            return self.assessment.key, observed.evidence.digest if observed else NO_DIGEST
        assert self.assessment.result
        return self.assessment.result.key, self.assessment.result.evidence


class Delivery:
    """Delivers the outputs of one run's actions. `then` is called in any thread, and `failed`, with what is a bug."""

    def __init__(
        self,
        run_id: int,
        profile: str,
        files: Files,
        ephemeral: Ephemeral,
        store: Store,
        recorder: Recorder,
        pool: Pool,
        emit: Callable[[Event], None],
        failed: Callable[[BaseException], None],
        staging: Path,
        scratch: Scratch,
    ) -> None:
        self._run_id = run_id
        self._profile = profile
        self._files = files
        self._ephemeral = ephemeral
        self._store = store
        self._recorder = recorder
        self._pool = pool
        self._emit = emit
        self._failed = failed
        self._staging = staging
        self._scratch = scratch
        self._rules: set[RuleName] = (
            set()
        )  # Whose settings and versions are recorded; only the main thread looks at it.
        self._numbers = count(1)
        self._checks = Checks()

    def deliver_new(self, assessment: Assessment, executed: Executed, then: Then) -> None:
        """What an action just made. Its result is recorded before it is checked, so a mended check costs no run."""
        parcel = _Parcel(assessment, executed.outputs, then, executed)
        rows: list[Row] = [
            Context(assessment.prepared.context, assessment.prepared.parts, assessment.prepared.texts),
            *(Context(served.key, served.parts, served.half.texts) for served in assessment.services),
            self._result_row(assessment, executed),
            *executed.metrics,
            *self._rule_rows(assessment),
            *self._request_rows(assessment, executed),
        ]
        if assessment.prepared.rule.checks:
            self._recorder.record(rows, lambda: self._check(parcel))
        else:
            self._hold(parcel, rows)

    def record_requests(self, assessment: Assessment, executed: Executed) -> None:
        """What an action asked that made nothing of the answers."""
        if executed.requests:
            self._recorder.record(self._request_rows(assessment, executed))

    def deliver_known(
        self, assessment: Assessment, outputs: tuple[Made, ...], checked: bool, unmeasured: Sequence[Made], then: Then
    ) -> None:
        """What an earlier run made and the store still has.

        checked: its checks are known to hold. unmeasured: outputs whose metrics were never read.
        """
        parcel = _Parcel(assessment, outputs, then)
        if unmeasured:
            go_on = partial(self.deliver_known, assessment, outputs, checked, (), then)
            self._in_pool(partial(self._measure, assessment, unmeasured, go_on), parcel)
        elif checked:
            self._hold(parcel, [])
        else:
            self._check(parcel)

    def cancel(self) -> None:
        """Stop the checks that run; what is recorded and checked by now is still put in its place."""
        self._checks.cancel()

    def _measure(self, assessment: Assessment, unmeasured: Sequence[Made], go_on: Callable[[], None]) -> None:
        root = self._files.root
        links = [
            self._store.link_or_heal(made.artifact, made.artifact.file, root / made.artifact.path)
            for made in unmeasured
        ]
        rows, flaws = measured(assessment.prepared.rule, zip(unmeasured, links, strict=True))
        for flaw in flaws:
            self._emit(Notice("warning", flaw))
        self._recorder.record(rows, go_on)

    def _check(self, parcel: _Parcel) -> None:
        self._in_pool(partial(self._checked, parcel), parcel)

    def _checked(self, parcel: _Parcel) -> None:
        assessment, outputs = parcel.assessment, parcel.outputs
        self._end_scratch(assessment)
        files: dict[str, list[Path]] = {}
        staged = parcel.staged
        for made in outputs:
            path = staged.get(made) or self._path(assessment, made)
            files.setdefault(made.name, []).append(path)
        checks = parcel.checks
        verdicts = self._checks.run(checks, outputs, files)
        for check, verdict in zip(checks, verdicts, strict=True):
            warns = not verdict.passed and not verdict.holds_back
            warning = _warning(assessment.action, check, verdict) if warns else ""
            self._emit(CheckFinished(assessment.action, verdict, warning))
        rows = [CheckRow(self._run_id, self._profile, assessment.action, verdict) for verdict in verdicts]
        failed = [verdict for verdict in verdicts if verdict.holds_back]
        if failed:
            error = self._check_error(assessment, outputs, staged, failed).render()
            self._recorder.record(rows, lambda: parcel.then(Delivered(outputs, error)))
        else:
            self._hold(parcel, rows)

    def _hold(self, parcel: _Parcel, rows: Sequence[Row]) -> None:
        """Record that the result holds now, then put its bytes in place."""
        assessment = parcel.assessment
        key, evidence = parcel.result
        held = Hold(self._profile, assessment.action, key, parcel.outputs, self._run_id, evidence)
        aliases = [] if parcel.executed else alias_rows(self._profile, assessment, self._run_id)
        self._recorder.record([*rows, held, *aliases], lambda: self._in_pool(partial(self._place, parcel), parcel))

    def _end_scratch(self, assessment: Assessment) -> None:
        """The result is recorded, so nothing goes on from what the action left there."""
        if assessment.prepared.rule.scratch:
            self._scratch.discard(assessment.key)

    def _place(self, parcel: _Parcel) -> None:
        assessment, staged = parcel.assessment, parcel.staged
        self._end_scratch(assessment)
        for made in parcel.outputs:
            place = made.artifact.path
            ours = self._ours(place)
            path = staged.get(made)
            if path is None:
                if self._files.holds(made.artifact):
                    continue
                if assessment.dropped:
                    self._tell_kept(place, set_aside(self._files, place, ours=ours))
                    continue
                path = self._staging / f"restored-{os.getpid()}-{next(self._numbers)}" / "bytes"
                self._store.get(made.artifact, path)
            elif assessment.prepared.rule.ephemeral and self._files.holds(made.artifact):
                disk.remove(path)  # Another output was dropped; this one is read in place, maybe just now.
                continue
            self._tell_kept(place, publish(self._files, path, place, ours=ours))
            self._store.moved(made.artifact)
            if made.artifact.tree:
                self._files.made_folder(place, self._store.listing(made.artifact.digest))
            else:
                self._files.made(place, made.artifact.digest)
        parcel.then(Delivered(parcel.outputs))

    def _ours(self, place: str) -> Callable[[Digest], bool]:
        """Whether bytes there may be thrown away: the store has them, or a build put them there."""
        return lambda digest: self._store.knows(digest) or self._ephemeral.is_ours(place)(digest)

    def _tell_kept(self, place: str, kept: str) -> None:
        if kept:
            self._emit(Notice("warning", f"{place} was not made by the build; it is kept as {kept}"))

    def _in_pool(self, step: Callable[[], None], parcel: _Parcel) -> None:
        # Refused once the build is being left, after a bug or at once: the next one finishes what is left.
        with contextlib.suppress(RuntimeError):
            self._pool.submit(self._guarded, step, parcel)

    def _guarded(self, step: Callable[[], None], parcel: _Parcel) -> None:
        """A step in the pool: what goes wrong there ends this delivery, not the thread."""
        outputs, then = parcel.outputs, parcel.then
        try:
            step()
        except Damaged:
            then(Delivered(outputs, damaged=True))
        except Cancelled:
            then(Delivered(outputs, cancelled=True))
        except BuildError as error:
            then(Delivered(outputs, error.render()))
        except OSError as error:
            then(Delivered(outputs, BuildError(f"can't put outputs in place: {error}", exit_code=FAILED).render()))
        except BaseException as error:
            self._failed(error)  # a bug ends the build: nobody would wait for this delivery in vain

    def _rule_rows(self, assessment: Assessment) -> list[SettingRow | VersionRow]:
        """Settings and versions of a rule that are in no key, with the first result that it makes in this run."""
        rule = assessment.action.rule
        if rule in self._rules:
            return []
        self._rules.add(rule)
        prepared = assessment.prepared
        settings = [SettingRow(self._run_id, rule, one.name, one.value, one.path) for one in prepared.settings]
        others = prepared.installed.others(prepared.code, prepared.versions)
        return [*settings, *(VersionRow(self._run_id, rule, *one) for one in others.items())]

    def _result_row(self, assessment: Assessment, executed: Executed) -> ResultRow:
        counted = assessment.counted(executed.discovery.inputs)
        is_own = not assessment.prepared.rule.ephemeral or counted == Digest(assessment.key)
        return ResultRow(
            key=assessment.key,
            action=assessment.action,
            run_id=self._run_id,
            context=assessment.prepared.context,
            outputs=executed.outputs,
            inputs=tuple(
                InputRow("input", given.name, given.path, given.digest, given.maker)
                for bound in assessment.inputs
                for given in bound.given
            ),
            usage=executed.usage,
            log=executed.log,
            rest=assessment.rest,
            observed=executed.observed,
            counts_as=NO_DIGEST if is_own else counted,
        )

    def _request_rows(self, assessment: Assessment, executed: Executed) -> list[RequestRow]:
        return [
            RequestRow(
                key=asked.key,
                rule=assessment.action.rule,
                shard=assessment.action.shard,
                run_id=self._run_id,
                profile=self._profile,
                record_id=asked.record_id,
                sample=asked.sample,
                model=asked.model,
                identity=executed.identity,
                endpoint=asked.endpoint,
                finish_reason=asked.finish_reason,
                prompt_tokens=asked.prompt_tokens,
                output_tokens=asked.output_tokens,
                wall_s=asked.seconds,
                status=asked.status,
                error=asked.error,
                reused=not asked.sent,
                bad=", ".join(asked.bad),
            )
            for asked in executed.requests
        ]

    def _path(self, assessment: Assessment, made: Made) -> Path:
        """Where the bytes of a known output are."""
        if assessment.prepared.rule.ephemeral:
            return self._files.root / made.artifact.path
        return self._store.link(made.artifact, made.artifact.file)

    def _check_error(
        self,
        assessment: Assessment,
        outputs: Sequence[Made],
        staged: Mapping[Made, Path],
        failed: Sequence[CheckVerdict],
    ) -> BuildError:
        ephemeral = assessment.prepared.rule.ephemeral
        paths = [
            (staged.get(made) if ephemeral else None) or self._path(assessment, made) for made in outputs[:_MOST_SHOWN]
        ]
        kept = "its outputs are kept until the next build" if ephemeral else "its outputs are kept"
        free = "" if ephemeral else ", which costs no run"
        verdict = failed[0]
        mending = "loosen the check" if verdict.answered else "mend its SQL"
        check = next(check for check in assessment.prepared.rule.checks if check.name == verdict.check)
        return BuildError(
            _problem(assessment.action, verdict),
            place=check.place,
            excerpt=verdict.detail,
            facts=[
                _sql(check),
                *(
                    (made.name, path.relative_to(self._files.root).as_posix())
                    for made, path in zip(outputs, paths, strict=False)
                ),
                *(("also failed", other.check) for other in failed[1:]),
            ],
            hint=f"{kept}: mend the code that made them, or {mending}{free}",
            exit_code=FAILED,
        )


def _problem(action: ActionId, verdict: CheckVerdict) -> str:
    return f'check "{verdict.check}" {"failed" if verdict.answered else "gives no answer"} for {action}'


def _sql(check: Check) -> tuple[str, str]:
    return "sql", " ".join(check.sql.split())


def _warning(action: ActionId, check: Check, verdict: CheckVerdict) -> str:
    """What is told of a check that failed and holds nothing back."""
    return render("warning", _problem(action, verdict), check.place, verdict.detail, [_sql(check)])


def alias_rows(profile: str, assessment: Assessment, run_id: int) -> list[AliasRow]:
    """That a result which was made under another key counts under the one that its action has now; none of its own.

    run_id: 0 where the build has done nothing yet.
    """
    result, evidence = assessment.result, assessment.narrowed
    if result is None or evidence is None:
        return []
    who = profile, assessment.action, assessment.key
    return [AliasRow(*who, "narrowed", NARROWED, result.key, result.evidence, evidence, run_id)]
