"""Servers that stay: used again by the next build, replaced when they must be, and never running unknown to anybody."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from buildsys.errors import INTERRUPTED, BuildError
from buildsys.run.kept import Kept, all_kept, find
from buildsys.run.services import Services
from tests.processes import processes_in
from tests.run.conftest import Space, alive, within
from tests.run.servers import ENV, READY, SERVER, command, pids

pytestmark = pytest.mark.timeout(60)

Start = Callable[..., str]


class Kennel:
    """What builds of a project leave running."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.folder = space.root / "kept"

    def build(self, key: str = "key", text: str = "", *, keep: bool = True) -> str:
        """What a build does: start a server, use it, be over. The URL that it got."""
        with closing(self.services()) as services:
            url = services.start("model", key, text or command(), ENV, READY, 20, keep=keep)
            with urllib.request.urlopen(url) as answer:
                assert answer.status == 200
        return url

    def services(self) -> Services:
        return Services(self.space.root, self.space.root / "logs", self.folder)

    def kept(self) -> Kept:
        kept = find(self.folder, "model")
        assert kept
        return kept

    def rewrite(self, **fields: object) -> None:
        record = self.folder / "model.json"
        record.write_text(json.dumps(json.loads(record.read_text()) | fields))


@pytest.fixture
def kennel(space: Space) -> Iterator[Kennel]:
    space.write("server.py", SERVER)
    kennel = Kennel(space)
    yield kennel
    left = all_kept(kennel.folder)
    shutil.rmtree(kennel.folder, ignore_errors=True)
    assert all(kept.end() for kept in left)


def test_a_kept_server_serves_the_next_build(kennel: Kennel) -> None:
    assert kennel.build() == kennel.build()
    (pid,) = pids(kennel.space)
    kept = kennel.kept()
    assert alive(pid)
    assert os.getpgid(pid) == kept.server.pid
    assert (kept.key, kept.log, kept.ended) == ("key", "kept/model.log", None)
    assert (kennel.space.root / kept.log).read_text() == "loading weights\n"


def test_a_kept_server_has_a_session_of_its_own(kennel: Kennel) -> None:
    kennel.build()
    (pid,) = pids(kennel.space)
    assert os.getsid(pid) != os.getsid(0)


def test_the_environment_is_not_in_the_record(kennel: Kennel) -> None:
    kennel.build()
    assert "weights" not in (kennel.folder / "model.json").read_text()


def test_a_changed_key_ends_a_kept_server_and_starts_another(kennel: Kennel) -> None:
    kennel.build("old")
    kennel.build("new")
    old, new = pids(kennel.space)
    assert (alive(old), alive(new)) == (False, True)
    assert kennel.kept().key == "new"


def test_what_is_left_running_stays_whether_or_not_a_rule_says_so(kennel: Kennel) -> None:
    kennel.build("old")
    kennel.build("old", keep=False)
    kennel.build("new", keep=False)
    kennel.build("new", keep=False)
    assert [alive(pid) for pid in pids(kennel.space)] == [False, True]


def test_a_dead_kept_server_is_started_anew(kennel: Kennel) -> None:
    kennel.build(text=f"exec {command()}")
    os.kill(pids(kennel.space)[0], signal.SIGKILL)
    assert within(5, lambda: kennel.kept().ended == "signal 9 (SIGKILL: killed; out of memory?)")
    kennel.build()
    assert [alive(pid) for pid in pids(kennel.space)] == [False, True]


def test_a_kept_server_that_dies_during_a_build_is_started_again_and_stays(kennel: Kennel) -> None:
    kennel.build()
    with closing(kennel.services()) as services:
        first = services.start("model", "key", command(), ENV, READY, 20)
        os.kill(pids(kennel.space)[0], signal.SIGKILL)
        assert within(10, lambda: services.gone(first) is not None)
        assert services.start("model", "key", command(), ENV, READY, 20) != first
    assert [alive(pid) for pid in pids(kennel.space)] == [False, True]


def test_a_kept_server_that_no_longer_answers_is_replaced(kennel: Kennel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildsys.run.services.ANSWER_S", 0.5)
    monkeypatch.setattr("buildsys.run.kept.END_S", 0.3)
    kennel.build()
    os.kill(pids(kennel.space)[0], signal.SIGSTOP)
    kennel.rewrite(since=0)
    kennel.build()
    assert [alive(pid) for pid in pids(kennel.space)] == [False, True]


def test_a_failed_start_keeps_nothing_and_says_why(kennel: Kennel) -> None:
    with closing(kennel.services()) as services, pytest.raises(BuildError) as caught:
        services.start("model", "key", "echo no memory; exit 3", ENV, READY, 20, keep=True)
    assert caught.value.problem == 'service "model" ended before it was ready'
    assert ("ended with", "exit code 3") in caught.value.facts
    assert ("log", "kept/model.log") in caught.value.facts
    assert caught.value.excerpt == "no memory"
    with closing(kennel.services()) as services, pytest.raises(BuildError, match="was not ready after 1 s"):
        services.start("model", "key", command(status=500), ENV, READY, 1, keep=True)
    assert not any(map(alive, pids(kennel.space)))


def test_an_interrupt_leaves_a_server_that_is_loading_and_the_next_build_takes_it(kennel: Kennel) -> None:
    slow = f"exec {command().replace('meek', 'slow')}"
    with closing(kennel.services()) as services, ThreadPoolExecutor(1) as pool:
        starting = pool.submit(services.start, "model", "key", slow, ENV, READY, 20, keep=True)
        assert pids(kennel.space)
        services.cancel()
        error = starting.exception(timeout=5)
    assert isinstance(error, BuildError)
    assert error.exit_code == INTERRUPTED
    kennel.build(text=slow)
    assert [alive(pid) for pid in pids(kennel.space)] == [True]


def test_kill_leaves_a_kept_server(kennel: Kennel) -> None:
    services = kennel.services()
    services.start("model", "key", command(), ENV, READY, 20, keep=True)
    services.kill()
    services.close()
    assert [alive(pid) for pid in pids(kennel.space)] == [True]


BUILDER = """
    import sys, time
    from pathlib import Path
    from buildsys.run.services import Services

    root, command = Path(sys.argv[1]), sys.argv[2]
    services = Services(root, root / "logs", root / "kept")
    print("go", flush=True)
    services.start("model", "key", command, {"PATH": "/usr/bin:/bin"}, "http://127.0.0.1:{port}/", 20, keep=True)
    print("up", flush=True)
    time.sleep(1000)
"""


def killed_build(root: Path, text: str, word: str, seconds: float = 0) -> None:
    """A build in a session of its own that is killed, with its whole process group, after it has said a word."""
    arguments = [sys.executable, "-c", textwrap.dedent(BUILDER), str(root), text]
    with subprocess.Popen(arguments, start_new_session=True, stdout=subprocess.PIPE, text=True) as builder:
        assert builder.stdout
        while builder.stdout.readline() != f"{word}\n":
            pass
        time.sleep(seconds)
        os.killpg(builder.pid, signal.SIGKILL)


def test_a_kept_server_outlives_a_build_that_is_killed(kennel: Kennel) -> None:
    killed_build(kennel.space.root, command(), "up")
    assert kennel.build() == kennel.kept().url
    assert [alive(pid) for pid in pids(kennel.space)] == [True]


def test_whenever_a_build_is_killed_no_server_runs_unrecorded(kennel: Kennel) -> None:
    for n in range(6):
        killed_build(kennel.space.root, f"exec {command()}", "go", n * 0.03)
        assert within(5, lambda: set(processes_in(kennel.space.root)) == recorded(kennel)), n
        if kept := find(kennel.folder, "model"):
            assert kept.end()


@pytest.mark.parametrize("seconds", [0.02, 0.06])
def test_a_build_right_after_one_that_was_killed_gets_the_server_that_is_recorded(
    kennel: Kennel, seconds: float
) -> None:
    killed_build(kennel.space.root, f"exec {command()}", "go", seconds)
    url = kennel.build(text=f"exec {command()}")
    assert within(5, lambda: set(processes_in(kennel.space.root)) == recorded(kennel))
    assert kennel.kept().url == url


def recorded(kennel: Kennel) -> set[int]:
    kept = find(kennel.folder, "model")
    return {process.pid for process in (kept.server, kept.keeper) if process.alive} if kept else set()


def test_a_record_of_a_process_that_is_another_one_by_now_is_ignored(kennel: Kennel) -> None:
    kennel.build()
    os.kill(kennel.kept().server.pid, signal.SIGTERM)
    assert within(5, lambda: kennel.kept().gone)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as foreign:
        other = {"pid": foreign.pid, "born": "0"}
        kennel.rewrite(server=other, keeper=other, ended=None)
        assert kennel.kept().gone
        kennel.kept().end()
        kennel.build()
        spared = foreign.poll() is None
        foreign.kill()
    assert spared
    assert [alive(pid) for pid in pids(kennel.space)] == [False, True]


@pytest.mark.parametrize("text", ["", "{", '{"name": "model"}', "[1]", '{"server": {"pid": -1, "born": ""}}', "\0"])
def test_a_damaged_record_breaks_no_build(kennel: Kennel, text: str) -> None:
    kennel.folder.mkdir()
    (kennel.folder / "model.json").write_text(text)
    assert find(kennel.folder, "model") is None
    kennel.build()
    assert kennel.kept().up


def test_a_server_ends_whose_record_is_lost(kennel: Kennel) -> None:
    kennel.build()
    kept = kennel.kept()
    (kennel.folder / "model.json").unlink()
    assert within(10, lambda: kept.gone)


def test_a_server_whose_project_is_moved_stays_and_is_known_there(kennel: Kennel) -> None:
    kennel.build()
    moved = kennel.folder.rename(kennel.space.root / "moved")
    (pid,) = pids(kennel.space)
    kept = find(moved, "model")
    moved.rename(kennel.folder)
    assert kept == kennel.kept()
    assert alive(pid)


def test_a_copy_of_a_project_has_no_part_in_its_servers(kennel: Kennel) -> None:
    kennel.build()
    root = kennel.space.root
    copy = Kennel(Space(Path(shutil.copytree(root, root.with_name(f"{root.name}-copy")))))
    assert find(copy.folder, "model") is None
    copy.build("other")
    assert copy.kept().end()
    assert kennel.kept().up


FAMILY = """
    import subprocess, sys, time

    script = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    script += "open('pids.txt', 'a').write(f'{os.getpid()}\\\\n'); time.sleep(1000)"
    subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    subprocess.Popen([sys.executable, "-c", script])
    while len(open("pids.txt").readlines()) < 2:
        time.sleep(0.01)
"""


def test_the_end_of_a_kept_server_is_that_of_all_that_it_started(kennel: Kennel) -> None:
    kennel.space.write("family.py", FAMILY)
    (kennel.space.root / "pids.txt").touch()
    kennel.build(text=f"{sys.executable} family.py && {command()}")
    assert len(pids(kennel.space)) == 3
    assert kennel.kept().end()
    assert not any(map(alive, pids(kennel.space)))
    assert find(kennel.folder, "model") is None


def test_a_stubborn_kept_server_is_killed(kennel: Kennel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildsys.run.kept.END_S", 0.3)
    kennel.build(text=f"exec {command('stubborn')}")
    assert kennel.kept().end()
    assert not any(map(alive, pids(kennel.space)))


def test_a_kept_server_is_used_and_ended_after_its_keeper_was_killed(kennel: Kennel) -> None:
    url = kennel.build(text=f"exec {command()}")
    os.kill(kennel.kept().keeper.pid, signal.SIGKILL)
    assert within(5, lambda: not kennel.kept().keeper.alive)
    assert kennel.build() == url
    assert kennel.kept().end()
    assert not any(map(alive, pids(kennel.space)))
