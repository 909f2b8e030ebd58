"""What SQL and lineage say of builds, also while one runs; and that only one runs at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from buildsys.build import Options, build
from buildsys.errors import LOCKED, BuildError
from buildsys.events import ActionStarted, Event
from buildsys.project import Project
from buildsys.query import connect, sql
from buildsys.survey import survey
from tests.behaviour.conftest import Space
from tests.behaviour.test_rebuild import pipe

__all__ = ["pipe"]


def rows(space: Space, query: str) -> list[tuple[object, ...]]:
    return sql(space.root, query).rows


def test_outcomes_of_every_build_are_counted(pipe: Space) -> None:
    pipe.replace("data/source.txt", "line 4\n", "line four\n")
    pipe.build()
    query = "SELECT run_id, rule, outcome, count(*) FROM actions WHERE rule = 'upper' GROUP BY ALL ORDER BY ALL"
    assert rows(pipe, query) == [(1, "upper", "ran", 3), (2, "upper", "ran", 1), (2, "upper", "reused", 2)]
    assert rows(pipe, "SELECT outcome, profile FROM runs ORDER BY run_id") == [("done", "default")] * 2


def test_a_build_with_nothing_to_do_is_no_run(pipe: Space) -> None:
    pipe.build()
    assert rows(pipe, "SELECT count(*) FROM runs") == [(1,)]


def test_lineage_reaches_sources_scripts_and_config_keys(pipe: Space) -> None:
    found = rows(pipe, "SELECT DISTINCT kind, path FROM upstream('build/default/total.txt')")
    assert {
        ("source", "data/source.txt"),
        ("artifact", "build/default/parts/1.txt"),
        ("artifact", "build/default/upper/2.txt"),
        ("code", "scripts/marks.py"),
        ("param", "mark"),
        ("param", "shards"),
    } <= set(found)
    down = rows(pipe, "SELECT DISTINCT path FROM downstream('build/default/upper/1.txt') WHERE kind = 'artifact'")
    assert {("build/default/count/1.txt",), ("build/default/total.txt",)} <= set(down)


def test_what_is_in_the_workspace_is_in_artifacts_and_only_that(pipe: Space) -> None:
    pipe.replace("data/source.txt", "".join(f"line {n}\n" for n in range(2, 9)), "")
    pipe.build()
    on_disk = {path.relative_to(pipe.root).as_posix() for path in (pipe.root / "build").rglob("*") if path.is_file()}
    assert {path for (path,) in rows(pipe, "SELECT path FROM artifacts")} == on_disk


def test_two_runs_are_compared(pipe: Space) -> None:
    pipe.write("config.toml", 'shards = 3\nmark = "?"\n')
    pipe.build()
    found = rows(pipe, "SELECT rule, kind, name FROM compare(1, 2) WHERE kind = 'param'")
    assert set(found) == {("upper", "param", "mark")}


def test_sql_answers_while_a_build_runs(space: Space) -> None:
    space.write(
        "rules/r.toml",
        """
        [rule.quick]
        run     = "scripts/s.py::quick"
        outputs = { quick = "build/{profile}/quick.txt" }
        [rule.slow]
        run     = "scripts/s.py::slow"
        inputs  = { quick = "@quick" }
        outputs = { slow = "build/{profile}/slow.txt" }
        """,
    )
    space.write(
        "scripts/s.py",
        """
        import time
        from pathlib import Path
        def quick(quick):
            quick.write_text("")
        def slow(quick, slow):
            for _ in range(2000):
                if Path("go").exists():
                    break
                time.sleep(0.01)
            slow.write_text("")
        """,
    )
    command = [sys.executable, "-m", "buildsys.cli", "-C", str(space.root)]
    running = subprocess.Popen([*command, "build"], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not (found := _answer(command)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert json.loads(found) == [{"rule": "quick", "outcome": "ran"}]

        second = subprocess.run([*command, "build"], capture_output=True, text=True)
        assert second.returncode == LOCKED
        assert f"pid:     {running.pid}" in second.stderr
        assert "command:" in second.stderr
        assert "started:" in second.stderr
    finally:
        space.write("go", "")
        assert running.wait(30) == 0


def _answer(command: list[str]) -> str:
    asked = subprocess.run(
        [*command, "sql", "--json", "SELECT rule, outcome FROM actions"], capture_output=True, text=True
    )
    return asked.stdout if "quick" in asked.stdout else ""


def test_a_lock_is_freed_with_its_holder(pipe: Space) -> None:
    seen: list[int] = []

    def emit(event: Event) -> None:
        if isinstance(event, ActionStarted) and not seen:
            with pytest.raises(BuildError) as refused:
                build(Project(pipe.root), Options(), lambda event: None)
            seen.append(refused.value.exit_code)

    pipe.write("config.toml", 'shards = 3\nmark = "?"\n')
    build(Project(pipe.root), Options(), emit)
    assert set(seen) == {LOCKED}
    assert pipe.build().outcome == "done"


def test_a_notebook_can_read_the_snapshot_itself(pipe: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path("/"))
    with connect(pipe.root) as connection:
        assert connection.sql("SELECT count(*) FROM artifacts").fetchall() == [(10,)]


def test_a_snapshot_that_is_gone_or_damaged_is_made_anew_by_a_build_with_nothing_to_do(pipe: Space) -> None:
    snapshot = pipe.root / ".buildsys/manifest.duckdb"
    snapshot.unlink()
    assert pipe.build().ran == []
    assert survey(Project(pipe.root)).up_to_date
    snapshot.chmod(0o644)
    snapshot.write_bytes(snapshot.read_bytes()[:4096])
    assert pipe.build().ran == []
    assert survey(Project(pipe.root)).up_to_date


def test_lineage_names_what_holds_after_an_edit_and_its_revert(pipe: Space) -> None:
    # The longer mark changes `upper` and not what is counted of it.
    pipe.write(
        "scripts/count.py",
        "def count(text, n):\n    n.write_text('9')\ndef total(counts, total):\n    total.write_text('')\n",
    )
    pipe.build()
    pipe.write("config.toml", 'shards = 3\nmark = "?"\n')
    assert "total" not in pipe.build().ran
    pipe.write("config.toml", 'shards = 3\nmark = "!"\n')
    assert pipe.build().ran == []
    query = "SELECT DISTINCT value FROM upstream('build/default/total.txt') WHERE kind = 'param' AND name = 'mark'"
    assert rows(pipe, query) == [("'!' (str)",)]
    used = "SELECT DISTINCT path, digest FROM upstream('build/default/total.txt') WHERE kind = 'artifact'"
    assert set(rows(pipe, used)) <= set(rows(pipe, "SELECT path, digest FROM artifacts"))
