"""A small project that was built once, and the program run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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

Run = Callable[..., subprocess.CompletedProcess[str]]
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


@pytest.fixture
def run(project: Path) -> Run:
    return lambda *args, **more: run_in(project, *args, **more)
