"""One build of a project at a time: a lock that the kernel drops with its process, however that ends.

Knows nothing of what the holder does but the line that it says of itself.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from buildsys.errors import LOCKED, BuildError


@contextmanager
def hold(path: Path, command: str) -> Iterator[None]:
    """Hold the lock while the block runs. Where another process has it: BuildError, exit 5, naming the holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _held(os.pread(descriptor, 4096, 0)) from None
        started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        said = json.dumps({"pid": os.getpid(), "command": command, "started": started})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, said.encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _held(said: bytes) -> BuildError:
    try:
        facts = [(name, str(value)) for name, value in json.loads(said).items()]
    except ValueError:  # the holder has not said it yet
        facts = []
    return BuildError(
        "another build holds this project",
        facts=facts,
        hint="wait for it, or end it; `buildsys sql` and the other reading commands work meanwhile",
        exit_code=LOCKED,
    )
