"""What of a project's state nothing needs any more, why, and its removal.

Joins manifest, store, logs and the log of replies. Only what can be made anew is removed unless it is asked for: an
object that is gone costs a run, never a result that holds. Each removal stands for itself, so it may be killed at any
moment. The manifest says what was made, in all profiles; of the rules only those that read ephemeral outputs count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from buildsys.digest import Digest
from buildsys.ephemeral import Copy, Ephemeral
from buildsys.errors import FAILED, NO_SUCH_TARGET, BuildError
from buildsys.model import Ref, Rule, RuleName, Service
from buildsys.past import Past
from buildsys.phrases import duration
from buildsys.project import Project
from buildsys.run import replies
from buildsys.run.kept import KEPT, all_kept
from buildsys.state import logs
from buildsys.state.disk import remove, write_whole
from buildsys.state.files import Files
from buildsys.state.layout import bring_up_to_date
from buildsys.state.manifest import Manifest
from buildsys.state.scratch import Scratch
from buildsys.state.store import Store

Kind = Literal["store", "ephemeral", "links", "frozen", "cache", "staging", "logs", "scratch", "replies"]
_REMADE: Final[dict[Kind, str]] = {
    "frozen": "copies of scripts; made anew when a command runs",
    "cache": "made anew by the next build",
    "staging": "left by earlier builds",
}


@dataclass(frozen=True)
class Keep:
    """What stays besides that which holds now.

    runs: results and states of this many runs, the last ones. replies: all of them; else those that results rest on
    which stay. scratch: folders of actions that may go on from them.
    """

    runs: int
    replies: bool = True
    scratch: bool = True


@dataclass(frozen=True)
class Unneeded:
    """Files of one kind that are of no use for one reason. what: whose they are. size: bytes.

    names: paths; of the store digests, of the log of replies the keys of requests.
    """

    kind: Kind
    what: str
    why: str
    size: int
    names: tuple[str, ...]


_Found = tuple[list[Unneeded], int]
"""What goes of one kind, and the bytes of it that stay."""


@dataclass(frozen=True)
class Plan:
    """unneeded: what goes. kept: bytes that stay, by kind. pinned: runs whose state stays."""

    unneeded: tuple[Unneeded, ...]
    kept: dict[Kind, int]
    pinned: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.unneeded)


class Collector:
    """Plans and collects for one project; whoever has one holds the build lock."""

    def __init__(self, project: Project) -> None:
        """Raises BuildError where the manifest has just been found damaged: what it does not know may be needed."""
        self._graph = project.graph()
        self._state = state = project.state
        bring_up_to_date(state)
        self._store = Store(state)
        self._manifest = Manifest.open(state)
        if notices := self._manifest.notices:
            self._manifest.close()
            raise BuildError(
                "the manifest lost some of what it knew, so nobody can say what is needed",
                facts=[("lost", notice) for notice in notices],
                hint="`buildsys build` first; then what holds is known again",
                exit_code=FAILED,
            )
        past = Past(lambda question: question(self._manifest), self._graph.profile)
        self._ephemeral = Ephemeral(self._graph, Files(project.root, past.files, project.looks), past)
        self._copies: dict[str, Copy] = {}

    def close(self) -> None:
        self._manifest.close()

    def plan(self, keep: Keep) -> Plan:
        """What goes and what stays. Changes nothing."""
        pinned = self.pinned()
        needed = self._manifest.needed(keep.runs, pinned)
        found: dict[Kind, _Found] = {
            "store": self._of_store(needed, keep),
            "logs": self._of_logs(),
            "ephemeral": self._of_ephemeral(),
            "scratch": self._of_scratch(keep),
            "replies": self._of_replies(needed, keep),
        }
        unneeded = [one for going, _ in found.values() for one in going]
        unneeded += self._remade()
        return Plan(
            tuple(one for one in unneeded if one.names),
            {kind: kept for kind, (_, kept) in found.items()},
            tuple(pinned),
        )

    def _remade(self) -> Iterator[Unneeded]:
        for kind, why in _REMADE.items():
            if kind == "frozen" and any(not kept.gone for kept in all_kept(self._state / KEPT)):
                continue  # a server that runs may yet import what lies there
            found = [str(path) for path in (self._state / kind).glob("*")]
            yield Unneeded(kind, "", why, sum(map(_size, found)), tuple(found))

    def collect(self, plan: Plan) -> None:
        """Remove what the plan says. Links go before the objects that they lead to."""
        self._store.sweep()
        for one in sorted(plan.unneeded, key=lambda one: one.kind == "store"):
            match one.kind:
                case "store":
                    self._store.forget([Digest(name) for name in one.names])
                case "ephemeral":
                    for name in one.names:
                        self._ephemeral.drop(self._copies[name])
                case "replies":
                    replies.forget(self._state / "replies", one.names)
                case "logs":
                    for name in one.names:
                        logs.remove(self._state / "logs", Path(name))
                case _:
                    for name in one.names:
                        remove(Path(name))

    # ------------------------------------------------------------ pinned runs

    def pinned(self) -> list[int]:
        """The runs that a user wants kept, sorted."""
        try:
            return sorted({int(line) for line in self._pins.read_text().split()})
        except FileNotFoundError:
            return []

    def pin(self, runs: Iterable[int], *, no_more: Iterable[int] = ()) -> None:
        """Keep the state at the end of each of these runs, until it is said that it is no more to be kept."""
        known = self._manifest.runs()
        for run in [*runs, *no_more]:
            if run not in known:
                hint = f"the last one is {known[0]}" if known else "nothing was built here yet"
                raise BuildError(f"there is no run {run}", hint=hint, exit_code=NO_SUCH_TARGET)
        pinned = sorted({*self.pinned(), *runs}.difference(no_more))
        write_whole(self._pins, "".join(f"{run}\n" for run in pinned).encode())

    @property
    def _pins(self) -> Path:
        return self._state / "pinned_runs"

    # ------------------------------------------------------------ kinds

    def _of_store(self, needed: Collection[int], keep: Keep) -> _Found:
        """Also the links that lead to what goes."""
        sizes = self._store.sizes()
        live: set[Digest] = set()
        dead: dict[RuleName, set[Digest]] = {}
        for result_id, rule, digest, tree in self._manifest.made():
            objects = self._store.objects_of(digest, tree=tree)
            if result_id in needed:
                live |= objects
            else:
                dead.setdefault(rule, set()).update(objects)
        gone = set(sizes).difference(live)
        going = []
        told: set[Digest] = set()
        for rule, objects in dead.items():
            mine = (objects & gone) - told
            told |= mine
            going.append(_objects(rule, f"results that neither hold now nor did in {_last(keep.runs)}", mine, sizes))
        going.append(_objects("", "no result names them", gone - told, sizes))
        stale = [str(folder) for digest, folder in self._store.linked().items() if digest not in live]
        going.append(Unneeded("links", "", "lead to what no result needs", sum(map(_size, stale)), tuple(stale)))
        return going, sum(sizes[digest] for digest in live if digest in sizes)

    def _of_logs(self) -> _Found:
        folder, keep_runs = self._state / "logs", self._graph.keeping.keep_logs
        found = [str(log) for log in logs.outdated(folder, keep_runs)]
        size = sum(map(_size, found))
        why = f"of runs before {_last(keep_runs)}; the newest of each action stays"
        return [Unneeded("logs", "", why, size, tuple(found))], _size(str(folder)) - size

    def _of_ephemeral(self) -> _Found:
        """Those whose readers hold what they made of them; the others would only be made again by the next build."""
        readers = {name: self._readers(name) for name, rule in self._graph.rules.items() if rule.ephemeral}
        read = self._manifest.read_by(list(readers)) if readers else set()
        free: dict[RuleName, list[Copy]] = {}
        kept = 0
        for copy in self._ephemeral.copies():
            rule = copy.result.action.rule
            if all((copy.profile, reader, copy.result.counted) in read for reader in readers[rule]):
                free.setdefault(rule, []).append(copy)
            else:
                kept += copy.size
        going = []
        for rule, copies in free.items():
            named = {copy.result.outputs[0].artifact.path: copy for copy in copies}
            self._copies |= named
            why = "all that reads them is made; made again when it is to be made anew"
            going.append(Unneeded("ephemeral", rule, why, sum(copy.size for copy in copies), tuple(named)))
        return going, kept

    def _readers(self, ephemeral: RuleName) -> list[str]:
        """The rules that read its outputs; a service is named as well, of which no result tells what it has read."""
        declared: list[Rule | Service] = [*self._graph.rules.values(), *self._graph.services.values()]
        return [
            one.name
            for one in declared
            if any(isinstance(given.source, Ref) and given.source.rule == ephemeral for given in one.inputs)
        ]

    def _of_scratch(self, keep: Keep) -> _Found:
        """A folder each: they may be all that is left of hours of work."""
        scratch = Scratch(self._state)
        found = scratch.found()
        last_tried = self._manifest.last_tried() if found else {}
        going, kept = [], 0
        for key, note in found.items():
            run_id, last_key = last_tried.get((note.profile, note.action), (0, key)) if note else (0, key)
            given_up = note is not None and run_id > note.run_id and last_key != key
            paths = [str(path) for path in scratch.paths(key)]
            size = sum(map(_size, paths))
            if keep.scratch and not given_up:
                kept += size
                continue
            age = duration(time.time() - os.stat(paths[0]).st_mtime)
            why = f"last used {age} ago" + ("; it was tried under another key since" if given_up else "")
            going.append(Unneeded("scratch", str(note.action) if note else key, why, size, tuple(paths)))
        return going, kept

    def _of_replies(self, needed: Collection[int], keep: Keep) -> _Found:
        sizes = replies.sizes(self._state / "replies")
        kept = sum(sizes.values())
        if keep.replies:
            return [], kept
        keys = sorted(self._manifest.unneeded_requests(needed) & set(sizes))
        size = sum(sizes[key] for key in keys)
        why = "paid for, but no result that stays rests on them"
        return [Unneeded("replies", "", why, size, tuple(keys))], kept - size


def _last(n_runs: int) -> str:
    return "the last run" if n_runs == 1 else f"the last {n_runs} runs"


def _objects(what: str, why: str, digests: Collection[Digest], sizes: dict[Digest, int]) -> Unneeded:
    return Unneeded("store", what, why, sum(sizes[digest] for digest in digests), tuple(sorted(digests)))


def _size(path: str) -> int:
    """Bytes of a file, or of all below a folder; links count as what they are."""
    if not os.path.isdir(path) or os.path.islink(path):
        return os.lstat(path).st_size
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)
