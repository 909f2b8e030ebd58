"""What was seen in each folder, as one digest a folder, and whether the same would be seen now.

Knows nothing of what the paths are for. A folder in which many paths were looked at is taken as a whole: then one scan
of it says all, and its names need not be kept. That asks for more than was looked at, never for less.
"""

from __future__ import annotations

import marshal
import os
import stat as modes
import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import xxhash

from buildsys.digest import Digest
from buildsys.state.looks import Fact, Looks, Names, fact_of, names_in

_MANY: Final = 64
"""Names in one folder from which on a scan of it is cheaper than a look at each."""
_WORTH_A_PROCESS: Final = 20_000
"""Files that take longer to look at than a second process takes to start."""

_Row = tuple[Any, ...]


class Folder(NamedTuple):
    """What is to be looked at in one folder.

    path: "" is the project. listed: its names count. names: those whose stats count, None for all that are in it.
    n: how many stats those were. digest: of what was seen.
    """

    path: str
    listed: bool
    names: Sequence[str] | None
    n: int
    digest: Digest


def folders_of(looks: Looks) -> Iterator[Folder]:
    """The folders of all that was looked at, with the digests of what was seen then."""
    by_folder: dict[str, dict[str, Fact]] = {folder: {} for folder in looks.listings}
    for path, fact in looks.facts.items():
        folder, slash, name = path.rpartition("/")
        by_folder.setdefault(folder or slash, {})[name] = fact
    for folder, facts in by_folder.items():
        whole = len(facts) > _MANY and facts.keys().isdisjoint(("", ".", ".."))
        rows = [_row(name, fact) for name, fact in facts.items() if fact != 0]
        if whole:  # a scan finds what was not looked at, too
            rows += _rows_in(os.path.join(looks.root, folder), but=facts)
        names = None if whole else sorted(facts)
        digest = _digest(looks.listings.get(folder), sorted(rows))
        yield Folder(folder, folder in looks.listings, names, len(rows), digest)


def unchanged(root: str, folders: Iterable[Folder]) -> bool:
    """The same would be seen in all of them now.

    Two processors are used where there is much to look at; not by a process with several threads, which must not fork.
    """
    ours, theirs = _halves(folders)
    if sum(folder.n for folder in theirs) < _WORTH_A_PROCESS or threading.active_count() > 1:
        return _all_unchanged(root, [*ours, *theirs])
    child = os.fork()
    if not child:
        same = False
        try:
            same = _all_unchanged(root, theirs)
        finally:
            os._exit(not same)
    same = _all_unchanged(root, ours)
    return os.waitpid(child, 0)[1] == 0 and same


def _halves(folders: Iterable[Folder]) -> tuple[list[Folder], list[Folder]]:
    """Two lots with about the same number of stats."""
    ours: list[Folder] = []
    theirs: list[Folder] = []
    more = 0
    for folder in sorted(folders, key=lambda folder: folder.n, reverse=True):
        (theirs if more > 0 else ours).append(folder)
        more += -folder.n if more > 0 else folder.n
    return ours, theirs


def _all_unchanged(root: str, folders: Iterable[Folder]) -> bool:
    return all(_digest_now(os.path.join(root, folder.path), folder) == folder.digest for folder in folders)


def _digest_now(full: str, folder: Folder) -> Digest:
    if folder.names is None:
        rows = _rows_in(full)
    else:
        rows = [row for name in folder.names if (row := _row_at(name, os.path.join(full, name)))]
    return _digest(_listing(full) if folder.listed else None, rows)


def _listing(full: str) -> Names | int:
    try:
        return names_in(full)
    except OSError as error:
        return fact_of(error)


def _rows_in(full: str, but: Container[str] = ()) -> list[_Row]:
    """The rows of all that is in a folder now, by name; without those of some."""
    try:
        folder = os.open(full, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        return [_row("", fact_of(error))]
    try:  # relative to a descriptor, a stat costs a third less than by a path
        names = sorted(os.listdir(folder))
        return [row for name in names if name not in but and (row := _row_at(name, name, folder))]
    finally:
        os.close(folder)


def _row_at(name: str, path: str, folder: int | None = None) -> _Row | None:
    """None where there is nothing."""
    try:
        found = os.stat(path, dir_fd=folder)
    except OSError as error:
        return _row(name, fact) if (fact := fact_of(error)) else None
    if modes.S_ISDIR(found.st_mode):
        return name, "/"
    return name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode


def _row(name: str, fact: Fact) -> _Row:
    """What counts of a fact: of a folder only that it is one, since what is in it counts where that was looked at."""
    if isinstance(fact, int):
        return name, fact
    return (name, "/") if fact.is_folder else (name, *fact)


def _digest(listing: Names | int | None, rows: list[_Row]) -> Digest:
    names = sorted(listing.items()) if isinstance(listing, dict) else listing
    # Version 2, the last in which equal values have equal bytes, whoever else refers to them.
    return Digest(xxhash.xxh3_128_hexdigest(marshal.dumps((names, rows), 2)))
