"""A scratch project that tests write, build and question; every assertion is about what ran."""

from __future__ import annotations

import shutil
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from buildsys.build import Options, build
from buildsys.errors import BuildError
from buildsys.events import ActionFinished, Event
from buildsys.model import NO_LIMITS, Limits, Outcome
from buildsys.project import Project
from buildsys.request import DEFAULT_PROFILE, Variation


@dataclass(frozen=True)
class Built:
    """What one build did. error: of a build that was refused before anything ran."""

    events: Sequence[Event]
    outcome: str
    error: BuildError | None = None

    def actions(self, outcome: Outcome) -> list[str]:
        ends = [event for event in self.events if isinstance(event, ActionFinished)]
        return sorted(str(event.action) for event in ends if event.outcome == outcome)

    @property
    def ran(self) -> list[str]:
        return self.actions("ran")

    @property
    def restored(self) -> list[str]:
        return self.actions("restored")

    @property
    def failed(self) -> list[str]:
        return self.actions("failed")

    @property
    def errors(self) -> str:
        return "\n".join(event.error for event in self.events if isinstance(event, ActionFinished) and event.error)


class Space:
    """A project in a scratch folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
        return file

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def remove(self, path: str) -> None:
        target = self.root / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    def replace(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert old in text, f"{old!r} is not in {path}"
        self.write(path, text.replace(old, new))

    def build(
        self,
        *targets: str,
        force: Sequence[str] = (),
        jobs: int = 2,
        keep_going: bool = False,
        profile: str = DEFAULT_PROFILE,
        overrides: tuple[tuple[str, str], ...] = (),
        limits: Limits = NO_LIMITS,
        retry_failed: bool = False,
        on_event: Callable[[Event], None] | None = None,
    ) -> Built:
        """A build in this process. on_event: called with each event as it comes, in whichever thread."""
        events: list[Event] = []

        def emit(event: Event) -> None:
            events.append(event)
            if on_event:
                on_event(event)

        try:
            done = build(
                Project(self.root, Variation(profile, overrides)),
                Options(targets, tuple(force), jobs, keep_going, limits=limits, retry_failed=retry_failed),
                emit,
            )
        except BuildError as error:
            return Built(events, "refused", error)
        return Built(events, done.outcome)


@pytest.fixture
def space(tmp_path: Path) -> Space:
    return Space(tmp_path)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "bare"
    venv.create(folder, symlinks=True)
    return folder
