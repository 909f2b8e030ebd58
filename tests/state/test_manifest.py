"""The manifest: what is committed is found again, by action, by key and by path."""

from __future__ import annotations

import os
import stat
from dataclasses import replace

import duckdb
import pytest

from buildsys.digest import digest_of
from buildsys.errors import BuildError
from buildsys.model import Artifact, CheckVerdict, Made, Part, Usage
from buildsys.state import columns, snapshot
from buildsys.state.manifest import Manifest
from buildsys.state.rows import ActionRow, CheckRow, Context, FileRow, Hold, InputRow, RequestRow, ResultRow, SymbolText
from buildsys.state.stats import Stat
from tests.state import small


def test_what_holds_now_is_found_by_action(filled):
    newest = filled.newest("default")
    assert len(newest) == 11
    result = newest[small.action("replies", "1")]
    assert (result.key, result.run_id) == (small.key_of(small.action("replies", "1"), 1), 1)
    assert result.outputs == (small.made(small.action("replies", "1"), 1, held=True),)
    assert result.context == digest_of("context", "replies", 1)


def test_an_origin_holds_its_outputs_in_their_order(filled):
    assert [made.shard for made in filled.newest("default")[small.action("prompts")].outputs] == ["0", "1"]


def test_each_profile_holds_results_of_its_own(filled):
    assert filled.newest("fast") == {}
    act = small.action("vocab")
    fast = Made("vocab", "", Artifact("workspace/build/fast/vocab.json", digest_of("x"), 1))
    filled.commit([Hold("fast", act, small.key_of(act, 1), (fast,), 1)])
    assert filled.newest("fast")[act].outputs == (fast,)
    assert filled.newest("default")[act].outputs[0].artifact.path == "workspace/build/default/vocab.json"


def test_an_action_that_holds_what_another_made_is_found_by_its_own_name(filled):
    renamed, maker = small.action("renamed"), small.action("vocab")
    output = small.made(maker, 1, held=True)
    filled.commit([Hold("default", renamed, small.key_of(maker, 1), (output,), 1)])
    newest = filled.newest("default")
    assert newest[renamed].action == renamed
    assert newest[renamed].key == newest[maker].key == small.key_of(maker, 1)


def test_the_newest_result_holds_and_a_revert_finds_the_earlier_one(filled):
    act = small.action("vocab")
    filled.commit(small.done(act, 2, 1, ()))
    assert filled.newest("default")[act].key == small.key_of(act, 2)
    earlier = filled.find([small.key_of(act, 1), digest_of("unknown")])
    assert list(earlier) == [small.key_of(act, 1)]
    assert [result.outputs for result in earlier[small.key_of(act, 1)]] == [(small.made(act, 1),)]
    filled.commit([Hold("default", act, small.key_of(act, 1), (small.made(act, 1, held=True),), 1)])
    assert filled.newest("default")[act].key == small.key_of(act, 1)


def test_a_hold_without_a_result_is_refused_and_nothing_of_its_commit_stays(filled):
    act = small.action("vocab")
    with pytest.raises(KeyError):
        filled.commit([*small.done(small.action("vocab"), 3, 1, ()), Hold("default", act, digest_of("?"), (), 1)])
    assert filled.newest("default")[act].key == small.key_of(act, 1)
    assert filled.find([small.key_of(act, 3)]) == {}


def test_a_commit_that_fails_halfway_is_undone(filled):
    act = small.action("vocab")
    wrong = ActionRow("not a number", "default", act, "ran", None)
    with pytest.raises(duckdb.Error):
        filled.commit([*small.done(act, 3, 1, ()), wrong])
    assert filled.newest("default")[act].key == small.key_of(act, 1)
    filled.commit(small.done(act, 4, 1, ()))
    assert filled.newest("default")[act].key == small.key_of(act, 4)


def test_an_action_that_is_no_longer_made_holds_nothing(filled):
    gone = small.action("tokens", "1")
    filled.release("default", [gone])
    assert gone not in filled.newest("default")
    assert len(filled.newest("default")) == 10
    assert list(filled.find([small.key_of(gone, 1)])) == [small.key_of(gone, 1)]


def test_the_parts_of_a_key_are_its_rules_and_its_inputs(filled):
    key = small.key_of(small.action("replies", "0"), 1)
    parts = filled.context(filled.find([key])[key][0].context)
    assert [part.group for part in parts] == ["code", "python", "version", "param"]
    assert parts[3] == Part("param", "max_tokens", "int 64", "sampling.max_tokens")
    assert [part.path for part in filled.inputs([key])[key]] == ["workspace/build/default/prompts/0.jsonl"]
    assert filled.context(digest_of("unknown")) == ()


def test_a_context_is_stored_once(filled):
    filled.commit(small.first_run(1))
    again = filled._fetch("SELECT count(*) FROM recorded.contexts")
    assert again == [(23,)]


def test_the_text_of_a_symbol_is_stored_once_and_of_another_name_again(filled):
    def told(context, *texts):
        return Context(digest_of(context), (), tuple(SymbolText(*text) for text in texts))

    filled.commit([told("a", ("one.py:f", "d1", "def f(): 1"), ("one.py:g", "d2", "def g():\n  \ud800"))])
    filled.commit([told("b", ("one.py:f", "d1", "def f(): 1  # more"), ("two.py:f", "d1", "def f(): (1)"))])
    assert filled.texts(["d1", "d2", "d3"]) == {
        ("one.py:f", "d1"): "def f(): 1",
        ("two.py:f", "d1"): "def f(): (1)",
        ("one.py:g", "d2"): "def g():\n  \ud800",
    }


def test_the_start_of_a_run_is_known(filled):
    ((started,),) = filled._fetch("SELECT started FROM runs WHERE run_id = 1")
    assert filled.started(1) == started
    assert filled.started(1000) is None


def test_the_last_verdict_of_a_check_counts(filled):
    act = small.action("samples", "0")
    key = digest_of("check", "0")
    assert filled.verdicts([key, digest_of("other")]) == {key: (True, "error")}
    for severity in ("error", "warn"):
        verdict = CheckVerdict("reasoning_captured", key, False, severity=severity)
        filled.commit([CheckRow(1, "default", act, verdict)])
        assert filled.verdicts([key]) == {key: (False, severity)}
    assert filled.verdicts([]) == {}


def test_the_last_row_of_a_file_is_known(filled):
    rows = [FileRow("a", Stat(n, n, n, 2**64 - 1, 0o100644), digest_of(n)) for n in (1, 2)]
    filled.commit(rows)
    assert filled.known_files()["a"] == (rows[1].stat, rows[1].digest)
    assert set(filled.known_files()) == {"a", small.SOURCE}


def test_many_rows_go_by_arrow_and_say_the_same(filled, monkeypatch):
    monkeypatch.setattr(columns, "ARROW_FROM", 1)
    act = small.action("vocab")
    filled.commit([small.context("vocab", 5), *small.done(act, 5, 1, (small.input_of("x", act, 1),))])
    skipped = ActionRow(1, "default", act, "skipped", None, usage=Usage())
    filled.commit([skipped])
    assert filled.newest("default")[act].outputs == (small.made(act, 5, held=True),)
    key = small.key_of(act, 5)
    assert len(filled.inputs([key])[key]) == 1
    assert len(filled.context(filled.find([key])[key][0].context)) == 3


def test_runs_count_up_and_a_killed_one_is_marked(root, manifest):
    first = manifest.begin_run(command="one", profile="default", targets=[])
    second = manifest.begin_run(command="two", profile="default", targets=["a", "b"])
    manifest.finish_run(second, "done")
    assert (first, second) == (1, 2)
    manifest.close()
    later = Manifest.open(root / ".buildsys")
    assert later._fetch("SELECT run_id, outcome, targets FROM runs") == [(1, "killed", []), (2, "done", ["a", "b"])]
    assert later.begin_run(command="three", profile="default", targets=[]) == 3
    later.close()


def test_everything_is_there_after_reopening(root, filled):
    before = filled.newest("default")
    filled.close()
    later = Manifest.open(root / ".buildsys")
    assert later.newest("default") == before
    act = small.action("vocab")
    later.commit(small.done(act, 2, 1, ()))
    assert later.newest("default")[act].key == small.key_of(act, 2)
    later.close()


def test_the_snapshot_is_read_only_and_can_be_read_while_more_is_committed(root, filled):
    filled.publish()
    path = root / ".buildsys" / "manifest.duckdb"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    reader = duckdb.connect(str(path), read_only=True)
    filled.commit(small.done(small.action("vocab"), 2, 1, ()))
    filled.publish()
    count = "SELECT count(*) FROM actions"
    assert reader.execute(count).fetchall() == [(11,)]
    reader.close()  # one process shares one view of a path: a second connection would see what the first one sees
    with duckdb.connect(str(path), read_only=True) as second:
        assert second.execute(count).fetchall() == [(12,)]
    assert sorted(p.name for p in path.parent.glob("manifest*")) == ["manifest.duckdb"]


def test_the_snapshot_can_be_read_by_older_tools(root, filled):
    filled.publish()
    with duckdb.connect(str(root / ".buildsys" / "manifest.duckdb"), read_only=True) as con:
        (options,) = con.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'manifest'").fetchone()
    assert options == {"storage_version": "v1.4.0+"}


def test_leftovers_of_a_publication_that_was_killed_are_no_trouble(root, filled):
    for name in ("manifest.duckdb.tmp", "manifest.duckdb.tmp.wal", "manifest.duckdb.wal"):
        (root / ".buildsys" / name).write_text("half")
    filled.publish()
    with duckdb.connect(str(root / ".buildsys" / "manifest.duckdb"), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM actions").fetchall() == [(11,)]
    assert sorted(path.name for path in (root / ".buildsys").glob("manifest*")) == ["manifest.duckdb"]


def test_without_cp_python_copies(root, filled, monkeypatch):
    monkeypatch.setenv("PATH", str(root))
    filled.publish()
    assert (root / ".buildsys" / "manifest.duckdb").exists()


def test_a_snapshot_that_cannot_be_written_is_an_error_and_the_old_one_stays(root, filled, monkeypatch):
    filled.publish()
    inode = (root / ".buildsys" / "manifest.duckdb").stat().st_ino
    monkeypatch.setattr(snapshot, "live_path", lambda state: state / "nowhere")
    with pytest.raises(BuildError, match="the manifest's snapshot can't be written"):
        filled.publish()
    assert (root / ".buildsys" / "manifest.duckdb").stat().st_ino == inode


def test_a_manifest_of_a_newer_buildsys_is_refused(root, manifest):
    manifest._con.execute("UPDATE recorded.format SET version = 99")
    manifest.publish()
    manifest.close()
    for opened in (Manifest.open, Manifest.read):
        with pytest.raises(BuildError, match="written by a newer buildsys"):
            opened(root / ".buildsys")


def test_views_are_made_anew_when_their_text_changed(root, manifest):
    manifest._con.execute("UPDATE recorded.format SET views = 'of another version'")
    manifest._con.execute("CREATE OR REPLACE VIEW runs AS SELECT 1 AS other")
    manifest.close()
    later = Manifest.open(root / ".buildsys")
    assert later._fetch("SELECT run_id FROM runs") == []
    later.close()


def test_requests_of_an_older_version_keep_their_rows_and_have_no_word_on_what_is_bad(root, filled):
    filled._con.execute("ALTER TABLE recorded.requests DROP COLUMN bad")
    filled._con.execute("UPDATE recorded.format SET version = version - 1")
    filled.close()
    later = Manifest.open(root / ".buildsys")
    (old,) = later._fetch("SELECT DISTINCT bad FROM requests")
    assert old == (None,)
    row = next(row for row in small.requests(small.action("replies", "0"), 9) if isinstance(row, RequestRow))
    later.commit([row, replace(row, key="e" * 32, bad="truncated, empty reasoning")])
    assert later._fetch("SELECT bad FROM requests WHERE run_id = 9 ORDER BY key = $1", "e" * 32) == [
        ([],),
        (["truncated", "empty reasoning"],),
    ]
    later.close()


def test_a_lack_of_reasoning_is_bad_where_the_rule_got_some_from_the_same_identity(filled):
    row = next(row for row in small.requests(small.action("replies", "0"), 9) if isinstance(row, RequestRow))
    mute = replace(row, bad="empty answer, empty reasoning", identity="mute@1")
    refused = replace(row, bad="refused", identity="mute@1")
    filled.commit([mute, refused, replace(mute, identity=row.identity), row])
    assert filled._fetch("SELECT identity, bad FROM requests WHERE run_id = 9 ORDER BY ALL") == [
        ("mute@1", ["empty answer"]),
        ("mute@1", ["refused"]),
        ("rev-1", []),
        ("rev-1", ["empty answer", "empty reasoning"]),
    ]


def test_names_and_texts_that_are_no_valid_text_are_recorded_all_the_same(filled):
    name = os.fsdecode(b"data/\xff.txt")
    stat = Stat(1, 2, 3, 4, 5)
    draft = small.action("draft")
    result = replace(
        next(row for row in small.done(draft, 7, 1, ()) if isinstance(row, ResultRow)),
        inputs=(InputRow("input", "x", name, "d" * 32),),
    )
    request = next(row for row in small.requests(draft, 1) if isinstance(row, RequestRow))
    filled.commit([result, FileRow(name, stat, digest_of("x")), replace(request, record_id="half \ud83d of it")])
    assert filled.known_files()[name] == (stat, digest_of("x"))
    assert filled.inputs([result.key])[result.key] == (Part("input", "x", "d" * 32, name),)
    assert filled._fetch("SELECT record_id FROM requests WHERE record_id LIKE 'half%'") == [(r"half \ud83d of it",)]
    assert filled.begin_run(command="b", profile="default", targets=[name]) > 0


def test_many_rows_with_an_invalid_name_among_them_are_recorded(filled):
    names = [f"n{n}" for n in range(columns.ARROW_FROM)] + [os.fsdecode(b"\xfe"), "\u00e9", "\N{ROCKET}"]
    filled.commit([FileRow(name, Stat(1, 2, 3, 4, 5), digest_of("x")) for name in names])
    assert set(filled.known_files()) >= set(names)
