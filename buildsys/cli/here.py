"""The project that a command is run in, and what the paths on its command line name there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import click

from buildsys.cli.command import folder_option
from buildsys.errors import BuildError
from buildsys.project import Project


@dataclass(frozen=True)
class Here:
    """start: the folder that paths on the command line are relative to."""

    project: Project
    start: Path

    @classmethod
    def find(cls, *folders: str) -> Self:
        """Each folder is relative to the one before it."""
        start = Path.cwd().joinpath(*folders)
        if not start.is_dir():
            raise BuildError(f"there is no folder {Path(*folders)}")
        return cls(Project.find(start), start)

    def target(self, text: str) -> str:
        """A target as the project knows it: paths are relative to its root, wherever the user stands."""
        root = self.project.root
        path = Path(text)
        if path.is_absolute():
            return path.relative_to(root).as_posix() if path.is_relative_to(root) else text
        local = (self.start / path).resolve()
        return local.relative_to(root).as_posix() if local.exists() and local.is_relative_to(root) else text


def in_project(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Adds `-C`, and calls the command with where it is as its first argument."""

    @folder_option
    @functools.wraps(function)
    def called(folder: str, **options: Any) -> int | None:
        return function(Here.find(click.get_current_context().find_root().obj, folder), **options)

    return called
