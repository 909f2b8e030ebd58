"""One view for each table-like output: which rows it shows, and what it does with files that are no table."""

from __future__ import annotations

import pytest

from buildsys.query import sql
from buildsys.state.manifest import Manifest
from buildsys.state.rows import OutputTable
from buildsys.state.tables import is_table
from tests.state import small


@pytest.fixture
def manifest(project):
    manifest = Manifest.open(project / ".buildsys")
    yield manifest
    manifest.close()


def test_rows_say_where_they_come_from_and_strays_are_not_shown(root, manifest):
    answer = sql(root, "SELECT * FROM samples ORDER BY ALL")
    assert answer.columns == ("profile", "shard", "record_id", "reasoning")
    assert [row[1:3] for row in answer.rows] == [("0", "0-a"), ("0", "0-b"), ("1", "1-a"), ("1", "1-b")]


def test_the_id_of_a_record_is_found_under_either_name(root, manifest):
    assert sql(root, "SELECT record_id, id FROM tokens ORDER BY ALL").rows == [("0-a", "0-a"), ("1-a", "1-a")]
    assert sql(root, "SELECT record_id, token_ids FROM vocab").rows == [(None, [1, 2, 3])]


def test_what_is_nested_in_json_is_json(root, manifest):
    query = (
        "SELECT replies->>'$[0].choices[0].finish_reason', record->>'$.q' FROM replies WHERE shard = '0' ORDER BY ALL"
    )
    assert sql(root, query).rows == [("length", "1"), ("stop", "why")]


def test_a_bad_file_leaves_its_view_out_and_the_rest_is_published(root, manifest):
    for path in (root / small.BUILD / "tokens").iterdir():
        path.write_text("no parquet")
    broken = OutputTable("tokens2", "tokens", "tokens", f"{small.PATTERN}/tokens/{{shard}}.parquet")
    manifest.publish([*small.TABLES, broken])
    assert "the view tokens2" in manifest.notices[-1]
    assert len(sql(root, "FROM samples").rows) == 4


def test_a_missing_file_takes_only_its_own_rows(root, manifest):
    (root / small.BUILD / "samples" / "0.parquet").unlink()
    assert {row[1] for row in sql(root, "FROM samples").rows} == {"1"}


def test_files_that_are_gone_do_not_hide_the_others_at_publication(root, manifest):
    (root / small.BUILD / "replies" / "1.jsonl").unlink()
    manifest.commit(small.done(small.action("replies", "0"), 7, 2, ()))
    manifest.publish(small.TABLES)
    assert manifest.notices == []
    assert {row[1] for row in sql(root, "FROM replies").rows} == {"0"}


def test_outputs_with_other_columns_than_before_are_shown(root, manifest):
    path = root / small.BUILD / "samples" / "0.parquet"
    manifest._con.execute(f"COPY (SELECT 'n' AS record_id, 1 AS length) TO '{path}'")
    manifest.commit(small.done(small.action("samples", "0"), 7, 2, ()))
    manifest.publish(small.TABLES)
    rows = sql(root, "SELECT record_id, reasoning, length FROM samples ORDER BY ALL").rows
    assert rows == [("1-a", "", None), ("1-b", "since", None), ("n", None, 1)]


def test_a_rule_that_is_gone_has_no_view(root, manifest):
    manifest.publish(small.TABLES[:1])
    assert sql(root, "SELECT count(*) FROM replies").rows == [(4,)]
    views = sql(root, "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal").rows
    assert ("samples",) not in views
    assert ("runs",) in views


def test_a_rule_that_made_nothing_yet_has_no_view(root):
    manifest = Manifest.open(root / ".buildsys")
    manifest.publish(small.TABLES)
    assert manifest.notices == []
    manifest.close()


def test_what_is_a_table_is_told_by_its_name():
    assert [is_table(f"a/{{shard}}{suffix}") for suffix in (".parquet", ".jsonl", ".json", ".csv")] == [True] * 4
    assert [is_table(f"a/{name}") for name in ("model", "x.bin", "x.safetensors")] == [False] * 3
