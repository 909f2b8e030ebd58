"""The DuckDB database of what was made from what, when, why and at what price; and the snapshot of it that users open.

Knows nothing of what is stale. One process has it open, and uses it from one thread at a time. What is committed
outlasts a kill; what can't be read any more is put aside and told in `notices`, never repaired by hand.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Collection, Iterable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from buildsys.digest import Digest, digest_bytes
from buildsys.errors import BuildError
from buildsys.model import (
    ActionId,
    ActionKey,
    Alias,
    Artifact,
    Discovered,
    Evidence,
    Made,
    Part,
    Result,
    RuleName,
    Shard,
    Trace,
)
from buildsys.state import questions
from buildsys.state.columns import as_given, insert, storable
from buildsys.state.files import Row as KnownRow
from buildsys.state.recording import Cells, Counters, Measured, Recording, Which, released
from buildsys.state.rows import LastRun, LastVerdict, OutputTable, Row
from buildsys.state.schema import MIGRATIONS
from buildsys.state.snapshot import (
    attach,
    copy_snapshot,
    is_damage,
    live_path,
    published_path,
    quoted,
    recover,
    recover_missing,
    snapshot_path,
    unreadable,
    writing,
)
from buildsys.state.stats import Stat
from buildsys.state.tables import create_view
from buildsys.state.views import PUBLIC, VIEWS

if TYPE_CHECKING:
    import duckdb

_Known: TypeAlias = tuple[Counters, set[Digest]]
_MOST_AKIN: Final = 8
_FOUND_BY: Final = 8
_OUTPUT: Final = slice(14, None)
"""Where they are in a row of results; see `questions`."""


class Manifest:
    """The manifest of one project, open for writing. notices: what users should be told, in the order it came up."""

    def __init__(self, state: Path, con: duckdb.DuckDBPyConnection, known: _Known, *, is_live: bool = True) -> None:
        """con: a connection whose tables are up to date; see `open`. is_live: not that of a snapshot."""
        self.notices: list[str] = []
        self._state = state
        self._is_live = is_live
        self._run_id: int | None = None
        self._said: list[tuple[str, Sequence[Any]]] = []
        self._measured: set[Measured] | None = None
        self._take(con, known)

    @classmethod
    def open(cls, state: Path) -> Manifest:
        """Open the live manifest in the folder `state`, made or brought up to date where needed.

        A run that was killed is marked so. Raises BuildError where a newer buildsys wrote it or another process has it.
        """
        con, known, lost = _opened(state)
        manifest = cls(state, con, known)
        manifest.notices += lost
        return manifest

    @classmethod
    def read(cls, state: Path) -> Manifest:
        """The published snapshot, for reading only; an empty manifest where nothing was built yet.

        Raises BuildError where another version of buildsys wrote it, and where it is damaged: also from a question.
        """
        return cls(state, *_opened_to_read(state), is_live=False)

    def begin_run(self, *, command: str, profile: str, targets: Sequence[str], overrides: Sequence[str] = ()) -> int:
        """A new run; its id counts from 1. It counts as killed until it is finished.

        overrides: `key=value` of the config, set for this run alone.
        """
        (run_id,) = self._con.execute(questions.NEXT_RUN).fetchall()[0]
        lists = [[storable(text) for text in texts] for texts in (targets, overrides)]
        self._run_id = int(run_id)
        self._say(questions.BEGIN_RUN, run_id, time.time(), command, profile, *lists)
        return self._run_id

    def finish_run(self, run_id: int, outcome: str) -> None:
        """outcome: see `BuildFinished`."""
        self._say("INSERT INTO recorded.ends VALUES ($1, $2, $3)", run_id, time.time(), outcome)

    def newest(self, profile: str) -> dict[ActionId, Result]:
        """For each action of the profile the result that holds now; its artifacts have their paths in the workspace."""
        return {result.action: result for result in self._results(questions.HELD, profile)}

    def profiles(self) -> dict[str, LastRun]:
        """The last run of each profile that was ever built."""
        return {profile: LastRun(*row) for profile, *row in self._fetch(questions.PROFILES)}

    def find(self, keys: Sequence[ActionKey]) -> dict[ActionKey, list[Result]]:
        """The results of each key that was made, or accepted for another, whether they hold or not; newest first.

        Those of all profiles, of equal evidence the last one. Their artifacts have the file names as they were made.
        """
        return self._found(questions.FOUND, list(keys)) if keys else {}

    def akin(self, rests: Sequence[Digest]) -> dict[Digest, list[Result]]:
        """The same of results whose keys differ in code alone, by the rest of the key; only those with a trace.

        At most so many for each that looking at all of them takes no time; the newest ones.
        """
        return self._found(questions.AKIN, list(rests), _MOST_AKIN) if rests else {}

    def evidence(self, digests: Sequence[Digest]) -> dict[Digest, Evidence]:
        return {Digest(digest): Evidence(*rest) for digest, *rest in self._fetch(questions.EVIDENCE, list(digests))}

    def evidence_of(self, script: str) -> list[tuple[Digest, Evidence]]:
        """Context and evidence of all results whose runs used a script and tell of all that ran; the newest first."""
        return [
            (Digest(context), Evidence(*rest))
            for context, *rest in self._fetch(questions.EVIDENCE_OF, storable(script))
        ]

    def traces(self, digests: Sequence[Digest]) -> dict[Digest, Trace]:
        found: dict[Digest, dict[str, list[str]]] = {}
        for digest, kind, names in self._fetch(questions.TRACES, list(digests)):
            found.setdefault(digest, {})[kind] = [] if kind is None else list(map(as_given, names))
        return {
            digest: Trace(
                frozenset(told.get("module", ())), frozenset(told.get("function", ())), tuple(told.get("unseen", ()))
            )
            for digest, told in found.items()
        }

    def discovered(self, digests: Sequence[Digest]) -> dict[Digest, list[Discovered]]:
        """The discovered inputs of each set, sorted."""
        found: dict[Digest, list[Discovered]] = {}
        for digest, kind, name, value in self._fetch(questions.DISCOVERED, list(digests)):
            found.setdefault(digest, []).append(Discovered(kind, as_given(name), value))
        return found

    def needed(self, last_runs: int, pinned: Iterable[int]) -> set[int]:
        """Ids of the results that hold now in any profile, or did at the end of one of the last or of a pinned run.

        Also those of such a run that never came to hold: their outputs failed a check, and may be checked again.
        """
        return {result_id for (result_id,) in self._fetch(questions.NEEDED, last_runs, list(pinned))}

    def held(self) -> set[int]:
        """Ids of the results that hold now, in all profiles."""
        return {result_id for (result_id,) in self._fetch("SELECT result_id FROM recorded.current")}

    def read_by(self, makers: Sequence[RuleName]) -> set[tuple[str, str, str]]:
        """(profile, rule, digest) of each input made by these rules that what holds now was made from."""
        return set(self._fetch(questions.READ_BY, list(makers)))

    def made(self) -> list[tuple[int, RuleName, Digest, bool]]:
        """Every output that was ever made: id of its result, rule, digest, whether it is a folder."""
        query = "SELECT result_id, rule, digest, tree FROM recorded.outputs JOIN recorded.results USING (result_id)"
        return [
            (result_id, RuleName(rule), Digest(digest), tree) for result_id, rule, digest, tree in self._fetch(query)
        ]

    def runs(self) -> list[int]:
        """The numbers of all runs, the newest first."""
        return [run_id for (run_id,) in self._fetch("SELECT run_id FROM recorded.runs ORDER BY run_id DESC")]

    def unneeded_requests(self, needed: Collection[int]) -> set[str]:
        """Keys of the requests that results rest on, but none of these."""
        return {key for (key,) in self._fetch(questions.UNNEEDED_REQUESTS, list(needed))}

    def asked_by(self, requests: Collection[str]) -> dict[RuleName, int]:
        """How many of these requests each rule has made. requests: their keys."""
        return {RuleName(rule): n for rule, n in self._fetch(questions.ASKERS, list(requests))}

    def resting_on(self, requests: Collection[str]) -> list[tuple[str, ActionId]]:
        """Profile and action of all results that hold now and rest on the replies to these requests."""
        rows = self._fetch(questions.RESTING, list(requests))
        return [(profile, ActionId(RuleName(rule), Shard(shard))) for profile, rule, shard in rows]

    def last_tried(self) -> dict[tuple[str, ActionId], tuple[int, ActionKey]]:
        """For each action of each profile the last run that tried it, and under which key."""
        rows = self._fetch(questions.LAST_TRIED)
        return {(profile, ActionId(rule, shard)): (run_id, key) for profile, rule, shard, run_id, key in rows}

    def short_keys(self) -> set[int]:
        """`short_key` of every key that has a result, and of the rest of every key."""
        return {short for (short,) in self._fetch(questions.SHORT_KEYS)}

    def places(self, profile: str) -> dict[str, set[Digest]]:
        """Every path at which an output of the profile was ever published, and the digests that it had there.

        But for those where another profile's output is now.
        """
        query = """SELECT p.path, list(DISTINCT p.digest) FROM recorded.places p JOIN recorded.holds h USING (hold_id)
                   WHERE h.profile = $1 AND p.path NOT IN (
                       SELECT o.path FROM recorded.places o JOIN recorded.current c USING (hold_id)
                       WHERE c.profile <> $1) GROUP BY p.path ORDER BY p.path"""
        return {path: {Digest(digest) for digest in digests} for path, digests in self._fetch(query, profile)}

    def published(self) -> dict[str, set[Digest]]:
        """Every path at which an output was ever published, under whichever profile, and the digests that it had."""
        query = "SELECT path, list(DISTINCT digest) FROM recorded.places GROUP BY path"
        return {path: {Digest(digest) for digest in digests} for path, digests in self._fetch(query)}

    def context(self, context: Digest) -> tuple[Part, ...]:
        """The parts that the keys of a rule's actions share, by their digest."""
        query = "SELECT kind, name, value, path FROM recorded.contexts WHERE context = $1 ORDER BY position"
        return tuple(Part(*row) for row in self._fetch(query, context))

    def texts(self, digests: Sequence[str]) -> dict[tuple[str, str], str]:
        """The texts of symbols with these digests, by name and digest as keys have held them."""
        rows = self._fetch(questions.TEXTS, list(digests)) if digests else []
        return {(as_given(name), digest): as_given(text) for name, digest, text in rows}

    def started(self, run_id: int) -> datetime.datetime | None:
        """When a run began, in UTC; None where there is no such run."""
        return next((started for (started,) in self._fetch(questions.RUN_STARTED, run_id)), None)

    def shards_made(self, context: Digest) -> set[Shard]:
        """The shards of which something was ever made under a context, by whichever rule and profile."""
        query = "SELECT DISTINCT shard FROM recorded.results WHERE context = $1"
        return {Shard(shard) for (shard,) in self._fetch(query, context)}

    def inputs(self, keys: Sequence[ActionKey]) -> dict[ActionKey, tuple[Part, ...]]:
        """The declared inputs that each key held, one part a file or folder."""
        parts: dict[ActionKey, list[Part]] = {}
        for key, name, digest, path in self._fetch(questions.INPUTS, list(keys)):
            parts.setdefault(key, []).append(Part("input", name, digest, as_given(path)))
        return {key: tuple(found) for key, found in parts.items()}

    def known_files(self) -> dict[str, KnownRow]:
        """Path -> stat and digest, as last recorded."""
        return {as_given(path): (Stat(*stat), Digest(digest)) for path, *stat, digest in self._fetch(questions.FILES)}

    def verdicts(self, keys: Sequence[Digest]) -> dict[Digest, LastVerdict]:
        """The last verdict of each of these keys of checks that has one."""
        rows = self._fetch(questions.VERDICTS, list(keys)) if keys else []
        return {Digest(key): LastVerdict(*verdict) for key, *verdict in rows}

    def sql_flaw(self, sql: str) -> str:
        """What DuckDB says of a text that is no SQL, with line and pointer where it knows; "" where it is."""
        import duckdb

        try:
            return "" if self._con.extract_statements(sql) else "there is no statement in it"
        except duckdb.Error as error:
            return str(error)

    def measured(self) -> Set[Measured]:
        """The bytes whose numbers are recorded."""
        if self._measured is None:
            self._measured = set(self._fetch(questions.MEASURED))
        return self._measured

    def last_usages(self) -> list[tuple[RuleName, Shard, float, int]]:
        """See `Past`, as for the three below."""
        return self._fetch(questions.USAGES)

    def request_means(self) -> list[tuple[RuleName, float | None, float | None, float | None]]:
        return self._fetch(questions.MEANS)

    def asked_before(
        self, rule: RuleName, context: Digest, keys: Sequence[ActionKey], but_refused: bool
    ) -> dict[str, int]:
        return dict(self._fetch(questions.ASKED, rule, context, list(keys), but_refused))

    def refused(self, keys: Sequence[ActionKey]) -> set[tuple[ActionKey, int]]:
        return set(self._fetch(questions.REFUSED, list(keys)))

    def commit(self, rows: Iterable[Row]) -> None:
        """Append the rows, in one transaction; when this returns they outlast a kill.

        The result that a Hold or an AliasRow names must be in the same commit, or in an earlier one.
        """
        recording = Recording(rows, self._counters, self._once, self.measured, self._ids_of)
        self._append(recording.tables)
        self._once |= recording.once
        if self._measured is not None:
            self._measured |= recording.measured

    def release(self, profile: str, actions: Iterable[ActionId]) -> None:
        """These actions hold nothing from now on: no rule makes them any more."""
        self._append(released(self._counters, profile, actions, self._run_id))

    def publish(self, tables: Sequence[OutputTable] = ()) -> None:
        """Make the snapshot that users open, with a view for each table-like output.

        A table that can't be read is left out, and told. Readers of the snapshot before go on with it.
        """
        import duckdb

        newest = dict(self._fetch("SELECT rule, max(hold_id) FROM recorded.current GROUP BY rule"))
        kept = {table.view for table in tables if table.rule in newest}
        for table in tables:
            if table.view not in kept or self._shown.get(table) == newest[table.rule]:
                continue
            try:
                create_view(self._con, self._state.parent, table)
            except duckdb.Error as error:
                self.notices.append(f"the view {table.view} shows an earlier state or nothing: {error}")
            else:
                self._shown[table] = newest[table.rule]
        try:
            with writing(self._state):
                self._drop_views_but(kept)
                self._con.execute("CHECKPOINT manifest")
        except duckdb.Error as error:
            self._start_anew(error)
            self.publish(tables)
            return
        copy_snapshot(self._state)
        published_path(self._state).write_text(self._published())

    def is_published(self) -> bool:
        """The snapshot is there as it was published, and tells all that is recorded; it is not opened."""
        try:
            return published_path(self._state).read_text(errors="replace") == self._published()
        except FileNotFoundError:
            return False

    def close(self) -> None:
        self._con.close()

    def _take(self, con: duckdb.DuckDBPyConnection, known: _Known) -> None:
        self._con = con
        self._counters, self._once = known
        self._measured = None
        self._shown: dict[OutputTable, int] = {}

    def _published(self) -> str:
        """The snapshot's stat, the format, and the number of rows in each table, of which none is ever removed."""
        stat = Stat.of(os.stat(snapshot_path(self._state)))
        tables = self._con.execute(questions.TABLES).fetchall()
        counts = [f"(SELECT count(*) FROM recorded.{table})" for (table,) in tables]
        extent = self._con.execute(f"SELECT {', '.join(counts)}, * FROM recorded.format").fetchall()
        return json.dumps([stat, extent])

    def _append(self, tables: dict[str, list[Cells]]) -> None:
        import duckdb

        self._con.execute("BEGIN")
        try:
            with writing(self._state):
                for table, rows in tables.items():
                    insert(self._con, f"recorded.{table}", rows)
                self._con.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):
                self._con.execute("ROLLBACK")
            raise

    def _fetch(self, query: str, *args: Any) -> list[Any]:
        """The rows of a query. Blocks are verified only as they are read, so this is where damage may show."""
        import duckdb

        try:
            return self._con.execute(query, args).fetchall()
        except duckdb.Error as error:
            self._start_anew(error)
        return self._fetch(query, *args)

    def _start_anew(self, error: duckdb.Error) -> None:
        """Go on with what is left where a block turned out to be damaged; the run in progress is kept."""
        if not is_damage(error):
            raise error
        if not self._is_live:
            raise unreadable(snapshot_path(self._state), error) from error
        self._con.close()
        self.notices.append(recover(self._state, error, is_open=True))
        con, known, lost = _opened(self._state)
        self.notices += lost
        self._take(con, known)
        for statement, values in self._said:
            con.execute(statement, values)

    def _say(self, statement: str, *values: Any) -> None:
        """Record something of the run, which outlasts the loss of the file."""
        self._said.append((statement, values))
        with writing(self._state):
            self._con.execute(statement, values)

    def _results(self, query: str, *args: Any) -> list[Result]:
        """Results from rows that are one output each, those of one result together."""
        return [result for _, result in self._named(query, *args)]

    def _found(self, query: str, *args: Any) -> dict[Any, list[Result]]:
        found: dict[Any, list[Result]] = {}
        for name, result in self._named(query, *args):
            found.setdefault(name, []).append(result)
        return found

    def _named(self, query: str, *args: Any) -> list[tuple[Any, Result]]:
        """The same, each with what it was found by."""
        heads = []
        last = None
        for row in self._fetch(query, *args):
            if row[0] != last:
                last, outputs = row[0], list[Made]()
                heads.append((row, outputs))
            name, made_shard, *artifact = row[_OUTPUT]
            if name is not None:
                outputs.append(Made(name, made_shard, Artifact(*artifact)))
        return [(row[_FOUND_BY], _result(row, tuple(outputs))) for row, outputs in heads]

    def _ids_of(self, keys: list[ActionKey]) -> dict[Which, int]:
        rows = self._fetch(questions.IDS, keys) if keys else []
        return {(key, evidence): result_id for key, evidence, result_id in rows}

    def _drop_views_but(self, kept: set[str]) -> None:
        query = "SELECT view_name FROM duckdb_views() WHERE database_name = 'manifest' AND schema_name = 'main'"
        for (view,) in self._fetch(query):
            if view not in kept and view not in PUBLIC:
                self._con.execute(f'DROP VIEW "{view}"')


def short_key(key: ActionKey) -> int:
    """The first 60 bits: small in memory, and hardly ever the same for two keys."""
    return int(key[:15], 16)


def _result(row: Sequence[Any], outputs: tuple[Made, ...]) -> Result:
    """From the columns before those of an output; see `questions`."""
    _, key, rule, shard, run_id, context, evidence, counts_as, _, *alias, rejected = row[: _OUTPUT.start]
    named = Alias(*alias) if alias[0] else None
    return Result(key, ActionId(rule, shard), run_id, outputs, context, evidence, counts_as, named, rejected)


def _known(con: duckdb.DuckDBPyConnection) -> _Known:
    """What was recorded so far, as far as it decides what is recorded next."""
    result_id, hold_id, file_id, alias_id = con.execute(questions.LARGEST).fetchall()[0]
    once = con.execute(questions.ONCE).fetchall()
    counters = Counters(result_id=result_id, hold_id=hold_id, file_id=file_id, alias_id=alias_id)
    return counters, {Digest(digest) for (digest,) in once if digest}


def _opened(state: Path) -> tuple[duckdb.DuckDBPyConnection, _Known, list[str]]:
    """A connection with the tables and views of this version, and what was lost on the way there."""
    import duckdb

    lost = recover_missing(state)
    while True:
        try:
            con = attach(live_path(state))
        except duckdb.Error as error:
            lost.append(recover(state, error))
            continue
        try:
            con.execute(f"SET file_search_path = '{quoted(state.parent)}'")
            with writing(state):
                _migrate(con)
                con.execute(questions.KILLED)
            known = _known(con)
        except duckdb.Error as error:
            con.close()
            if not is_damage(error):
                raise
            lost.append(recover(state, error))
        except BaseException:
            con.close()
            raise
        else:
            return con, known, lost


def _opened_to_read(state: Path) -> tuple[duckdb.DuckDBPyConnection, _Known]:
    import duckdb

    path = snapshot_path(state)
    con = duckdb.connect()
    try:
        if not path.exists():
            con.execute("ATTACH ':memory:' AS manifest")
            con.execute("USE manifest")
            _migrate(con)
            return con, _known(con)
        con.execute(f"ATTACH '{quoted(path)}' AS manifest (READ_ONLY)")
        con.execute("USE manifest")
        (version,) = con.execute("SELECT version FROM recorded.format").fetchall()[0]
        if version == len(MIGRATIONS):
            return con, _known(con)
    except duckdb.Error as error:
        con.close()
        raise unreadable(path, error) from error
    except BaseException:
        con.close()
        raise
    con.close()
    _refuse_newer(version)
    raise BuildError("the manifest was written by another version of buildsys", hint="run `buildsys build` once")


def _migrate(con: duckdb.DuckDBPyConnection) -> None:
    """Bring tables and views to this version; checkpointed, since DuckDB can't always replay DDL from its log."""
    import duckdb

    try:
        version, views = con.execute("FROM recorded.format").fetchall()[0]
    except duckdb.CatalogException:
        version, views = 0, ""
    _refuse_newer(version)
    now = (len(MIGRATIONS), digest_bytes(VIEWS.encode()))
    if (version, views) == now:
        return
    con.execute("BEGIN")
    for statements in MIGRATIONS[version:]:
        con.execute(statements)
    con.execute(VIEWS)
    con.execute("DELETE FROM recorded.format")
    con.execute("INSERT INTO recorded.format VALUES ($1, $2)", now)
    con.execute("COMMIT")
    con.execute("CHECKPOINT manifest")


def _refuse_newer(version: int) -> None:
    if version > len(MIGRATIONS):
        raise BuildError(
            "the manifest was written by a newer buildsys",
            facts=[("its version", str(version)), ("this one reads", str(len(MIGRATIONS)))],
            hint="install that version, or a later one",
        )
