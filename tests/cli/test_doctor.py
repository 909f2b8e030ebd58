"""`buildsys doctor`: what is wrong is found, with its place and what to do, and nothing is changed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from buildsys.run.process import PROGRAM
from buildsys.run.replies import ReplyLog
from buildsys.state.lock import hold
from tests.behaviour.installing import write_metadata
from tests.chat.test_reply_log import fill
from tests.cli.conftest import Run


def wrong(run: Run, *options: str) -> list[dict[str, str]]:
    done = run("doctor", "--json", *options)
    found = [finding for finding in json.loads(done.stdout) if finding["level"] == "wrong"]
    assert done.returncode == (1 if found else 0)
    return found


def an_object(project: Path) -> Path:
    return min((project / ".buildsys/store").glob("??/*"))


def test_a_sound_project_is_found_sound_and_is_left_as_it_is(project: Path, run: Run) -> None:
    def state() -> dict[str, bytes]:
        files = [path for path in (project / ".buildsys").rglob("*") if path.is_file() and path.name != "lock"]
        return {str(path): path.read_bytes() for path in files}

    before = state()
    done = run("doctor", "--deep")
    assert done.returncode == 0
    assert "  ok    rules        2 rules" in done.stdout
    assert done.stdout.endswith("nothing is wrong\n")
    assert state() == before


def test_other_bytes_in_the_store_are_found_by_reading_it(project: Path, run: Run) -> None:
    damaged = an_object(project)
    damaged.chmod(0o644)
    damaged.write_bytes(b"other")
    assert wrong(run) == []
    (found,) = wrong(run, "--deep")
    assert found["about"] == "store"
    assert found["where"] == str(damaged)


def test_a_lost_output_is_found_at_once(project: Path, run: Run) -> None:
    an_object(project).unlink()
    (found,) = wrong(run)
    assert found["what"].startswith("it lost 1 output of ")


def test_a_broken_rule_file_has_its_place(project: Path, run: Run) -> None:
    (project / "rules/more.toml").write_text("[rule.x]\nrum = 1\n")
    (found,) = wrong(run)
    assert found["about"] == "rules"
    assert found["where"].startswith("rules/more.toml:2")
    assert "did you mean" in found["hint"]


def test_a_broken_script_has_its_place(project: Path, run: Run) -> None:
    (project / "x.py").write_text("def f(y):\n    try:\n")
    (project / "rules/more.toml").write_text('[rule.x]\nrun = "x.py::f"\noutputs = { y = "made/x" }\n')
    (found,) = wrong(run)
    assert found["about"] == "scripts"
    assert found["where"].startswith("x.py:2")


@pytest.mark.parametrize("name", ["manifest.duckdb", "live/manifest.duckdb"])
def test_a_manifest_that_can_not_be_read_is_found(project: Path, run: Run, name: str) -> None:
    path = project / ".buildsys" / name
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:5000])
    assert [found["where"] for found in wrong(run) if found["about"] == "manifest"] == [str(path)]


def test_damaged_replies_are_found(project: Path, run: Run) -> None:
    fill(project / ".buildsys/replies", 3)
    assert wrong(run) == []
    (segment,) = (project / ".buildsys/replies").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    (found,) = wrong(run)
    assert found["about"] == "replies"
    with ReplyLog(project / ".buildsys/replies", writable=False) as log:
        assert found["what"] == log.notices[0]


def test_a_build_that_runs_is_nothing_wrong(project: Path, run: Run) -> None:
    with hold(project / ".buildsys/lock", "buildsys build draft"):
        done = run("doctor")
    assert done.returncode == 0
    assert "another build holds this project" in done.stdout
    assert "buildsys build draft" in done.stdout


@pytest.fixture
def worker(project: Path) -> Iterator[int]:
    left = subprocess.Popen([sys.executable, "-c", "input()", PROGRAM], cwd=project, stdin=subprocess.PIPE)
    yield left.pid
    left.communicate(b"\n")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_worker_that_outlived_its_build_is_found(worker: int, run: Run) -> None:
    (found,) = wrong(run)
    assert found["hint"] == f"kill {worker}"


def test_versions_are_held_against_the_constraints(project: Path, run: Run) -> None:
    (project / "constraints.txt").write_text("click==1.0\nno-such-distribution==3\n")
    done = run("doctor")
    assert done.returncode == 0
    assert "click" in done.stdout
    assert "(1.0)" in done.stdout


def test_a_project_that_was_never_built_is_told_so(fresh: Path, run: Run) -> None:
    done = run("doctor", cwd=fresh)
    assert done.returncode == 0
    assert "nothing was built here yet" in done.stdout
    assert not (fresh / ".buildsys/lock").exists()


def test_an_editable_install_that_is_nowhere_to_be_found_is_noted(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    about = tmp_path / "odd-1.0.dist-info"
    write_metadata(about, "Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n", [])
    (about / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    monkeypatch.syspath_prepend(str(tmp_path))
    (project / "x.py").write_text("import odd\n\ndef f(y):\n    y.touch()\n")
    (project / "rules/more.toml").write_text('[rule.x]\nrun = "x.py::f"\noutputs = { y = "made/x" }\n')
    done = run("doctor")
    assert done.returncode == 0
    assert "odd is installed as editable in a way that is not known: edits of it are not seen" in done.stdout


def test_looking_at_what_was_never_built_leaves_it_as_it_is(fresh: Path, run: Run) -> None:
    (fresh / "x.py").write_text("import odd\n\ndef f(y):\n    y.touch()\n")
    (fresh / "rules/more.toml").write_text('[rule.x]\nrun = "x.py::f"\noutputs = { y = "made/x" }\n')
    before = sorted(fresh.rglob("*"))
    assert run("doctor", cwd=fresh).returncode == 0
    assert sorted(fresh.rglob("*")) == before
