"""A log, engines with short clocks, and the one-turn script that most tests use."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from buildsys.run.chat import ChatEngine, Patience
from buildsys.run.replies import ReplyLog

SHORT = Patience(attempts=4, backoff_s=0.02, max_backoff_s=0.1, busy_s=1.0, unseen_s=0.5)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ReplyLog]:
    with ReplyLog(tmp_path / "replies") as log:
        yield log


@pytest.fixture
def engine(log: ReplyLog) -> Iterator[Callable[..., ChatEngine]]:
    """Makes engines over the one log; all are closed before it."""
    made = []

    def make(**options: Any) -> ChatEngine:
        made.append(ChatEngine(log, **{"patience": SHORT, **options}))
        return made[-1]

    yield make
    for one in made:
        one.close()
