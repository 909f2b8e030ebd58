"""One view for each table-like output of a rule: the files' own columns, and where each row comes from.

Knows nothing of rules but the pattern of an output. A view reads the workspace when it is asked, through a pattern
relative to the project, and shows only files that the manifest lists as current.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from buildsys.state.rows import OutputTable

if TYPE_CHECKING:
    import duckdb

_READERS: Final = {
    ".parquet": "read_parquet({glob}, union_by_name = true, filename = '{file}')",
    ".jsonl": "read_json({glob}, {columns}, format = 'newline_delimited', filename = '{file}')",
    ".json": "read_json({glob}, {columns}, filename = '{file}')",
    ".csv": "read_csv({glob}, union_by_name = true, filename = '{file}')",
}
_INFER: Final = "union_by_name = true"
_FILE: Final = "_buildsys_file"
_OWN: Final = ("profile", "shard", "record_id")


def is_table(pattern: str) -> bool:
    """The output's files can be read as rows."""
    return PurePosixPath(pattern).suffix in _READERS


def create_view(con: duckdb.DuckDBPyConnection, table: OutputTable) -> None:
    """Make or replace the view. Raises duckdb.Error where the files can't be read as a table."""
    columns = _columns(con, table)
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


def _columns(con: duckdb.DuckDBPyConnection, table: OutputTable) -> dict[str, str]:
    """Name -> type. Objects within JSON stay JSON: replies differ too much in shape for one inferred type."""
    found = con.execute(f"DESCRIBE SELECT * FROM {_reader(table, None)}").fetchall()
    types = {name: kind for name, kind, *_ in found if name != _FILE}
    if PurePosixPath(table.pattern).suffix in (".jsonl", ".json"):
        return {name: _json_type(kind) for name, kind in types.items()}
    return types


def _json_type(kind: str) -> str:
    if kind == '"NULL"':
        return "VARCHAR"
    return "JSON" if any(nested in kind for nested in ("STRUCT", "MAP", "JSON")) else kind


def _reader(table: OutputTable, columns: dict[str, str] | None) -> str:
    if columns is None:
        text = _INFER
    else:
        text = "columns = {" + ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in columns.items()) + "}"
    suffix = PurePosixPath(table.pattern).suffix
    return _READERS[suffix].format(glob=_text(_glob(table.pattern)), columns=text, file=_FILE)


def _glob(pattern: str) -> str:
    for special in "[?*":
        pattern = pattern.replace(special, f"[{special}]")
    return pattern.replace("{profile}", "*").replace("{shard}", "*")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
