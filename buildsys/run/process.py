"""The builder's side of a zygote: start one, let it fork workers and commands, hear how they ended, end them.

Knows nothing of actions. The building process holds a database connection and has threads, so it never forks without
exec: it starts one program (`worker.py`) and everything else is forked there.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import dumps
from typing import Final

from buildsys.errors import FAILED, BuildError
from buildsys.run.landlock import Limits
from buildsys.run.messages import ENDED, PID, send

PROGRAM = Path(__file__).with_name("worker.py")
CLOSE_S = 3.0
LEAVE_S = 0.3
SAID_LINES = 5
_END_BYTES: Final = 1 << 16
"""Of a log, which a server that stays may fill with gigabytes."""
WORKERS: Final[Sequence[str]] = ()
COMMANDS: Final[Sequence[str]] = ("-I", "-S")
"""Flags of Python: a zygote that only starts commands needs no packages."""


@dataclass(frozen=True)
class Ended:
    """How a process ended. exit: "" for exit code 0, else "exit code 3", "signal 9 (...)". max_rss in bytes."""

    exit: str
    cpu_s: float = 0.0
    max_rss: int = 0


class Child:
    """A process that a zygote forked, leader of a process group. Not thread-safe but for `signal`."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._ended: Ended | None = None

    def fileno(self) -> int:
        """A descriptor that becomes readable when the process has ended."""
        return self._status

    def signal(self, number: int) -> None:
        """Signal the whole group; nothing happens where it has ended."""
        if self._ended is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def wait(self, timeout_s: float | None = None) -> Ended | None:
        """How it ended; None where it still runs after the time given."""
        if self._ended is None:
            timeout_ms = None if timeout_s is None else max(0, int(timeout_s * 1000))
            if not readable(self._status, timeout_ms=timeout_ms):
                return None
            data = os.read(self._status, ENDED.size)
            if not data:
                # Its zygote was killed: nobody watches over it any more.
                self.signal(signal.SIGKILL)
            os.close(self._status)
            self._ended = _ended(data)
        return self._ended

    def end(self, timeout_s: float) -> Ended:
        """Wait so long for its end, then kill the group."""
        ended = self.wait(timeout_s)
        if ended is None:
            self.signal(signal.SIGKILL)
            ended = self.wait()
        assert ended is not None
        return ended


class Zygote:
    """One interpreter that forks on request; all that it forked ends with it, and it ends with this process."""

    def __init__(self, python: str, env: Mapping[str, str], cwd: Path, flags: Sequence[str]) -> None:
        self.python = python
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # Open as long as the process.
        self._control, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [python, *flags, str(PROGRAM), str(theirs.fileno())],
                    env=dict(env),
                    cwd=cwd,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    start_new_session=True,
                )
            except OSError as error:
                self._control.close()
                self._errors.close()
                raise BuildError(
                    f"the interpreter {python} does not start",
                    facts=[("reason", error.strerror or str(error))],
                    hint="name an existing Python, 3.9 or later, as the rule's `python`",
                    exit_code=FAILED,
                ) from None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, preload: Sequence[str]) -> tuple[Child, socket.socket]:
        """A fresh worker, and the connection on which it is called. Imports `preload` first, which may take seconds."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                return self._start({"preload": tuple(preload)}, theirs.fileno()), ours
        except BaseException:
            ours.close()
            raise

    def execute(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, sandbox: Limits | None = None
    ) -> Child:
        """Start a program with all its output at the end of `log`. argv[0] is a path."""
        program = {"argv": list(argv), "env": dict(env), "cwd": str(cwd), "log": str(log)}
        return self._start(program | {"sandbox": sandbox})

    def _start(self, request: Mapping[str, object], *descriptors: int) -> Child:
        status, reported = os.pipe()
        try:
            with self._lock:
                try:
                    send(self._control, dumps(request, protocol=4), [reported, *descriptors])
                finally:
                    os.close(reported)
                pid = os.read(status, PID.size)
            if len(pid) < PID.size:
                raise EOFError
        except (OSError, EOFError):
            os.close(status)
            raise self._failure() from None
        return Child(PID.unpack(pid)[0], status)

    def _failure(self) -> BuildError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_S)
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        code = self._process.returncode
        return BuildError(
            f"the interpreter {self.python} can't start workers",
            facts=[("ended with", "no answer" if code is None else exit_text(code))],
            excerpt="\n".join(said[-SAID_LINES:]),
            hint="workers need Python 3.9 or later, with modules that import without crashing",
            exit_code=FAILED,
        )

    def leave(self) -> None:
        """Tell it to end with all that it forked, without waiting; who asks for a fork gets an error."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)

    def kill(self, after_s: float) -> None:
        """Wait so long for its end, then end it in the middle of whatever it does."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(after_s)
        self._process.kill()

    def close(self) -> None:
        """End it and what it forked: SIGTERM, a second later SIGKILL."""
        self._control.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def kill_together(zygotes: Sequence[Zygote], children: Iterable[Child]) -> None:
    """End all of them now, whatever they do. Takes a moment: only a zygote knows what has left the groups."""
    for child in children:
        child.signal(signal.SIGKILL)
    for zygote in zygotes:
        zygote.leave()
    deadline = time.monotonic() + LEAVE_S
    for zygote in zygotes:
        # One may be in the middle of an import that takes long.
        zygote.kill(max(0.0, deadline - time.monotonic()))


def readable(*descriptors: int, timeout_ms: int | None = None) -> list[int]:
    """Those that can be read, or whose other end is gone. Unlike select, for any number of open files."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(timeout_ms)]


def _ended(data: bytes) -> Ended:
    if len(data) < ENDED.size:
        return Ended("lost (the process that watches over it was killed)")
    status, cpu_s, max_rss = ENDED.unpack(data)
    return Ended(exit_text(os.waitstatus_to_exitcode(status)), cpu_s, max_rss)


def last_lines(log: Path, most: int) -> str:
    """The end of what was printed, at most so many lines; "" where the log can't be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _END_BYTES))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-most:])
    except OSError:
        return ""


def exit_text(code: int) -> str:
    """An exit code as people read it; negative for a signal, as subprocess has it."""
    if code == 0:
        return ""
    if code > 0:
        # What a shell makes of a signal.
        return f"exit code {code}" + (f" ({_signal(code - 128)})" if code > 128 else "")
    return f"signal {-code} ({_signal(-code)})"


def _signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return "unknown"
    said = (signal.strsignal(number) or "").lower()
    return f"{name}: killed; out of memory?" if number == signal.SIGKILL else f"{name}: {said}"
