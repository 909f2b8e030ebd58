"""The records of servers that stay when the build that started them has ended: which there are, and their end.

A record is written by the server's keeper alone (`keeper`) and is only read here. Knows nothing of what a server is
asked. A number in a file is no reason to signal anybody: a process is known by its id together with when it was born.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from buildsys.run.process import Ended
from buildsys.run.worker import signal_group

KEPT = "services"
"""The folder of the records, within the state of a project."""
END_S = 3.0
"""From SIGTERM to SIGKILL."""
GONE_S = 2 * END_S
POLL_S = 0.02
_STARTED_FIELD = 19
"""Of /proc/PID/stat, counted from the state: ticks between the start of the system and that of the process."""


@dataclass(frozen=True)
class Process:
    """A process that no later one with its id can be taken for. born: when it started, as the system says it."""

    pid: int
    born: str

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, _born(pid))

    @property
    def alive(self) -> bool:
        return self.born != "" and self.born == _born(self.pid)


@dataclass(frozen=True)
class Kept:
    """The record of a kept server. command: as it was run, without its environment. log: relative to the project.

    since: seconds since 1970. server: leads the server's process group. keeper: stands by it, and ends what it leaves.
    folder: device and inode of the folder of the record, since a copy of a project has no servers of its own.
    ended: how it ended by itself, "" for exit code 0; None where it runs, or nobody was there to say. One that a user
    ends leaves no record.
    """

    name: str
    key: str
    port: int
    command: str
    log: str
    since: float
    server: Process
    keeper: Process
    folder: tuple[int, int]
    ended: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def up(self) -> bool:
        """It runs; whether it answers is another question."""
        return self.server.alive

    @property
    def gone(self) -> bool:
        """Nothing of it runs any more."""
        return not self.server.alive and not self.keeper.alive

    def signal(self, number: int) -> None:
        """Signal the whole group; nothing happens where it has ended."""
        if self.server.alive:
            signal_group(self.server.pid, number)

    def end(self) -> bool:
        """End it, all that it started, and its record: SIGTERM, SIGKILL three seconds later.

        Whether nothing of it is left.
        """
        if self.keeper.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.keeper.pid, signal.SIGTERM)
        else:
            self.signal(signal.SIGTERM)
        if not self._is_gone_in(END_S + 1):
            self.signal(signal.SIGKILL)
        return self._is_gone_in(GONE_S)

    def _is_gone_in(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.gone:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True


class KeptServer:
    """A kept server in the place of a process that the build started itself."""

    def __init__(self, folder: Path, kept: Kept) -> None:
        self._folder = folder
        self._kept = kept

    @property
    def port(self) -> int:
        return self._kept.port

    def signal(self, number: int) -> None:
        self._kept.signal(number)

    def wait(self, timeout_s: float) -> Ended | None:
        """How it ended; None where it, or what it left, still runs after the time given."""
        deadline = time.monotonic() + timeout_s
        while not self._kept.gone:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            time.sleep(min(POLL_S, left_s))
        last = find(self._folder, self._kept.name)
        told = last.ended if last and last.server == self._kept.server else None
        return Ended("lost (what watched over it was killed)" if told is None else told)


def find(folder: Path, name: str) -> Kept | None:
    """The record of a service in a folder of records; None where there is none of this project, or none to be read."""
    try:
        return read(folder, name)
    except OSError:
        return None


def read(folder: Path, name: str) -> Kept | None:
    """Like `find`, but raises OSError where there is no record, or where the system can't read it."""
    try:
        kept = msgspec.json.decode(record_path(folder, name).read_bytes(), type=Kept)
    except msgspec.MsgspecError:
        return None
    return kept if kept.folder == folder_id(folder) else None


def all_kept(folder: Path) -> list[Kept]:
    """Every record in a folder, by name; also of servers that have ended."""
    found = (find(folder, path.stem) for path in sorted(folder.glob("*.json")))
    return [kept for kept in found if kept]


def record_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def log_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.log"


def folder_id(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _born(pid: int) -> str:
    """What tells a process from all others that ever have its id; "" where there is none, or nothing but its exit."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return "" if state in "ZX" else f"{_boot()}/{fields[_STARTED_FIELD - 1]}"
        return ""
    told = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True).stdout
    state, _, born = told.strip().partition(" ")
    return "" if state.startswith("Z") else born.strip()


@cache
def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
