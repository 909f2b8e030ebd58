"""The words that SQL keeps are those that DuckDB itself can't take for a table."""

from __future__ import annotations

import duckdb
import pytest

from buildsys.spec.names import PUBLIC_VIEWS, SQL_WORDS, why_no_name, why_no_rule


def test_the_words_of_sql_are_the_ones_that_duckdb_takes_for_no_view() -> None:
    with duckdb.connect() as con:
        words = [word for (word,) in con.sql("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()]
        refused = {word for word in words if not _can_be_a_view(con, word)}
    assert refused == SQL_WORDS


def _can_be_a_view(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    try:
        con.extract_statements(f"CREATE VIEW {name} AS SELECT 1 AS a; SELECT count(*) FROM {name} WHERE a = 1")
    except duckdb.Error:
        return False
    return True


@pytest.mark.parametrize("name", [*PUBLIC_VIEWS, "Runs", "order", "SELECT", "class"])
def test_a_rule_has_no_name_that_something_else_has(name: str) -> None:
    assert why_no_rule(name)


def test_other_names_are_free() -> None:
    assert [why_no_rule(name) for name in ("tokens", "draft", "run", "left_over")] == [""] * 4
    assert why_no_name("order") == ""
    assert why_no_name("lambda")
