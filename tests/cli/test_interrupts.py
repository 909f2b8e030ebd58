"""Ways to stop a build: what runs ends, however stubborn it is, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, environment, run_in
from tests.processes import processes_in
from tests.run.conftest import within
from tests.run.test_checks import ENDLESS

pytestmark = pytest.mark.timeout(90)

RULES = {
    "function": """
[rule.slow]
run     = "slow.py::sleep"
outputs = { out = "out.txt" }
""",
    "command": """
[rule.slow]
shell   = "trap '' TERM; {python} slow.py; touch {outputs.out}"
outputs = { out = "out.txt" }
""",
    "service": """
[service.never]
shell = "exec {python} slow.py {port}"
ready = "http://127.0.0.1:{port}/"

[rule.slow]
shell    = "echo {services.never} > {outputs.out}"
services = ["never"]
outputs  = { out = "out.txt" }
""",
    "daemon": """
[rule.slow]
shell   = "{python} slow.py daemon & while ! test -e begun; do sleep 0.01; done; sleep 1000; touch {outputs.out}"
outputs = { out = "out.txt" }
""",
    "check": f"""
[rule.slow]
shell   = "touch {{outputs.out}}"
outputs = {{ out = "out.txt" }}
[rule.slow.checks]
endless = "COPY (SELECT 1) TO 'begun'; {ENDLESS}"
""",
}
STUBBORN_KINDS = ("function", "command", "service")
SCRIPT = """
import os, signal, subprocess, sys, time

def sleep(out):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"])
    open("begun", "w").close()
    time.sleep(1000)

if __name__ == "__main__":
    if sys.argv[1:] == ["daemon"]:
        # Out of the group and the session, with a parent that is gone.
        if os.fork():
            os._exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
    sleep(None)
"""


class Running:
    """A build that is within an action, the start of a service, or a check, none of which ends by itself."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root = root
        (root / "rules").mkdir()
        (root / "rules" / "slow.toml").write_text(RULES[kind])
        (root / "slow.py").write_text(SCRIPT)
        self.process = subprocess.Popen(
            [*PROGRAM, "build"],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            # What runs in the background of a shell ignores it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert within(30, lambda: (root / "begun").exists() or self.process.poll() is not None)
        assert self.process.poll() is None

    def stop(self, times: int = 1, number: signal.Signals = signal.SIGINT) -> float:
        """Seconds from the last signal to the end."""
        for n in range(times):
            if n:
                time.sleep(0.3)
            self.process.send_signal(number)
        began = time.monotonic()
        self.said = self.process.communicate(timeout=60)[0].decode()
        return time.monotonic() - began

    def leaves_nothing(self) -> bool:
        return within(5, lambda: not processes_in(self.root))


@pytest.fixture(autouse=True)
def tidy(tmp_path: Path) -> Iterator[None]:
    """A test that fails leaves nothing either."""
    yield
    for pid in processes_in(tmp_path):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", STUBBORN_KINDS)
def test_one_interrupt_ends_what_heeds_no_signal(tmp_path: Path, kind: str) -> None:
    build = Running(tmp_path, kind)
    took_s = build.stop()
    assert build.process.returncode == 130
    assert "Traceback" not in build.said
    assert "1 cancelled" in build.said
    assert build.leaves_nothing()
    assert took_s < 6


@pytest.mark.parametrize(
    ("kind", "number"),
    [("daemon", signal.SIGINT), ("daemon", signal.SIGTERM), ("daemon", signal.SIGHUP), ("check", signal.SIGINT)],
)
def test_each_request_to_end_is_heeded(tmp_path: Path, kind: str, number: signal.Signals) -> None:
    build = Running(tmp_path, kind)
    took_s = build.stop(number=number)
    assert build.process.returncode == 130
    assert "Traceback" not in build.said
    assert "1 cancelled" in build.said
    assert build.leaves_nothing()
    assert took_s < 5


@pytest.mark.parametrize("kind", STUBBORN_KINDS)
@pytest.mark.parametrize("times", [2, 3])
def test_a_second_interrupt_waits_for_nothing(tmp_path: Path, kind: str, times: int) -> None:
    build = Running(tmp_path, kind)
    took_s = build.stop(times)
    assert build.process.returncode == 130
    assert "Traceback" not in build.said
    assert build.leaves_nothing()
    assert took_s < 1.5


@pytest.mark.parametrize("kind", ["service", "daemon"])
def test_nothing_outlives_a_build_that_is_killed(tmp_path: Path, kind: str) -> None:
    build = Running(tmp_path, kind)
    build.stop(number=signal.SIGKILL)
    assert build.process.returncode == -signal.SIGKILL
    assert build.leaves_nothing()


def test_what_was_made_before_its_check_was_stopped_is_not_made_again(tmp_path: Path) -> None:
    build = Running(tmp_path, "check")
    build.stop()
    rules = tmp_path / "rules" / "slow.toml"
    rules.write_text(rules.read_text().replace(ENDLESS, "SELECT true"))
    assert "1 restored" in run_in(tmp_path, "build").stderr
