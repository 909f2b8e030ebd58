"""What actions and services printed, `logs/RUN/RULE/SHARD.log` and `logs/RUN/SERVICE.log`, and which of it is outdated.

Knows nothing of what is in a log, nor of runs but their numbers and profiles. RUN is a number, and of a profile that is
not `default` the number and its name, `12.sampled`: logs are looked for while a run goes on, when nothing else tells
which profile it is of.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from buildsys.request import DEFAULT_PROFILE

PRUNED_EVERY: Final = 16
"""Runs after which a build looks for old logs: that means listing all of them."""


def folder_of(logs: Path, run_id: int, profile: str) -> Path:
    """Where the logs of a run are."""
    return logs / (f"{run_id}" if profile == DEFAULT_PROFILE else f"{run_id}.{profile}")


def runs_of(logs: Path, profile: str = "") -> list[Path]:
    """The folders of the runs of a profile, or of all, the newest first."""
    found = [run for run in logs.glob("*") if run.name.partition(".")[0].isdecimal()]
    mine = [run for run in found if profile in ("", _profile_of(run))]
    return sorted(mine, key=lambda run: int(run.name.partition(".")[0]), reverse=True)


def outdated(logs: Path, keep_runs: int) -> Iterator[Path]:
    """The logs of all runs but the last ones; of an action or a service that has no newer log, that one stays."""
    seen: set[tuple[str, str]] = set()
    for n, run in enumerate(runs_of(logs)):
        for folder, _, names in os.walk(run):
            for name in names:
                log = Path(folder, name)
                called = _profile_of(run), log.relative_to(run).as_posix()
                if n >= keep_runs and called in seen:
                    yield log
                seen.add(called)


def prune(logs: Path, keep_runs: int) -> None:
    """Remove what is outdated, and the folders that this leaves empty."""
    for log in list(outdated(logs, keep_runs)):
        remove(logs, log)


def remove(logs: Path, log: Path) -> None:
    """Remove a log, and its rule's and run's folders where they are empty then."""
    log.unlink(missing_ok=True)
    folder = log.parent
    with suppress(OSError):
        while folder != logs:
            folder.rmdir()
            folder = folder.parent


def _profile_of(run: Path) -> str:
    return run.name.partition(".")[2] or DEFAULT_PROFILE
