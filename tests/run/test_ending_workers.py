"""How calls and commands end before their time, and that nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.run.conftest import Space, alive, within

pytestmark = pytest.mark.timeout(60)

SLEEP = """
    import os, signal, subprocess, sys, time

    def sleep(name, stubborn):
        if stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "1000"])
        with open(name + ".part", "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
        os.rename(name + ".part", name)
        time.sleep(1000)
"""


def pids(file: Path) -> list[int]:
    assert within(10, file.exists)
    return [int(word) for word in file.read_text().split()]


@pytest.mark.parametrize("stubborn", [False, True])
def test_cancel_ends_calls_and_their_children(space: Space, stubborn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildsys.run.workers.CANCEL_S", 0.7)
    space.write("scripts/a.py", SLEEP)
    workers = space.workers(jobs=1)
    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(workers.call, space.job("scripts/a.py::sleep", name="started", stubborn=stubborn))
        started = pids(space.root / "started")
        waiting = pool.submit(workers.call, space.job("scripts/a.py::sleep", name="never", stubborn=stubborn))
        command = pool.submit(workers.shell, "sleep 1000", {"PATH": "/bin:/usr/bin"}, space.root, space.log)
        time.sleep(0.1)
        began = time.monotonic()
        workers.cancel()
        assert time.monotonic() - began < 2
        assert [future.result().exit for future in (running, waiting, command)] == ["cancelled"] * 3
    assert within(1, lambda: not any(map(alive, started)))
    assert not (space.root / "never").exists()
    assert workers.call(space.job("scripts/a.py::sleep", name="never", stubborn=False)).exit == "cancelled"


def test_cancel_does_not_wait_for_a_long_import(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildsys.run.workers.CANCEL_S", 0.3)
    space.write("lib/endless.py", "import time\nopen('importing', 'w').close()\ntime.sleep(1000)\n")
    space.write("scripts/a.py", "def f(): pass\n")
    workers = space.workers()
    job = space.job("scripts/a.py::f", preload=("endless",), env={"PYTHONPATH": str(space.root / "lib")})
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(workers.call, job)
        assert within(10, (space.root / "importing").exists)
        workers.cancel()
        assert call.result().exit == "cancelled"


def test_kill_waits_for_nothing(space: Space) -> None:
    space.write("scripts/a.py", SLEEP)
    space.write("lib/endless.py", "import time\nopen('importing', 'w').close()\ntime.sleep(1000)\n")
    workers = space.workers(jobs=2)
    stubborn = space.job("scripts/a.py::sleep", name="started", stubborn=True)
    env = {"PYTHONPATH": str(space.root / "lib")}
    importing = space.job("scripts/a.py::sleep", name="never", stubborn=False, preload=("endless",), env=env)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(workers.call, job) for job in (stubborn, importing)]
        started = pids(space.root / "started")
        assert within(10, (space.root / "importing").exists)
        began = time.monotonic()
        workers.kill()
        assert [call.result().exit for call in calls] == ["cancelled"] * 2
        assert time.monotonic() - began < 1.5
    assert within(1, lambda: not any(map(alive, started)))


BUILDER = """
    import sys, threading
    from pathlib import Path
    from buildsys.run.workers import Job, Workers

    root = Path(sys.argv[1])
    ENV, LOG = {"PATH": "/bin:/usr/bin"}, root / "log"
    workers = Workers(root, 3)
    source = (root / "scripts/a.py").read_text()

    def call(name, stubborn):
        arguments = {"name": name, "stubborn": stubborn}
        script = ({"scripts/a.py": source}, "scripts", "scripts/a.py", "sleep")
        workers.call(Job(sys.executable, name, (), *script, arguments, ENV, LOG))

    threading.Thread(target=call, args=["meek", False]).start()
    threading.Thread(target=call, args=["stubborn", True]).start()
    workers.shell("echo $$ > shell.part; mv shell.part shell; sleep 1000", ENV, root, LOG)
"""


def test_everything_ends_when_the_builder_is_killed(space: Space) -> None:
    space.write("scripts/a.py", SLEEP)
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(BUILDER), str(space.root)]) as builder:
        started = [pid for name in ("meek", "stubborn", "shell") for pid in pids(space.root / name)]
        up = all(map(alive, started))
        builder.kill()
    assert up
    assert within(2.5, lambda: not any(map(alive, started)))


DAEMON = """
    import os, subprocess, sys, time
    from pathlib import Path

    def leave(wait):
        child = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $! > pid.part; mv pid.part pid; wait"],
                                 start_new_session=True)
        while not Path("pid").exists():
            time.sleep(0.01)
        Path("pids.part").write_text(f"{child.pid} {Path('pid').read_text()}")
        os.rename("pids.part", "pids")
        time.sleep(1000 * wait)
"""


def test_what_left_its_group_ends_with_the_build(space: Space) -> None:
    space.write("scripts/a.py", DAEMON)
    workers = space.workers()
    assert workers.call(space.job("scripts/a.py::leave", wait=0)).ok
    left = pids(space.root / "pids")
    assert all(map(alive, left))
    workers.close()
    assert not any(map(alive, left))


@pytest.mark.parametrize("end", ["cancel", "kill"])
def test_what_left_its_group_ends_when_its_action_is_stopped(space: Space, end: str) -> None:
    space.write("scripts/a.py", DAEMON)
    workers = space.workers()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(workers.call, space.job("scripts/a.py::leave", wait=1))
        left = pids(space.root / "pids")
        getattr(workers, end)()
        assert call.result().exit == "cancelled"
    workers.close()
    assert within(1, lambda: not any(map(alive, left)))


def test_an_interrupt_at_the_terminal_does_not_reach_workers(space: Space) -> None:
    space.write("scripts/a.py", "import os\n\ndef group(): return [os.getpgid(0), os.getsid(0)]\n")
    group, session = space.workers().call(space.job("scripts/a.py::group")).value

    assert group != os.getpgid(0)
    assert session != os.getsid(0)


TIDY = """
    import os, sys, threading
    from pathlib import Path
    from buildsys.run.workers import Job, Workers

    root = Path(sys.argv[1])
    ENV, LOG = {"PATH": "/bin:/usr/bin"}, root / "log"
    call = ({"a.py": "def f(): pass"}, "", "a.py", "f", {}, ENV, LOG)
    before = os.listdir("/proc/self/fd")
    workers = Workers(root, 2)
    for combination in "abcd":
        assert workers.call(Job(sys.executable, combination, (), *call)).ok
    assert workers.shell("true", ENV, root, LOG).ok
    workers.close()
    assert os.listdir("/proc/self/fd") == before
    assert threading.active_count() == 1
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("tidy")
"""


def test_the_building_process_keeps_no_descriptors_and_children(space: Space) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TIDY), str(space.root)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("tidy\n", "")
