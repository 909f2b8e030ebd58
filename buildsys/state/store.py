"""The content-addressed store: bytes by digest, written once, read-only, verified whenever they are copied out.

Knows nothing of rules, keys or the manifest, and never deletes but a damaged object. An object is a file
`.buildsys/store/ab/cdef...` named by its digest. A folder is a listing object and one object a file. The x bit is no
part of an object: whoever asks for a file says whether it is executable.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final

from buildsys.digest import Digest
from buildsys.model import Artifact
from buildsys.state.content import Entry, digest_stream, entries_of, is_executable, listing_of, walk

_FICLONE: Final = 0x40049409


class Damaged(Exception):
    """The store does not hold the bytes of this digest: they are missing or were changed, and are dropped by now."""

    def __init__(self, digest: Digest) -> None:
        super().__init__(f"damaged object {digest} in the store")
        self.digest = digest


class Store:
    """The store of one project; safe to use from several threads and processes: objects only ever appear whole."""

    def __init__(self, state: Path) -> None:
        """state: the project's `.buildsys` folder."""
        self._objects = state / "store"
        self._links = state / "links"
        self._new = self._objects / "new"
        self._new.mkdir(parents=True, exist_ok=True)
        self._can_clone = sys.platform.startswith("linux")
        self._numbers = count()

    def put(self, path: Path) -> Artifact:
        """Keep a file or folder; it is read once. The artifact's path is the name of `path`.

        Lasting only after `sync`.
        """
        found = os.stat(path)
        if not path.is_dir():
            digest, size = self._put_file(path)
            return Artifact(path.name, digest, size, executable=is_executable(found.st_mode))
        entries = []
        for name, below in walk(str(path)):
            digest, size = self._put_file(path / name)
            entries.append(Entry(name, digest, size, is_executable(below.st_mode)))
        digest, _ = self._put_stream(BytesIO(listing_of(entries)))
        return Artifact(path.name, digest, sum(entry.size for entry in entries), tree=True)

    def has(self, artifact: Artifact) -> bool:
        """All of its objects are there; they are not read."""
        try:
            digests = [entry.digest for entry in self.listing(artifact.digest)] if artifact.tree else [artifact.digest]
        except Damaged:
            return False
        return all(self._object(digest).exists() for digest in digests)

    def get(self, artifact: Artifact, target: Path) -> None:
        """Write an artifact to `target`, which must not exist (in staging, to be published from there).

        Every byte is verified. Raises Damaged, with nothing left at `target`.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if artifact.tree:
                target.mkdir()
                for entry in self.listing(artifact.digest):
                    (target / entry.name).parent.mkdir(parents=True, exist_ok=True)
                    self._get_file(entry.digest, target / entry.name, entry.executable)
            else:
                self._get_file(artifact.digest, target, artifact.executable)
        except BaseException:
            _remove(target)
            raise

    def link(self, artifact: Artifact, name: str) -> Path:
        """A path that ends in `name` and leads to the stored bytes, for reading only.

        The same path for the same digest and name, whenever it is asked for. A folder is a folder of links. Raises
        Damaged where objects are missing; does not verify the bytes.
        """
        if not self.has(artifact):
            raise Damaged(artifact.digest)
        link = self._links / artifact.digest / name
        if os.path.lexists(link):
            return link
        with self._temporary() as temporary:
            if artifact.tree:
                self._link_folder(artifact.digest, link, temporary)
            else:
                self._link_file(artifact.digest, link, temporary)
            link.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.rename(temporary, link)
            except OSError:
                if not link.is_dir():  # else another thread was faster; a rename never replaces a folder with files
                    raise
        return link

    def listing(self, digest: Digest) -> tuple[Entry, ...]:
        """The files of a stored folder. Raises Damaged."""
        copy = BytesIO()
        try:
            with self._object(digest).open("rb") as file:
                found = digest_stream(file, copy)
        except FileNotFoundError:
            raise Damaged(digest) from None
        if found != digest:
            raise self._dropped(digest)
        return entries_of(copy.getvalue())

    def sweep(self) -> None:
        """Remove what killed processes left half written; only for the one process that holds the build lock."""
        for path in self._new.iterdir():
            _remove(path)

    def sync(self) -> None:
        """Make all that was put so far outlast a power cut: one call for a group of puts."""
        if not sys.platform.startswith("linux"):
            os.sync()
            return
        fd = os.open(self._objects, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), str(self._objects))
        finally:
            os.close(fd)

    def _object(self, digest: Digest) -> Path:
        return self._objects / digest[:2] / digest[2:]

    def _put_file(self, path: Path) -> tuple[Digest, int]:
        with path.open("rb") as source:
            return self._put_stream(source)

    def _put_stream(self, source: BinaryIO) -> tuple[Digest, int]:
        with self._temporary() as temporary:
            with temporary.open("wb") as file:
                digest = self._copy(source, file)
            size = temporary.stat().st_size
            target = self._object(digest)
            if not target.exists() or target.stat().st_size != size:
                temporary.chmod(0o444)
                target.parent.mkdir(exist_ok=True)
                os.rename(temporary, target)
        return digest, size

    def _get_file(self, digest: Digest, target: Path, executable: bool) -> None:
        try:
            source = self._object(digest).open("rb")
        except FileNotFoundError:
            raise Damaged(digest) from None
        with source, target.open("xb") as file:
            found = self._copy(source, file)
        if found != digest:
            raise self._dropped(digest)
        if executable:
            target.chmod(target.stat().st_mode | 0o111)

    def _copy(self, source: BinaryIO, target: BinaryIO) -> Digest:
        """Copy by sharing blocks where the file system can; gives the digest of what was copied."""
        if self._can_clone and not isinstance(source, BytesIO):
            try:
                fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
            except OSError:
                self._can_clone = False
            else:
                return digest_stream(source)
        return digest_stream(source, target)

    def _dropped(self, digest: Digest) -> Damaged:
        self._object(digest).unlink(missing_ok=True)
        return Damaged(digest)

    def _link_folder(self, digest: Digest, link: Path, temporary: Path) -> None:
        temporary.mkdir()
        for entry in self.listing(digest):
            (temporary / entry.name).parent.mkdir(parents=True, exist_ok=True)
            self._link_file(entry.digest, link / entry.name, temporary / entry.name)

    def _link_file(self, digest: Digest, link: Path, temporary: Path) -> None:
        """Relative, so that a project that is moved keeps its links."""
        temporary.symlink_to(os.path.relpath(self._object(digest), link.parent))

    @contextmanager
    def _temporary(self) -> Iterator[Path]:
        """A new name in the store's file system; what is still there at the end is removed."""
        path = self._new / f"{os.getpid()}-{next(self._numbers)}"
        try:
            yield path
        finally:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
