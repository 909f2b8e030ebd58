"""The frozen sources of a worker: what an import of a first-party module finds, whatever the disk says by now.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of calls.
"""

from __future__ import annotations

import importlib.util
import io
import linecache
import os
import stat as modes
import sys
import types
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from posix import stat

Home = tuple[str, str, str]
"""Modules of an editable install: (their name, dotted, "" for whatever is in the folder; the stem of their paths in
`sources`; where that is, absolute)."""
Compiler = Callable[[str, str, str], types.CodeType]
"""Gives the code of a first-party file, by its path, its text and how its code is to name it."""


class FrozenModules:
    """Finds first-party modules in `sources` (path: text), whatever the disk says by now.

    Stands first in `sys.meta_path`. Paths are relative to the project, or below the stem of a home. folder: the
    script's folder, project-relative; modules are named from there, else from their home.
    at_start: what Python itself had loaded, which a neighbour of the script can't shadow.
    """

    def __init__(
        self,
        root: str,
        folder: str,
        sources: Mapping[str, str],
        at_start: Container[str],
        homes: Sequence[Home] = (),
    ) -> None:
        self.at_start = at_start
        self.folder = os.path.join(root, folder) if folder else root
        self.paths = {_located(root, path, homes): path for path in sources}  # As they are called in `sources`.
        self.files = {file: sources[path] for file, path in self.paths.items()}
        self.homes = [("", self.folder)]
        self.homes += [
            (module, path if _is_outside(stem) else os.path.join(root, stem)) for module, stem, path in homes
        ]
        self.modules: dict[str, str] = {}
        self.namespaces: dict[str, list[str]] = {}
        for module, path in self.homes:
            self._name(module, path)
        self.tops = {_top(name) for name in self.modules}

    def _name(self, module: str, path: str) -> None:
        """Name the files of one home, as far as no home before has their names."""
        found: dict[str, str] = {}
        for file in self.files:
            name = _importable(file, module, path)
            # A package wins over a module of the same name, as in Python.
            if name and (name not in found or file.endswith("__init__.py")):
                found[name] = file
        taken = {name for name in found if not {name, _top(name)}.isdisjoint(self.modules)}
        if path != self.folder:
            taken |= {name for name in found if _is_python(name)}
        self.modules.update((name, file) for name, file in found.items() if name not in taken)
        for parent in {parent for name in found.keys() - taken for parent in _parents(name)} - found.keys():
            self.namespaces.setdefault(parent, []).extend(_places(parent, module, path))

    def name_of(self, script: str) -> str:
        """The module name of a script: what it is called, or a private one where that means another module, or none."""
        stem = os.path.basename(script).removesuffix(".py")
        if self.modules.get(stem) == script and getattr(sys.modules.get(stem), "__file__", script) == script:
            return stem
        name = f"script {stem.replace('.', '_')}"
        self.modules[name] = script
        return name

    def install(self, compiled: Compiler) -> None:
        for name in [*self.modules, *self.namespaces]:
            if name not in self.at_start:
                sys.modules.pop(name, None)
        for path, text in self.files.items():
            # No modification time: `linecache` then never asks the disk.
            lines = io.StringIO(text if text.endswith("\n") else text + "\n", newline=None).readlines()
            linecache.cache[path] = (len(text), None, lines, path)
        sys.path.insert(0, self.folder)
        sys.meta_path.insert(0, self)
        # Python's own loader runs the given texts, whoever finds the files; data beside them is read from disk.
        load_by(lambda path, _: self.files.get(path), compiled)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if file := self.modules.get(name):
            return importlib.util.spec_from_file_location(name, file)
        if name in sys.builtin_module_names:
            return None
        if any(_is_file(f"{place}.py") or _is_file(f"{place}/__init__.py") for place in self._ours(name)):
            raise ImportError(
                f"first-party module {name} was imported in a way that can't be seen from the source "
                "(importlib, exec ...); import it plainly",
                name=name,
            )
        if name in self.namespaces:
            spec = ModuleSpec(name, None, is_package=True)
            other = PathFinder.find_spec(name, path)
            more = other.submodule_search_locations if other and other.loader is None else None
            spec.submodule_search_locations = list(dict.fromkeys([*self.namespaces[name], *(more or ())]))
            return spec
        return None

    def _ours(self, name: str) -> Iterator[str]:
        """Where a first-party module of this name would be, without suffix."""
        for module, path in self.homes:
            if path == self.folder or _top(name) in self.tops:
                yield from _places(name, module, path)


def _located(root: str, path: str, homes: Sequence[Home]) -> str:
    """The file that a path in `sources` is of."""
    found = [(stem, place) for _, stem, place in homes if _is_outside(stem) and _is_of(path, stem)]
    if not found:
        return os.path.join(root, path)
    stem, place = max(found, key=lambda one: len(one[0]))
    return place + path[len(stem) :]


def _is_outside(stem: str) -> bool:
    return stem.startswith("<")


def _is_of(path: str, stem: str) -> bool:
    """It is the module, or of the package or folder, of this stem."""
    return path == f"{stem}.py" or path.startswith(f"{stem}/")


def _importable(file: str, module: str, path: str) -> str:
    """The dotted name by which an import finds a file in a home; "" where none does."""
    if not _is_of(file, path):
        return ""
    parts = file[len(path) :].removesuffix(".py").split(os.sep)[1:]
    if parts and parts[-1] == "__init__":
        parts.pop()
    name = ".".join([*filter(None, [module]), *parts])
    return "" if any("." in part for part in parts) or name in sys.builtin_module_names else name


def _places(name: str, module: str, path: str) -> Iterator[str]:
    """Where a home has a module or namespace of this name, without suffix."""
    if not module:
        yield os.path.join(path, *name.split("."))
    elif name == module or name.startswith(f"{module}."):
        yield os.path.join(path, *name[len(module) :].split(".")[1:])


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_python(name: str) -> bool:
    """Whether Python finds a module of its own before one that is installed."""
    return _top(name) in getattr(sys, "stdlib_module_names", ())


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def load_by(text_of: Callable[[str, SourceFileLoader], str | None], compiled: Compiler) -> None:
    """Have Python's own loader compile each file that has a text by way of `compiled`, whoever finds it."""
    read = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> types.CodeType | None:
        path = os.path.abspath(loader.path)
        text = text_of(path, loader)
        return read(loader, name) if text is None else compiled(path, text, loader.path)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _is_file(path: str) -> bool:
    """Asked of the system itself: it is no question of the run's."""
    try:
        return modes.S_ISREG(stat(path).st_mode)
    except OSError:
        return False
