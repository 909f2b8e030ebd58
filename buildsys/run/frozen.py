"""The frozen sources of a worker: what an import of a first-party module finds, whatever the disk says by now.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of calls.
"""

from __future__ import annotations

import importlib.util
import io
import linecache
import os
import sys
import types
from collections.abc import Container, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader


class FrozenModules:
    """Finds first-party modules in `sources` (project-relative path: text), whatever the disk says by now.

    Stands first in `sys.meta_path`. folder: the script's folder, project-relative; modules are named from there.
    at_start: what Python itself had loaded, which a neighbour of the script can't shadow.
    """

    def __init__(self, root: str, folder: str, sources: Mapping[str, str], at_start: Container[str]) -> None:
        self.at_start = at_start
        self.folder = os.path.join(root, folder) if folder else root
        self.files = {os.path.join(root, path): text for path, text in sources.items()}
        self.modules: dict[str, str] = {}
        for path in self.files:
            name = self._importable(path)
            # A package wins over a module of the same name, as in Python.
            if name and (name not in self.modules or path.endswith("__init__.py")):
                self.modules[name] = path
        self.namespaces = {parent for name in self.modules for parent in _parents(name)} - self.modules.keys()

    def name_of(self, script: str) -> str:
        """The module name of a script: what it is called, or a private one where that means another module, or none."""
        stem = os.path.basename(script).removesuffix(".py")
        if self.modules.get(stem) == script and getattr(sys.modules.get(stem), "__file__", script) == script:
            return stem
        name = f"script {stem.replace('.', '_')}"
        self.modules[name] = script
        return name

    def _importable(self, path: str) -> str:
        """The name, dotted from the folder, by which an import finds a file; "" where none does."""
        parts = os.path.relpath(path, self.folder).removesuffix(".py").split(os.sep)
        if parts[-1] == "__init__":
            parts.pop()
        name = ".".join(parts)
        return "" if any("." in part for part in parts) or name in sys.builtin_module_names else name

    def _freeze_loading(self) -> None:
        """Have Python's own loader run the given texts, whoever finds the files; data beside them is read from disk."""
        read = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> types.CodeType | None:
            path = os.path.abspath(loader.path)
            return (
                compile(self.files[path], loader.path, "exec", dont_inherit=True)
                if path in self.files
                else read(loader, name)
            )

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]

    def install(self) -> None:
        for name in [*self.modules, *self.namespaces]:
            if name not in self.at_start:
                sys.modules.pop(name, None)
        for path, text in self.files.items():
            # No modification time: `linecache` then never asks the disk.
            lines = io.StringIO(text if text.endswith("\n") else text + "\n", newline=None).readlines()
            linecache.cache[path] = (len(text), None, lines, path)
        sys.path.insert(0, self.folder)
        sys.meta_path.insert(0, self)
        self._freeze_loading()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if file := self.modules.get(name):
            return importlib.util.spec_from_file_location(name, file)
        if name in sys.builtin_module_names:
            return None
        place = os.path.join(self.folder, name.replace(".", os.sep))
        if os.path.isfile(place + ".py") or os.path.isfile(os.path.join(place, "__init__.py")):
            raise ImportError(
                f"first-party module {name} was imported in a way that can't be seen from the source "
                "(importlib, exec ...); import it plainly",
                name=name,
            )
        if name in self.namespaces:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [place]
            return spec
        return None


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name
