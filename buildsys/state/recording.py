"""Records into table rows: what one commit appends, by table.

Knows nothing of connections and SQL but the order of the columns in `schema`. Whoever commits says which ids are free.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import count
from operator import attrgetter
from typing import Any

from buildsys.digest import Digest
from buildsys.model import ActionId, ActionKey, CheckVerdict, Evidence, Observed, Prices, RuleName, Trace
from buildsys.state.rows import (
    ActionRow,
    AliasRow,
    CheckRow,
    Context,
    FileRow,
    Hold,
    MetricsRow,
    PricesRow,
    RejectionRow,
    RequestRow,
    ResultRow,
    Row,
    ServiceRow,
    SettingRow,
    VersionRow,
)

Cells = tuple[Any, ...]
Measured = tuple[RuleName, str, Digest]
"""Rule, output and digest of the bytes whose numbers are recorded."""
Which = tuple[ActionKey, Digest]
"""Key and evidence of a result; the last one with both is meant."""

_usage = attrgetter("wall_s", "cpu_s", "max_rss", "requests_sent", "requests_reused")
_artifact = attrgetter("path", "digest", "size", "executable", "tree")
_prices = attrgetter(*(field.name for field in fields(Prices)))
_request = attrgetter(*(field.name for field in fields(RequestRow)))


class Counters:
    """The next free ids; they only ever grow, so a later row has the larger id."""

    def __init__(self, *, result_id: int, hold_id: int, file_id: int, alias_id: int) -> None:
        """The largest ids in use, 0 for none."""
        self.results = count(result_id + 1)
        self.holds = count(hold_id + 1)
        self.files = count(file_id + 1)
        self.aliases = count(alias_id + 1)


class Recording:
    """The rows of one commit.

    tables: table name -> rows. once, measured: what is new with it of what is recorded once.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        counters: Counters,
        once: Collection[Digest],
        measured: Callable[[], Collection[Measured]],
        result_ids: Callable[[list[ActionKey]], Mapping[Which, int]],
    ) -> None:
        """once: digests of what is recorded: contexts, evidence, traces, sets of discovered inputs; texts with names.

        measured, result_ids: asked only where it matters, for what is recorded, and for the ids of results by key.
        """
        self.tables: defaultdict[str, list[Cells]] = defaultdict(list)
        self._result_ids: dict[Which, int] = {}
        self.once: set[Digest] = set()
        self.measured: set[Measured] = set()
        self._recorded = once
        self._counters = counters
        later: list[Hold | AliasRow] = []
        for row in rows:
            match row:
                case ResultRow():
                    self._add_result(row)
                case Hold() | AliasRow():
                    later.append(row)
                case Context():
                    if self._is_new(row.context):
                        self._add_context(row)
                case MetricsRow():
                    self._add_metrics(row, measured())
                case _:
                    self._add_plain(row)
        named = [which for row in later if (which := _result_of(row)) and which not in self._result_ids]
        known = {**result_ids([key for key, _ in named]), **self._result_ids}
        for row in later:
            which = _result_of(row)
            if isinstance(row, Hold):
                self._add_hold(row, known[row.key, row.evidence])
            else:
                self._add_alias(row, known[which] if which else None)

    def _is_new(self, digest: Digest) -> bool:
        """Nothing of this digest is recorded; from now on it is."""
        if not digest or digest in self._recorded or digest in self.once:
            return False
        self.once.add(digest)
        return True

    def _add_result(self, row: ResultRow) -> None:
        result_id = next(self._counters.results)
        self._result_ids[row.key, row.evidence] = result_id
        more = row.rest, row.evidence, row.counts_as
        self.tables["results"].append(
            (result_id, row.key, *row.action, row.run_id, row.context, *_usage(row.usage), row.log, *more)
        )
        self.tables["outputs"] += [
            (result_id, n, made.name, made.shard, *_artifact(made.artifact)) for n, made in enumerate(row.outputs)
        ]
        self.tables["inputs"] += [
            (result_id, n, given.role, given.name, given.path, given.digest, *(given.maker or (None, None)))
            for n, given in enumerate(row.inputs)
        ]
        if row.observed:
            self._add_observed(row.observed)

    def _add_observed(self, seen: Observed) -> None:
        evidence = seen.evidence
        self._add_evidence(evidence)
        if self._is_new(evidence.trace):
            self.tables["traces"] += [(evidence.trace, *one) for one in _told(seen.trace)] or [
                (evidence.trace, None, None)
            ]
        if self._is_new(evidence.discovered):
            self.tables["discovered"] += [(evidence.discovered, *one) for one in sorted(set(seen.discovered))]

    def _add_evidence(self, evidence: Evidence) -> None:
        if self._is_new(evidence.digest):
            self.tables["evidence"].append((evidence.digest, *evidence))

    def _add_hold(self, row: Hold, result_id: int) -> None:
        hold_id = next(self._counters.holds)
        self.tables["holds"].append((hold_id, row.profile, *row.action, result_id, row.run_id))
        self.tables["places"] += [
            (hold_id, n, made.name, made.shard, *_artifact(made.artifact)) for n, made in enumerate(row.outputs)
        ]

    def _add_alias(self, row: AliasRow, result_id: int | None) -> None:
        if row.evidence:
            self._add_evidence(row.evidence)
        who = next(self._counters.aliases), row.profile, *row.action, row.key
        evidence = row.evidence.digest if row.evidence else None
        self.tables["aliases"].append((*who, result_id, evidence, row.said_by, row.reason, row.run_id or None))

    def _add_context(self, row: Context) -> None:
        self.tables["contexts"] += [
            (row.context, n, part.group, part.name, part.value, part.path) for n, part in enumerate(row.parts)
        ]
        self.tables["texts"] += [one for one in row.texts if self._is_new(Digest(f"{one.digest} {one.name}"))]

    def _add_metrics(self, row: MetricsRow, measured: Collection[Measured]) -> None:
        which = row.rule, row.output, row.digest
        if which in measured or which in self.measured:
            return
        self.measured.add(which)
        numbers = row.numbers or [(None, None, None)]
        self.tables["metrics"] += [(*which, *number) for number in numbers]

    def _add_plain(self, row: Row) -> None:
        match row:
            case ActionRow():
                who = row.run_id, row.profile, *row.action
                cells = row.outcome, row.key, row.reason, row.started, *_usage(row.usage), row.log, row.error
                self.tables["actions"].append((*who, *cells, row.gpus))
            case CheckRow(verdict=verdict):
                who = row.run_id, row.profile, *row.action
                cells = verdict.check, verdict.key, verdict.passed, verdict.detail, verdict.wall_s, verdict.severity
                self.tables["checks"].append((*who, *cells, *_offending(verdict)))
            case FileRow():
                self.tables["files"].append((next(self._counters.files), row.path, *row.stat, row.digest))
            case PricesRow():
                self.tables["prices"].append((row.run_id, *_prices(row.prices)))
            case ServiceRow():
                self.tables["services"].append(row)
            case RequestRow():
                self.tables["requests"].append(_request(row))
            case RejectionRow():
                self.tables["rejections"].append(row)
            case SettingRow():
                self.tables["settings"].append(row)
            case VersionRow():
                self.tables["versions"].append(row)


def _offending(verdict: CheckVerdict) -> tuple[int | None, str | None]:
    if not verdict.n_rows:
        return None, None
    rows = [dict(zip(verdict.columns, row, strict=True)) for row in verdict.rows]
    return verdict.n_rows, json.dumps(rows, ensure_ascii=False)


def _told(trace: Trace) -> Iterator[tuple[str, str]]:
    """What a trace tells of: kind and name, those of one kind sorted."""
    yield from (("module", name) for name in sorted(trace.modules))
    yield from (("function", name) for name in sorted(trace.functions))
    yield from (("unseen", why) for why in trace.unseen)


def _result_of(row: Hold | AliasRow) -> Which | None:
    """The result that is meant; None where an alias is undone."""
    if isinstance(row, Hold):
        return row.key, row.evidence
    return (row.result, row.made_with) if row.result else None


def released(
    counters: Counters, profile: str, actions: Iterable[ActionId], run_id: int | None
) -> dict[str, list[Cells]]:
    """The rows that say that these actions hold nothing from now on."""
    return {"holds": [(next(counters.holds), profile, *action, None, run_id) for action in actions]}
