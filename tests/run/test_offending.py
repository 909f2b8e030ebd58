"""The rows that a check gives: how many, what is kept of them, and how they are shown."""

from __future__ import annotations

import json

import pytest

from buildsys.errors import Place
from buildsys.model import Check, CheckVerdict
from buildsys.run.checks import Checks


def verdict(sql: str) -> CheckVerdict:
    (found,) = Checks().run([Check("one", sql, Place("rules/r.toml", 1))], [], {})
    assert found.answered, found.detail
    return found


def test_a_few_rows_are_a_table_with_all_of_them() -> None:
    found = verdict("FROM (VALUES ('r1', 7, '', NULL), ('r20', 1234, 'a\n\"b\"', true)) t(id, n, text, flag)")
    assert found.detail.splitlines() == [
        "2 offending rows:",
        "  id     n     text        flag",
        '  "r1"   7     ""          NULL',
        '  "r20"  1234  "a\\n\\"b\\""  true',
    ]
    assert (found.columns, found.n_rows) == (("id", "n", "text", "flag"), 2)
    assert found.rows == (("r1", 7, "", None), ("r20", 1234, 'a\n"b"', True))


def test_one_row_is_told_as_one() -> None:
    assert verdict("SELECT 3 AS n").detail == "1 offending row:\n  n\n  3"


@pytest.mark.parametrize("end", ["", ";", " -- all of them", "; -- all of them", ";;"])
def test_many_rows_are_counted_and_the_first_ones_shown(end: str) -> None:
    found = verdict(f"SELECT 1; SELECT range AS n FROM range(1234567){end}")
    assert found.detail == "1,234,567 offending rows, the first 5:\n  n\n  0\n  1\n  2\n  3\n  4"
    assert (found.n_rows, found.rows) == (1_234_567, ((0,), (1,), (2,), (3,), (4,)))


def test_two_columns_of_one_name_are_both_shown() -> None:
    assert verdict("SELECT range AS n, -range AS n FROM range(8)").detail.splitlines()[:3] == [
        "8 offending rows, the first 5:",
        "  n  n",
        "  0  0",
    ]


def test_a_long_text_is_cut() -> None:
    found = verdict("SELECT repeat('long ', 100000) AS text, 1 AS n")
    assert found.rows == (("long " * 12 + "…", 1),)
    assert found.detail.splitlines()[2] == f'  "{"long " * 12}…"  1'


def test_wide_rows_are_shown_one_below_the_other() -> None:
    texts = ", ".join(f"repeat('t{n}', 100) AS text_{n}" for n in range(4))
    found = verdict(f"SELECT range AS n, {texts} FROM range(9)")
    lines = found.detail.splitlines()
    assert lines[0] == "9 offending rows, the first 5:"
    assert lines[1] == "- n       0"
    assert lines[2] == f'  text_0  "{"t0" * 30}…"'
    assert lines[6] == "- n       1"
    assert len(lines) == 1 + 5 * 5
    many = ", ".join(f"'{'x' * 30}' AS c{n}" for n in range(40))
    lines = verdict(f"SELECT {many} FROM range(3)").detail.splitlines()
    assert lines[0] == "3 offending rows, the first:"
    assert len(lines) == 41


def test_wide_characters_stay_in_their_columns() -> None:
    lines = verdict("FROM (VALUES ('日本語', 'x'), ('abc', 'y')) t(a, b)").detail.splitlines()[1:]
    assert lines[1] == '  "日本語"  "x"'
    assert lines[2] == '  "abc"     "y"'


def test_values_of_all_kinds_are_kept_as_json_has_them() -> None:
    found = verdict(
        "SELECT [1, 2] AS l, {'a': 'x'} AS s, 'nan'::DOUBLE AS d, 1.50 AS e, DATE '2026-01-02' AS t, 'ab'::BLOB AS b, "
        "2::HUGEINT AS h, MAP {'k': DATE '2026-01-02'} AS m, [MAP {DATE '2026-01-02': 1}] AS n"
    )
    (row,) = found.rows
    nested = '{"k": "2026-01-02"}', "[{datetime.date(2026, 1, 2): 1}]"
    assert row == ("[1, 2]", '{"a": "x"}', "nan", "1.50", "2026-01-02", "6162", 2, *nested)
    assert json.loads(json.dumps(row, allow_nan=False)) == list(row)
