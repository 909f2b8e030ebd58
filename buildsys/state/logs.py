"""What actions and services printed, `logs/RUN/RULE/SHARD.log` and `logs/RUN/SERVICE.log`, and which of it is outdated.

Knows nothing of what is in a log, nor of runs but their numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

PRUNED_EVERY: Final = 16
"""Runs after which a build looks for old logs: that means listing all of them."""


def runs_of(logs: Path) -> list[Path]:
    """The folders of the runs, the newest first."""
    found = [run for run in logs.glob("*") if run.name.isdecimal()]
    return sorted(found, key=lambda run: int(run.name), reverse=True)


def outdated(logs: Path, keep_runs: int) -> Iterator[Path]:
    """The logs of all runs but the last ones; of an action or a service that has no newer log, that one stays."""
    seen: set[str] = set()
    for n, run in enumerate(runs_of(logs)):
        for folder, _, names in os.walk(run):
            for name in names:
                log = Path(folder, name)
                called = log.relative_to(run).as_posix()
                if n >= keep_runs and called in seen:
                    yield log
                seen.add(called)


def prune(logs: Path, keep_runs: int) -> None:
    """Remove what is outdated, and the folders that this leaves empty."""
    for log in list(outdated(logs, keep_runs)):
        remove(log)


def remove(log: Path) -> None:
    """Remove a log, and its rule's and run's folders where they are empty then."""
    log.unlink(missing_ok=True)
    folder = log.parent
    with suppress(OSError):
        while folder.name != "logs":
            folder.rmdir()
            folder = folder.parent
