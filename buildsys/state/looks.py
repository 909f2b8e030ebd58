"""What a build looked at in the file system, and what it saw there: all that its decisions rest on, in one place.

Knows nothing of rules, digests or results. Whoever asks whether a path exists, what is in it or what lies beside it,
and decides by the answer what is stale, asks here; what is asked otherwise is missing in the stamp, and a change of it
is never seen by a build that trusts one.

Of several looks at one path the first counts: what was decided by it is wrong if it holds no more, whatever was seen
later. Safe to use from several threads.
"""

from __future__ import annotations

import errno
import os
import stat as modes
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from buildsys.digest import Digest, digest_of
from buildsys.state.stats import Stat

Fact: TypeAlias = Stat | int
"""What is at a path, links followed: its stat; 0 where there is nothing; else the `errno` of what went wrong."""
Names: TypeAlias = dict[str, str]
"""What is in a folder: each name with "/" for a folder, "@/" for a link to one, "" for all else."""

_NOTHING = (errno.ENOENT, errno.ENOTDIR)


class Tree(NamedTuple):
    """All that is below a folder: the digest of its names and stats, and the newest time in them, in ns."""

    digest: Digest
    newest_ns: int

    @classmethod
    def of(cls, members: Sequence[tuple[str, Stat]]) -> Tree:
        digest = digest_of([[name, *found] for name, found in members])
        return cls(digest, max((found.newest_ns for _, found in members), default=0))


class Looks:
    """Answers questions about the paths of one project, and remembers what it said.

    Paths are relative to the project, or absolute. facts, listings, trees, variables: what was asked, with the answers.
    made: paths at which the build put something, which is then what it has seen there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.facts: dict[str, Fact] = {}
        self.listings: dict[str, Names | int] = {}
        self.trees: dict[str, Tree] = {}
        self.variables: dict[str, str | None] = {}
        self.made: set[str] = set()

    def stat(self, path: str) -> Stat | None:
        """None where there is nothing, also for links to nowhere. Raises OSError where that can't be said."""
        try:
            found = Stat.of(os.stat(os.path.join(self.root, path)))
        except OSError as error:
            self.facts.setdefault(path, fact_of(error))
            if error.errno in _NOTHING:
                return None
            raise
        self.facts.setdefault(path, found)
        return found

    def exists(self, path: str) -> bool:
        return self._mode(path) != 0

    def is_file(self, path: str) -> bool:
        return modes.S_ISREG(self._mode(path))

    def is_dir(self, path: str) -> bool:
        return modes.S_ISDIR(self._mode(path))

    def names(self, folder: str) -> Names:
        """What is in a folder, in no order; nothing where there is none. Raises OSError where that can't be said."""
        folder = folder.rstrip("/") or folder[:1]
        try:
            found = names_in(os.path.join(self.root, folder))
        except OSError as error:
            self.listings.setdefault(folder, fact_of(error))
            if error.errno in _NOTHING:
                return {}
            raise
        self.listings.setdefault(folder, found)
        return found

    def read(self, path: str) -> bytes:
        """The bytes of a file. Its stat is taken first: what is written from then on shows in it. Raises OSError."""
        if self.stat(path) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        with open(os.path.join(self.root, path), "rb", buffering=0) as file:
            return file.read()

    def tree(self, path: str, members: Sequence[tuple[str, Stat]]) -> None:
        """Say what was found below a folder, all of it; see `stats.members_of`."""
        self.trees.setdefault(path, Tree.of(members))

    def made_at(self, path: str, found: Stat) -> None:
        """Say what was just put at a path: it is what the build means from now on, whatever was there before."""
        self.facts[path] = found
        self.made.add(path)

    def made_tree(self, path: str, found: Stat, members: Sequence[tuple[str, Stat]]) -> None:
        """As `made_at`, of a folder with all that is below it; too young for the stamp of the build that made it."""
        self.made_at(path, found)
        self.trees[path] = Tree.of(members)

    def variable(self, name: str, value: str | None) -> None:
        """Say what an environment variable holds that is part of a key; None where it is not set."""
        self.variables[name] = value

    def _mode(self, path: str) -> int:
        """0 where nothing can be had of the path, for whatever reason."""
        if "\0" in path:  # no path at all
            return 0
        try:
            found = self.stat(path)
        except OSError:
            return 0
        return found.mode if found else 0


def names_in(full: str) -> Names:
    """What is in a folder now. Raises OSError."""
    with os.scandir(full) as entries:
        return {entry.name: _mark(entry) for entry in entries}


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_dir(follow_symlinks=False):
        return "/"
    return "@/" if entry.is_symlink() and entry.is_dir() else ""


def fact_of(error: OSError) -> int:
    return 0 if error.errno in _NOTHING else error.errno or errno.EIO
