"""The entries of one package under many edits: what each edit did to the fingerprints, and what to the results."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from tests.mutation.bench import Bench
from tests.mutation.mutants import Edit, mutations, no_ops
from tests.mutation.packages import SCRIPT, Package
from tests.mutation.prints import LEVELS, Level

_One = TypeVar("_One")
_SOURCE = {"getsource", "getsourcelines", "findsource", "linecache"}
_LINES = _SOURCE | {
    *("co_firstlineno", "co_lines", "f_lineno", "tb_lineno", "getframeinfo", "extract_stack", "extract_tb", "walk_tb"),
    *("format_exc", "format_exception", "format_tb", "print_exc", "TracebackException"),
}
_SEEN_BY = {
    "docstring": _SOURCE | {"__doc__", "getdoc", "doctest"},
    "comment": _LINES,
    "blank lines": _LINES,
    "layout": _LINES,
}
"""The words of code that can see an edit that means nothing."""


@dataclass
class Seen:
    """What one level of fingerprints did; each list tells of pairs of an edit and an entry.

    stale: the result changed, it did not. left: a function that ran was mutated, it did not change.
    idle: a function that did not run was mutated, it changed. over: the edit means nothing, it changed.
    """

    stale: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)


@dataclass
class Tally:
    """What was seen of one package. The numbers are of pairs of an edit and an entry.

    n_executed: mutations of functions that ran; n_idle: of functions that did not, in modules that were imported.
    n_telling: those that changed the result. n_no_ops: edits that mean nothing; n_read: those not among them, since
    names in the code that ran can see them. untraced: functions that ran and are not in the trace. n_asked: mutations
    of which the command was asked too; otherwise: those of which it says something else.
    """

    package: str
    n_functions: int
    n_entries: int
    n_executed: int = 0
    n_idle: int = 0
    n_telling: int = 0
    n_no_ops: int = 0
    n_read: int = 0
    n_asked: int = 0
    otherwise: list[str] = field(default_factory=list)
    untraced: list[str] = field(default_factory=list)
    seen: dict[Level, Seen] = field(default_factory=lambda: {level: Seen() for level in LEVELS})

    def faults(self) -> Iterator[str]:
        """What must not be, in words."""
        yield from (f"not in the trace: {one}" for one in self.untraced)
        for level in LEVELS:
            yield from (f"{level} and stale: {one}" for one in self.seen[level].stale)
        yield from (f"ran and left it: {one}" for one in self.seen["traced"].left)
        yield from (f"means nothing and changed it: {one}" for one in self.seen["traced"].over)
        yield from (f"the command says otherwise: {one}" for one in self.otherwise)


@dataclass(frozen=True)
class Extent:
    """How much is tried. entries: of a package, 0 is all. tries: entries for each edit, that ran it and that didn't.

    asked: entries of which the command is asked as well, after a mutation of what ran and one of what didn't.
    """

    functions: int
    no_ops: int
    entries: int = 0
    tries: int = 3
    seed: int = 0
    asked: int = 0


def measure(package: Package, extent: Extent) -> Tally:
    """Mutates some functions and makes some edits that mean nothing."""
    with Bench(package) as bench:
        return _Measure(bench, extent).all()


class _Measure:
    def __init__(self, bench: Bench, extent: Extent) -> None:
        self._bench = bench
        self._extent = extent
        self._chance = random.Random(f"{bench.package.name} {extent.seed}")
        entries = bench.package.entries()
        self._runs = bench.runs(self._some(entries, extent.entries or len(entries)))
        self._tally = Tally(bench.package.name, len(bench.sources.named), len(self._runs))

    def all(self) -> Tally:
        for entry, ran in self._runs.items():
            self._tally.untraced += [f"{entry} with {name}" for name in sorted(ran.functions - ran.trace.functions)]
        sources = self._bench.sources
        for path, line in self._functions():
            for edit in mutations(sources.texts[path], sources.places[path][line], 1, self._chance):
                self._mutate(path, sources.named[path, line], edit)
        files = sorted({path for ran in self._runs.values() for path in ran.trace.modules})
        for path in self._some(files, self._extent.no_ops):
            for edit in no_ops(sources.texts[path], self._chance):
                self._mean_nothing(path, edit)
        if self._extent.asked:
            for entry in self._some(list(self._runs), self._extent.asked):
                self._ask(entry)
        return self._tally

    def _functions(self) -> list[tuple[str, int]]:
        """Half of them ran for some entry, as far as there are so many."""
        named = self._bench.sources.named
        ran = set().union(*(one.functions for one in self._runs.values()))
        known = [one for one in named if one[0] != SCRIPT and self._concerned(one[0])]
        half = self._some([one for one in known if named[one] in ran], self._extent.functions // 2)
        return half + self._some([one for one in known if named[one] not in ran], self._extent.functions - len(half))

    def _mutate(self, path: str, name: str, edit: Edit) -> None:
        concerned = self._concerned(path)
        executed = self._some([one for one in concerned if name in self._runs[one].functions], self._extent.tries)
        idle = self._some([one for one in concerned if name not in self._runs[one].functions], self._extent.tries)
        gave = self._bench.results(path, edit.text, [*executed, *idle])
        self._tally.n_executed += len(executed)
        self._tally.n_idle += len(idle)
        for entry in [*executed, *idle]:
            telling = gave[entry] != self._runs[entry].gave
            self._tally.n_telling += telling
            told = f"{self._tally.package}: {entry} with {name}, line {edit.line}: {edit.kind}"
            for level, changed in self._changed(entry, path, edit):
                seen = self._tally.seen[level]
                if changed and entry in idle and not telling:
                    seen.idle.append(told)
                if not changed and telling:
                    seen.stale.append(told)
                if not changed and entry in executed:
                    seen.left.append(told)

    def _mean_nothing(self, path: str, edit: Edit) -> None:
        for entry in self._some(self._concerned(path), self._extent.tries):
            if not _SEEN_BY[edit.kind].isdisjoint(self._runs[entry].words):
                self._tally.n_read += 1
                continue
            self._tally.n_no_ops += 1
            for level, changed in self._changed(entry, path, edit):
                if changed:
                    told = f"{self._tally.package}: {entry} with {path}, line {edit.line}: {edit.kind}"
                    self._tally.seen[level].over.append(told)

    def _ask(self, entry: str) -> None:
        """Does the command see what is seen here?"""
        sources, ran = self._bench.sources, self._runs[entry]
        known = [one for one in sources.named if one[0] != SCRIPT and one[0] in ran.trace.modules]
        kinds = [[one for one in known if (sources.named[one] in ran.functions) == began] for began in (True, False)]
        places = [one for kind in kinds for one in self._some(kind, 1)]
        edits = {
            one: mutations(sources.texts[one[0]], sources.places[one[0]][one[1]], 1, self._chance) for one in places
        }
        with self._bench.asking(entry) as ask:
            for (path, line), found in edits.items():
                for edit in found:
                    self._tally.n_asked += 1
                    here = dict(self._changed(entry, path, edit))["traced"]
                    if ask(path, edit.text) != here:
                        told = f"{self._tally.package}: {entry} with {sources.named[path, line]}, line {edit.line}"
                        self._tally.otherwise.append(f"{told}: {edit.kind} {'changed' if here else 'left'} it")

    def _changed(self, entry: str, path: str, edit: Edit) -> list[tuple[Level, bool]]:
        ran = self._runs[entry]
        prints = self._bench.prints(entry, self._bench.sources.edited(path, edit.text), ran.trace)
        return [(level, prints[level] != ran.prints[level]) for level in LEVELS]

    def _concerned(self, path: str) -> list[str]:
        """The entries that import a file."""
        return [entry for entry, ran in self._runs.items() if path in ran.trace.modules]

    def _some(self, of: list[_One], n: int) -> list[_One]:
        return self._chance.sample(of, n) if n < len(of) else of
