"""The project's Python files as the pure stages ask for them.

Joins the looks at a folder with what code is to Python: how its text is decoded, and which folders hold no code of the
project. Knows no rule.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence

from buildsys.code.parse import Broken
from buildsys.errors import FAILED, Place
from buildsys.state.looks import Looks

_ENVIRONMENT = frozenset(("pyvenv.cfg", "conda-meta"))
"""What lies at the top of an environment: its code counts by the versions of the distributions in it."""


class SourceTree:
    """The project's Python files as the pure stages ask for them. Each is read once, so a build sees one version."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._texts: dict[str, str | None] = {}
        self._listed: dict[str, list[str]] = {}

    def read(self, path: str) -> str | None:
        """The text of a file, None where there is none. Raises Broken where it can't be decoded."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def sources(self, folder: str) -> Sequence[str]:
        """All `.py` files below a folder, sorted; hidden folders, caches and environments of Python left out."""
        if folder not in self._listed:
            self._listed[folder] = sorted(self._below(folder, top=True))
        return self._listed[folder]

    def elsewhere(self, name: str) -> Sequence[str]:
        """What is installed as editable depends on the interpreter; see `prepare`."""
        return ()

    def behind(self, name: str) -> Sequence[str]:
        return ()

    def _below(self, folder: str, *, top: bool = False) -> Iterator[str]:
        try:
            names = self._looks.names(folder)
        except OSError:
            return
        if not top and (not _ENVIRONMENT.isdisjoint(names) or holds_distributions(names)):
            return
        for name, mark in names.items():
            path = f"{folder}/{name}" if folder else name
            if not mark and name.endswith(".py"):
                yield path
            elif mark == "/" and not name.startswith((".", "__pycache__")):
                yield from self._below(path)

    def _read(self, path: str) -> str | None:
        try:
            data = self._looks.read(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise Broken(f"can't be read: {error.strerror}", place=Place(path), exit_code=FAILED) from None
        try:
            return importlib.util.decode_source(data)
        except (SyntaxError, UnicodeDecodeError) as error:
            raise Broken(f"can't be decoded: {error}", place=Place(path), exit_code=FAILED) from None


def holds_distributions(names: Iterable[str]) -> bool:
    """A folder with these names in it is one that distributions were installed into: its code is not the project's."""
    return any(name.endswith(".dist-info") for name in names)
