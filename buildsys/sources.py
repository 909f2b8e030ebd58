"""What the interpreter of a rule finds: the project's code, what is installed as editable, the versions of the rest.

Joins files with what is installed. Knows nothing of what code means, and of keys only which versions belong into one.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Container, Mapping, Sequence
from functools import cached_property

from buildsys.code.slice import Slice
from buildsys.digest import Digest
from buildsys.errors import BuildError, Place, nearest
from buildsys.model import Rule
from buildsys.project import Project
from buildsys.slicing import Parsed, Slicer
from buildsys.source_tree import SourceTree
from buildsys.spec.graph import Graph
from buildsys.state.content import digest_stream
from buildsys.state.distributions import ABSENT, Distributions
from buildsys.state.editable import Editables, Home, is_outside
from buildsys.state.interpreters import Interpreter
from buildsys.state.inventory import own_folders
from buildsys.state.packages import own_distributions


class Installed:
    """What one interpreter finds. interpreter: None for that which runs buildsys.

    What is installed is not looked at where nothing is imported but the project's own and the standard library.
    """

    def __init__(self, project: Project, graph: Graph, interpreter: Interpreter | None = None) -> None:
        self._project = project
        self._graph = graph
        self._interpreter = interpreter

    @property
    def stdlib(self) -> Collection[str]:
        """The top-level names of its standard library; those of our own where it does not tell."""
        return (self._interpreter and self._interpreter.stdlib) or sys.stdlib_module_names

    @cached_property
    def sources(self) -> Sources:
        return Sources(self._project.tree, self._graph, self)

    @cached_property
    def slicer(self) -> Slicer:
        cache = self._project.state / "cache"
        return Slicer(self.sources, cache, Parsed(cache), self.stdlib)

    def versions(self, rule: Rule, code: Slice | None) -> dict[str, str]:
        """Distribution -> version of those that are in a rule's keys.

        Raises BuildError for a name in the rule that is nothing known.
        """
        imported = code.external if code else frozenset[str]()
        # What the code imports and does not use counts for nothing but to be known.
        known = code.imports if code else imported
        if not imported and not isinstance(rule.versions, tuple):
            return {}
        match rule.versions:
            case "closure":
                return self._distributions.closure(imported)
            case "imported":
                return self._distributions.versions(imported)
            case names:
                return {name: version for one in names for name, version in self._named(rule, one, known).items()}

    def others(self, code: Slice | None, keyed: Container[str]) -> dict[str, str]:
        """Distribution -> version of those that the code may run and that are in no key."""
        closure = self._distributions.closure(code.external) if code and code.external else {}
        return {name: version for name, version in sorted(closure.items()) if name not in keyed}

    def imported(self, code: Slice) -> dict[str, str]:
        """Distribution -> version of those that the code imports."""
        return self.provided(code.external)

    def provided(self, names: Collection[str]) -> dict[str, str]:
        """Distribution -> version of those that provide these top-level names."""
        return self._distributions.versions(names) if names else {}

    def compiled(self, code: Slice) -> dict[str, Digest]:
        """Path in the slice -> digest of the compiled modules of what is installed as editable, which have no text.

        Raises BuildError where one can't be read.
        """
        found = self.editables.compiled(code.sources, code.external) if self._is_asked else {}
        return {path: self._digest(where) for path, where in found.items()}

    def homes(self, code: Slice) -> tuple[Home, ...]:
        """Where those of its modules lie that are installed as editable."""
        return self.editables.homes_of(code.sources) if self._is_asked else ()

    @property
    def folders(self) -> tuple[str, ...]:
        """Where the interpreter lies, and what is installed for it."""
        return self._interpreter.folders if self._interpreter else tuple(own_folders())

    def locate(self, path: str) -> str:
        """Where a path of the slice is: absolute for code outside the project, else as it is given."""
        return self.editables.locate(path) if is_outside(path) else path

    def unplaced(self) -> list[str]:
        """The distributions that are installed as editable, nobody knows where: edits of them are not seen."""
        known = self._distributions.all if self._is_asked else ()
        return [one.name for one in known if one.editable and not one.places]

    def _digest(self, where: str) -> Digest:
        try:
            self._project.looks.stat(where)
            with open(self._project.root / where, "rb") as file:
                return digest_stream(file)
        except OSError as error:
            raise BuildError(f"can't be read: {error.strerror}", place=Place(where)) from None

    def _named(self, rule: Rule, name: str, imported: Collection[str]) -> Mapping[str, str]:
        if found := self._distributions.named(name) or ({name: ABSENT} if name in imported else {}):
            return found
        problem = f'versions of [rule.{rule.name}] name "{name}", which is neither installed nor imported'
        raise BuildError(problem, place=rule.place, hint=nearest(name, [*imported, *self._distributions.names]))

    @cached_property
    def _distributions(self) -> Distributions:
        if self._interpreter:
            return self._interpreter.distributions
        return own_distributions(self._project.state / "cache" / "packages.json")

    @property
    def _is_asked(self) -> bool:
        """Some import was of nothing that lies beside a script: code without such finds nothing elsewhere."""
        return "editables" in self.__dict__

    @cached_property
    def editables(self) -> Editables:
        return Editables(self._project.looks, self._distributions, self.stdlib)


class Sources:
    """A `resolve.Tree`. What rules make is left out: it is no code until it is an input."""

    def __init__(self, tree: SourceTree, graph: Graph, installed: Installed) -> None:
        self._tree = tree
        self._installed = installed
        self._graph = graph

    def read(self, path: str) -> str | None:
        return self._tree.read(self._installed.locate(path))

    def sources(self, folder: str) -> Sequence[str]:
        if is_outside(folder):
            parts = self._installed.editables.parts(folder)
            return sorted(path + file[len(where) :] for path, where in parts for file in self._tree.sources(where))
        return [path for path in self._tree.sources(folder) if not self.is_made(path)]

    def is_made(self, path: str) -> bool:
        """Some rule makes it, or the folder that it is in."""
        return self._graph.is_made(path)

    def elsewhere(self, name: str) -> Sequence[str]:
        return () if name in self._installed.stdlib else self._installed.editables.elsewhere(name)

    def behind(self, name: str) -> Sequence[str]:
        return () if name in self._installed.stdlib else self._installed.editables.behind(name)
