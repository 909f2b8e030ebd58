"""The paths by which what runs reads its inputs and its scripts: relative to the project, and frozen.

Joins store, ephemeral outputs and frozen sources. Knows nothing of what is run, an action or a service.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from buildsys.assess import Bound
from buildsys.code.slice import Slice
from buildsys.ephemeral import Ephemeral
from buildsys.errors import BuildError
from buildsys.freezing import freeze, importing
from buildsys.model import Artifact
from buildsys.plan.key import Given
from buildsys.project import Project
from buildsys.state.editable import Home
from buildsys.state.store import Store


class Handover:
    """Hands over what the inputs of one run name. Thread-safe."""

    def __init__(self, project: Project, store: Store, ephemeral: Ephemeral) -> None:
        self._root = project.root
        self._frozen = project.state / "frozen"
        self._store = store
        self._ephemeral = ephemeral

    def argument(self, bound: Bound) -> Path | list[Path]:
        """Paths relative to the project, so that they are the same wherever it lies.

        A source file is read in place, an artifact through a link: onto the store, or to where an ephemeral one lies.
        """
        paths = [
            self.link(given, given.artifact).relative_to(self._root) if given.artifact else Path(given.path)
            for given in bound.given
        ]
        return paths if bound.many else paths[0]

    def words(self, bound: Bound) -> str | list[str]:
        """The same for a command."""
        argument = self.argument(bound)
        return [str(path) for path in argument] if isinstance(argument, list) else str(argument)

    def link(self, given: Given, artifact: Artifact) -> Path:
        if given.lent:
            return self._store.lead(given.digest, f"{given.lent}/{given.file}", self._root / self.located(given))
        return self._store.link_or_heal(artifact, given.file, self._root / artifact.path)

    def opened(self, given: Given) -> Iterator[Path]:
        """All that is opened where an input is read: itself, and where links in it lead to."""
        path = self.link(given, given.artifact) if given.artifact else self._root / given.path
        yield path
        for folder, folders, files in os.walk(path):
            links = (Path(folder, name) for name in (*folders, *files))
            yield from (link.resolve() for link in links if link.is_symlink())

    def located(self, given: Given) -> str:
        """Where an ephemeral output lies. Raises BuildError where it has gone since the action was to start."""
        if path := self._ephemeral.locate(given):
            return path
        problem = f"{given.path} was removed or changed before it could be read"
        raise BuildError(problem, hint="build again: it is made once more")

    def freeze(self, code: Slice, homes: Sequence[Home]) -> Path:
        """The folder in which the scripts of a command lie as they were fingerprinted, and what they import."""
        return freeze(code, self._frozen, homes).relative_to(self._root)

    def environment(self, code: Slice | None, homes: Sequence[Home], env: Mapping[str, str]) -> Mapping[str, str]:
        """The environment of a command that runs this code."""
        return importing(freeze(code, self._frozen, homes), env) if code and homes else env
