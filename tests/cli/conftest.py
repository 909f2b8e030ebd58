"""A small project that was built once, and the program run in it."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from buildsys.cli.main import main

RULES = """
[rule.words]
about   = "Each text in capitals."
each    = { shard = "data/{shard}.txt" }
shell   = "echo shouting; tr a-z A-Z < {inputs.text} > {outputs.words}"
inputs  = { text = "data/{shard}.txt" }
outputs = { words = "build/{profile}/words/{shard}.txt" }

[rule.book]
shell   = "cat {inputs.words} > {outputs.book}"
inputs  = { words = "@words[*]" }
outputs = { book = "build/{profile}/book.txt" }
"""

Run = Callable[..., "Done"]
PROGRAM = (sys.executable, "-m", "buildsys.cli")


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")} | more


def run_in(folder: Path, *args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *args], cwd=folder, input=stdin, capture_output=True, text=True, env=environment(**env), timeout=60
    )


def write_project(root: Path) -> Path:
    (root / "rules").mkdir(parents=True)
    (root / "rules" / "book.toml").write_text(RULES)
    (root / "data").mkdir()
    for name in ("one", "two"):
        (root / "data" / f"{name}.txt").write_text(f"{name}\n")
    return root


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A project that was never built."""
    return write_project(tmp_path / "project")


@pytest.fixture(scope="session")
def once_built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_project(tmp_path_factory.mktemp("built") / "project")
    done = run_in(root, "build", "-j", "2")
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def project(once_built: Path, tmp_path: Path) -> Path:
    """A copy of a project that is up to date."""
    return Path(shutil.copytree(once_built, tmp_path / "copy"))


@dataclass(frozen=True)
class Done:
    """How a call of the program ended."""

    returncode: object
    stdout: str
    stderr: str


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The program within this process, which saves the start of one; builds get a process of their own."""

    def call(*args: str, stdin: str = "", cwd: Path = project) -> Done:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["buildsys", *args])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code, *capfd.readouterr())

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)
