"""Many cases in several processes, and the smallest form of one that fails.

Knows nothing of what a case is but that it is played, and that some of it can be left out.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace

from tests.fuzz.case import Case, Played, play, random_case
from tests.fuzz.generate import random_world

_BATCH = 20
_BATCHES_A_PROCESS = 10
"""A build freezes what the collector has seen, so a process only ever grows."""
_BATCH_S = 600


@dataclass(frozen=True)
class Tally:
    """What a batch of cases did. failures: (seed, error)."""

    played: Played
    failures: tuple[tuple[int, str], ...] = ()


def failure_of(case: Case, tell: Callable[[str], None] = lambda line: None) -> str:
    """What is wrong with a case, "" where nothing is."""
    try:
        play(case, tell)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def play_seeds(seeds: Iterable[int]) -> Tally:
    """One after another in this process."""
    tally = Tally(Played())
    for seed in seeds:
        try:
            tally = replace(tally, played=tally.played + play(random_case(seed)))
        except Exception as error:
            failed = (seed, f"{type(error).__name__}: {error}")
            tally = replace(tally, failures=(*tally.failures, failed))
    return tally


def play_all(seeds: range, processes: int) -> Iterator[Tally]:
    """The same in several processes, batch by batch as they are done. A case that hangs fails."""
    spawn = multiprocessing.get_context("spawn")
    # Not `max_tasks_per_child`: in Python 3.11 the pool waits for ever once all its processes have had theirs.
    n_at_once = _BATCH * _BATCHES_A_PROCESS * processes
    for some in (seeds[n : n + n_at_once] for n in range(0, len(seeds), n_at_once)):
        with ProcessPoolExecutor(processes, spawn, _alarmed) as pool:
            batches = (some[n : n + _BATCH] for n in range(0, len(some), _BATCH))
            for done in as_completed([pool.submit(_play_batch, batch) for batch in batches]):
                yield done.result()


def smallest(case: Case) -> Case:
    """A case that fails with the same kind of error, and with every part of which gone it would not."""
    kind = failure_of(case).partition(":")[0]
    while smaller := next((part for part in _parts(case) if failure_of(part).startswith(f"{kind}:")), None):
        case = smaller
    return case


def _parts(case: Case) -> Iterator[Case]:
    """The case with one thing left out: the last step, another, a rule, an edit."""
    for n in reversed(range(len(case.steps))):
        yield replace(case, steps=case.steps[:n] + case.steps[n + 1 :])
    for name in random_world(case.seed).rules.keys() - case.dropped:
        yield replace(case, dropped=case.dropped | {name})
    for n, edits in enumerate(case.steps):
        for i in range(len(edits)) if len(edits) > 1 else ():
            yield replace(case, steps=(*case.steps[:n], edits[:i] + edits[i + 1 :], *case.steps[n + 1 :]))


def _alarmed() -> None:
    def hang(number: int, frame: object) -> None:
        raise TimeoutError(f"{_BATCH} cases took more than {_BATCH_S} seconds")

    signal.signal(signal.SIGALRM, hang)


def _play_batch(seeds: range) -> Tally:
    signal.alarm(_BATCH_S)
    try:
        return play_seeds(seeds)
    finally:
        signal.alarm(0)
