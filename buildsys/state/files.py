"""What the project's files are now: digests by stat where that can be trusted, by reading where it can't.

Knows nothing of rules, of the store or of the manifest: it is given the rows that were known, and hands back those that
it learned. A stat is trusted only where it is older than the file system's own clock was before the file was read: two
edits within one tick of that clock may leave equal stats.
"""

from __future__ import annotations

import errno
import os
import re
import stat as modes
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from buildsys.digest import Digest, encode
from buildsys.errors import BuildError
from buildsys.model import Artifact, Shard
from buildsys.state import patterns
from buildsys.state.content import Entry, circular, digest_folder, digest_stream, is_executable, listing_of
from buildsys.state.looks import Looks
from buildsys.state.root import STATE
from buildsys.state.stats import Stat, clock_ns, members_of

_COMMIT = re.compile(r"[0-9a-f]{40}")
_READ_TRIES: Final = 3


Row = tuple[Stat, Digest]
"""A file's digest, and the stat that it had then."""


@dataclass(frozen=True)
class Seen:
    """A file or folder as it was at one moment.

    path: as it was asked for. size: bytes, of a folder all files below it.
    stat: of a folder its own inode and mode, the size of all files below it and their latest times.
    members: of a folder the name and stat of each file and empty folder below it, else empty; see `stats.members_of`.
    """

    path: str
    digest: Digest
    size: int
    executable: bool
    tree: bool
    stat: Stat
    members: tuple[tuple[str, Stat], ...] = ()


class Files:
    """The files of one project, as one scan sees them; safe to use from several threads.

    looks: told all that is looked at. n_read, n_stat: files read, and files asked for their stat so far.
    """

    def __init__(
        self, root: Path, known: Mapping[str, Row], looks: Looks | None = None, clock: Path | None = None
    ) -> None:
        """clock: a folder of ours on the same file system, the project's `.buildsys` where it is left out."""
        self.root = root
        self._looks = looks or Looks(root)
        self._clock = clock or root / STATE
        self.n_read = 0
        self.n_stat = 0
        self._known = known
        self._learned: dict[str, Row] = {}
        self._arriving: dict[str, Stat] = {}
        self._lock = threading.Lock()
        self._clock_ns = self._read_clock()

    def look(self, path: str) -> Seen | None:
        """The file or folder at `path` (relative to the project, or absolute) as it is now; None where there is none.

        A file is read only where its stat is not known; so is each file of a folder. A snapshot folder of the Hugging
        Face cache is never read: its commit, names and link targets say what it holds. Raises BuildError for what can't
        be read, is neither a file nor a folder, leads in a circle, or changes all the time.
        """
        full = os.path.join(self.root, path.rstrip("/"))
        try:
            self.n_stat += 1
            found = self._looks.stat(path.rstrip("/"))
            if found is None:
                return None
            if modes.S_ISDIR(found.mode):
                return self._look_at_snapshot(path, full, found) or self._look_at_folder(path, full, found)
            if not modes.S_ISREG(found.mode):
                raise BuildError(f"{path} is neither a file nor a folder")
            found, digest = self._row(path, full, found)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(full):
                raise _changes(path) from None
            return None
        except OSError as error:
            raise _unreadable(path, full, error) from error
        return Seen(path, digest, found.size, is_executable(found.mode), tree=False, stat=found)

    def holds(self, artifact: Artifact) -> bool:
        """The artifact's bytes are at its path, as a file or folder like it; not so where that can't be looked at."""
        try:
            seen = self.look(artifact.path)
        except BuildError:
            return False
        return (
            seen is not None
            and (seen.digest, seen.tree) == (artifact.digest, artifact.tree)
            and (artifact.tree or seen.executable == artifact.executable)
        )

    def unmoved(self, seen: Seen) -> bool:
        """Nothing was written to it since it was seen, not even the same bytes again."""
        return self.look(seen.path) == seen

    def matches(self, pattern: str) -> dict[Shard, str]:
        """Shard name -> path for a pattern with `{shard}`; see `patterns`."""
        return patterns.matches(self._looks, pattern)

    def expand(self, pattern: str) -> list[str]:
        """The paths for a pattern with `*`, or the plain path itself; see `patterns`."""
        return patterns.expand(self._looks, pattern)

    def arriving(self, path: str, stat: Stat) -> None:
        """Say what is about to be moved to `path`; `made` then knows whether it is still that."""
        self._arriving[path] = stat

    def made(self, path: str, digest: Digest) -> None:
        """Say what was just put at `path`, so that it need not be read to be known.

        Trusted like every other row: only once the file system's clock has moved on. Nothing is learned where it is
        no longer what arrived: somebody has written to it by now.
        """
        now = Stat.of(os.stat(os.path.join(self.root, path)))
        if _is_moved(self._arriving.pop(path, now), now):
            self._learned[path] = now, digest
            self._looks.made_at(path, now)

    def made_folder(self, path: str, entries: Iterable[Entry]) -> None:
        """The same for all files of a folder that was just put at `path`."""
        full = os.path.join(self.root, path)
        digests = {entry.name: entry.digest for entry in entries}
        members = list(members_of(full, path))
        for name, now in members:
            if name in digests and not name.endswith("/"):
                self._learned[f"{path}/{name}"] = now, digests[name]
        self._looks.made_tree(path, Stat.of(os.stat(full)), members)

    def learned(self) -> list[tuple[str, Stat, Digest]]:
        """The rows that were not known and that can be trusted from now on."""
        rows = list(self._learned.items())
        return [
            (path, stat, digest)
            for path, (stat, digest) in rows
            if self._known.get(path) != (stat, digest) and self._is_settled(stat)
        ]

    def _row(self, path: str, full: str, found: Stat) -> Row:
        row = self._learned.get(path) or self._known.get(path)
        if row and row[0] == found and self._is_settled(found):
            return row
        return self._read(path, full, found)

    def _read(self, path: str, full: str, found: Stat) -> Row:
        for _ in range(_READ_TRIES):
            settled = self._is_settled(found)  # asked before reading: what is written from now on shows in the stat
            with open(full, "rb", buffering=0) as file:
                digest = digest_stream(file)
                after = Stat.of(os.fstat(file.fileno()))
            with self._lock:
                self.n_read += 1
            if after == found:
                if settled:
                    self._learned[path] = found, digest
                return found, digest
            found = self._stat(full)
        raise _changes(path)

    def _look_at_folder(self, path: str, full: str, own: Stat) -> Seen:
        entries: list[Entry] = []
        members: list[tuple[str, Stat]] = []
        for name, found in members_of(full, path):
            self.n_stat += 1
            if name.endswith("/"):
                entries.append(Entry.empty(name))
                members.append((name, found))
                continue
            stat, digest = self._row(f"{path.rstrip('/')}/{name}", f"{full}/{name}", found)
            entries.append(Entry(name, digest, stat.size, is_executable(stat.mode)))
            members.append((name, stat))
        return self._seen_folder(path, digest_folder(listing_of(entries)), own, members)

    def _look_at_snapshot(self, path: str, full: str, own: Stat) -> Seen | None:
        """A snapshot of the Hugging Face cache, `snapshots/<commit>/` with nothing but links to `blobs`; else None."""
        parent, commit = os.path.split(full)
        if not _COMMIT.fullmatch(commit) or os.path.basename(parent) != "snapshots":
            return None
        blobs = os.path.realpath(os.path.join(os.path.dirname(parent), "blobs"))
        targets: list[tuple[str, str]] = []
        members: list[tuple[str, Stat]] = []
        for name, found in members_of(full, path):
            self.n_stat += 1
            target = os.path.realpath(f"{full}/{name}")
            if os.path.dirname(target) != blobs:
                return None
            targets.append((name, os.path.basename(target)))
            members.append((name, found))
        return self._seen_folder(path, digest_folder(encode(("snapshot", commit, targets))), own, members)

    def _seen_folder(self, path: str, digest: Digest, own: Stat, members: list[tuple[str, Stat]]) -> Seen:
        self._looks.tree(path.rstrip("/"), members)
        stats = [stat for _, stat in members]
        size = sum(stat.size for stat in stats)
        mtime_ns = max((stat.mtime_ns for stat in stats), default=0)
        ctime_ns = max((stat.ctime_ns for stat in stats), default=0)
        stat = Stat(size, mtime_ns, ctime_ns, own.inode, own.mode)
        return Seen(path, digest, size, executable=False, tree=True, stat=stat, members=tuple(members))

    def _stat(self, full: str) -> Stat:
        self.n_stat += 1
        return Stat.of(os.stat(full))

    def _is_settled(self, found: Stat) -> bool:
        if found.newest_ns >= self._clock_ns:
            self._clock_ns = self._read_clock()
        return found.newest_ns < self._clock_ns

    def _read_clock(self) -> int:
        return clock_ns(self._clock)


def _is_moved(before: Stat, after: Stat) -> bool:
    """One file, renamed and no more: that gives it another ctime."""
    return before._replace(ctime_ns=after.ctime_ns) == after


def _unreadable(path: str, full: str, error: OSError) -> BuildError:
    if error.errno == errno.ELOOP:
        return circular(path)
    facts = [("reason", error.strerror or str(error))]
    if error.filename and error.filename != full:
        facts.insert(0, ("file", str(error.filename)))
    return BuildError(f"{path} can't be read", facts=facts)


def _changes(path: str) -> BuildError:
    return BuildError(f"{path} changes while it is read", hint="wait until it is written, then build again")
