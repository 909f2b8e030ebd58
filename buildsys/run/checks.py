"""SQL checks over outputs: each output is a table of its name.

Knows files and SQL, and nothing of rules, keys or where outputs belong. A check holds where it gives one row with one
BOOLEAN that is true, or, giving anything else, no row at all: then its rows are the offending ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from buildsys.digest import Digest, digest_of
from buildsys.model import Check, CheckVerdict, Made
from buildsys.run.offending import MOST_ROWS, kept, shown
from buildsys.run.tensors import tensors

if TYPE_CHECKING:
    import duckdb

_INTERRUPT_S = 0.02
_READERS = {
    ".parquet": "read_parquet({files})",
    ".jsonl": "read_json({files}, format = 'newline_delimited', maximum_object_size = 268435456)",
    ".json": "read_json({files}, maximum_object_size = 268435456)",
    ".csv": "read_csv({files})",
}
_TENSORS = ".safetensors"
_TENSOR_COLUMNS = (
    "unnest($1::VARCHAR[]) AS name, unnest($2::VARCHAR[]) AS dtype, unnest($3::BIGINT[][]) AS shape, "
    "unnest($4::BIGINT[]) AS bytes"
)


def check_key(check: Check, outputs: Sequence[Made]) -> Digest:
    """What a verdict holds for: the SQL, and the digests of the outputs that it can see.

    Not the severity: that says what a verdict comes to, and makes no other one.
    """
    return digest_of("check", 1, check.sql, [[made.name, made.shard, made.artifact.digest] for made in outputs])


class Cancelled(Exception):
    """The checks were stopped: they say nothing of the outputs."""


class Checks:
    """Runs checks, in several threads at once; `cancel` stops them for good."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._connections: set[duckdb.DuckDBPyConnection] = set()
        self._cancelled = False

    def run(
        self, checks: Sequence[Check], outputs: Sequence[Made], files: Mapping[str, Sequence[Path]]
    ) -> list[CheckVerdict]:
        """The verdict of each check, in order. files: output name -> its files.

        SQL that gives no answer is a check that fails. Raises Cancelled.
        """
        with self._connected() as connection:
            problems = {name: problem for name, paths in files.items() if (problem := _open(connection, name, paths))}
            verdicts = [
                _run(connection, check, check_key(check, outputs), problems) for check in checks if not self._cancelled
            ]
        if self._cancelled:  # A query that was interrupted looks like one that fails.
            raise Cancelled
        return verdicts

    def cancel(self) -> None:
        """Interrupt what runs, and return when it has ended."""
        with self._changed:
            self._cancelled = True
            while self._connections:
                for connection in self._connections:
                    connection.interrupt()
                # Again, since an interrupt that comes just before a query begins is lost.
                self._changed.wait(_INTERRUPT_S)

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        import duckdb

        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            with self._changed:
                self._connections.add(connection)
            try:
                yield connection
            finally:
                with self._changed:
                    self._connections.remove(connection)
                    self._changed.notify_all()


def _open(connection: duckdb.DuckDBPyConnection, name: str, paths: Sequence[Path]) -> str:
    """Make an output a table; says what is wrong with it, "" where nothing is."""
    import duckdb

    if not paths:
        return ""
    if paths[0].suffix == _TENSORS:
        return _open_tensors(connection, name, paths)
    if (reader := _READERS.get(paths[0].suffix)) is None:
        return f"{paths[0].name} is no table: a check reads {', '.join(_READERS)} and {_TENSORS}"
    listed = "[" + ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths) + "]"
    try:
        connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {reader.format(files=listed)}')
    except duckdb.Error as error:
        return _first_line(error)
    return ""


def _open_tensors(connection: duckdb.DuckDBPyConnection, name: str, paths: Sequence[Path]) -> str:
    """The same for files of tensors: a row for each tensor."""
    try:
        found = [tensor for path in paths for tensor in tensors(path)]
    except (OSError, ValueError) as error:
        return str(error)
    columns = zip(*found, strict=True) if found else ((), (), (), ())
    connection.execute(f'CREATE TABLE "{name}" AS SELECT {_TENSOR_COLUMNS}', [list(column) for column in columns])
    return ""


def _run(connection: duckdb.DuckDBPyConnection, check: Check, key: Digest, problems: Mapping[str, str]) -> CheckVerdict:
    import duckdb

    started = time.monotonic()
    try:
        cursor = connection.execute(check.sql)
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchmany(MOST_ROWS + 1)
        n_rows = len(rows) if len(rows) <= MOST_ROWS else max(len(rows), _count(connection, check.sql))
    except duckdb.Error as error:
        said = [line for line in str(error).splitlines() if line.strip()]
        told = "\n".join([*said, *(f"{name}: {problem}" for name, problem in problems.items())])
        wall_s = time.monotonic() - started
        return CheckVerdict(check.name, key, False, told, wall_s, answered=False, severity=check.severity)
    wall_s = time.monotonic() - started
    if len(rows) == 1 and len(names) == 1 and (rows[0][0] is None or isinstance(rows[0][0], bool)):
        detail = {True: "", False: "it gives false", None: "it gives NULL"}[rows[0][0]]
        return CheckVerdict(check.name, key, not detail, detail, wall_s, severity=check.severity)
    first = rows[:MOST_ROWS]
    return CheckVerdict(
        check.name,
        key,
        not rows,
        shown(names, first, n_rows) if rows else "",
        wall_s,
        severity=check.severity,
        columns=tuple(names),
        rows=tuple(tuple(map(kept, row)) for row in first),
        n_rows=n_rows,
    )


def _count(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    """How many rows the last statement gives. They are counted where they come up, and none of them is kept."""
    import duckdb

    connection.abort()  # what is left of the rows that were looked at
    *_, last = connection.extract_statements(sql)
    try:
        return int(connection.sql(last).aggregate("count(*)").fetchall()[0][0])
    except duckdb.ParserException:  # This way of asking knows no comment behind the last semicolon.
        return sum(1 for _ in iter(connection.execute(last).fetchone, None))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
