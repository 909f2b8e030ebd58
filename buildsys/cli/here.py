"""The project that a command is run in, and what the words on its command line mean there: paths, profile, settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click
from click.shell_completion import CompletionItem

from buildsys.cli.command import folder_option
from buildsys.errors import BuildError
from buildsys.request import AS_WRITTEN, DEFAULT_PROFILE, Request, Variation
from buildsys.state.root import find_root

if TYPE_CHECKING:
    from buildsys.project import Project

Body = Callable[..., int | None]


@dataclass(frozen=True)
class Here:
    """root: the project's folder. start: the one that paths on the command line are relative to."""

    root: Path
    start: Path
    variation: Variation

    @functools.cached_property
    def project(self) -> Project:
        """Imported for the first who needs it: that takes longer than to find that nothing is to be done."""
        from buildsys.project import Project

        return Project(self.root, self.variation)

    @classmethod
    def find(cls, *folders: str, variation: Variation = AS_WRITTEN) -> Self:
        """Each folder is relative to the one before it."""
        start = Path.cwd().joinpath(*folders)
        if not start.is_dir():
            raise BuildError(f"there is no folder {Path(*folders)}")
        return cls(find_root(start), start, variation)

    @classmethod
    def of(cls, ctx: click.Context) -> Self:
        """The project of a command line that is still being typed, for completion."""
        folders = (context.params.get("folder") or "." for context in (ctx.find_root(), ctx))
        return cls.find(*folders, variation=Variation(ctx.params.get("profile") or DEFAULT_PROFILE))

    def request(self, targets: Iterable[str]) -> Request:
        return Request(tuple(self.target(text) for text in targets), self.variation)

    def target(self, text: str) -> str:
        """A target as the project knows it: paths are relative to its root, wherever the user stands."""
        root = self.root
        path = Path(text)
        if path.is_absolute():
            return path.relative_to(root).as_posix() if path.is_relative_to(root) else text
        local = (self.start / path).resolve()
        return local.relative_to(root).as_posix() if local.exists() and local.is_relative_to(root) else text


def in_project(function: Body) -> Body:
    """Adds `-C`, and calls the command with where it is as its first argument."""

    @folder_option
    @functools.wraps(function)
    def called(
        folder: str, profile: str = DEFAULT_PROFILE, settings: tuple[str, ...] = (), **options: Any
    ) -> int | None:
        root = click.get_current_context().find_root().obj
        return function(Here.find(root, folder, variation=_variation(profile, settings)), **options)

    return called


def in_profile(function: Body) -> Body:
    """`in_project` for commands that see one profile: adds `--profile` too."""
    return _profile_option(in_project(function))


def in_variation(function: Body) -> Body:
    """`in_profile` for commands that look at what a build would do: adds `--set` too."""
    return click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help="Give a key of the config another value, this once.",
    )(in_profile(function))


def _variation(profile: str, settings: tuple[str, ...]) -> Variation:
    """settings: texts `key=value`, of which the last for a key counts."""
    overrides = []
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BuildError(f'--set "{text}" sets nothing', hint="write --set key=value, such as --set samples=64")
        overrides.append((key.strip(), value.strip()))
    return Variation(profile, tuple(overrides))


def profile_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What a shell offers for a profile; nothing where the project can't be read."""
    try:
        found = Here.of(ctx).project.profiles()
    except BuildError:
        return []
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


_profile_option = click.option(
    "--profile",
    metavar="NAME",
    default=DEFAULT_PROFILE,
    shell_complete=profile_names,
    help="Lay the configs CONFIG.NAME.toml over the configs; outputs have a place of their own.",
)
