"""Ctrl-C, once and more: what runs ends, however stubborn it is, and nothing is left."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, environment
from tests.run.conftest import alive, within

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
}
STUBBORN = """
import os, signal, subprocess, time
from pathlib import Path

def sleep(out):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"])
    Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
    os.rename("pids.part", "pids")
    time.sleep(1000)

if __name__ == "__main__":
    sleep(None)
"""


class Stubborn:
    """A build that is within an action, or the start of a service, that heeds no SIGTERM."""

    def __init__(self, root: Path, kind: str) -> None:
        (root / "rules").mkdir()
        (root / "rules" / "slow.toml").write_text(RULES[kind])
        (root / "slow.py").write_text(STUBBORN)
        self.process = subprocess.Popen(
            [*PROGRAM, "build"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment()
        )
        assert within(30, lambda: (root / "pids").exists() or self.process.poll() is not None)
        assert self.process.poll() is None
        self.pids = [int(word) for word in (root / "pids").read_text().split()]

    def interrupt(self, times: int) -> float:
        """Seconds from the last interrupt to the end."""
        for n in range(times):
            if n:
                time.sleep(0.3)
            self.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        self.said = self.process.communicate(timeout=60)[0].decode()
        return time.monotonic() - began

    def left(self) -> list[int]:
        within(1, lambda: not any(map(alive, self.pids)))
        return [pid for pid in self.pids if alive(pid)]


@pytest.mark.parametrize("kind", RULES)
def test_one_interrupt_ends_what_heeds_no_signal(tmp_path: Path, kind: str) -> None:
    build = Stubborn(tmp_path, kind)
    took_s = build.interrupt(1)
    assert build.process.returncode == 130
    assert "Traceback" not in build.said
    assert "1 cancelled" in build.said
    assert build.left() == []
    assert took_s < 6


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("times", [2, 3])
def test_a_second_interrupt_waits_for_nothing(tmp_path: Path, kind: str, times: int) -> None:
    build = Stubborn(tmp_path, kind)
    took_s = build.interrupt(times)
    assert build.process.returncode == 130
    assert "Traceback" not in build.said
    assert build.left() == []
    assert took_s < 1.5
