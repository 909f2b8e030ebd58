"""What was seen in each folder, as one digest a folder, and whether the same would be seen now.

Knows nothing of what the paths are for. A folder in which many paths were looked at is taken as a whole: then one scan
of it says all, and its names need not be kept. That asks for more than was looked at, never for less.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import xxhash

from buildsys.digest import Digest
from buildsys.state.looks import Fact, Looks, Names, fact_of, names_in
from buildsys.state.stats import Stat

_MANY: Final = 64
"""Names in one folder from which on a scan of it is cheaper than a look at each."""
_WORTH_A_PROCESS: Final = 20_000
"""Files that take longer to look at than a second process takes to start."""

_Row = tuple[object, ...]


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
        rows = _rows([*facts.items(), *(_others(os.path.join(looks.root, folder), facts) if whole else ())])
        names = None if whole else sorted(facts)
        digest = _digest(looks.listings.get(folder), rows)
        yield Folder(folder, folder in looks.listings, names, len(rows), digest)


def unchanged(root: str, folders: Iterable[Folder]) -> bool:
    """The same would be seen in all of them now. Two processors are used where there is much to look at."""
    ours: list[Folder] = []
    theirs: list[Folder] = []
    n_ours = n_theirs = 0
    for folder in sorted(folders, key=lambda folder: folder.n, reverse=True):
        if n_ours <= n_theirs:
            ours.append(folder)
            n_ours += folder.n
        else:
            theirs.append(folder)
            n_theirs += folder.n
    if n_theirs < _WORTH_A_PROCESS:
        return _all_unchanged(root, ours) and _all_unchanged(root, theirs)
    child = os.fork()
    if not child:
        same = False
        try:
            same = _all_unchanged(root, theirs)
        finally:
            os._exit(not same)
    same = _all_unchanged(root, ours)
    return os.waitpid(child, 0)[1] == 0 and same


def _all_unchanged(root: str, folders: Iterable[Folder]) -> bool:
    return all(_digest_now(os.path.join(root, folder.path), folder) == folder.digest for folder in folders)


def _digest_now(full: str, folder: Folder) -> Digest:
    if folder.names is None:
        facts = _facts_in(full)
    else:
        facts = [(name, _fact(os.path.join(full, name))) for name in folder.names]
    return _digest(_listing(full) if folder.listed else None, _rows(facts))


def _listing(full: str) -> Names | int:
    try:
        return names_in(full)
    except OSError as error:
        return fact_of(error)


def _others(full: str, facts: Mapping[str, Fact]) -> list[tuple[str, Fact]]:
    """What lies in a folder that was not looked at: a scan of it finds that, too."""
    return [(name, fact) for name, fact in _facts_in(full) if name not in facts]


def _facts_in(full: str) -> list[tuple[str, Fact]]:
    try:
        with os.scandir(full) as entries:
            return [(entry.name, _fact(entry)) for entry in entries]
    except OSError as error:
        return [("", fact_of(error))]


def _fact(at: str | os.DirEntry[str]) -> Fact:
    try:
        return Stat.of(os.stat(at) if isinstance(at, str) else at.stat())
    except OSError as error:
        return fact_of(error)


def _rows(facts: Iterable[tuple[str, Fact]]) -> list[_Row]:
    """What counts of each fact, by name. Where there is nothing, there is no row: a scan does not find it either."""
    return sorted(((name, *_counting(fact)) for name, fact in facts if fact != 0), key=_name)


def _counting(fact: Fact) -> _Row:
    """Of a folder only that it is one: what is in it counts where that was looked at."""
    if isinstance(fact, int):
        return (fact,)
    return ("/",) if fact.is_folder else fact


def _name(row: _Row) -> str:
    return str(row[0])


def _digest(listing: Names | int | None, rows: list[_Row]) -> Digest:
    names = sorted(listing.items()) if isinstance(listing, dict) else listing
    # Version 2, the last in which equal values have equal bytes, whoever else refers to them.
    return Digest(xxhash.xxh3_128_hexdigest(marshal.dumps((names, rows), 2)))
