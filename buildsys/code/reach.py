"""The files that a script can import, whatever of them it uses: what a run has to find frozen.

Wider than any slice: functions out of reach count, since it costs nothing to hold a text that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from buildsys.code.parse import Broken, Module
from buildsys.code.reading import ROAMING
from buildsys.code.resolve import Resolver, Tree, join
from buildsys.code.scopes import Alias


@dataclass(frozen=True)
class Reach:
    """What a script can import.

    modules: by path, first-party, parsed. texts: their sources.
    broken: first-party files that a computed import may name and that do not parse; they count by their text.
    external: top-level names that are not first-party. preload: what importing the modules imports from outside, as
    "module" or "module:name", where that runs nothing of ours. roams: code may come from other folders than that of
    the script.
    """

    modules: dict[str, Module]
    texts: dict[str, str]
    broken: tuple[str, ...]
    external: frozenset[str]
    preload: frozenset[str]
    roams: bool


def reach(script: str, resolver: Resolver) -> Reach | None:
    """The import closure of a script; None where the script is missing. Raises Broken where a module in it is."""
    if resolver.tree.read(script) is None:
        return None
    found = _Closure(resolver)
    found.follow(script)
    roams = any(module.computed & ROAMING for module in found.modules.values())
    preload = found.preload
    if roams:
        # Which one is imported, the installed one or ours, is not known before it runs.
        ours = {part.removesuffix(".py") for path in found.texts for part in path.split("/")}
        preload = {name for name in preload if root_of(name.partition(":")[0]) not in ours}
    broken = tuple(sorted(set(found.broken)))
    return Reach(found.modules, found.texts, broken, frozenset(found.external), frozenset(preload), roams)


class _Closure:
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._tree = resolver.tree
        self.modules: dict[str, Module] = {}
        self.texts: dict[str, str] = {}
        self.broken: list[str] = []
        self.external: set[str] = set()
        self.preload: set[str] = set()
        self._waiting: list[str] = []

    def follow(self, script: str) -> None:
        self._waiting.append(script)
        while self._waiting:
            path = self._waiting.pop()
            if path in self.modules:
                continue
            module = self.modules[path] = self._resolver.source(path).module
            self.texts[path] = self._tree.read(path) or ""
            for alias in module.imports:
                self._import(alias, path, at_once=True)
            for alias in module.deferred:
                self._import(alias, path, at_once=False)
            roams = module.computed & ROAMING
            if roams:
                self._load(self._tree.sources(""))
            if roams or "import" in module.computed:
                self._load(self._resolver.beside(path))

    def _import(self, alias: Alias, path: str, *, at_once: bool) -> None:
        packages = self._resolver.packages(alias, path)
        self._waiting += [package.file for package in packages if package.file]
        if alias.attribute == "*" and packages:
            self._starred(packages[-1].file)
        if alias.level:
            return
        if not packages:
            root = root_of(alias.module)
            self.external.add(root)
            behind = self._resolver.behind(root)
            if at_once and not behind:
                self.preload.add(_wanted(alias))
            self._load(behind)

    def _starred(self, file: str) -> None:
        """The modules that `from package import *` may import: those in its `__all__`, any where that is computed."""
        if not file.endswith("/__init__.py"):
            return
        folder = file.removesuffix("/__init__.py")
        module = self._resolver.source(file).module
        if module.lists_exports and module.exports is None:
            self._load(self._tree.sources(folder))
        else:
            self._load([path for name in module.exports or () for path in _files(join(folder, name), self._tree)])

    def _load(self, paths: Iterable[str]) -> None:
        """The files that a computed import may name. One that does not parse would fail only if it were imported."""
        for path in paths:
            if path in self.texts:
                continue
            try:
                self._resolver.source(path)
            except Broken:
                self.texts[path] = self._tree.read(path) or ""
                self.broken.append(path)
            else:
                self._waiting.append(path)


def _files(stem: str, tree: Tree) -> Sequence[str]:
    return [path for path in (f"{stem}/__init__.py", f"{stem}.py") if tree.read(path) is not None][:1]


def _wanted(alias: Alias) -> str:
    return alias.module if alias.attribute[:1] in ("", "*") else f"{alias.module}:{alias.attribute}"


def root_of(name: str) -> str:
    return name.partition(".")[0]
