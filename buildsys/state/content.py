"""What is in a file or a folder, as digests: the one definition that scans and the store share.

Knows nothing of what was seen before, of the store or of the manifest. A folder is its listing: the names, x bits,
sizes and digests of all regular files below it, and the names of the empty folders.
"""

from __future__ import annotations

import errno
import json
import os
import stat as modes
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple

import xxhash

from buildsys.digest import Digest
from buildsys.errors import BuildError

CHUNK: Final = 1 << 20
LISTING: Final = b'{"files":'
"""What the text of a folder's listing starts with."""
_FOLDER_SEED: Final = 1


class Entry(NamedTuple):
    """One file of a folder. name: relative to the folder, with `/`.

    A name that ends in `/` is an empty folder, without digest.
    """

    name: str
    digest: Digest
    size: int
    executable: bool

    @classmethod
    def empty(cls, name: str) -> Entry:
        return cls(name, Digest(""), 0, executable=False)

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


def digest_stream(file: BinaryIO, copy_to: BinaryIO | None = None) -> Digest:
    """The digest of all that is still to be read from `file`; what was read is written to `copy_to`."""
    state = xxhash.xxh3_128()
    while chunk := file.read(CHUNK):
        state.update(chunk)
        if copy_to is not None:
            copy_to.write(chunk)
    return Digest(state.hexdigest())


def digest_folder(description: bytes) -> Digest:
    """A folder's digest, of its listing or of what else says all that is in it.

    Seeded: no file has it, not even one that holds the very bytes of the listing.
    """
    return Digest(xxhash.xxh3_128_hexdigest(description, seed=_FOLDER_SEED))


def listing_of(entries: Iterable[Entry]) -> bytes:
    """The canonical text of a folder's listing. Its digest is the folder's digest; the store keeps it as an object."""
    files = [[entry.name, entry.digest, entry.size, entry.executable] for entry in sorted(entries)]
    return json.dumps({"files": files}, separators=(",", ":")).encode("ascii")


def entries_of(listing: bytes) -> tuple[Entry, ...]:
    """The reverse of `listing_of`."""
    return tuple(Entry(*row) for row in json.loads(listing)["files"])


def walk(folder: str, called: str, *, whole: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    """(name relative to the folder, stat) of every regular file below it, links followed, sorted in each folder.

    An empty folder is among them, with a `/` at the end of its name. Left out are links to nowhere (there is no content
    yet), and links to a folder above them (they add no file), but not where the content is to be taken `whole`.
    Raises BuildError, which names the folder as `called`, for them then; for links that lead in a circle, pipes and
    such always.
    """
    yield from _walk(folder, called.rstrip("/"), "", os.stat(folder), frozenset(), whole)


def _walk(
    folder: str, called: str, prefix: str, own: os.stat_result, above: frozenset[tuple[int, int]], whole: bool
) -> Iterator[tuple[str, os.stat_result]]:
    here = above | {(own.st_dev, own.st_ino)}
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    if not ordered and prefix:
        yield prefix, own
    for entry in ordered:
        name = prefix + entry.name
        found = _followed(entry, f"{called}/{name}", whole)
        if found is None:
            continue
        if modes.S_ISREG(found.st_mode):
            yield name, found
        elif not modes.S_ISDIR(found.st_mode):
            raise BuildError(f"{called}/{name} is neither a file nor a folder")
        elif (found.st_dev, found.st_ino) not in here:
            yield from _walk(entry.path, called, f"{name}/", found, here, whole)
        elif whole:
            raise BuildError(f"{called}/{name} is a link to a folder above it")


def _followed(entry: os.DirEntry[str], called: str, whole: bool) -> os.stat_result | None:
    """What a name leads to; None for a link to nowhere."""
    try:
        return entry.stat()
    except FileNotFoundError:
        if not entry.is_symlink():
            raise
        if whole:
            raise BuildError(f"{called} is a link to nowhere", facts=[("target", os.readlink(entry.path))]) from None
        return None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise circular(called) from None


def circular(called: str) -> BuildError:
    return BuildError(f"{called} is a link that leads in a circle")


def is_executable(mode: int) -> bool:
    return bool(mode & 0o111)
