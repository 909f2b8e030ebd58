"""How a fingerprint does on the cases: what it missed, and what it would rebuild for nothing.

Knows no fingerprint of its own: an `Ask` gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

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
    """How `buildsys fingerprint` does on the cases; traced: with the trace of a run before the edit."""
    with ThreadPoolExecutor(processes) as pool:
        shares = [cases[n::processes] for n in range(processes)]
        for scored in pool.map(lambda share: list(_score_share(share, traced)), shares):
            yield from scored


def _score_share(cases: Iterable[Case], traced: bool) -> Iterator[Scored]:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        forks = {seed: stack.enter_context(Forks(seed)) for seed in SEEDS}
        trace = Path(folder, "trace")

        def asking(*options: str) -> Ask:
            def ask(seed: int, tree: Path, entry: str, environment: dict[str, str]) -> str:
                code, out, err = forks[seed].run(["fingerprint", str(tree), entry, *options], tree, environment)
                return out.strip() if code == 0 else REFUSED + " ".join(err.split())[-300:]

            return ask

        with_trace = ("--trace", str(trace))
        for case in cases:
            trace.unlink(missing_ok=True)
            if traced:
                yield score(case, Path(folder, "tree"), asking(*with_trace), asking("--run", *with_trace))
            else:
                yield score(case, Path(folder, "tree"), asking())
