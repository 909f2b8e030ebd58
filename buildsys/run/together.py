"""What the processes of one worker have found, each told to all: a file without a name, to which each of them appends.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of what is told.
"""

from __future__ import annotations

import fcntl
import marshal
import mmap
import os
import struct
from collections.abc import Iterator
from typing import Any

_HEAD = struct.Struct("<I")


class Together:
    """Made before the first fork. Whoever closes its descriptor, as daemons close all, is told of in `lost`."""

    def __init__(self) -> None:
        self._fd = _file_without_name()
        self._is = self._identity()
        self._read = 0
        self._lost = mmap.mmap(-1, 1)  # Shared, other than a flag of this object.

    @property
    def lost(self) -> bool:
        """Whether any of the processes could not tell what it had found."""
        return bool(self._lost[0])

    def tell(self, found: tuple[Any, ...]) -> None:
        data = marshal.dumps(found)
        frame = _HEAD.pack(len(data)) + data
        # One write at the end of a file: the kernel lets no other come between.
        if self._identity() != self._is or os.write(self._fd, frame) != len(frame):
            self._lost[0] = 1

    def heard(self) -> Iterator[tuple[Any, ...]]:
        """What was told since this process last asked, its own included."""
        if self._identity() != self._is:
            self._lost[0] = 1
            return
        size = os.fstat(self._fd).st_size
        while self._read + _HEAD.size <= size:
            (n,) = _HEAD.unpack(os.pread(self._fd, _HEAD.size, self._read))
            if self._read + _HEAD.size + n > size:
                return
            data = os.pread(self._fd, n, self._read + _HEAD.size)
            self._read += _HEAD.size + n
            yield marshal.loads(data)

    def _identity(self) -> tuple[int, int] | None:
        """Which file the descriptor means by now: its number may have been given away."""
        try:
            found = os.fstat(self._fd)
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _file_without_name() -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("buildsys")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
    return fd
