"""What a script reaches by its import statements, also past what does not parse, and what these name that is not there.

Joins what is found in single texts with the files of a project. Wider than a slice and coarser: it says what could be
imported, not what an action's outcome can depend on. Knows no rule.
"""

from __future__ import annotations

import difflib
import importlib.machinery
import os
import posixpath
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from buildsys.code.outline import Imported, Outline
from buildsys.code.parse import Broken
from buildsys.proofreader import Proofreader
from buildsys.sources import Installed, Sources
from buildsys.state.looks import Looks

_PACKAGE: Final = "/__init__.py"
_ALIKE: Final = 0.8


class Lack(NamedTuple):
    """Something that is imported and is not there.

    kind: a "package" may be installed elsewhere; a "module" or "name" of the project's own is a mistake.
    owner: the file that should have the name. near: what is there and is called alike.
    """

    kind: Literal["package", "module", "name"]
    name: str
    path: str
    imported: Imported
    owner: str = ""
    near: tuple[str, ...] = ()


class _Found(NamedTuple):
    """What an import names. files: all that it runs. stem: the path of its module without its ending.

    missing: the first part of its dotted name that is no file of the project, "" where all are.
    """

    files: list[str]
    stem: str
    missing: str = ""


@dataclass(frozen=True)
class Files:
    """What there is of code for one interpreter, as imports ask for it."""

    installed: Installed
    proofreader: Proofreader
    looks: Looks

    @property
    def sources(self) -> Sources:
        return self.installed.sources

    def module(self, stem: str) -> str:
        """The file that an import of this path runs, "" for none: a package wins over a module, as in Python."""
        paths = (f"{stem}{_PACKAGE}".lstrip("/"), f"{stem}.py")
        return next((path for path in paths if stem and self.text(path) is not None), "")

    def text(self, path: str) -> str | None:
        """The text of a file; None where there is none, or none that can be read."""
        try:
            return self.sources.read(path)
        except Broken:
            return None

    def is_namespace(self, stem: str) -> bool:
        return bool(self.sources.sources(stem))

    def is_anything(self, stem: str) -> bool:
        """Something of this name lies there, such as a compiled module, or a rule makes it."""
        folder, _, name = stem.rpartition("/")
        made = any(self.sources.is_made(path) for path in (f"{stem}.py", stem))
        return made or any(entry.partition(".")[0] == name for entry in self.looks.names(self.installed.locate(folder)))

    def beside(self, folder: str) -> list[str]:
        """The modules that a script in this folder can import by their first name."""
        prefix = f"{folder}/" if folder else ""
        paths = (path.removeprefix(prefix) for path in self.sources.sources(folder))
        return sorted({path.partition("/")[0].removesuffix(".py") for path in paths})


class Reached:
    """The modules of one script, the script first. texts, outlines: by path; no outline of what is not Python.

    at_once: those that are imported whatever the script does then. A module in it runs from its top to its end.
    """

    def __init__(self, script: str, files: Files) -> None:
        self.folder = posixpath.dirname(script)
        self.texts: dict[str, str] = {}
        self.outlines: dict[str, Outline | None] = {}
        self._files = files
        self.at_once: set[str] = set()
        waiting = [(script, True)]
        while waiting:
            path, is_at_once = waiting.pop()
            text = files.text(path)
            if text is None or path in self.at_once or (path in self.texts and not is_at_once):
                continue
            if is_at_once:
                self.at_once.add(path)
            self.texts[path] = text
            outline = self.outlines[path] = files.proofreader.read(path, text).outline
            for one in outline.imports if outline else ():
                follows = is_at_once and not (one.called or one.optional or one.main)
                waiting += ((file, follows) for file in self._found(one, path).files)

    @cached_property
    def moves(self) -> bool:
        """Some module may import from folders that are not known."""
        return any(one.moves for one in self.outlines.values() if one)

    @cached_property
    def meddles(self) -> bool:
        """Some module may give names to all others."""
        return any(one.meddles for one in self.outlines.values() if one)

    @cached_property
    def sets(self) -> frozenset[str]:
        """The names that some module gives to another."""
        return frozenset().union(*(one.sets for one in self.outlines.values() if one))

    def lacks(self, is_installed: Callable[[str], bool]) -> Iterator[Lack]:
        """What is imported and is not there, but for what the text can do without. is_installed: asked for packages."""
        for path, outline in self.outlines.items():
            for imported in outline.imports if outline else ():
                if not imported.optional:
                    yield from self._lacks(imported, path, is_installed)

    def star_names(self, path: str, seen: frozenset[str] = frozenset()) -> frozenset[str] | None:
        """All names that a module has at its top level, star imports followed; None where that can't be said."""
        outline = self.outlines.get(path)
        if outline is None or outline.opaque or "__getattr__" in outline.binds:
            return None
        names = set(outline.binds)
        for star in outline.stars:
            found = self._found(star, path)
            owner = self._files.module(found.stem)
            if found.missing or not owner:
                return None
            if owner not in seen and owner != path:
                brought = self.star_names(owner, seen | {path})
                if brought is None:
                    return None
                names |= brought
        return frozenset(names)

    def is_submodule(self, path: str, name: str) -> bool:
        """A package has the modules below it as names, once anything has imported them."""
        return path.endswith(_PACKAGE) and self._is_there(posixpath.join(posixpath.dirname(path), name))

    def _found(self, imported: Imported, path: str) -> _Found:
        parts = imported.module.split(".") if imported.module else []
        stem = path
        for _ in range(imported.level):
            stem = posixpath.dirname(stem)
        if not imported.level:
            stem = self._home(parts[0])
        files = [self._files.module(stem)] if imported.level and not imported.module else []
        for n, part in enumerate(parts):
            stem = posixpath.join(stem, part)
            if file := self._files.module(stem):
                files.append(file)
            elif not self._files.is_namespace(stem):
                return _Found(files, stem, ".".join(parts[: n + 1]))
        inner = [self._files.module(posixpath.join(stem, name)) for name in imported.names if name != "*"]
        return _Found([file for file in [*files, *inner] if file], stem)

    def _home(self, name: str) -> str:
        """The folder in which a top-level name is found: the script's, or that of an editable install."""
        if self._is_module(posixpath.join(self.folder, name)):
            return self.folder
        stems = (stem for stem in self._files.sources.elsewhere(name) if self._is_module(stem))
        return posixpath.dirname(next(stems, posixpath.join(self.folder, name)))

    def _is_module(self, stem: str) -> bool:
        return bool(self._files.module(stem)) or self._files.is_namespace(stem)

    def _lacks(self, imported: Imported, path: str, is_installed: Callable[[str], bool]) -> Iterator[Lack]:
        found = self._found(imported, path)
        root = "" if imported.level else imported.module.partition(".")[0]
        if found.missing and root and not found.files:
            if not is_installed(root):
                near = difflib.get_close_matches(root, self._files.beside(self.folder), 1, _ALIKE)
                yield Lack("package", root, path, imported, near=tuple(near))
        elif found.missing:
            owners = [self.outlines.get(file) for file in found.files]
            is_known = not self.meddles and all(owner and not owner.opaque for owner in owners)
            if is_known and not self._files.is_anything(found.stem):
                name = "." * imported.level + found.missing
                yield Lack("module", name, path, imported, near=self._near(found.stem))
        elif owner := self._files.module(found.stem):
            yield from self._lacking_names(imported, path, owner)

    def _lacking_names(self, imported: Imported, path: str, owner: str) -> Iterator[Lack]:
        known = None if self.meddles else self.star_names(owner)
        for name in imported.names:
            if known is None or name in known or name == "*" or name.startswith("__") or name in self.sets:
                continue
            if not self.is_submodule(owner, name):
                near = difflib.get_close_matches(name, sorted(known), 1)
                yield Lack("name", name, path, imported, owner, tuple(near))

    def _is_there(self, stem: str) -> bool:
        return self._is_module(stem) or self._files.is_anything(stem)

    def _near(self, stem: str) -> tuple[str, ...]:
        folder, _, name = stem.rpartition("/")
        return tuple(difflib.get_close_matches(name, self._files.beside(folder), 1))


def names_in_folders(folders: Iterable[str]) -> set[str]:
    """The top-level names that could be imported from these folders."""
    found: set[str] = set()
    for folder in folders:
        try:
            found.update(name.partition(".")[0] for name in os.listdir(folder or "."))
        except OSError:  # no folder, or an archive
            continue
    return found


def is_found_here(name: str) -> bool:
    """Something else than the folders of `sys.path` brings a module of this name here, as an editable install does."""
    for finder in sys.meta_path:
        if finder is not importlib.machinery.PathFinder and hasattr(finder, "find_spec"):
            try:
                if finder.find_spec(name, None):
                    return True
            except Exception:  # what others install there is their own affair
                continue
    return False
