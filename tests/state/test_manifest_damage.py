"""Kills and damaged files: what was acknowledged is there, and nobody ever repairs anything by hand."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from buildsys.errors import LOCKED, BuildError
from buildsys.state import manifest as manifest_module
from buildsys.state.manifest import Manifest
from tests.state import small

N_KILLS = 20
WRITER = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    import duckdb
    from buildsys.state.manifest import Manifest
    from tests.state import small

    def write(state, first, last):
        manifest = Manifest.open(state)
        run_id = manifest.begin_run(command="loop", profile="default", targets=[])
        for n in range(first, last):
            manifest.commit(small.done(small.action("tokens", str(n)), 1, run_id, ()))
            print(n, flush=True)
            if last > 1000 and n % 7 == 0:
                manifest.publish()
        return manifest
""")
LOOP = WRITER + "write(Path(sys.argv[1]), 0, 1_000_000)"
N_LOGGED = 20
LOGGED = WRITER + f"still_open = write(Path(sys.argv[1]), 0, {N_LOGGED}); os.kill(os.getpid(), 9)"
NURSERY = WRITER + textwrap.dedent("""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            write(Path(sys.argv[1]), int(line), 1_000_000)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("end", flush=True)
""")


@contextmanager
def running(program: str, state: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, str(state)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def killed_at_random(nursery: subprocess.Popen[str], first: int, wait_s: float) -> int:
    """A writer commits from `first` on until it is killed; gives the first number that was not acknowledged."""
    nursery.stdin.write(f"{first}\n")
    nursery.stdin.flush()
    writer = int(nursery.stdout.readline())
    nursery.stdout.readline()
    time.sleep(wait_s)
    os.kill(writer, signal.SIGKILL)
    acknowledged = [first]
    while not (line := nursery.stdout.readline()).endswith("end\n"):  # A number may be cut short by the kill.
        acknowledged.append(int(line))
    return acknowledged[-1] + 1


@pytest.mark.timeout(60)
def test_every_commit_that_was_acknowledged_outlasts_a_kill(root):
    state = root / ".buildsys"
    rng = random.Random(1)
    acknowledged = 0
    with running(NURSERY, state) as nursery:
        for _ in range(N_KILLS):
            acknowledged = killed_at_random(nursery, acknowledged, rng.uniform(0, 0.05))
    manifest = Manifest.open(state)
    shards = {int(action.shard) for action in manifest.newest("default")}
    assert shards >= set(range(acknowledged))
    assert manifest.notices == []
    assert manifest._fetch("SELECT count(*) FROM runs WHERE outcome = 'killed'") == [(N_KILLS,)]
    manifest.close()


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A state folder whose process was killed with all its commits in the log alone."""
    state = tmp_path_factory.mktemp("logged")
    Manifest.open(state).close()
    done = subprocess.run([sys.executable, "-c", LOGGED, str(state)], stdout=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    return state


@pytest.fixture
def wal(root, logged) -> Path:
    shutil.copytree(logged, root / ".buildsys", dirs_exist_ok=True)
    return root / ".buildsys" / "live" / "manifest.duckdb.wal"


def test_a_log_that_was_cut_short_keeps_the_commits_before_the_cut(root, wal):
    os.truncate(wal, wal.stat().st_size * 2 // 3)
    manifest = Manifest.open(root / ".buildsys")
    shards = sorted(int(action.shard) for action in manifest.newest("default"))
    assert 0 < len(shards) < N_LOGGED
    assert shards == list(range(len(shards)))
    manifest.close()


@pytest.mark.parametrize("at", [0.0, 0.3, 0.6, 0.99])
def test_a_log_with_a_flipped_byte_never_stops_a_build(root, wal, at):
    flip(wal, int(wal.stat().st_size * at))
    manifest = Manifest.open(root / ".buildsys")
    shards = sorted(int(action.shard) for action in manifest.newest("default"))
    assert shards == list(range(len(shards)))
    manifest.commit(small.done(small.action("vocab"), 1, 1, ()))
    assert small.action("vocab") in manifest.newest("default")
    manifest.close()


def test_a_log_that_cannot_be_replayed_is_put_aside_and_told(root, wal, monkeypatch):
    """DuckDB 2.0.1 stops quietly at the first bad entry; that a version refuses to open is played here."""
    attach = manifest_module.attach

    def refuses(path):
        if wal.exists():
            raise duckdb.Error("Failure while replaying WAL file: checksum mismatch")
        return attach(path)

    monkeypatch.setattr(manifest_module, "attach", refuses)
    manifest = Manifest.open(root / ".buildsys")
    assert manifest.newest("default") == {}
    assert manifest.notices == [
        "the manifest's last commits can't be read and are lost; kept as manifest.duckdb.wal.damaged-1 "
        "(Failure while replaying WAL file: checksum mismatch)"
    ]
    manifest.close()


def flip(path: Path, at: int, n: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        content = file.read(n)
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in content))


def damage_head(live: Path) -> None:
    flip(live, 20)


def damage_everything(live: Path) -> None:
    live.write_bytes(b"no database at all" * 1000)


def empty(live: Path) -> None:
    live.write_bytes(b"")


def cut(live: Path) -> None:
    os.truncate(live, live.stat().st_size // 2)


def damage_blocks(live: Path) -> None:
    for at in range(3 * 4096 + 5000, live.stat().st_size, 20_000):
        flip(live, at, 4)


@pytest.mark.parametrize("damage", [damage_head, damage_everything, empty, cut, damage_blocks])
def test_a_damaged_manifest_is_replaced_by_the_snapshot(project, damage):
    manifest = Manifest.open(project / ".buildsys")
    before = manifest.newest("default")
    manifest.close()
    damage(project / ".buildsys" / "live" / "manifest.duckdb")
    later = Manifest.open(project / ".buildsys")
    assert later.newest("default") == before
    assert "the snapshot of an earlier build takes its place" in later.notices[-1]
    assert (project / ".buildsys" / "live" / "manifest.duckdb.damaged-1").exists()
    later.commit(small.done(small.action("vocab"), 9, 1, ()))
    later.close()
    reopened = Manifest.open(project / ".buildsys")
    assert reopened.newest("default")[small.action("vocab")].key == small.key_of(small.action("vocab"), 9)
    assert reopened.notices == []
    reopened.close()


def test_a_missing_manifest_is_replaced_by_the_snapshot_and_told(project):
    manifest = Manifest.open(project / ".buildsys")
    before = manifest.newest("default")
    manifest.close()
    shutil.rmtree(project / ".buildsys" / "live")
    later = Manifest.open(project / ".buildsys")
    assert later.newest("default") == before
    assert later.notices == [
        "the manifest is missing; the snapshot of an earlier build takes its place, what was recorded since is lost"
    ]
    later.commit(small.done(small.action("vocab"), 9, 1, ()))
    later.close()
    reopened = Manifest.open(project / ".buildsys")
    assert (len(reopened.newest("default")), reopened.notices) == (len(before), [])
    reopened.close()


def test_a_missing_manifest_whose_log_is_left_is_replaced_as_well(root, wal):
    manifest = Manifest.open(root / ".buildsys")
    manifest.publish()
    manifest.close()
    (root / ".buildsys/live/manifest.duckdb").unlink()
    wal.write_bytes(b"entries of a file that is gone")
    later = Manifest.open(root / ".buildsys")
    assert len(later.newest("default")) == N_LOGGED
    assert (wal.parent / "manifest.duckdb.wal.damaged-1").exists()
    later.close()


def test_with_nothing_built_nothing_is_missing(root):
    manifest = Manifest.open(root / ".buildsys")
    assert manifest.notices == []
    manifest.close()


@pytest.mark.parametrize("damage", [damage_head, damage_everything, empty, cut, damage_blocks])
def test_whoever_reads_a_damaged_snapshot_is_told_what_to_do_and_the_manifest_stays(project, damage):
    snapshot = project / ".buildsys" / "manifest.duckdb"
    live = (project / ".buildsys" / "live" / "manifest.duckdb").read_bytes()
    snapshot.chmod(0o644)
    damage(snapshot)
    with pytest.raises(BuildError, match="the manifest's snapshot can't be read") as refused:
        Manifest.read(project / ".buildsys").newest("default")
    assert "buildsys build" in refused.value.hint
    assert (project / ".buildsys" / "live" / "manifest.duckdb").read_bytes() == live


def test_a_snapshot_is_published_until_more_is_recorded(project):
    manifest = Manifest.open(project / ".buildsys")
    manifest.publish()
    manifest.close()
    manifest = Manifest.open(project / ".buildsys")
    assert manifest.is_published()
    manifest.commit([small.done(small.action("vocab"), 9, 1, ())[0]])
    assert not manifest.is_published()
    manifest.publish()
    assert manifest.is_published()
    manifest.close()


@pytest.mark.parametrize("damage", [damage_head, damage_everything, empty, cut, damage_blocks, Path.unlink])
def test_a_snapshot_that_is_damaged_or_gone_is_not_published(project, damage):
    manifest = Manifest.open(project / ".buildsys")
    manifest.publish()
    (project / ".buildsys" / "manifest.duckdb").chmod(0o644)
    damage(project / ".buildsys" / "manifest.duckdb")
    assert not manifest.is_published()
    manifest.publish()
    assert manifest.is_published()
    assert len(manifest.newest("default")) == 11
    manifest.close()


def test_damage_that_shows_during_a_run_keeps_the_run(project):
    manifest = Manifest.open(project / ".buildsys")
    run_id = manifest.begin_run(command="b", profile="default", targets=[])
    query = manifest._con

    class Corrupt:
        """The connection as it is when a block turns out to be damaged."""

        def execute(self, *args):
            raise duckdb.Error("Corrupt database file: computed checksum 1 does not match stored checksum 2")

        def close(self):
            query.close()

    manifest._con = Corrupt()
    assert len(manifest.newest("default")) == 11
    manifest.finish_run(run_id, "done")
    assert manifest._fetch("SELECT outcome FROM runs WHERE run_id = $1", run_id) == [("done",)]
    assert "can't be read" in manifest.notices[0]
    manifest.close()


def test_damage_that_shows_as_it_is_written_costs_what_was_recorded_since_the_snapshot(project):
    manifest = Manifest.open(project / ".buildsys")
    run_id = manifest.begin_run(command="b", profile="default", targets=[])
    manifest.finish_run(run_id, "done")
    connection = manifest._con

    class Corrupt:
        """The connection as it is when the checkpoint has to rewrite a damaged block that no question read."""

        def execute(self, statement, *args):
            if statement.startswith("CHECKPOINT"):
                raise duckdb.IOException("Checkpoint failed. Original error: Corrupt database file: computed checksum")
            return connection.execute(statement, *args)

        def close(self):
            connection.close()

    manifest._con = Corrupt()
    manifest.publish()
    assert "the snapshot of an earlier build takes its place" in manifest.notices[-1]
    assert len(manifest.newest("default")) == 11
    assert manifest._fetch("SELECT outcome FROM runs WHERE run_id = $1", run_id) == [("done",)]
    assert manifest.is_published()
    manifest.close()


def test_with_the_snapshot_damaged_too_the_manifest_starts_empty(project):
    live, snapshot = project / ".buildsys" / "live" / "manifest.duckdb", project / ".buildsys" / "manifest.duckdb"
    damage_everything(live)
    snapshot.chmod(0o644)
    damage_blocks(snapshot)
    manifest = Manifest.open(project / ".buildsys")
    assert manifest.newest("default") == {}
    assert "the history is lost" in manifest.notices[-1]
    manifest.close()


def test_a_full_disk_is_no_damage_and_nothing_is_put_aside(project, monkeypatch):
    def full(path):
        raise duckdb.IOException('IO Error: Could not write file "manifest.duckdb": No space left on device')

    monkeypatch.setattr(manifest_module, "attach", full)
    with pytest.raises(BuildError, match="the manifest can't be opened"):
        Manifest.open(project / ".buildsys")
    assert list((project / ".buildsys" / "live").glob("*damaged*")) == []


def test_another_process_that_has_it_open_is_named_and_nothing_is_put_aside(root):
    with running(LOOP, root / ".buildsys") as writer:
        writer.stdout.readline()
        with pytest.raises(BuildError, match="another process has the manifest open") as refused:
            Manifest.open(root / ".buildsys")
    assert refused.value.exit_code == LOCKED
    assert str(writer.pid) in refused.value.render()
    assert list((root / ".buildsys" / "live").glob("*damaged*")) == []


def test_the_snapshot_can_be_read_at_any_time_while_another_process_commits_and_publishes(root):
    path = root / ".buildsys" / "manifest.duckdb"
    seen = []
    with running(LOOP, root / ".buildsys") as writer:
        while not path.exists():
            writer.stdout.readline()
        for _ in range(20):
            with duckdb.connect(str(path), read_only=True) as con:
                seen.append(con.execute("SELECT count(*) FROM actions").fetchall()[0][0])
            writer.stdout.readline()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]
