"""Imports as written -> files of the project: the modules that a script can reach, and the names that are not ours.

Knows no file system: a `Tree` answers what files there are. Resolution follows what the worker's loader does at run
time, where the script's folder is `sys.path[0]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from buildsys.code.parse import Broken, Import, Module, parse


class Tree(Protocol):
    """The files of a project, by path relative to it; and of what is installed as editable, by paths of its own.

    A stem is the path of a module or package without `.py` or `/__init__.py`; it may have neither, as the folder of a
    namespace.
    """

    def read(self, path: str) -> str | None:
        """The text of a file, None where there is none."""

    def sources(self, folder: str) -> Sequence[str]:
        """All `.py` files below a folder, sorted; of the whole project for ""."""

    def elsewhere(self, name: str) -> Sequence[str]:
        """The stems of a top-level name that is installed as editable; none where it is not.

        What no folder of a script has, Python finds there: it is first-party code.
        """

    def behind(self, name: str) -> Sequence[str]:
        """The stems of editable installs that a distribution needs which provides this top-level name: it may run them.

        They are in no import that can be read, so all of their modules are in reach.
        """


@dataclass(frozen=True)
class Reach:
    """What a script can import.

    modules: by path, first-party, parsed. texts: their sources, frozen with them.
    broken: first-party files that a computed import may name and that do not parse; they count by their text.
    external: top-level names that are not first-party.
    preload: what importing the modules imports from outside, as "module" or "module:name".
    """

    modules: dict[str, Module]
    texts: dict[str, str]
    broken: tuple[str, ...]
    external: frozenset[str]
    preload: frozenset[str]


def reach(script: str, tree: Tree) -> Reach | None:
    """The import closure of a script; None where the script is missing. Raises Broken where a module in it is."""
    text = tree.read(script)
    if text is None:
        return None
    folder = script.rpartition("/")[0]
    modules: dict[str, Module] = {}
    texts: dict[str, str] = {}
    external: set[str] = set()
    preload: set[str] = set()
    broken: list[str] = []
    homes: set[str] = set()
    waiting = [script]
    while waiting:
        path = waiting.pop()
        source = None if path in modules else tree.read(path)
        if source is None:
            continue
        texts[path] = source
        module = modules[path] = parse(path, source)
        for imported in module.imports:
            found, root, stems = _resolve(imported, path, folder, tree)
            homes.update(stems)
            waiting += found
            if not found and root:
                external.add(root)
                preload.update(() if imported.deferred else _wanted(imported))
                for stem in tree.behind(root):
                    homes.add(stem)
                    waiting += _loadable([*_module_files(stem, tree), *tree.sources(stem)], texts, broken, tree)
            if imported.names == ("*",):
                waiting += _loadable(_starred(found, tree), texts, broken, tree)
        if module.dynamic or module.roams:
            waiting += _loadable(tree.sources("" if module.roams else folder), texts, broken, tree)
            waiting += _loadable(tree.sources(_home(path, homes)), texts, broken, tree)
    if any(module.roams for module in modules.values()):
        # Which one is imported, the installed one or ours, is not known before it runs.
        ours = {part.removesuffix(".py") for path in texts for part in path.split("/")}
        preload = {name for name in preload if name.partition(":")[0].partition(".")[0] not in ours}
    return Reach(modules, texts, tuple(sorted(set(broken))), frozenset(external), frozenset(preload))


def _starred(found: Sequence[str], tree: Tree) -> Sequence[str]:
    """The modules that `from package import *` may import: those in its `__all__`, any where that is computed."""
    package = next((path for path in found[-1:] if path.endswith("/__init__.py")), "")
    if not package:
        return []
    folder = package.removesuffix("/__init__.py")
    exports = parse(package, tree.read(package) or "").exports
    if exports is None:
        return tree.sources(folder)
    return [file for name in exports for file in _module_files(_join(folder, name), tree)]


def _loadable(paths: Iterable[str], texts: dict[str, str], broken: list[str], tree: Tree) -> list[str]:
    """The files that a computed import may name. One that does not parse would fail only if it were imported."""
    found = []
    for path in paths:
        if path in texts:
            continue
        source = tree.read(path) or ""
        try:
            parse(path, source)
        except Broken:
            texts[path] = source
            broken.append(path)
        else:
            found.append(path)
    return found


def _resolve(imported: Import, path: str, folder: str, tree: Tree) -> tuple[list[str], str, list[str]]:
    """The files that one import runs; its top-level name, "" where it is relative, and the editable stems of that."""
    if imported.level:
        base = path
        for _ in range(imported.level):
            base = base.rpartition("/")[0]
        return _named(imported, base, imported.module, tree), "", []
    root, _, below = imported.module.partition(".")
    found: list[str] = []
    stems = [_join(folder, root), *tree.elsewhere(root)]
    for stem in stems:
        top = _module_files(stem, tree)
        found += top + [file for file in _named(imported, stem, below, tree) if file not in top]
        if top:  # Only where there is none may the name be that of a namespace, which several folders have parts of.
            break
    return found, root, stems[1:]


def _named(imported: Import, base: str, dotted: str, tree: Tree) -> list[str]:
    """The files of a package chain below a folder, and of those names that are modules in it."""
    found = _files(base, dotted, tree)
    if imported.names == ("*",):
        return found
    prefix = _join(base, dotted.replace(".", "/"))
    return found + [file for name in imported.names for file in _module_files(_join(prefix, name), tree)]


def _home(path: str, homes: set[str]) -> str:
    """The editable package that a file is of, whose modules it may name by computing; itself where it is of none."""
    return max((stem for stem in homes if path.startswith(f"{stem}/")), key=len, default=path)


def _wanted(imported: Import) -> list[str]:
    names = [name for name in imported.names if name != "*"]
    return [f"{imported.module}:{name}" for name in names] or [imported.module]


def _files(base: str, dotted: str, tree: Tree) -> list[str]:
    """The files of a package chain `a.b.c` below a folder; of the folder's own package where `dotted` is empty."""
    if not dotted:
        return _module_files(base, tree)
    found: list[str] = []
    stem = base
    for name in dotted.split("."):
        stem = _join(stem, name)
        found += _module_files(stem, tree)
    return found


def _module_files(stem: str, tree: Tree) -> list[str]:
    """A package wins over a module of the same name, as in Python."""
    for path in (f"{stem}/__init__.py", f"{stem}.py"):
        if tree.read(path) is not None:
            return [path]
    return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name
