"""What may be wrong with a project, its state and the machine: what was looked at, what was found, and what to do.

Joins what each part can say of itself, and only reads. Knows nothing of what is stale.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from buildsys.diagnostics import check
from buildsys.errors import BuildError
from buildsys.model import Diagnostic, RuleName
from buildsys.phrases import counted, listed
from buildsys.prepare import Preparer
from buildsys.project import Project
from buildsys.run.kept import KEPT, all_kept
from buildsys.run.process import PROGRAM
from buildsys.run.replies import ReplyLog
from buildsys.spec.graph import Graph
from buildsys.spec.sizes import size_text
from buildsys.state.lock import hold
from buildsys.state.manifest import Manifest
from buildsys.state.objects import clone
from buildsys.state.publish import swap
from buildsys.state.snapshot import damage_in, live_path, snapshot_path
from buildsys.state.store import Store

Level = Literal["ok", "note", "wrong"]
_LOW_DISK: Final = 1_000_000_000
_MOST: Final = 4
_REMOVE: Final = "remove it when it is of no use"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. level: "note" for what a user may want to know. where: a place, "" for none."""

    about: str
    level: Level
    what: str
    where: str = ""
    hint: str = ""


def examine(project: Project, *, deep: bool) -> Iterator[Finding]:
    """Findings as they come. deep: also reads every byte of the store."""
    graph, found = _rules(project)
    yield from found
    if project.state.is_dir():
        yield from _lock(project)
        yield from _manifest(project)
        yield from _store(project, graph, deep)
        yield from _replies(project)
        yield from _services(project)
        yield from _processes(project)
    else:
        yield Finding("state", "note", "nothing was built here yet", hint="buildsys build")
    yield from _versions(project)
    yield from _file_system(project)


def _rules(project: Project) -> tuple[Graph | None, list[Finding]]:
    try:
        graph = project.graph()
    except BuildError as error:
        return None, [_of_error("rules", error)]
    preparer = Preparer(project, graph)
    diagnostics, diagnosis = check(project, graph, preparer)
    found = [_of_diagnostic(one) for one in diagnostics]
    if diagnosis.trouble:
        found.append(Finding("scripts", "note", diagnosis.trouble, hint="pip install ruff"))
    for rule in graph.rules.values():
        if rule.python and not (shutil.which(project.root / rule.python) or shutil.which(rule.python)):
            what, hint = f"[rule.{rule.name}] has no interpreter {rule.python}", "make it, or name another one"
            found.append(Finding("python", "wrong", what, str(rule.place), hint))
    if not any(one.level == "wrong" for one in found):
        told = f"{counted(len(graph.rules), 'rule')}, and nothing blocks them"
        found.insert(0, Finding("rules", "ok", told))
    return graph, [*found, *_unplaced(preparer, graph)]


def _unplaced(preparer: Preparer, graph: Graph) -> Iterator[Finding]:
    """Code that a rule may run, and of which nobody knows where it lies."""
    names: dict[str, None] = {}
    for rule in graph.rules.values():
        with suppress(BuildError):  # told already
            names.update(dict.fromkeys(preparer.installed(rule.python).unplaced()))
    for name in names:
        what = f"{name} is installed as editable in a way that is not known: edits of it are not seen"
        yield Finding("python", "note", what, "", "install it by another tool, or without -e")


def _lock(project: Project) -> Iterator[Finding]:
    """Held for a moment, to see whether it is free."""
    try:
        with hold(project.state / "lock", "buildsys doctor"):
            yield Finding("lock", "ok", "no build is running")
    except BuildError as error:
        yield Finding("lock", "note", error.problem, ", ".join(f"{name} {value}" for name, value in error.facts))


def _manifest(project: Project) -> Iterator[Finding]:
    """The live manifest is only looked at while no build has it."""
    hint = "`buildsys build` publishes it anew"
    path = snapshot_path(project.state)
    if not path.exists():
        yield Finding("manifest", "wrong", "it was never published", str(path), hint)
    elif problem := damage_in(path):
        yield Finding("manifest", "wrong", f"its snapshot can't be read: {problem}", str(path), hint)
    else:
        yield Finding("manifest", "ok", f"its snapshot can be read, {size_text(path.stat().st_size)}")
    live = live_path(project.state)
    try:
        with hold(project.state / "lock", "buildsys doctor"):
            problem = damage_in(live)
    except BuildError:
        return
    if problem:
        hint = "`buildsys build` puts aside what can't be read, and goes on with the snapshot"
        yield Finding("manifest", "wrong", f"it can't be read: {problem}", str(live), hint)
    for aside in sorted(live.parent.glob("*.damaged-*")):
        yield Finding("manifest", "note", "it was damaged once; this was kept", str(aside), _REMOVE)


def _store(project: Project, graph: Graph | None, deep: bool) -> Iterator[Finding]:
    store = Store(project.state)
    sizes = store.sizes()
    told = f"{counted(len(sizes), 'object')}, {size_text(sum(sizes.values()))}"
    lost = _lost(project, graph, store)
    for rule, n in lost.items():
        hint = "`buildsys build` heals what is in place still, and makes the rest again when it is needed"
        yield Finding("store", "wrong", f"it lost {counted(n, 'output')} of {rule}", hint=hint)
    damaged = [digest for digest in sizes if not store.is_sound(digest)] if deep else []
    for digest in damaged:
        hint = "remove it: what made it runs again when it is needed"
        yield Finding("store", "wrong", "an object holds other bytes than it should", str(store.path(digest)), hint)
    if not lost and not damaged:
        yield Finding("store", "ok", told + (", all read" if deep else "; --deep reads them"))


def _lost(project: Project, graph: Graph | None, store: Store) -> dict[RuleName, int]:
    """How many outputs of what holds now are not in the store, though they should be."""
    lost: dict[RuleName, int] = {}
    try:
        with closing(Manifest.read(project.state)) as manifest:
            held, made = manifest.held(), manifest.made()
    except BuildError:  # told already
        return lost
    for result_id, rule, digest, tree in made:
        ephemeral = graph is not None and rule in graph.rules and graph.rules[rule].ephemeral
        if result_id in held and not ephemeral:
            objects = store.objects_of(digest, tree=tree)
            if not objects or not all(store.knows(one) for one in objects):
                lost[rule] = lost.get(rule, 0) + 1
    return lost


def _replies(project: Project) -> Iterator[Finding]:
    folder = project.state / "replies"
    if not folder.is_dir():
        return
    with ReplyLog(folder, writable=False, thorough=True) as log:
        for notice in log.notices:
            hint = "the requests that were answered there are asked again"
            yield Finding("replies", "wrong", notice, str(folder), hint)
        if not log.notices:
            yield Finding("replies", "ok", f"{len(log):,} requests are answered")
    for torn in sorted(folder.glob("*.torn")):
        yield Finding("replies", "note", "a crash cut off what was being written", str(torn), _REMOVE)


def _services(project: Project) -> Iterator[Finding]:
    for kept in all_kept(project.state / KEPT):
        if kept.up:
            yield Finding("services", "ok", f"{kept.name} is kept at {kept.url}")
        else:
            hint = "the next build starts it anew"
            yield Finding("services", "note", f"{kept.name} was kept and has ended", kept.log, hint)


def _versions(project: Project) -> Iterator[Finding]:
    """Against `constraints.txt`, where the project has one."""
    path = project.root / "constraints.txt"
    here = f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    if not path.is_file():
        yield Finding("versions", "ok", here)
        return
    pins = dict(_pins(path.read_text(errors="replace").splitlines()))
    found = {name: version.partition("+")[0] for name in pins if (version := _installed(name))}
    other = [f"{name} {version} ({pins[name]})" for name, version in found.items() if version != pins[name]]
    if other:
        what = f"{here}; installed (and pinned) are {listed(other, _MOST)}"
        yield Finding("versions", "note", what, "constraints.txt", "what is pinned was tested together")
    else:
        yield Finding("versions", "ok", f"{here}, {counted(len(found), 'distribution')} as pinned")


def _pins(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, equals, version = line.partition("#")[0].partition(";")[0].partition("==")
        if equals:
            yield name.strip(), version.strip()


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _file_system(project: Project) -> Iterator[Finding]:
    disk = shutil.disk_usage(project.root)
    free = f"{size_text(disk.free)} of {size_text(disk.total)} free"
    if disk.free < _LOW_DISK:
        yield Finding("disk", "wrong", f"only {free}", str(project.root), "buildsys gc --dry-run")
    else:
        yield Finding("disk", "ok", free)
    try:
        with tempfile.TemporaryDirectory(prefix=".buildsys-doctor-", dir=project.root) as folder:
            yield Finding("file system", "ok", _abilities(Path(folder)))
    except OSError as error:
        what = f"it can't be written to: {error.strerror}"
        yield Finding("file system", "wrong", what, str(project.root), "make it writable")


def _abilities(folder: Path) -> str:
    one, other = folder / "one", folder / "other"
    one.write_text("1")
    other.write_text("2")
    try:
        os.link(one, folder / "link")
        links = "hard links"
    except OSError:
        links = "no hard links"
    with one.open("rb") as source, (folder / "copy").open("wb") as target:
        copies = "copies share blocks" if clone(source, target) else "copies take room"
    return f"{copies}, {links}, {'names are exchanged at once' if swap(one, other) else 'no exchange of names'}"


def _processes(project: Project) -> Iterator[Finding]:
    """Workers that no build owns. They end with their build, so there are none unless the system failed us."""
    try:
        with hold(project.state / "lock", "buildsys doctor"):
            left = _workers(project)
    except (BuildError, FileNotFoundError):
        return
    for pid in left:
        yield Finding("processes", "wrong", f"a worker outlived its build: pid {pid}", hint=f"kill {pid}")
    if not left:
        yield Finding("processes", "ok", "none outlived its build")


def _workers(project: Project) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_here = os.readlink(process / "cwd") == os.path.realpath(project.root)
            if is_here and os.fsencode(PROGRAM) in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue  # gone by now, or another user's
    return sorted(found)


def _of_diagnostic(one: Diagnostic) -> Finding:
    place = str(one.place or "")
    about = "packages" if one.level == "note" else "scripts" if ".py" in place else "rules"
    return Finding(about, "wrong" if one.level == "error" else "note", one.problem, place, one.hint)


def _of_error(about: str, error: BuildError) -> Finding:
    return Finding(about, "wrong", error.problem, str(error.place or ""), error.hint)
