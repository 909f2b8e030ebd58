"""What is in a file or a folder, as digests: the one definition that scans and the store share.

Knows nothing of what was seen before, of the store or of the manifest. A folder is its listing: the names, x bits,
sizes and digests of all regular files below it. Empty folders are not part of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import xxhash

from buildsys.digest import Digest

CHUNK: Final = 1 << 20


class Entry(NamedTuple):
    """One file of a folder. name: relative to the folder, with `/`."""

    name: str
    digest: Digest
    size: int
    executable: bool


def digest_stream(file: BinaryIO, copy_to: BinaryIO | None = None) -> Digest:
    """The digest of all that is still to be read from `file`; what was read is written to `copy_to`."""
    state = xxhash.xxh3_128()
    while chunk := file.read(CHUNK):
        state.update(chunk)
        if copy_to is not None:
            copy_to.write(chunk)
    return Digest(state.hexdigest())


def listing_of(entries: Iterable[Entry]) -> bytes:
    """The canonical text of a folder's listing. Its digest is the folder's digest; the store keeps it as an object."""
    files = [[entry.name, entry.digest, entry.size, entry.executable] for entry in sorted(entries)]
    return json.dumps({"files": files}, separators=(",", ":")).encode("ascii")


def entries_of(listing: bytes) -> tuple[Entry, ...]:
    """The reverse of `listing_of`."""
    return tuple(Entry(*row) for row in json.loads(listing)["files"])


def walk(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """(name relative to the folder, stat) of every regular file below it, links followed, sorted in each folder.

    Left out: links to nowhere (there is no content yet), and links to a folder above them (they add no file).
    """
    yield from _walk(folder, "", frozenset())


def _walk(folder: str, prefix: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, os.stat_result]]:
    own = os.stat(folder)
    if (own.st_dev, own.st_ino) in above:
        return
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir():
            yield from _walk(entry.path, f"{prefix}{entry.name}/", above | {(own.st_dev, own.st_ino)})
        elif entry.is_file():
            yield prefix + entry.name, entry.stat()


def is_executable(mode: int) -> bool:
    return bool(mode & 0o111)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, as fsync does for a file's bytes."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
