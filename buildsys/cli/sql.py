"""`buildsys sql`: statements from the command line, from standard input, or typed into a shell."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from buildsys.cli.asking import Asking
from buildsys.cli.command import Command, json_option
from buildsys.cli.here import Here, in_project
from buildsys.cli.shell import Shell
from buildsys.errors import BuildError

if TYPE_CHECKING:
    import duckdb

_ROWS_AT_ONCE: Final = 1024


@click.command(
    "sql",
    cls=Command,
    examples=(
        ("buildsys sql", "a shell with history and completion"),
        ('buildsys sql "FROM runs"', "one query; `SHOW TABLES` lists what there is"),
        ("buildsys sql --csv < queries.sql", "statements from a file, rows as CSV"),
        ('buildsys sql --parquet out.parquet "FROM samples"', "rows into a file"),
    ),
)
@click.argument("query", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV.")
@json_option("Print the rows as a JSON array of objects, one a line.")
@click.option("--parquet", metavar="FILE", type=click.Path(dir_okay=False), help="Write the rows to a Parquet file.")
@in_project
def command(here: Here, query: str | None, as_csv: bool, as_json: bool, parquet: str | None) -> None:
    """Ask the manifest, and all outputs that are tables, with SQL.

    It reads the last published snapshot, also while a build runs, and changes nothing. Of several statements, CSV, JSON
    and Parquet take the rows of the last one.
    """
    if as_csv + as_json + bool(parquet) > 1:
        raise BuildError("--csv, --json and --parquet exclude one another", hint="name one of them")
    with Asking(here.project.root) as asking:
        if query is None and sys.stdin.isatty() and not (as_csv or as_json or parquet):
            Shell(asking, here.project.state / "sql_history").run()
            return
        statements = asking.statements(sys.stdin.read() if query is None else query)
        if not (as_csv or as_json or parquet):
            for statement in statements:
                asking.show(statement)
            return
        for statement in statements[:-1]:
            asking.execute(statement)
        if parquet:
            asking.write_parquet(statements[-1], here.start / Path(parquet))
        else:
            (_print_csv if as_csv else _print_json)(asking.execute(statements[-1]))


def _print_csv(found: duckdb.DuckDBPyConnection) -> None:
    import msgspec

    encoder = msgspec.json.Encoder(decimal_format="number")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_columns(found))
    for row in _rows(found):
        writer.writerow([_cell(value, encoder) for value in row])


def _cell(value: object, encoder: Any) -> object:
    """As DuckDB's CSV has it, but lists and structs as JSON."""
    if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)):
        return value
    return encoder.encode(value).decode().strip('"')


def _print_json(found: duckdb.DuckDBPyConnection) -> None:
    import msgspec

    encoder = msgspec.json.Encoder(decimal_format="number")
    columns = _columns(found)
    start = "["
    for row in _rows(found):
        print(start + encoder.encode(dict(zip(columns, row, strict=True))).decode(), end="")
        start = ",\n "
    print("[]" if start == "[" else "]")


def _columns(found: duckdb.DuckDBPyConnection) -> list[str]:
    return [column[0] for column in found.description or ()]


def _rows(found: duckdb.DuckDBPyConnection) -> Iterable[tuple[Any, ...]]:
    while rows := found.fetchmany(_ROWS_AT_ONCE):
        yield from rows
