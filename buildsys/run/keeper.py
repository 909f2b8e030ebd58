"""The process that stands by a kept server, and how the two are started.

It belongs to no build and no terminal. It starts the server, records it, waits for its end and ends what the server
leaves; it ends the server itself where the record is gone or is no longer its own. So whatever is killed, no server
runs of which nobody knows. Knows nothing of what a server is asked, nor of when one is to be kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from buildsys.errors import FAILED, BuildError
from buildsys.run.kept import END_S, POLL_S, Kept, Process, find, folder_id, log_path, read, record_path
from buildsys.run.messages import Message
from buildsys.run.process import exit_text, readable
from buildsys.run.worker import adopt_orphans, end_orphans, execute, signal_group

LOOK_S = 2.0
"""How often the keeper sees whether the record is still there."""


def start(
    name: str, key: str, port: int, command: str, argv: Sequence[str], env: Mapping[str, str], root: Path, folder: Path
) -> Kept:
    """Start a server in `root` that stays, and give its record, which is in `folder` by then.

    Whoever is killed meanwhile: either nothing runs, or it is recorded. What was recorded for `name` must be gone. If
    a build that was killed just now has started one after all, its record is given instead, or it is ended if it has
    another key. env: the server's whole environment, which is recorded nowhere. Raises BuildError where no record can
    be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _turn(folder) as turn:
        found = find(folder, name)
        if found and found.key == key and found.up:
            return found
        if found:
            found.end()
        request = {
            "name": name,
            "key": key,
            "port": port,
            "command": command,
            "argv": list(argv),
            "env": dict(env),
            "folder": os.path.relpath(folder, root),
            "turn": turn,
        }
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__, name],  # The name is there for those who look at `ps`.
            input=json.dumps(request).encode(),
            capture_output=True,
            cwd=root,
            start_new_session=True,
            pass_fds=[turn],
        )
    try:
        return msgspec.json.decode(done.stdout, type=Kept)
    except msgspec.MsgspecError:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BuildError(
            f'service "{name}" can\'t be started as one that is kept',
            facts=[("reason", said[-1] if said else "no answer")],
            hint=f"it is recorded in {request['folder']}, which must be a folder that can be written to",
            exit_code=FAILED,
        ) from None


@contextmanager
def _turn(folder: Path) -> Iterator[int]:
    """One start at a time: a lock that lasts until the record is written, though whoever asked was killed."""
    descriptor = os.open(folder / ".starting", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


class Keeper:
    """Stands by one server. Its working folder is the project, which may be moved meanwhile."""

    def __init__(self, kept: Kept, folder: Path) -> None:
        self._kept = kept
        self._folder = folder
        self._asked_to_end = False
        self._status: int | None = None

    def heed_signals(self) -> int:
        """From here on signals end nothing at once. Gives a descriptor that can be read when one has come."""
        wake, waker = os.pipe()
        for descriptor in (wake, waker):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._ask_to_end)
        return wake

    def stand_by(self, wake: int) -> None:
        """Return when nothing of the server runs any more."""
        while self._reap() and self._status is None and not self._asked_to_end and self._is_recorded():
            if readable(wake, timeout_ms=int(LOOK_S * 1000)):
                os.read(wake, 4096)
        signal_group(self._kept.server.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while self._reap() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        signal_group(self._kept.server.pid, signal.SIGKILL)
        end_orphans()
        self._reap()
        if self._is_recorded():
            with contextlib.suppress(OSError):
                self._record_end()

    def _record_end(self) -> None:
        """Nobody writes another record of the name before this process has ended."""
        if self._asked_to_end:
            record_path(self._folder, self._kept.name).unlink()
        elif self._status is not None:
            write(self._folder, replace(self._kept, ended=exit_text(os.waitstatus_to_exitcode(self._status))))

    def _ask_to_end(self, _number: int, _frame: FrameType | None) -> None:
        self._asked_to_end = True

    def _reap(self) -> bool:
        """Whether there is a child, after those that have ended were taken in."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self._kept.server.pid:
                    self._status = status
        return False

    def _is_recorded(self) -> bool:
        """Not where the record is gone or is another's; a file system that can't be read for a moment says nothing."""
        try:
            found = read(self._folder, self._kept.name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return found is not None and found.keeper == self._kept.keeper


def write(folder: Path, kept: Kept) -> None:
    """Replace the record of a service as a whole."""
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
        os.replace(temporary, record_path(folder, kept.name))
    except BaseException:
        os.unlink(temporary)
        raise


def main() -> None:
    """Read the request, leave whoever made it, keep the server until its end. Prints the record once it is written."""
    data = sys.stdin.buffer.read()
    try:
        request = json.loads(data)
    except ValueError:  # The build was killed while it asked.
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    os.set_inheritable(request["turn"], False)
    folder = Path(request["folder"])
    server, release = _held_server(request["argv"], request["env"], str(log_path(folder, request["name"])))
    kept = Kept(
        name=request["name"],
        key=request["key"],
        port=request["port"],
        command=request["command"],
        log=str(log_path(folder, request["name"])),
        since=time.time(),
        server=Process.of(server),
        keeper=Process.of(os.getpid()),
        folder=folder_id(folder),
    )
    write(folder, kept)
    os.close(request["turn"])
    keeper = Keeper(kept, folder)
    wake = keeper.heed_signals()
    os.write(release, b"1")
    os.close(release)
    _tell(kept)
    keeper.stand_by(wake)


def _held_server(argv: Sequence[str], env: Mapping[str, str], log: str) -> tuple[int, int]:
    """The server's process, which begins once a byte is written to the descriptor, and ends where that is closed."""
    held, release = os.pipe()
    pid = os.fork()
    if not pid:
        _become_server(held, release, {"argv": argv, "env": env, "cwd": ".", "log": log})
    os.close(held)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    return pid, release


def _become_server(held: int, release: int, request: Message) -> NoReturn:
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        os.close(release)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if os.read(held, 1):
            _leave_streams()
            code = execute(request)
    finally:
        os._exit(code)


def _tell(kept: Kept) -> None:
    """Print the record, and let go of the streams, which whoever asked reads to their end."""
    sys.stdout.buffer.write(msgspec.json.encode(kept))
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    _leave_streams()


def _leave_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


if __name__ == "__main__":
    main()
