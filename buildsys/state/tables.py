"""One view for each table-like output of a rule: the files' own columns, and where each row comes from.

Knows nothing of rules but the pattern of an output. A view reads the workspace when it is asked, through a pattern
relative to the project, and shows only files that the manifest lists as current.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from buildsys.state.rows import OutputTable

if TYPE_CHECKING:
    import duckdb

_READERS: Final = {
    ".parquet": "read_parquet({paths}, union_by_name = true, filename = '{file}')",
    ".jsonl": "read_json({paths}, {columns}, format = 'newline_delimited', filename = '{file}')",
    ".json": "read_json({paths}, {columns}, filename = '{file}')",
    ".csv": "read_csv({paths}, union_by_name = true, filename = '{file}')",
}
_INFER: Final = "union_by_name = true"
_N_SAMPLED: Final = 32
"""JSON files that the columns are inferred from, the newest ones: reading all would take longer than many builds."""
_FILE: Final = "_buildsys_file"
_OWN: Final = ("profile", "shard", "record_id")


def is_table(pattern: str) -> bool:
    """The output's files can be read as rows."""
    return PurePosixPath(pattern).suffix in _READERS


def create_view(con: duckdb.DuckDBPyConnection, root: Path, table: OutputTable) -> None:
    """Make or replace the view. Raises duckdb.Error where the files can't be read as a table."""
    columns = _columns(con, root, table)
    names = {name.lower(): name for name in columns}
    record = next((names[name] for name in ("record_id", "id") if name in names), None)
    record_id = f"f.{_identifier(record)}::VARCHAR" if record else "NULL::VARCHAR"
    rest = "".join(f", f.{_identifier(name)}" for name in columns if name.lower() not in _OWN)
    depth = table.pattern.count("/") + 1
    con.execute(f"""
        CREATE OR REPLACE VIEW {_identifier(table.view)} AS
        SELECT a.profile, a.shard, {record_id} AS record_id{rest}
        FROM {_reader(table, columns)} f
        JOIN artifacts a ON a.rule = {_text(table.rule)} AND a.name = {_text(table.output)}
            AND a.path = array_to_string(string_split(f.{_FILE}, '/')[-{depth}:], '/')
    """)


def _columns(con: duckdb.DuckDBPyConnection, root: Path, table: OutputTable) -> dict[str, str]:
    """Name -> type. Objects within JSON stay JSON: replies differ too much in shape for one inferred type."""
    is_json = PurePosixPath(table.pattern).suffix in (".jsonl", ".json")
    sample = _newest(con, root, table) if is_json else []
    found = con.execute(f"DESCRIBE SELECT * FROM {_reader(table, None, sample)}").fetchall()
    types = {name: kind for name, kind, *_ in found if name != _FILE}
    return {name: _json_type(kind) for name, kind in types.items()} if is_json else types


def _newest(con: duckdb.DuckDBPyConnection, root: Path, table: OutputTable) -> list[str]:
    query = "SELECT path FROM artifacts WHERE rule = $1 AND name = $2 ORDER BY run_id DESC, path"
    paths = con.execute(query, [table.rule, table.output]).fetchall()
    return list(islice((path for (path,) in paths if (root / path).exists()), _N_SAMPLED))


def _json_type(kind: str) -> str:
    if kind == '"NULL"':
        return "VARCHAR"
    return "JSON" if any(nested in kind for nested in ("STRUCT", "MAP", "JSON")) else kind


def _reader(table: OutputTable, columns: dict[str, str] | None, files: Sequence[str] = ()) -> str:
    """A call that reads `files`, else all that fit the pattern. columns: None to infer them."""
    if columns is None:
        text = _INFER
    else:
        text = "columns = {" + ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in columns.items()) + "}"
    suffix = PurePosixPath(table.pattern).suffix
    paths = ", ".join(map(_text, map(_escaped, files))) or _text(_glob(table.pattern))
    return _READERS[suffix].format(paths=f"[{paths}]", columns=text, file=_FILE)


def _glob(pattern: str) -> str:
    return _escaped(pattern).replace("{profile}", "*").replace("{shard}", "*")


def _escaped(path: str) -> str:
    """A path as a pattern that fits only itself."""
    return re.sub(r"[\[?*]", r"[\g<0>]", path)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
