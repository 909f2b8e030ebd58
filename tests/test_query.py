"""Questions to the snapshot: SQL and its errors, lineage."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from buildsys.errors import NO_SUCH_TARGET, BuildError, Place
from buildsys.query import Link, lineage, sql
from buildsys.state.manifest import Manifest
from tests.state import small

DRAFT = "workspace/build/default/draft"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    small.build(folder).close()
    return folder


@pytest.fixture
def project(tmp_path, built):
    """A project of its own as `small` describes it, its manifest closed."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_sql_gives_columns_types_and_rows(built):
    answer = sql(built, "SELECT run_id, outcome FROM runs ORDER BY run_id")
    assert (answer.columns, answer.types) == (("run_id", "outcome"), ("INTEGER", "VARCHAR"))
    assert answer.rows == [(1, "done"), (2, "failed"), (3, "killed")]


@pytest.mark.parametrize(
    ("query", "problem", "place"),
    [
        ("SELECT 1 +\n  nope FROM runs", 'referenced column "nope" not found', Place("query", 2, 3)),
        ("SELEC 1", 'syntax error at or near "SELEC"', Place("query", 1, 1)),
        ("FROM nowhere", "table with name nowhere does not exist", Place("query", 1, 6)),
        (f"SELECT '{'x' * 200}', nope FROM runs", 'referenced column "nope"', Place("query", 1, 212)),
        ("INSERT INTO recorded.ends VALUES (1, 1, '')", "cannot execute statement of type", None),
    ],
)
def test_a_wrong_query_is_an_error_with_its_place(built, query, problem, place):
    with pytest.raises(BuildError) as wrong:
        sql(built, query)
    assert wrong.value.problem.startswith(problem)
    assert wrong.value.place == place


def test_a_wrong_name_gets_a_hint(built):
    with pytest.raises(BuildError) as wrong:
        sql(built, "SELECT run FROM runs")
    assert '"run_id"' in wrong.value.hint


def test_before_the_first_build_there_is_nothing_to_ask(tmp_path):
    with pytest.raises(BuildError, match="nothing was built here yet") as nothing:
        sql(tmp_path, "FROM runs")
    assert nothing.value.hint == "buildsys build"


def test_a_damaged_snapshot_is_an_error_that_says_what_to_do(project):
    path = project / ".buildsys" / "manifest.duckdb"
    path.chmod(0o644)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(BuildError, match="snapshot can't be read") as damaged:
        sql(project, "FROM runs")
    assert "publishes it anew" in damaged.value.hint


def names(links: list[Link], kind: str) -> set[str]:
    return {link.path if link.path else link.name for link in links if link.kind == kind}


def test_the_lineage_of_a_draft_reaches_prompts_scripts_and_settings(built):
    links = lineage(built, DRAFT)
    assert links[0] == Link(0, "artifact", "draft", "", "draft", DRAFT, links[0].digest, None)
    assert names(links, "source") == {small.SOURCE}
    assert names(links, "code") == {small.SCRIPT}
    assert names(links, "param") == {"samples", "sampling.max_tokens"}
    assert names(links, "version") == {"numpy"}
    assert {f"{small.BUILD}/prompts/{n}.jsonl" for n in "01"} <= names(links, "artifact")
    assert [link.depth for link in links] == sorted(link.depth for link in links)


def test_a_draft_was_made_from_the_replies_of_its_time(built):
    """Run 2 made shard 1 of the replies anew, and nothing downstream."""
    then = small.made(small.action("replies", "1"), 1).artifact.digest
    now = small.made(small.action("replies", "1"), 2).artifact.digest
    digests = {link.digest for link in lineage(built, DRAFT)}
    assert then in digests
    assert now not in digests
    assert [link.value for link in lineage(built, f"{small.BUILD}/replies/1.jsonl") if link.kind == "param"] == [
        "int 128",
        "int 2",
    ]


def test_the_lineage_of_a_shard_holds_no_other_shard(built):
    paths = names(lineage(built, f"{small.BUILD}/tokens/0.parquet"), "artifact")
    files = "tokens/0.parquet", "samples/0.parquet", "replies/0.jsonl", "prompts/0.jsonl"
    assert paths == {f"{small.BUILD}/{file}" for file in files}


def test_folders_can_be_asked_for_above_and_below_an_artifact(built):
    assert names(lineage(built, f"{DRAFT}/model.safetensors"), "source") == {small.SOURCE}
    assert {link.path for link in lineage(built, f"{small.BUILD}/tokens/") if link.depth == 0} == {
        f"{small.BUILD}/tokens/{n}.parquet" for n in "01"
    }


@pytest.mark.parametrize("start", [small.SOURCE, small.SCRIPT, "sampling.max_tokens", "sampling", "workspace/data"])
def test_what_comes_of_a_source_a_script_or_a_setting_reaches_the_draft(built, start):
    assert DRAFT in names(lineage(built, start, down=True), "artifact")


def test_what_comes_of_one_shard_holds_no_other_shard(built):
    paths = names(lineage(built, f"{small.BUILD}/replies/0.jsonl", down=True), "artifact")
    assert f"{small.BUILD}/samples/0.parquet" in paths
    assert f"{small.BUILD}/samples/1.parquet" not in paths


def test_nothing_comes_of_the_last_artifact(built):
    assert lineage(built, DRAFT, down=True) == []


def test_an_unknown_path_is_an_error_with_the_nearest_one(built):
    for down in (False, True):
        with pytest.raises(BuildError) as unknown:
            lineage(built, "workspace/build/default/drafd", down=down)
        assert unknown.value.exit_code == NO_SUCH_TARGET
        assert unknown.value.hint == f'did you mean "{DRAFT}"?'


def test_rules_that_were_turned_round_between_runs_make_no_endless_lineage(project, monkeypatch):
    one, other = small.action("one"), small.action("other")
    monkeypatch.setitem(small.FILES, "one", "one.json")
    monkeypatch.setitem(small.FILES, "other", "other.json")
    manifest = Manifest.open(project / ".buildsys")
    manifest.commit(
        [
            *(small.context(rule, version) for rule in ("one", "other") for version in (1, 2)),
            *small.done(one, 1, 1, ()),
            *small.done(other, 1, 1, (small.input_of("x", one, 1),)),
            *small.done(one, 1, 2, (small.input_of("x", other, 1),)),
        ]
    )
    manifest.publish()
    manifest.close()
    assert names(lineage(project, f"{small.BUILD}/one.json"), "artifact") == {
        f"{small.BUILD}/{name}.json" for name in ("one", "other")
    }
    assert names(lineage(project, f"{small.BUILD}/one.json", down=True), "artifact") == {
        f"{small.BUILD}/{name}.json" for name in ("one", "other")
    }


def test_an_ephemeral_output_is_followed_by_the_key_of_its_action(project, monkeypatch):
    monkeypatch.setitem(small.FILES, "user", "user.json")
    manifest = Manifest.open(project / ".buildsys")
    states = small.input_of("states", small.action("hidden_states", "0"), 1)
    by_key = states._replace(digest=small.key_of(small.action("hidden_states", "0"), 1))
    manifest.commit([small.context("user", 1), *small.done(small.action("user"), 1, 1, (by_key,))])
    manifest.publish()
    manifest.close()
    assert names(lineage(project, f"{small.BUILD}/user.json"), "source") == {small.SOURCE}


def test_two_runs_are_compared_by_settings_code_versions_and_outputs(built):
    rows = sql(built, "SELECT rule, shard, kind, name, a, b FROM compare(1, 2) WHERE kind <> 'code'").rows
    assert rows[:2] == [
        ("replies", "", "param", "max_tokens", "int 64", "int 128 | int 64"),
        ("replies", "", "version", "numpy", "2.1.0", "2.1.0 | 2.2.0"),
    ]
    assert [row[:4] for row in rows[2:]] == [("replies", "1", "output", "replies")]
    assert sql(built, "FROM compare(1, 1)").rows == []


def test_profiles_are_compared_as_if_they_had_one_name(project):
    manifest = Manifest.open(project / ".buildsys")
    run_id = manifest.begin_run(command="b", profile="fast", targets=[])
    manifest.commit(under_profile(small.first_run(run_id), "fast"))
    manifest.publish()
    manifest.close()
    assert sql(project, f"FROM compare(1, {run_id})").rows == []
    assert sql(project, "SELECT DISTINCT profile FROM artifacts ORDER BY ALL").rows == [("default",), ("fast",)]


def under_profile(rows, profile):
    """The same rows as another profile's, with its paths."""

    def moved(path):
        return path.replace("/default/", f"/{profile}/")

    for row in rows:
        if hasattr(row, "profile"):
            row = replace(row, profile=profile)
        if hasattr(row, "outputs"):
            outputs = [replace(o, artifact=replace(o.artifact, path=moved(o.artifact.path))) for o in row.outputs]
            row = replace(row, outputs=tuple(outputs))
        if hasattr(row, "inputs"):
            row = replace(row, inputs=tuple(given._replace(path=moved(given.path)) for given in row.inputs))
        yield row


def test_query_is_imported_without_duckdb():
    code = "import sys, buildsys.query, buildsys.state.manifest; print({'duckdb', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n"
