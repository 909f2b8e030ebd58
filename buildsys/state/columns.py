"""Rows into DuckDB, a column at a time.

Knows nothing of what the columns mean. Arrow is the quickest way for many rows, but importing it takes longer than a
small build may (160 ms CPU): few rows go as lists, which cost the same up to some thousands. Never `executemany`: it is
60 times slower. What is no valid text (the name of a file that is not UTF-8, half of a surrogate pair from JSON) is
written with backslashes, since DuckDB refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import duckdb

ARROW_FROM: Final = 20_000
"""Rows from which the import of Arrow pays."""
_HALF: Final = re.compile(r"\\u(d[89a-f][0-9a-f]{2})")


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Append rows, all as wide as the table; the values of one column must be of one type, or None."""
    if not rows:
        return
    columns = [_storable_column(list(column)) for column in zip(*rows, strict=True)]
    if len(rows) < ARROW_FROM:
        _insert_lists(con, table, columns)
        return
    import pyarrow as pa

    con.register("arriving", pa.table(dict(zip(map(str, range(len(columns))), columns, strict=True))))
    con.execute(f"INSERT INTO {table} SELECT * FROM arriving")
    con.unregister("arriving")


def _insert_lists(con: duckdb.DuckDBPyConnection, table: str, columns: list[list[Any]]) -> None:
    """Binding a value costs about 1 us, so a column that says the same in each row is bound once."""
    args: list[Any] = []
    values = []
    for n, column in enumerate(columns, start=1):
        is_constant = column.count(column[0]) == len(column) and (n > 1 or len(column) == 1)
        args.append(column[0] if is_constant else column)
        values.append(f"${n}" if is_constant else f"unnest(${n})")
    con.execute(f"INSERT INTO {table} SELECT {', '.join(values)}", args)


def storable(text: str) -> str:
    """The text with a backslash and four digits for what UTF-8 can't encode; mostly the text itself."""
    return text.encode("utf-8", "backslashreplace").decode()


def as_given(text: str) -> str:
    """The reverse of `storable`. A text that had such a backslash and digits from the start comes out another."""
    return _HALF.sub(lambda half: chr(int(half[1], 16)), text) if "\\ud" in text else text


def _storable_column(column: list[Any]) -> list[Any]:
    """Joined, since trying each cell for itself would take as long as half of the insertion."""
    if not isinstance(next((cell for cell in column if cell is not None), None), str):
        return column
    try:
        "".join(filter(None, column)).encode()
    except UnicodeEncodeError:
        return [cell if cell is None else storable(cell) for cell in column]
    return column
