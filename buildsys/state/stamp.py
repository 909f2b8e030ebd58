"""The stamp of a build that left nothing to do: what it looked at, so that the next one need only look again.

Knows nothing of rules, and reads none. There is one stamp for each request. It holds the answers that `looks` gave, the
surroundings, and the manifest as the build left it; all must still be so. Whatever does not fit, be it damaged, foreign
or too young, is as good as none: then the rules are read and everything is looked at for what it is.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import buildsys
from buildsys.digest import Digest, digest_bytes, digest_of
from buildsys.errors import BuildError
from buildsys.request import Request
from buildsys.state.disk import write_whole
from buildsys.state.folders import Folder, folders_of, unchanged
from buildsys.state.installed import installed
from buildsys.state.looks import Looks, Tree
from buildsys.state.root import STATE
from buildsys.state.stats import Stat, clock_ns, members_of

_FORMAT: Final = "buildsys stamp 1"
_RECORDS: Final = (
    "manifest.duckdb",
    "manifest.duckdb.wal",
    "live/manifest.duckdb",
    "live/manifest.duckdb.wal",
    "live/published",
)
"""What the manifest consists of, in `.buildsys`."""
_TICK_S: Final = 0.001
_MOST_TICKS: Final = 100


class Current(NamedTuple):
    """All is up to date. n_actions: by rule, upstream first."""

    n_actions: Mapping[str, int]


def current(root: Path, request: Request) -> Current | None:
    """What a build with this request would find where it has nothing to do; None where it has to look for itself."""
    is_collecting = gc.isenabled()
    gc.disable()  # no garbage in the lists of a scan, and much to search
    try:
        record = _read(_path(root / STATE, request))
        if (
            record
            and record["surroundings"] == _surroundings()
            and record["variables"] == _digest_of_variables(record["names"])
            and unchanged(str(root), [Folder(*row) for row in record["folders"]])
            and all(_tree_digest(root, path) == digest for path, digest in record["trees"])
        ):
            return Current(dict(record["n_actions"]))
        return None
    finally:
        if is_collecting:
            gc.enable()


def discard(state: Path) -> None:
    """Forget all stamps: something is about to be made, recorded or removed."""
    for path in (state / "stamps").glob("*"):
        path.unlink()


class Draft:
    """The stamp of a build that begins: it is to look at nothing before."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._state = looks.root / STATE
        self._began_ns = 0 if looks.facts or looks.listings else clock_ns(self._state)
        self._surroundings = _surroundings()

    def write(self, request: Request, n_actions: Mapping[str, int]) -> bool:
        """Write it, if it can be trusted. Only after a build that left nothing to do, and has closed the manifest.

        What was looked at must be older than the build, what it made older than the file system's clock now: else an
        edit may have come after the look, and show in no time.
        """
        self._look_at_records()
        facts = self._looks.facts.items()
        stats = [(path, fact) for path, fact in facts if isinstance(fact, Stat) and not fact.is_folder]
        made = self._looks.made
        seen_ns = max((stat.newest_ns for path, stat in stats if path not in made), default=0)
        seen_ns = max([seen_ns, *(tree.newest_ns for tree in self._looks.trees.values())])
        made_ns = max((stat.newest_ns for path, stat in stats if path in made), default=0)
        if seen_ns >= self._began_ns or not self._outlives(made_ns):
            return False
        record = {
            "n_actions": list(n_actions.items()),
            "surroundings": self._surroundings,
            "names": sorted(self._looks.variables),
            "variables": digest_of(sorted(self._looks.variables.items())),
            "folders": list(folders_of(self._looks)),
            "trees": [(path, tree.digest) for path, tree in self._looks.trees.items()],
        }
        _write(_path(self._state, request), record)
        return True

    def _look_at_records(self) -> None:
        """The manifest and the store, as the build leaves them."""
        for name in _RECORDS:
            if stat := self._looks.stat(f"{STATE}/{name}"):
                self._looks.made_at(f"{STATE}/{name}", stat)
        self._looks.names(f"{STATE}/store")

    def _outlives(self, made_ns: int) -> bool:
        """Wait until the file system's clock has left this time behind: a tick, if it is no time in the future."""
        for _ in range(_MOST_TICKS):
            if clock_ns(self._state) > made_ns:
                return True
            time.sleep(_TICK_S)
        return False


def _surroundings() -> Digest:
    """All that decides beside the project: this program, its interpreter, and what is installed for it."""
    found = [_FORMAT, buildsys.__version__, sys.version, sys.executable, installed(), *_own_sources()]
    return digest_bytes(repr(found).encode("utf-8", "surrogatepass"))


def _own_sources() -> Iterator[Sequence[object]]:
    for folder, _, names in os.walk(os.path.dirname(buildsys.__file__)):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                yield [path, *Stat.of(os.stat(path))]


def _digest_of_variables(names: Iterable[str]) -> Digest:
    return digest_of([(name, os.environ.get(name)) for name in names])


def _tree_digest(root: Path, path: str) -> Digest | None:
    try:
        return Tree.of(list(members_of(os.path.join(root, path), path))).digest
    except (OSError, BuildError):
        return None


def _path(state: Path, request: Request) -> Path:
    return state / "stamps" / digest_of(request)


def _read(path: Path) -> Any:
    """The record; None where there is none that is whole."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head.decode("ascii", "replace") != _head(body):
        return None
    return json.loads(body)


def _write(path: Path, record: Mapping[str, object]) -> None:
    body = json.dumps(record).encode("ascii")
    write_whole(path, f"{_head(body)}\n".encode() + body)


def _head(body: bytes) -> str:
    return f"{_FORMAT} {digest_bytes(body)}"
