"""One random project and its steps, played on a real disk: each build is held against the reference.

Joins the reference with the engine. A case is a value, so that it can be played again and made smaller.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from buildsys.build import Options, build
from buildsys.digest import digest_bytes
from buildsys.errors import BuildError
from buildsys.events import ActionFinished, ActionStarted, Event
from buildsys.project import Project
from buildsys.request import Request, Variation
from buildsys.state.stamp import current
from buildsys.survey import survey
from tests.fuzz import model
from tests.fuzz.chronicle import Chronicle
from tests.fuzz.edits import SOURCE_EDITS
from tests.fuzz.foretold import Foretold
from tests.fuzz.generate import other_value, random_world, without_rules
from tests.fuzz.model import Who
from tests.fuzz.stand_ins import in_process
from tests.fuzz.world import PROFILE, Value, World, sources

_GOOD = ("ran", "restored", "reused")
_REVERTS = 10
"""How often all sources go back to what they were before some earlier build; beside the weights of the edits."""
_REAL: Mapping[int, Literal["manifest", "all"]] = {0: "manifest", 50: "manifest", 99: "all"}
"""Of a hundred seeds."""


class Edit(NamedTuple):
    """One edit by its name; its choices follow from the seed and from what is there, so any can be left out."""

    name: str
    seed: int


@dataclass(frozen=True)
class Case:
    """seed: of the first world. dropped: its rules that are left out. steps: the edits before each later build.

    real: what is not stood in for, the manifest and the workers, or only the manifest.
    """

    seed: int
    steps: tuple[tuple[Edit, ...], ...]
    dropped: frozenset[str] = frozenset()
    real: Literal["", "manifest", "all"] = ""


@dataclass(frozen=True)
class Asked:
    """What one build is asked for. target: a rule, "" for all. overrides: values of config keys, for this build."""

    target: str = ""
    profile: str = "default"
    overrides: tuple[tuple[str, Value], ...] = ()
    jobs: int = 1

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.target,) if self.target else ()

    def project(self, root: Path) -> Project:
        overrides = tuple((key, json.dumps(value)) for key, value in self.overrides)
        return Project(root, Variation(self.profile, overrides))


class Played(NamedTuple):
    """What was played, without a mismatch.

    n_refused: builds of which a source was missing. n_stamped: those of which a stamp said that nothing is to be done.
    """

    n_graphs: int = 0
    n_builds: int = 0
    n_refused: int = 0
    n_actions: int = 0
    n_called: int = 0
    n_stamped: int = 0

    def __add__(self, other: tuple[int, ...]) -> Played:  # type: ignore[override]
        return Played(*map(sum, zip(self, other, strict=True)))

    def __str__(self) -> str:
        builds = f"{self.n_builds} builds ({self.n_refused} refused, {self.n_stamped} stamped)"
        return f"{self.n_graphs} held in {builds} with {self.n_actions} actions, of which {self.n_called} ran"


class Mismatch(AssertionError):
    """The engine did what the reference does not permit, or left what it does not expect."""


def random_case(seed: int) -> Case:
    """Every so many with the real manifest, and with real workers too: these take ten times as long."""
    rng = random.Random(f"case {seed}")
    weights = {"revert": _REVERTS}
    weights |= {name: weight for edits in (SOURCE_EDITS, FAULTS, ASKED) for name, (weight, _) in edits.items()}
    steps = []
    for _ in range(rng.randint(3, 6)):
        names = rng.choices(list(weights), list(weights.values()), k=rng.randint(1, 3))
        steps.append(tuple(Edit(name, rng.randrange(1 << 30)) for name in names))
    return Case(seed, tuple(steps), real=_REAL.get(seed % 100, ""))


def play(case: Case, tell: Callable[[str], None] = lambda line: None) -> Played:
    """Raises Mismatch, or whatever the engine raises where it has a bug. tell: gets each step as people read it."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="buildsys-fuzz-", dir=_scratch())))
    try:
        with chdir(root), in_process(workers=case.real != "all", manifest=not case.real) as called:
            playing = _Play(root, case, called, tell)
            playing.run()
            return playing.played
    finally:
        shutil.rmtree(root)


@dataclass
class _Play:
    root: Path
    case: Case
    called: Counter[Who]
    tell: Callable[[str], None]
    past: Chronicle = field(default_factory=Chronicle)
    written: dict[str, str] = field(default_factory=dict)
    worlds: list[World] = field(default_factory=list)
    played: Played = field(default_factory=lambda: Played(n_graphs=1))

    def run(self) -> None:
        world = without_rules(random_world(self.case.seed), set(self.case.dropped))
        if not world.rules:
            return
        self._step(world, Asked())
        for number, edits in enumerate(self.case.steps, 1):
            asked = Asked()
            for edit in edits:
                rng = random.Random(edit.seed)
                before = world
                if edit.name in SOURCE_EDITS:
                    world = SOURCE_EDITS[edit.name][1](rng, world)
                elif edit.name == "revert":
                    world = rng.choice(self.worlds)
                elif edit.name in ASKED:
                    asked = ASKED[edit.name][1](rng, world, asked)
                else:
                    FAULTS[edit.name][1](rng, self)
                is_same = edit.name in SOURCE_EDITS and world == before
                self.tell(f"step {number}: {edit.name}{' (nothing)' if is_same else ''}")
            self._step(world, replace(asked, target=asked.target if asked.target in world.rules else ""))

    def _step(self, world: World, asked: Asked) -> None:
        self.worlds.append(world)
        self._write(world)
        self._told_world(world)
        self.tell(f"  {asked}")
        world = world.varied(asked.profile, dict(asked.overrides))
        rules = model.wanted(world, asked.targets)
        if model.is_refused(world, rules):
            self._refused(asked)
            return
        clean = model.Clean(world, rules, asked.profile, is_mixed=self.case.real == "all").actions
        permits = self.past.permits(world, clean, asked.target)
        planned = survey(asked.project(self.root), asked.targets)
        seen, called = self._built(asked)
        for who, permit in permits.items():
            self.tell(f"  {who}: {clean[who].fate}, permitted {sorted(permit.outcomes)}, it {seen.get(who)}")
        if seen.keys() != clean.keys():
            raise Mismatch(f"other actions: {sorted(map(str, seen.keys() ^ clean.keys()))}")
        for who, permit in permits.items():
            if called[who] > 1 or bool(called[who]) not in permit.calls or seen[who] not in permit.outcomes:
                raise Mismatch(
                    f"{who} {seen[who]}, called {called[who]} times; "
                    f"permitted: {sorted(permit.outcomes)}, called: {sorted(permit.calls)}"
                )
        if flaw := Foretold(world, planned, seen, called).flaw(permits):
            raise Mismatch(flaw)
        self.past.take(asked.profile, world, clean, seen, called)
        if not asked.target and all(outcome in _GOOD for outcome in seen.values()):
            self.past.tidied(asked.profile, world, clean)
        self._compare_disk()
        self.played += Played(0, 1, 0, len(seen), called.total())

    def _built(self, asked: Asked) -> tuple[dict[Who, str], Counter[Who]]:
        events: list[Event] = []
        self.called.clear()
        project = asked.project(self.root)
        stamped = current(self.root, Request(asked.targets, project.variation))
        if stamped:
            self.played += Played(n_graphs=0, n_stamped=1)
        try:
            build(project, Options(asked.targets, jobs=asked.jobs, keep_going=True), events.append)
        except BuildError as error:
            if stamped:
                raise Mismatch(f"the stamp said that all is up to date: {error}") from error
            raise
        ends = [event for event in events if isinstance(event, ActionFinished)]
        seen = {Who(*event.action): event.outcome for event in ends}
        if stamped and (set(seen.values()) - {"reused"} or sum(stamped.n_actions.values()) != len(seen)):
            raise Mismatch(f"the stamp said that all is up to date: {seen}")
        if len(seen) < len(ends):
            raise Mismatch("an action ended twice")
        if self.case.real == "all":
            self.called.update(Who(*event.action) for event in events if isinstance(event, ActionStarted))
        return dict(seen), Counter(self.called)

    def _refused(self, asked: Asked) -> None:
        try:
            self._built(asked)
        except BuildError:
            self._compare_disk()
            self.played += Played(n_builds=1, n_refused=1)
        else:
            raise Mismatch("a source is missing, and yet it was built")

    def _compare_disk(self) -> None:
        folder = self.root / "build"
        found = {
            path.relative_to(self.root).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
        }
        expected = self.past.files(found)
        if found != expected:
            different = sorted(path for path in found.keys() | expected.keys() if found.get(path) != expected.get(path))
            one, other = expected.get(different[0]), found.get(different[0])
            raise Mismatch(f"outputs differ at {', '.join(different)}\nexpected: {one!r}\nfound:    {other!r}")

    def _write(self, world: World) -> None:
        """Write what changed, in place; in every other case under the time of the last change, as some tools do."""
        texts = sources(world)
        for path in self.written.keys() - texts.keys():
            (self.root / path).unlink()
            for folder in (self.root / path).relative_to(self.root).parents[:-1]:
                if not any((self.root / folder).iterdir()):
                    (self.root / folder).rmdir()
        for path, text in texts.items():
            if self.written.get(path) != text:
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                keep = self.case.seed % 2 and path in self.written
                times = (self.root / path).stat() if keep else None
                (self.root / path).write_text(text)
                if times:
                    os.utime(self.root / path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.written = texts

    def _told_world(self, world: World) -> None:
        if len(self.worlds) == 1:
            for path in sorted(self.written):
                if path.startswith("rules/"):
                    self.tell(self.written[path])


def _scratch() -> str | None:
    """In memory, where there is such a file system: thousands of small files are made and removed."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# ---------------------------------------------------------------- what is done to outputs and to the store


def _delete_output(rng: random.Random, play: _Play) -> None:
    if path := _any_output(rng, play):
        _remove(play.root / path)
        del play.past.disk[path]


def _edit_output(rng: random.Random, play: _Play) -> None:
    """By hand, in place."""
    if path := _any_output(rng, play):
        own = f"by hand {rng.random()}\n"
        content = play.past.disk[path]
        if isinstance(content, str):
            (play.root / path).write_text(own)
            play.past.disk[path] = own
        else:
            (play.root / path / "all.txt").write_text(own)
            play.past.disk[path] = tuple((name, own if name == "all.txt" else text) for name, text in content)


def _rewrite_output(rng: random.Random, play: _Play) -> None:
    """The same bytes in a new file."""
    if path := _any_output(rng, play):
        content = play.past.disk[path]
        if isinstance(content, str):
            (play.root / path).unlink()
            (play.root / path).write_text(content)


def _lose_object(rng: random.Random, play: _Play) -> None:
    stored = [text for text, _ in play.past.stored.items() if not text.startswith("listing ")]
    if stored:
        text = rng.choice(stored)
        _object(play.root, text).unlink(missing_ok=True)
        del play.past.stored[text]


def _spoil_object(rng: random.Random, play: _Play) -> None:
    """Other bytes of the same size."""
    stored = [text for text in play.past.stored if text and not text.startswith("listing ")]
    if stored:
        text = rng.choice(stored)
        path = _object(play.root, text)
        path.chmod(0o644)
        path.write_text("?" * len(text))
        play.past.stored[text] = False


def _touch_source(rng: random.Random, play: _Play) -> None:
    path = rng.choice(sorted(play.written))
    (play.root / path).write_text(play.written[path])


def _object(root: Path, text: str) -> Path:
    digest = digest_bytes(text.encode())
    return root / ".buildsys" / "store" / digest[:2] / digest[2:]


def _any_output(rng: random.Random, play: _Play) -> str | None:
    paths = sorted(path for path in play.past.disk if ".mine-" not in path)
    return rng.choice(paths) if paths else None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


FAULTS: dict[str, tuple[int, Callable[[random.Random, _Play], None]]] = {
    "delete_output": (3, _delete_output),
    "edit_output": (2, _edit_output),
    "rewrite_output": (1, _rewrite_output),
    "lose_object": (3, _lose_object),
    "spoil_object": (3, _spoil_object),
    "touch_source": (2, _touch_source),
}
"""Name -> how often, and what is done."""


# ---------------------------------------------------------------- what a build is asked for


def _for_target(rng: random.Random, world: World, asked: Asked) -> Asked:
    return replace(asked, target=rng.choice(sorted(world.rules)))


def _under_profile(rng: random.Random, world: World, asked: Asked) -> Asked:
    return replace(asked, profile=PROFILE)


def _with_override(rng: random.Random, world: World, asked: Asked) -> Asked:
    key = rng.choice(sorted(world.config))
    return replace(asked, overrides=((key, other_value(rng, world.config[key])),))


def _with_jobs(rng: random.Random, world: World, asked: Asked) -> Asked:
    return replace(asked, jobs=3)


ASKED: dict[str, tuple[int, Callable[[random.Random, World, Asked], Asked]]] = {
    "target": (2, _for_target),
    "profile": (6, _under_profile),
    "override": (2, _with_override),
    "jobs": (3, _with_jobs),
}
"""Name -> how often, and what is asked."""
