"""A manifest in memory: what `state.manifest.Manifest` is to a build and to those that read, without a database.

It gets the same rows and gives the same answers; see `state.questions` for what each of them is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from buildsys.digest import Digest
from buildsys.model import (
    ActionId,
    ActionKey,
    Alias,
    Discovered,
    Evidence,
    Made,
    Observed,
    Part,
    Result,
    Shard,
    Trace,
)
from buildsys.state.files import Row as KnownRow
from buildsys.state.manifest import short_key
from buildsys.state.rows import AliasRow, CheckRow, Context, FileRow, Hold, LastVerdict, ResultRow, Row
from buildsys.state.snapshot import published_path, snapshot_path

_MOST_AKIN = 8


@dataclass(frozen=True)
class _Held:
    """What an action holds. number: of the result, in the order in which they were recorded."""

    number: int
    outputs: tuple[Made, ...]


class MemoryManifest:
    def __init__(self, state: Path) -> None:
        self.notices: list[str] = []
        self._state = state
        self._n_runs = 0
        self._results: list[ResultRow] = []
        self._numbers: dict[tuple[ActionKey, Digest], int] = {}
        self._holds: dict[tuple[str, ActionId], _Held] = {}
        self._aliases: list[tuple[AliasRow, int | None]] = []
        self._evidence: dict[Digest, Evidence] = {}
        self._traces: dict[Digest, Trace] = {}
        self._discovered: dict[Digest, list[Discovered]] = {}
        self._places: dict[str, dict[str, set[Digest]]] = {}
        self._contexts: dict[Digest, tuple[Part, ...]] = {}
        self._verdicts: dict[Digest, LastVerdict] = {}
        self._files: dict[str, KnownRow] = {}
        self._is_published = False

    def begin_run(self, **said: object) -> int:
        self._n_runs += 1
        return self._n_runs

    def finish_run(self, run_id: int, outcome: str) -> None:
        pass

    # ------------------------------------------------------------ results

    def newest(self, profile: str) -> dict[ActionId, Result]:
        last = {(row.profile, row.action): (row, number) for row, number in self._aliases}
        found = {}
        for (held_under, action), held in self._holds.items():
            if held_under != profile:
                continue
            row, number = last.get((profile, action), (None, None))
            alias = _alias(row) if row and number == held.number else None
            found[action] = replace(self._result(held.number, alias), action=action, outputs=held.outputs)
        return found

    def find(self, keys: Sequence[ActionKey]) -> dict[ActionKey, list[Result]]:
        """By their own keys, and by those that a user accepted."""
        named = [(row.key, number, None) for row, number in self._last_of_each() if row.key in keys]
        said = {row.key: (row, number) for row, number in self._aliases if row.said_by != "narrowed"}
        aliased = [(key, number, _alias(row)) for key, (row, number) in said.items() if key in keys and number]
        found: dict[ActionKey, list[Result]] = {}
        for key, number, alias in sorted([*named, *aliased], key=lambda one: -one[1]):
            found.setdefault(key, []).append(self._result(number, alias))
        return found

    def akin(self, rests: Sequence[Digest]) -> dict[Digest, list[Result]]:
        last = {
            (row.rest, row.evidence): number
            for number, row in enumerate(self._results, 1)
            if row.rest in rests and row.observed and row.observed.used
        }
        found: dict[Digest, list[Result]] = {}
        for (rest, _), number in sorted(last.items(), key=lambda one: -one[1]):
            found.setdefault(rest, []).append(self._result(number))
        return {rest: results[:_MOST_AKIN] for rest, results in found.items()}

    def _last_of_each(self) -> list[tuple[ResultRow, int]]:
        return [(self._results[number - 1], number) for number in self._numbers.values()]

    def _result(self, number: int, alias: Alias | None = None) -> Result:
        row = self._results[number - 1]
        about = row.context, row.evidence, row.counts_as
        return Result(row.key, row.action, row.run_id, row.outputs, *about, alias)

    # ------------------------------------------------------------ what they rest on

    def evidence(self, digests: Sequence[Digest]) -> dict[Digest, Evidence]:
        return {digest: self._evidence[digest] for digest in digests if digest in self._evidence}

    def evidence_of(self, script: str) -> list[tuple[Digest, Evidence]]:
        found = [
            (row.context, row.observed.evidence)
            for row in reversed(self._results)
            if row.observed and row.observed.used and script in row.observed.trace.modules
        ]
        return list(dict.fromkeys(found))

    def traces(self, digests: Sequence[Digest]) -> dict[Digest, Trace]:
        return {digest: self._traces[digest] for digest in digests if digest in self._traces}

    def discovered(self, digests: Sequence[Digest]) -> dict[Digest, list[Discovered]]:
        return {digest: self._discovered[digest] for digest in digests if digest in self._discovered}

    # ------------------------------------------------------------ the rest

    def short_keys(self) -> set[int]:
        accepted = [row.key for row, _ in self._aliases if row.said_by == "accepted"]
        rests = [ActionKey(row.rest) for row in self._results if row.rest]
        return {short_key(key) for key in [*(row.key for row in self._results), *rests, *accepted]}

    def places(self, profile: str) -> dict[str, set[Digest]]:
        others = [held for (held_under, _), held in self._holds.items() if held_under != profile]
        taken = {made.artifact.path for held in others for made in held.outputs}
        return {path: digests for path, digests in self._places.get(profile, {}).items() if path not in taken}

    def published(self) -> dict[str, set[Digest]]:
        return {path: digests for places in self._places.values() for path, digests in places.items()}

    def profiles(self) -> list[str]:
        return sorted({profile for profile, _ in self._holds})

    def context(self, context: Digest) -> tuple[Part, ...]:
        return self._contexts.get(context, ())

    def shards_made(self, context: Digest) -> set[Shard]:
        return {row.action.shard for row in self._results if row.context == context}

    def inputs(self, keys: Sequence[ActionKey]) -> dict[ActionKey, tuple[Part, ...]]:
        return {
            row.key: tuple(Part("input", one.name, one.digest, one.path) for one in row.inputs)
            for row in self._results
            if row.key in keys
        }

    def known_files(self) -> dict[str, KnownRow]:
        return dict(self._files)

    def verdicts(self, keys: Sequence[Digest]) -> dict[Digest, LastVerdict]:
        return {key: self._verdicts[key] for key in keys if key in self._verdicts}

    def sql_flaw(self, sql: str) -> str:
        return ""

    # ------------------------------------------------------------ what it is told

    def commit(self, rows: Iterable[Row]) -> None:
        """What names a result comes after it, whatever their order."""
        for row in sorted(rows, key=lambda row: isinstance(row, Hold | AliasRow)):
            match row:
                case ResultRow():
                    self._results.append(row)
                    self._numbers[row.key, row.evidence] = len(self._results)
                    if row.observed:
                        self._observed(row.observed)
                case Hold():
                    self._hold(row)
                case AliasRow():
                    number = self._numbers[row.result, row.made_with] if row.result else None
                    self._aliases.append((row, number))
                    if row.evidence:
                        self._evidence[row.evidence.digest] = row.evidence
                case Context():
                    self._contexts[row.context] = row.parts
                case CheckRow(verdict=verdict):
                    self._verdicts[verdict.key] = LastVerdict(verdict.passed, verdict.severity)
                case FileRow():
                    self._files[row.path] = (row.stat, row.digest)
        self._is_published = False

    def _observed(self, seen: Observed) -> None:
        evidence = seen.evidence
        self._evidence[evidence.digest] = evidence
        self._traces[evidence.trace] = seen.trace
        if evidence.discovered:
            self._discovered[evidence.discovered] = sorted(set(seen.discovered))

    def _hold(self, row: Hold) -> None:
        self._holds[row.profile, row.action] = _Held(self._numbers[row.key, row.evidence], row.outputs)
        places = self._places.setdefault(row.profile, {})
        for made in row.outputs:
            places.setdefault(made.artifact.path, set()).add(made.artifact.digest)

    def release(self, profile: str, actions: Iterable[ActionId]) -> None:
        for action in actions:
            del self._holds[profile, action]

    def publish(self, tables: object = ()) -> None:
        for path in (snapshot_path(self._state), published_path(self._state)):
            path.parent.mkdir(exist_ok=True)
            path.write_text(str(self._n_runs))
        self._is_published = True

    def is_published(self) -> bool:
        return self._is_published

    def close(self) -> None:
        pass


def _alias(row: AliasRow) -> Alias:
    assert row.evidence
    return Alias(row.key, row.evidence.digest, row.said_by, row.reason)
