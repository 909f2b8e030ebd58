"""How a fingerprint does on the cases: what it missed, and what it would rebuild for nothing.

What is compared is what an `Ask` gives: the command's answer, another tool's, or that of the code behind the command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Literal

from buildsys.errors import BuildError
from buildsys.fingerprint import fingerprint, read, write
from buildsys.trial import run
from tests.edits.case import Case, Side
from tests.edits.forks import Forks

Verdict = Literal["ok", "missed", "over", "over-may", "unstable", "broken"]
VERDICTS: tuple[Verdict, ...] = ("ok", "missed", "over", "over-may", "unstable", "broken")
BAD: tuple[Verdict, ...] = ("missed", "over", "unstable", "broken")

SEEDS = (1, 2)
"""Hash seeds of the processes that are asked: what depends on the order of a set shows."""

REFUSED = "refused: "
"""How an answer begins that is no fingerprint."""

Ask = Callable[[int, Path, str, dict[str, str]], str]
"""(seed, tree, entry, environment) -> the fingerprint, or what went wrong, after `REFUSED`."""


@dataclass(frozen=True)
class Scored:
    """A case, how the fingerprint did on it, and the fingerprints of both sides."""

    case: Case
    verdict: Verdict
    before: str
    after: str

    def __str__(self) -> str:
        told = [one for one in (self.before, self.after) if one.startswith(REFUSED)]
        return "; ".join([f"{self.verdict:9s} {self.case.name}: {self.case.reason}", *told[:1]])


def score(case: Case, tree: Path, ask: Ask, record: Ask | None = None) -> Scored:
    """Asks for the tree before the edit twice, then for that after it, all at one path.

    record: runs the entry before the edit and keeps what it saw, where that is used.
    """

    def of(side: Side, seed: int) -> str:
        return ask(seed, tree, case.entry, case.environments[side])

    case.place("before", tree)
    if record:
        record(SEEDS[0], tree, case.entry, case.environments["before"])
        case.place("before", tree)
    before, again = of("before", SEEDS[0]), of("before", SEEDS[1])
    case.place("after", tree)
    after = of("after", SEEDS[1])
    return Scored(case, _verdict(case, before, again, after), before, after)


def _verdict(case: Case, before: str, again: str, after: str) -> Verdict:
    if before.startswith(REFUSED) or (after.startswith(REFUSED) and not case.may_be_refused):
        return "broken"
    if before != again:
        return "unstable"
    if case.changed:
        return "missed" if after == before else "ok"
    if after == before:
        return "ok"
    return "over" if case.must else "over-may"


def score_ours(cases: list[Case], processes: int = 2, traced: bool = True) -> Iterator[Scored]:
    """How `buildsys fingerprint` does on the cases, in their order; traced: with the trace of a run before the edit."""
    benches: SimpleQueue[_Bench] = SimpleQueue()

    def scored(case: Case) -> Scored:
        bench = benches.get()
        try:
            return bench.score(case, traced)
        finally:
            benches.put(bench)

    with ExitStack() as stack, ThreadPoolExecutor(processes) as pool:
        for _ in range(processes):
            benches.put(stack.enter_context(_Bench()))
        yield from pool.map(scored, cases)


def score_here(cases: Iterable[Case], folder: Path, traced: bool = True) -> Iterator[Scored]:
    """The same without the command: in this process, with its hash seed, in trees below a folder."""
    tree, trace = folder / "tree", folder / "trace"

    def ask(_: int, tree: Path, entry: str, environment: dict[str, str]) -> str:
        module, _, function = entry.partition(":")
        try:
            with _environ(environment):
                return fingerprint(tree, module, function, read(trace) if traced else None).digest
        except BuildError as error:
            return REFUSED + error.problem

    def record(_: int, tree: Path, entry: str, environment: dict[str, str]) -> str:
        module, _, function = entry.partition(":")
        with _environ(environment):
            write(run(tree, module, function)[0], trace)
        return ""

    for case in cases:
        yield score(case, tree, ask, record if traced else None)


@contextmanager
def _environ(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del os.environ[name]
        os.environ.update(before)


class _Bench:
    """A tree to place cases in, and the processes that are asked about it. A context manager."""

    def __enter__(self) -> _Bench:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(TemporaryDirectory()))
            self._forks = {seed: stack.enter_context(Forks(seed)) for seed in SEEDS}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def score(self, case: Case, traced: bool) -> Scored:
        trace = self._folder / "trace"
        trace.unlink(missing_ok=True)
        tree = self._folder / "tree"
        if not traced:
            return score(case, tree, self._asking())
        return score(case, tree, self._asking("--trace", str(trace)), self._asking("--run", "--trace", str(trace)))

    def _asking(self, *options: str) -> Ask:
        def ask(seed: int, tree: Path, entry: str, environment: dict[str, str]) -> str:
            code, out, err = self._forks[seed].run(["fingerprint", str(tree), entry, *options], tree, environment)
            return out.strip() if code == 0 else REFUSED + " ".join(err.split())[-300:]

        return ask
