"""Read-only questions to the published snapshot: SQL, lineage, how much was built.

Knows nothing of plans or of a build that may run meanwhile: it sees the last snapshot, which stays as it is while it is
open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildsys.errors import NO_SUCH_TARGET, BuildError, Place, nearest
from buildsys.model import RuleName, Shard
from buildsys.state.root import STATE
from buildsys.state.snapshot import snapshot_path, unreadable

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_LINEAGE = """
    SELECT l.* FROM {macro}($1) l
    WHERE $2 IS NULL OR l.kind <> 'artifact' OR l.path IN (SELECT path FROM artifacts WHERE profile = $2)
    ORDER BY ALL
"""
_REQUESTS_WHERE = """SELECT DISTINCT key FROM requests
    WHERE (NOT rejected OR key NOT IN (SELECT key FROM requests WHERE NOT rejected)) AND (
{condition}
)"""
_N_BEFORE = _REQUESTS_WHERE.partition("{condition}")[0].count("\n")
_POINTER = re.compile(r"^LINE (?P<line>\d+): (?P<shown>.*)\n(?P<before> *)\^", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """The rows of a query. types: as DuckDB writes them, one a column."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Link:
    """One thing that a path was made from, or that was made from it.

    depth: actions between the two, 0 for the path itself. kind: "artifact", "source", or the kind of a part of a key
    ("code", "param", "version" ...). shard: "" where it is the same for several. digest: of bytes and code, value: of
    all else.
    """

    depth: int
    kind: str
    rule: RuleName
    shard: Shard
    name: str
    path: str
    digest: str | None
    value: str | None


def connect(root: Path) -> duckdb.DuckDBPyConnection:
    """The snapshot of the project at `root`; the caller closes it. Relative paths in SQL start at the project.

    Raises BuildError where there is none yet, or where it can't be read.
    """
    import duckdb

    path = snapshot_path(root / STATE)
    if not path.exists():
        raise BuildError("nothing was built here yet", facts=[("project", str(root))], hint="buildsys build")
    try:
        return duckdb.connect(str(path), read_only=True, config={"file_search_path": str(root)})
    except duckdb.Error as error:
        raise unreadable(path, error) from error


def sql(root: Path, query: str) -> Answer:
    """The rows that a SQL query gives. Raises BuildError, with line and column, for a query that is wrong."""
    import duckdb

    with connect(root) as con:
        try:
            found = con.execute(query)
            described = found.description or []
            rows = found.fetchall()
        except duckdb.Error as error:
            raise explained(query, str(error)) from error
    return Answer(tuple(column[0] for column in described), tuple(str(column[1]) for column in described), rows)


def table(root: Path, query: str) -> pyarrow.Table:
    """The same rows as an Arrow table; one without columns for a statement that has no rows."""
    import duckdb
    import pyarrow

    with connect(root) as con:
        try:
            found = con.sql(query)
            return pyarrow.table({}) if found is None else found.to_arrow_table()
        except duckdb.Error as error:
            raise explained(query, str(error)) from error


def lineage(root: Path, path: str, *, down: bool = False, profile: str | None = None) -> list[Link]:
    """All that the artifact at `path` was made from; or all that was made from the file or config key `path`.

    profile: tell only artifacts that hold under it. Nearest first. Raises BuildError, exit 3, for a path of which
    nothing is known.
    """
    with connect(root) as con:
        rows = con.execute(_LINEAGE.format(macro="downstream" if down else "upstream"), [path, profile]).fetchall()
        if rows:
            return [Link(*row) for row in rows]
        known = con.execute("SELECT DISTINCT path FROM edges WHERE path <> '' ORDER BY path").fetchall()
    if down and (path,) in known:
        return []
    what = "was made from" if down else "is known of how to make"
    raise BuildError(
        f"nothing {what} {path}", hint=nearest(path, [name for (name,) in known]), exit_code=NO_SUCH_TARGET
    )


def shards_built(root: Path, profile: str) -> dict[RuleName, int]:
    """How many shards of each rule that has or makes shards hold now; nothing where nothing was built yet."""
    if not snapshot_path(root / STATE).exists():
        return {}
    query = "SELECT rule, count(DISTINCT shard) FROM artifacts WHERE profile = $1 AND shard <> '' GROUP BY rule"
    with connect(root) as con:
        return {RuleName(rule): n for rule, n in con.execute(query, [profile]).fetchall()}


def requests_where(root: Path, condition: str) -> set[str]:
    """Keys of the requests for which a condition over the view `requests` holds, by the newest that is told of each.

    Of one that was rejected and asked anew, what is told of the first reply is left out; of one that was not, it is
    not: whoever rejected it may have been killed. Raises BuildError, with line and column in the condition, where it is
    none.
    """
    import duckdb

    query = _REQUESTS_WHERE.format(condition=condition)
    with connect(root) as con:
        try:
            if len(con.extract_statements(query)) > 1:
                raise BuildError("there is more than one condition", facts=[("condition", condition)])
            return {key for (key,) in con.execute(query).fetchall()}
        except duckdb.Error as error:
            wrong = explained(query, str(error))
            place = wrong.place and Place("condition", wrong.place.line - _N_BEFORE, wrong.place.column)
            raise BuildError(wrong.problem, place=place, excerpt=wrong.excerpt, hint=wrong.hint) from error


def explained(query: str, text: str) -> BuildError:
    """DuckDB's message: "Binder Error: what is wrong! Candidates ...", then the line with a pointer below it."""
    pointer = _POINTER.search(text)
    message, *more = [line for line in text[: pointer.start() if pointer else None].splitlines() if line.strip()]
    problem = (message.partition(": ")[2] or message).rstrip("!.")
    return BuildError(
        problem[0].lower() + problem[1:],
        place=_place(query.splitlines(), pointer) if pointer else None,
        excerpt=f"{pointer['shown']}\n{' ' * _column(pointer)}^" if pointer else "",
        hint=" ".join(more),
    )


def _place(lines: Sequence[str], pointer: re.Match[str]) -> Place:
    """DuckDB cuts long lines at both ends, with dots; the column counts in the whole line."""
    line, shown, column = int(pointer["line"]), pointer["shown"], _column(pointer)
    if shown.startswith("...") and line <= len(lines):
        column += lines[line - 1].find(shown.strip(".")) - 3
    return Place("query", line, column + 1)


def _column(pointer: re.Match[str]) -> int:
    """Where the pointer is in the line as shown, from 0."""
    return len(pointer["before"]) - len(f"LINE {pointer['line']}: ")
