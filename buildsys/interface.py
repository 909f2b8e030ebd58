"""The Python interface: a project opened in a notebook or a test, with what the commands do as methods.

Joins build, survey and query; nothing here is decided. It prints nothing: what is to be told is returned or raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buildsys.build import Options
from buildsys.build import build as build_project
from buildsys.errors import FAILED, LIMIT, BuildError
from buildsys.events import ActionFinished, BuildFinished, Event, LimitReached
from buildsys.explain import Explained, explain
from buildsys.model import NO_LIMITS, Limits
from buildsys.plan.limits import stopped
from buildsys.project import Project
from buildsys.query import Link, lineage, table
from buildsys.request import DEFAULT_PROFILE, Variation
from buildsys.survey import Survey, survey

if TYPE_CHECKING:
    import pyarrow


def open(  # noqa: A001 - called as a module's, like gzip.open
    folder: str | os.PathLike[str] = ".", profile: str = DEFAULT_PROFILE, overrides: Mapping[str, str] | None = None
) -> OpenProject:
    """The project that `folder` lies in, as `profile` has it.

    overrides: keys of the config and the texts of their values, as after `--set`. Raises BuildError where there is no
    project. What is in the project is read at each call of a method, so edits count.
    """
    variation = Variation(profile, tuple((overrides or {}).items()))
    return OpenProject(Project.find(Path(folder), variation).root, variation)


class OpenProject:
    """A project. Paths and targets are relative to its root. All methods raise BuildError for what a user can mend."""

    def __init__(self, root: Path, variation: Variation) -> None:
        self.root = root
        self.variation = variation

    def __repr__(self) -> str:
        return f"<project {self.root}, profile {self.variation.profile}>"

    def build(
        self,
        *targets: str,
        force: Sequence[str] = (),
        jobs: int | None = None,
        keep_going: bool = False,
        limits: Limits = NO_LIMITS,
        retry_failed: bool = False,
        on_event: Callable[[Event], None] | None = None,
    ) -> BuildFinished:
        """Bring targets up to date, or everything.

        jobs: actions at a time, as many as processors by default. limits: `buildsys.model.Limits` of requests, which
        win over those of rule files. retry_failed: ask again what servers refused. on_event: gets each event of
        `buildsys.events`, in any thread. Raises BuildError where an action or a check failed (exit code 1) or a limit
        stopped the build (6); KeyboardInterrupt after an interrupt, with all that ran kept.
        """
        failures: list[ActionFinished] = []
        reached: list[LimitReached] = []

        def emit(event: Event) -> None:
            if isinstance(event, ActionFinished) and event.error:
                failures.append(event)
            if isinstance(event, LimitReached):
                reached.append(event)
            if on_event:
                on_event(event)

        n_jobs = jobs or Options().jobs
        options = Options(
            tuple(targets), tuple(force), n_jobs, keep_going, "buildsys.open().build", limits, retry_failed
        )
        finished = build_project(self._project, options, emit)
        if finished.outcome == "interrupted":
            raise KeyboardInterrupt
        if reached and not failures:
            raise stopped(reached[0])
        if finished.outcome != "done":
            raise _failed(failures, LIMIT if finished.outcome == "limit" else FAILED)
        return finished

    def plan(self, *targets: str) -> Survey:
        """What `build` with these targets would do, and why: each action and its fate. It runs and changes nothing."""
        return survey(self._project, targets, Options().jobs)

    def why(self, target: str) -> list[Explained]:
        """The actions of a target, with what changed since they were built, and all parts of their keys."""
        return explain(self._project, target)

    def sql(self, query: str) -> pyarrow.Table:
        """The rows of a query over the manifest and all outputs that are tables; see `docs/manifest.md`."""
        return table(self.root, query)

    def lineage(self, path: str, *, down: bool = False) -> list[Link]:
        """All that the file at `path` was made from, nearest first; or all that was made from the file or key."""
        return lineage(self.root, path, down=down)

    @property
    def _project(self) -> Project:
        """Anew at each call, since a project reads each source once."""
        return Project(self.root, self.variation)


def _failed(failures: Sequence[ActionFinished], exit_code: int) -> BuildError:
    """The first failure in full, and the names of the others."""
    first, *others = failures
    return BuildError(
        f"{first.action} {first.outcome}",
        excerpt=first.error,
        facts=[("and", f"{other.action} {other.outcome}") for other in others],
        exit_code=exit_code,
    )
