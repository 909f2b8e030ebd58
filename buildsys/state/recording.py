"""Records into table rows: what one commit appends, by table.

Knows nothing of connections and SQL but the order of the columns in `schema`. Whoever commits says which ids are free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from itertools import count
from operator import attrgetter
from typing import Any

from buildsys.digest import Digest
from buildsys.model import ActionId, ActionKey, Prices, RuleName
from buildsys.state.rows import (
    ActionRow,
    CheckRow,
    Context,
    FileRow,
    Hold,
    MetricsRow,
    PricesRow,
    RequestRow,
    ResultRow,
    Row,
    ServiceRow,
    SettingRow,
)

Cells = tuple[Any, ...]
Measured = tuple[RuleName, str, Digest]
"""Rule, output and digest of the bytes whose numbers are recorded."""

_usage = attrgetter("wall_s", "cpu_s", "max_rss", "requests_sent", "requests_reused")
_artifact = attrgetter("path", "digest", "size", "executable", "tree")
_prices = attrgetter(*(field.name for field in fields(Prices)))
_request = attrgetter(*(field.name for field in fields(RequestRow)))


class Counters:
    """The next free ids; they only ever grow, so a later row has the larger id."""

    def __init__(self, *, result_id: int, hold_id: int, file_id: int) -> None:
        """The largest ids in use, 0 for none."""
        self.results = count(result_id + 1)
        self.holds = count(hold_id + 1)
        self.files = count(file_id + 1)


class Recording:
    """The rows of one commit.

    tables: table name -> rows. contexts, measured: those that are new with it.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        counters: Counters,
        contexts: Collection[Digest],
        measured: Callable[[], Collection[Measured]],
        result_ids: Callable[[list[ActionKey]], Mapping[ActionKey, int]],
    ) -> None:
        """contexts: those that are recorded.

        measured, result_ids: asked only where it matters, for what is recorded, and for the ids of results by key.
        """
        self.tables: defaultdict[str, list[Cells]] = defaultdict(list)
        self._result_ids: dict[ActionKey, int] = {}
        self.contexts: set[Digest] = set()
        self.measured: set[Measured] = set()
        self._counters = counters
        holds = []
        for row in rows:
            match row:
                case ResultRow():
                    self._add_result(row)
                case Hold():
                    holds.append(row)
                case Context() if row.context not in contexts and row.context not in self.contexts:
                    self._add_context(row)
                case MetricsRow():
                    self._add_metrics(row, measured())
                case _:
                    self._add_plain(row)
        earlier = result_ids([hold.key for hold in holds if hold.key not in self._result_ids])
        for hold in holds:
            self._add_hold(hold, self._result_ids.get(hold.key) or earlier[hold.key])

    def _add_result(self, row: ResultRow) -> None:
        result_id = next(self._counters.results)
        self._result_ids[row.key] = result_id
        self.tables["results"].append(
            (result_id, row.key, *row.action, row.run_id, row.context, *_usage(row.usage), row.log)
        )
        self.tables["outputs"] += [
            (result_id, n, made.name, made.shard, *_artifact(made.artifact)) for n, made in enumerate(row.outputs)
        ]
        self.tables["inputs"] += [
            (result_id, n, given.role, given.name, given.path, given.digest, *(given.maker or (None, None)))
            for n, given in enumerate(row.inputs)
        ]

    def _add_hold(self, row: Hold, result_id: int) -> None:
        hold_id = next(self._counters.holds)
        self.tables["holds"].append((hold_id, row.profile, *row.action, result_id, row.run_id))
        self.tables["places"] += [
            (hold_id, n, made.name, made.shard, *_artifact(made.artifact)) for n, made in enumerate(row.outputs)
        ]

    def _add_context(self, row: Context) -> None:
        self.contexts.add(row.context)
        self.tables["contexts"] += [
            (row.context, n, part.group, part.name, part.value, part.path) for n, part in enumerate(row.parts)
        ]

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
                cells = verdict.check, verdict.key, verdict.passed, verdict.detail, verdict.wall_s
                self.tables["checks"].append((*who, *cells))
            case FileRow():
                self.tables["files"].append((next(self._counters.files), row.path, *row.stat, row.digest))
            case PricesRow():
                self.tables["prices"].append((row.run_id, *_prices(row.prices)))
            case ServiceRow():
                self.tables["services"].append(row)
            case RequestRow():
                self.tables["requests"].append(_request(row))
            case SettingRow():
                self.tables["settings"].append(row)


def released(
    counters: Counters, profile: str, actions: Iterable[ActionId], run_id: int | None
) -> dict[str, list[Cells]]:
    """The rows that say that these actions hold nothing from now on."""
    return {"holds": [(next(counters.holds), profile, *action, None, run_id) for action in actions]}
