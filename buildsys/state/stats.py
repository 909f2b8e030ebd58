"""What the file system says of a file without reading it, and its own clock, which says how far that can be trusted.

Knows nothing of what a file is for. A stat that is not older than the clock proves nothing: two edits within one tick
may leave equal stats.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from buildsys.state.content import walk


class Stat(NamedTuple):
    """One file. size: bytes; times: ns; mode: with the type bits."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stat:
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)

    @property
    def is_folder(self) -> bool:
        return modes.S_ISDIR(self.mode)

    @property
    def newest_ns(self) -> int:
        return max(self.mtime_ns, self.ctime_ns)


def members_of(full: str, called: str, *, whole: bool = False) -> Iterator[tuple[str, Stat]]:
    """Each file and empty folder below a folder; see `content.walk`. Of an empty folder only inode and mode count."""
    for name, found in walk(full, called, whole=whole):
        stat = Stat.of(found)
        yield name, Stat(0, 0, 0, stat.inode, stat.mode) if name.endswith("/") else stat


def clock_ns(state: Path) -> int:
    """The time that the file system would give to a file that is written now. state: the project's `.buildsys`."""
    state.mkdir(exist_ok=True)
    fd = os.open(state / "clock", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.utime(fd)
        return os.fstat(fd).st_ctime_ns
    finally:
        os.close(fd)
