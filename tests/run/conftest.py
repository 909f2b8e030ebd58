"""A small project with scripts, and jobs for the functions in them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from buildsys.run.workers import Job, Workers


class Space:
    """A project folder. Jobs freeze the sources as they are on disk when the job is made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "logs" / "action.log"
        self.started: list[Workers] = []

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return file

    def workers(self, jobs: int = 2) -> Workers:
        workers = Workers(self.root, jobs)
        self.started.append(workers)
        return workers

    def job(
        self,
        target: str,
        *,
        combination: str = "one",
        unseen: tuple[str, ...] = (),
        preload: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        log: Path | None = None,
        python: str = sys.executable,
        **arguments: object,
    ) -> Job:
        """`target` is "scripts/a.py::function"; `unseen` are files that the analysis of the source missed."""
        script, _, function = target.partition("::")
        folder = script.rpartition("/")[0]
        files = [str(file.relative_to(self.root)) for file in (self.root / folder).rglob("*.py")]
        return Job(
            python=python,
            combination=combination,
            preload=preload,
            sources={file: (self.root / file).read_text() for file in files if file not in unseen},
            folder=folder,
            script=script,
            function=function,
            arguments=arguments,
            env={"PATH": os.environ["PATH"]} if env is None else env,
            log=log or self.log,
        )


@functools.cache
def interpreter(version: str) -> str:
    """The path of an installed Python of a version, by its own word; "" where there is none."""
    on_path = shutil.which(f"python{version}")
    beside = Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")
    for found in [*([on_path] if on_path else []), *map(str, beside)]:
        said = subprocess.run([found, "-c", _WHO], capture_output=True, text=True, check=False).stdout.split("\n")
        if said[0] == version:
            return said[1]
    return ""


_WHO = "import sys; print('{}.{}'.format(*sys.version_info)); print(sys.executable)"


@pytest.fixture(params=["own", "3.9", "3.12", "3.13"])
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter that marks functions, or one that monitors them."""
    found = sys.executable if request.param == "own" else interpreter(request.param)
    if not found:
        pytest.skip(f"there is no Python {request.param}")
    return found


@pytest.fixture
def space(tmp_path: Path) -> Iterator[Space]:
    space = Space(tmp_path)
    yield space
    for workers in space.started:
        workers.close()


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true in the time given."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
