"""python -m tests.fuzz --graphs 1000 --from 0    # play many; prints the seeds that fail
python -m tests.fuzz 4711                       # play one again, step by step, and its smallest form where it fails
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tests.fuzz.campaign import failure_of, play_all, smallest
from tests.fuzz.case import Played, random_case

_MOST_FAILURES = 20
_TELL_EVERY_S = 30


class Progress:
    """How far many cases are, in a line every so often: a run of hours that says nothing may as well hang."""

    def __init__(self, n_graphs: int, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._n_graphs = n_graphs
        self._tell = tell
        self._clock = clock
        self._started = self._told = clock()

    @property
    def minutes(self) -> float:
        return (self._clock() - self._started) / 60

    def are_done(self, n_done: int, n_failed: int) -> None:
        if self._clock() - self._told < _TELL_EVERY_S:
            return
        self._told = self._clock()
        rate = n_done / self.minutes
        left = (self._n_graphs - n_done) / rate if rate else 0
        self._tell(
            f"{n_done:,} of {self._n_graphs:,} graphs, {n_failed} failed, {rate:.0f} a minute, {left:.0f} minutes left"
        )


def main() -> int:
    """0 where the engine held in all cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", usage=__doc__)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if given.seed is not None:
        return play_one(given.seed)
    return play_many(range(given.first, given.first + given.graphs), given.processes)


def play_one(seed: int) -> int:
    error = failure_of(random_case(seed), print)
    if not error:
        print(f"seed {seed}: the engine held")
        return 0
    print(f"\n{error}\n\nmaking it smaller ...\n")
    case = smallest(random_case(seed))
    print(f"{case}\n")
    print(f"\n{failure_of(case, print)}")
    return 1


def play_many(seeds: range, processes: int) -> int:
    progress, played, failed = Progress(len(seeds), lambda line: print(line, flush=True)), Played(), 0
    for tally in play_all(seeds, processes):
        played += tally.played
        failed += len(tally.failures)
        for seed, error in tally.failures:
            print(f"seed {seed} failed: {error}\n  again: python -m tests.fuzz {seed}", flush=True)
        if failed > _MOST_FAILURES:
            print("too many fail: the rest is not played")
            break
        progress.are_done(played.n_graphs + failed, failed)
    print(f"graphs {seeds.start} to {seeds.stop - 1}: {failed} failed; {played} in {progress.minutes:.1f} minutes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
