"""The content-addressed store: artifacts by digest, verified whenever they are copied out or linked.

Knows nothing of rules, keys or the manifest, and deletes of itself only a damaged object. A file is one object; a
folder is its listing and one object a file. The x bit is no part of an object: whoever asks for a file says whether it
is executable.
"""

from __future__ import annotations

import os
import shutil
import stat as modes
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeAlias

from buildsys.digest import Digest
from buildsys.errors import BuildError
from buildsys.model import Artifact, Keeping
from buildsys.state.content import (
    LISTING,
    Entry,
    digest_folder,
    digest_stream,
    entries_of,
    is_executable,
    listing_of,
    walk,
)
from buildsys.state.disk import remove
from buildsys.state.objects import Damaged, Objects

__all__ = ["Damaged", "Store"]

_Take: TypeAlias = Callable[[Path], tuple[Digest, int]]
"""Reads a file, for its digest and size."""
_Names: TypeAlias = "dict[str, Path | _Names]"
"""What is in a folder of links: where each leads to, or what is in a folder below."""


class Store:
    """The store of one project; safe to use from several threads, and for all but links from several processes."""

    def __init__(self, state: Path, link_above: int = Keeping.link_above) -> None:
        """state: the project's `.buildsys` folder. link_above: bytes from which files are linked, not copied."""
        self._objects = Objects(Path(os.path.abspath(state)) / "store", link_above)
        self._links = state / "links"
        self._measured: dict[Digest, tuple[Entry, ...]] = {}
        self._linking = threading.Lock()

    def put(self, path: Path) -> Artifact:
        """Keep a file or folder that an action made; it is read once. The artifact's path is the name of `path`.

        What is a link, holds links, or shares its bytes with another name is then replaced at `path` by a plain copy:
        what is published must not change with a file that is not the build's, nor the store with it. Raises BuildError
        for what has no content of its own: a link to nowhere or in a circle, a pipe.
        """
        is_plain = _is_plain(path)  # asked first: putting an object anew may take the second name from it
        artifact = self._keep(path)
        if not is_plain:
            _replace(path, lambda copy: self.get(artifact, copy))
        return artifact

    def measure(self, path: Path) -> Artifact:
        """The same for what is not kept: bytes of its own at `path`, read once."""
        if not _is_plain(path):
            _replace(path, lambda copy: (shutil.copytree if path.is_dir() else shutil.copy)(path, copy))
        artifact, listing = _read(path, _digest_and_size)
        if artifact.tree:
            self._measured[artifact.digest] = entries_of(listing)
        return artifact

    def heal(self, artifact: Artifact, path: Path) -> bool:
        """Put an artifact of which objects are lost back from a copy at `path`.

        False, with nothing done, where there is none or it holds other bytes.
        """
        try:
            found, _ = _read(path, _digest_and_size)
            return _is_same(found, artifact) and _is_same(self._keep(path), artifact)
        except (BuildError, OSError):
            return False

    def has(self, artifact: Artifact) -> bool:
        """All of its objects are there; they are not read."""
        try:
            digests = _digests(self.listing(artifact.digest)) if artifact.tree else [artifact.digest]
        except Damaged:
            return False
        return all(self._objects.path(digest).exists() for digest in digests)

    def knows(self, digest: Digest) -> bool:
        """Bytes or a folder of this digest were put here, so a copy of them elsewhere may be thrown away."""
        return self._objects.path(digest).exists()

    def get(self, artifact: Artifact, target: Path) -> None:
        """Write an artifact to `target`, which must not exist (in staging, to be published from there).

        Every byte is verified. Raises Damaged, with nothing left at `target`.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if artifact.tree:
                self._get_folder(artifact.digest, target)
            else:
                self._get_file(artifact.digest, target, artifact.executable)
        except BaseException:
            remove(target)
            raise

    def link(self, artifact: Artifact, name: str) -> Path:
        """A path that ends in `name` and leads to the stored bytes, for reading only.

        The same path for the same digest and name, whenever it is asked for. A folder is a folder of links; whatever
        else an action left in it is removed. Raises Damaged where the bytes are missing, or are not those of the
        digest: they are read unless their stat says that they were verified. The links are absolute, so that a copy of
        one leads to the bytes as well; where the project was moved they are made anew.
        """
        link = self._links / artifact.digest / name
        entries = self.listing(artifact.digest) if artifact.tree else ()
        for digest in _digests(entries) if artifact.tree else (artifact.digest,):
            self._objects.verify(digest)
        with self._linking:
            link.parent.mkdir(parents=True, exist_ok=True)
            if artifact.tree:
                names = self._names(entries)
                if not _holds(link, names):
                    _mend(link, names)
            else:
                _lead(link, self._objects.path(artifact.digest))
        return link

    def link_or_heal(self, artifact: Artifact, name: str, copy: Path) -> Path:
        """`link`; bytes that were lost are put back first, from a copy that still holds them."""
        try:
            return self.link(artifact, name)
        except Damaged:
            if not self.heal(artifact, copy):
                raise
            return self.link(artifact, name)

    def lead(self, key: Digest, name: str, target: Path) -> Path:
        """A path that ends in `name` and leads to what is not kept here, the same one for the same key and name."""
        link = self._links / key / name
        with self._linking:
            link.parent.mkdir(parents=True, exist_ok=True)
            _lead(link, target.absolute())
        return link

    def moved(self, artifact: Artifact) -> None:
        """A file that came from here, or went here, was moved to its place; so it need not be read to be trusted."""
        if not artifact.tree:
            self._objects.moved(artifact.digest)

    def listing(self, digest: Digest) -> tuple[Entry, ...]:
        """The files of a stored or measured folder. Raises Damaged."""
        if digest in self._measured:
            return self._measured[digest]
        content = self._objects.read(digest)
        if digest_folder(content) != digest:
            raise self._objects.dropped(digest)
        return entries_of(content)

    def sweep(self) -> None:
        """Remove what killed processes left half written; only for the one process that holds the build lock."""
        self._objects.sweep()

    def sizes(self) -> dict[Digest, int]:
        """Every object that is there, and its size in bytes."""
        return self._objects.sizes()

    def objects_of(self, digest: Digest, *, tree: bool) -> set[Digest]:
        """The objects that an artifact consists of; none where a folder's listing is lost."""
        if not tree:
            return {digest}
        try:
            return {digest, *_digests(self.listing(digest))}
        except Damaged:
            return set()

    def linked(self) -> dict[Digest, Path]:
        """The folders of links by the artifact that they lead to."""
        return {Digest(folder.name): folder for folder in self._links.glob("*")}

    def path(self, digest: Digest) -> Path:
        return self._objects.path(digest)

    def is_sound(self, digest: Digest) -> bool:
        """The object holds the bytes of its digest, or the listing of a folder with it; all of it is read."""
        path = self._objects.path(digest)
        with path.open("rb", buffering=0) as file:
            if digest_stream(file) == digest:
                return True
            file.seek(0)
            return file.read(len(LISTING)) == LISTING and digest_folder(path.read_bytes()) == digest

    def forget(self, digests: Collection[Digest]) -> None:
        """Remove objects for good; only for the one process that holds the build lock."""
        self._objects.forget(digests)

    def _keep(self, path: Path) -> Artifact:
        artifact, listing = _read(path, self._objects.put)
        if artifact.tree:
            self._objects.put_bytes(artifact.digest, listing)
        return artifact

    def _get_folder(self, digest: Digest, target: Path) -> None:
        target.mkdir()
        for entry in self.listing(digest):
            (target / entry.name).parent.mkdir(parents=True, exist_ok=True)
            if entry.is_folder:
                (target / entry.name).mkdir()
            else:
                self._get_file(entry.digest, target / entry.name, entry.executable)

    def _get_file(self, digest: Digest, target: Path, executable: bool) -> None:
        self._objects.copy_out(digest, target, executable)

    def _names(self, entries: Iterable[Entry]) -> _Names:
        names: _Names = {}
        for entry in entries:
            *folders, last = entry.name.split("/")
            below = names
            for folder in folders:
                deeper = below.setdefault(folder, {})
                assert isinstance(deeper, dict)  # a listing has no name that is both a file and a folder
                below = deeper
            if last:
                below[last] = self._objects.path(entry.digest)
        return names


def _read(path: Path, take: _Take) -> tuple[Artifact, bytes]:
    """What is at `path`, and its listing where it is a folder."""
    found = os.stat(path)
    if modes.S_ISREG(found.st_mode):
        digest, size = take(path)
        return Artifact(path.name, digest, size, executable=is_executable(found.st_mode)), b""
    if not modes.S_ISDIR(found.st_mode):
        raise BuildError(f"{path.name} is neither a file nor a folder")
    entries = []
    for name, below in walk(str(path), path.name, whole=True):
        if name.endswith("/"):
            entries.append(Entry.empty(name))
        else:
            entries.append(Entry(name, *take(path / name), is_executable(below.st_mode)))
    listing = listing_of(entries)
    size = sum(entry.size for entry in entries)
    return Artifact(path.name, digest_folder(listing), size, tree=True), listing


def _digest_and_size(path: Path) -> tuple[Digest, int]:
    with path.open("rb", buffering=0) as file:
        return digest_stream(file), os.fstat(file.fileno()).st_size


def _digests(entries: Iterable[Entry]) -> list[Digest]:
    return [entry.digest for entry in entries if not entry.is_folder]


def _is_same(one: Artifact, other: Artifact) -> bool:
    return (one.digest, one.tree) == (other.digest, other.tree)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Put at `path` what `write` writes at the name beside it that it is given."""
    copy = path.with_name(f".{path.name}.plain")
    write(copy)
    remove(path)
    os.rename(copy, path)


def _is_plain(path: Path) -> bool:
    """It is a file with one name only, or a folder of such."""
    found = os.lstat(path)
    if not modes.S_ISDIR(found.st_mode):
        return modes.S_ISREG(found.st_mode) and found.st_nlink == 1
    with os.scandir(path) as entries:
        return all(_is_plain(Path(entry.path)) for entry in entries)


def _holds(folder: Path, names: _Names) -> bool:
    """The folder holds these names, each as it should be, and no other."""
    if not _is_folder(folder) or set(os.listdir(folder)) != set(names):
        return False
    return all(
        _holds(folder / name, part) if isinstance(part, dict) else _target(folder / name) == str(part)
        for name, part in names.items()
    )


def _mend(folder: Path, names: _Names) -> None:
    """Make that so, in place, so that whoever reads what is right goes on.

    The folders stay writable: a copy has their modes, and who copies a model to change it must be able to.
    """
    if not _is_folder(folder):
        remove(folder)
        folder.mkdir()
    for name in set(os.listdir(folder)).difference(names):
        remove(folder / name)
    for name, part in names.items():
        if isinstance(part, dict):
            _mend(folder / name, part)
        else:
            _lead(folder / name, part)


def _lead(link: Path, target: Path) -> None:
    """Make `link` lead to `target`, whatever it is now."""
    if _target(link) != str(target):
        remove(link)
        link.symlink_to(target)


def _target(link: Path) -> str:
    """Where a link leads to; "" where it is none."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
