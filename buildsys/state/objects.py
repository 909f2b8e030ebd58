"""Bytes by digest: written once, read-only, and verified before anybody reads them.

Knows nothing of artifacts and folders. An object is a file `ab/cdef...` named by its digest. What was verified is known
by its stat from then on; of large objects later builds know it too, since reading one costs more than a line in a file.
"""

from __future__ import annotations

import fcntl
import os
import stat as modes
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final

from buildsys.digest import Digest
from buildsys.state.content import digest_stream, is_executable
from buildsys.state.stats import Stat

LARGE: Final = 1 << 20
"""Bytes from which later builds are told that an object was verified."""
_FICLONE: Final = 0x40049409


class Damaged(Exception):
    """The store does not hold the bytes of this digest: they are missing or were changed, and are dropped by now."""

    def __init__(self, digest: Digest) -> None:
        super().__init__(f"damaged object {digest} in the store")
        self.digest = digest


class Objects:
    """The objects below one folder; safe to use from several threads and processes: they only ever appear whole."""

    def __init__(self, folder: Path, link_above: int) -> None:
        """link_above: bytes from which a file is not copied in and out, but gets another name, and is read-only."""
        self._folder = folder
        self._link_above = link_above
        self._new = folder / "new"
        self._new.mkdir(parents=True, exist_ok=True)
        self._numbers = count()
        self._verified_path = folder / "verified"
        self._verified: dict[Digest, Stat] = {}
        self._reading = threading.Lock()

    def path(self, digest: Digest) -> Path:
        return self._folder / digest[:2] / digest[2:]

    def put(self, path: Path) -> tuple[Digest, int]:
        """Keep a file's bytes; gives their digest and size. It is read once.

        A large one shares its bytes with the object from then on, and is read-only.
        """
        with self._temporary() as temporary, path.open("rb") as source:
            if _is_only_name(path) and self._may_link(source) and _link(path, temporary):
                digest = digest_stream(source)
                self._place_link(path, temporary, digest)
            else:
                with temporary.open("x+b") as file:
                    digest = self._copy(source, file)
                self._place(temporary, digest)
            return digest, os.fstat(source.fileno()).st_size

    def moved(self, digest: Digest) -> None:
        """Another name of an object was moved: that gives it another ctime, and so what is known of it another stat."""
        known = self._verified.get(digest)
        if known and known.size > self._link_above:
            now = Stat.of(os.stat(self.path(digest)))
            if known._replace(ctime_ns=now.ctime_ns) == now:
                self._trust(digest, now)

    def put_bytes(self, digest: Digest, content: bytes) -> None:
        """Keep bytes under a digest that is not that of plain bytes: whoever reads them verifies them; see `read`."""
        with self._temporary() as temporary:
            temporary.write_bytes(content)
            self._place(temporary, digest)

    def read(self, digest: Digest) -> bytes:
        """An object's bytes, not verified. Raises Damaged where it is missing."""
        try:
            return self.path(digest).read_bytes()
        except FileNotFoundError:
            raise Damaged(digest) from None

    def verify(self, digest: Digest) -> None:
        """Raises Damaged, with the object dropped, where it does not hold the bytes of its digest.

        It is read only where its stat is not the one that it had when it was last known to be sound.
        """
        if self._is_known(digest):
            return
        with self._reading:  # threads that need one large object at once read it once
            if self._is_known(digest):
                return
            with self._opened(digest) as file:
                before = Stat.of(os.fstat(file.fileno()))
                if digest_stream(file) != digest:
                    raise self.dropped(digest, before.inode)
            self._trust(digest, before)

    def copy_out(self, digest: Digest, target: Path, executable: bool) -> None:
        """Write an object's bytes to `target`, a new file. Raises Damaged, with `target` left as it is, when wrong."""
        with self._opened(digest) as source:
            if self._may_link(source) and not executable:
                self.verify(digest)
                if _link(self.path(digest), target):
                    self.moved(digest)
                    return
            with target.open("x+b") as file:
                if self._copy(source, file) != digest:
                    raise self.dropped(digest, os.fstat(source.fileno()).st_ino)
        if executable:
            target.chmod(target.stat().st_mode | 0o111)

    def dropped(self, digest: Digest, inode: int = 0) -> Damaged:
        """Remove a damaged object. inode: of what was read, where another thread may have put it anew since."""
        with suppress(FileNotFoundError):
            if not inode or os.stat(self.path(digest)).st_ino == inode:
                self.path(digest).unlink()
        return Damaged(digest)

    def sweep(self) -> None:
        """Remove what killed processes left half written."""
        for path in self._new.iterdir():
            path.unlink()

    def sizes(self) -> dict[Digest, int]:
        """Every object, and its size in bytes."""
        return {
            Digest(folder.name + path.name): path.stat().st_size
            for folder in self._folder.glob("??")
            for path in folder.iterdir()
        }

    def forget(self, digests: Collection[Digest]) -> None:
        """Remove objects for good, and what is remembered of them."""
        for digest in digests:
            self.path(digest).unlink(missing_ok=True)
            self._verified.pop(digest, None)
        kept = [
            " ".join([digest, *map(str, stat)]) + "\n"
            for digest, stat in self._remembered.items()
            if digest not in digests
        ]
        with self._temporary() as temporary:
            temporary.write_text("".join(kept))
            os.rename(temporary, self._verified_path)

    def _place_link(self, path: Path, temporary: Path, digest: Digest) -> None:
        """Both are names of one file: it becomes the object, or where that is there already, `path` a name of that."""
        if self._is_known(digest):
            temporary.unlink()
            os.link(self.path(digest), temporary)
            os.rename(temporary, path)
            self.moved(digest)
        else:
            self._place(temporary, digest)

    def _may_link(self, file: BinaryIO) -> bool:
        """It is too large to be there twice, and its blocks can't be shared. The x bit is no part of an object."""
        found = os.fstat(file.fileno())
        return found.st_size > self._link_above and not is_executable(found.st_mode) and not self._can_clone

    @cached_property
    def _can_clone(self) -> bool:
        """The file system shares blocks between files, so that copies cost nothing."""
        with self._temporary() as one, self._temporary() as other:
            one.write_bytes(b"x")
            with one.open("rb") as source, other.open("x+b") as file:
                return clone(source, file)

    def _opened(self, digest: Digest) -> BinaryIO:
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            raise Damaged(digest) from None

    def _place(self, temporary: Path, digest: Digest) -> None:
        """What is there already is replaced, unless it is known to be sound: that costs less than reading it."""
        if self._is_known(digest):
            return
        target = self.path(digest)
        temporary.chmod(0o444)
        target.parent.mkdir(exist_ok=True)
        os.rename(temporary, target)
        self._trust(digest, Stat.of(os.stat(target)))

    def _copy(self, source: BinaryIO, target: BinaryIO) -> Digest:
        """Copy by sharing blocks where the file system can; gives the digest of what was copied."""
        if self._can_clone and clone(source, target):
            return digest_stream(target)
        return digest_stream(source, target)

    def _is_known(self, digest: Digest) -> bool:
        """It is as it was when it was last known to be sound."""
        try:
            now = Stat.of(os.stat(self.path(digest)))
        except FileNotFoundError:
            return False
        known = self._verified.get(digest)
        if known is None and now.size >= LARGE:
            known = self._remembered.get(digest)
        return known == now

    def _trust(self, digest: Digest, stat: Stat) -> None:
        self._verified[digest] = stat
        if stat.size >= LARGE:
            with self._verified_path.open("a") as file:
                file.write(" ".join([digest, *map(str, stat)]) + "\n")

    @cached_property
    def _remembered(self) -> dict[Digest, Stat]:
        """What earlier builds verified. A line that a kill or a full disk cut short says nothing."""
        if not self._verified_path.exists():
            return {}
        lines = [line.split(" ") for line in self._verified_path.read_text(errors="replace").splitlines()]
        return {
            Digest(digest): Stat(*map(int, numbers))
            for digest, *numbers in lines
            if len(numbers) == len(Stat._fields) and all(map(str.isdecimal, numbers))
        }

    @contextmanager
    def _temporary(self) -> Iterator[Path]:
        """A new name in the store's file system; what is still there at the end is removed."""
        path = self._new / f"{os.getpid()}-{next(self._numbers)}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


def clone(source: BinaryIO, target: BinaryIO) -> bool:
    """Have `target` share the blocks of `source`; False, with nothing done, where the file system can't."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:
        return False
    return True


def _is_only_name(path: Path) -> bool:
    """A file that nobody else has: one with other names may be a source, whose bytes are its user's to change."""
    found = os.lstat(path)
    return modes.S_ISREG(found.st_mode) and found.st_nlink == 1


def _link(path: Path, name: Path) -> bool:
    """Give a file another name; False where the file system can't, or it is another one."""
    try:
        os.link(path, name)
    except OSError:
        return False
    return True
