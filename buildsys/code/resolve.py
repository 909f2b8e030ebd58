"""Names as written -> what they mean: files of the project, names bound in them, or something from outside.

Knows no file system: a `Tree` answers what files there are. Resolution follows what the worker's loader does at run
time, where the script's folder is `sys.path[0]`. All bindings of a name count: which of them wins is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from buildsys.code.parse import Module, parse
from buildsys.code.reading import Chain
from buildsys.code.scopes import Alias
from buildsys.code.units import Function, Unit

Parse = Callable[[str, str], Module]
"""Path and text -> what it is; raises Broken."""


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


class Symbol(NamedTuple):
    """A name bound at the top of a module, or that may come to be."""

    path: str
    name: str


class Package(NamedTuple):
    """A module as an object. stem: its path without `.py` or `/__init__.py`. file: "" for a folder without an init."""

    stem: str
    file: str


class Outside(NamedTuple):
    """Something that is not ours. module: as it is imported, "" for a builtin. name: the rest of the chain, dotted."""

    module: str
    name: str


Meaning = Symbol | Package | Outside
_ANYTHING: Final = "*"


class Place(NamedTuple):
    """Where a function is: the unit that holds it, within a class the member, and the way down to it."""

    unit: Unit
    member: Unit | None
    function: Function


class Source:
    """A module in its place, with what its names are bound by."""

    def __init__(self, path: str, module: Module) -> None:
        self.path = path
        self.module = module
        self.bound: dict[str, list[Unit]] = {}
        self.aliases: dict[str, list[Alias]] = {}
        self.stars: list[Alias] = []
        for unit in module.units:
            for name in dict.fromkeys(unit.code.binds):
                self.bound.setdefault(name, []).append(unit)
            for alias in unit.code.imports:
                if alias.name:
                    self.aliases.setdefault(alias.name, []).append(alias)
                elif alias.attribute == "*":
                    self.stars.append(alias)
            for function in unit.functions:
                for name in _declared(function):
                    self.bound.setdefault(name, [])

    @cached_property
    def functions(self) -> dict[str, Place]:
        """All functions by name."""
        found: dict[str, Place] = {}
        for unit in self.module.units:
            for member in (None, *unit.members):
                waiting = [*(member or unit).functions]
                while waiting:
                    function = waiting.pop()
                    found[function.name] = Place(unit, member, function)
                    waiting += function.functions
        return found


def _declared(function: Function) -> Iterator[str]:
    """Names that a function declares global and binds."""
    yield from function.body.binds
    for inner in function.functions:
        yield from _declared(inner)


class Resolver:
    """Finds what names mean, for code that runs with one folder as `sys.path[0]`. Each file is parsed once."""

    def __init__(self, tree: Tree, folder: str, roams: bool = False, parse: Parse = parse) -> None:
        """roams: code may be imported from any folder of the project. methods: of all files seen so far, by name."""
        self.tree = tree
        self.folder = folder
        self.methods: dict[str, list[tuple[str, Function]]] = {}
        self._roams = roams
        self._parse = parse
        self._at: dict[str, Package] = {}
        self._named_by: dict[tuple[str, int, str], list[Package]] = {}
        self._run_by: dict[tuple[Alias, str], list[Package]] = {}
        self._meant: dict[tuple[str, Chain], list[Meaning]] = {}
        self._sources: dict[str, Source] = {}
        self._elsewhere: dict[str, list[str]] | None = None if roams else {}
        self._homes: set[str] = set()
        self._bringing: dict[str, dict[str, list[int]]] = {}

    def source(self, path: str) -> Source:
        """A file that there is. Raises Broken where it does not parse."""
        if path not in self._sources:
            text = self.tree.read(path)
            assert text is not None
            self._sources[path] = Source(path, self._parse(path, text))
            for unit in self._sources[path].module.units:
                for member in unit.members:
                    for name in member.code.binds if member.functions else ():
                        self.methods.setdefault(name, []).extend((path, one) for one in member.functions)
        return self._sources[path]

    # ------------------------------------------------------------ modules

    def packages(self, alias: Alias, path: str) -> list[Package]:
        """The modules that an import in a file runs, outermost first; none where they are not ours."""
        key = alias, path if alias.level else ""
        if key not in self._run_by:
            self._run_by[key] = self._run(alias, path)
        return self._run_by[key]

    def _run(self, alias: Alias, path: str) -> list[Package]:
        found = list(self._packages(alias, path))
        if alias.attribute[:1] not in ("", "*"):
            holders = [one for one in found if one.stem.rpartition("/")[2] == found[-1].stem.rpartition("/")[2]]
            found += [sub for one in holders if (sub := self._package(join(one.stem, alias.attribute))).file]
        return found if any(package.file for package in found) else []

    def _packages(self, alias: Alias, path: str) -> list[Package]:
        """The same of the module that it names; a folder that may be a namespace is one."""
        key = alias.module, alias.level, path if alias.level else ""
        if key not in self._named_by:
            self._named_by[key] = self._named(alias, path)
        return self._named_by[key]

    def _named(self, alias: Alias, path: str) -> list[Package]:
        if alias.level:
            base = path
            for _ in range(alias.level):
                base = base.rpartition("/")[0]
            return self._below(base, alias.module) if alias.module else [self._package(base)]
        return self._absolute(alias.module)

    def _absolute(self, dotted: str) -> list[Package]:
        """A module wherever it may come from; of several places only where the name is that of a namespace."""
        name, *rest = dotted.split(".")
        found: list[Package] = []
        editable = self.tree.elsewhere(name)
        self._homes.update(editable)
        stems = [join(self.folder, name), *editable, *(join(root, name) for root in self._roots(name))]
        for stem in stems:
            below = self._down(stem, rest)
            found += below
            if below and below[0].file and not self._roams:
                break
        return found

    def behind(self, name: str) -> list[str]:
        """The files of editable installs that something from outside, of this top-level name, may run."""
        stems = self.tree.behind(name)
        self._homes.update(stems)
        files = [file for stem in stems for file in (self._package(stem).file, *self.tree.sources(stem))]
        return list(dict.fromkeys(filter(None, files)))

    def beside(self, path: str) -> Sequence[str]:
        """The files that a module may import by a computed name, its editable package among them."""
        home = max((stem for stem in self._homes if path.startswith(f"{stem}/")), key=len, default="")
        return [*self.tree.sources(self.folder), *(self.tree.sources(home) if home else ())]

    def _roots(self, name: str) -> list[str]:
        """The folders of the project, beside the script's, in which a top-level module of this name lies."""
        if self._elsewhere is None:
            self._elsewhere = {}
            for path in self.tree.sources(""):
                stem = path.removesuffix("/__init__.py").removesuffix(".py")
                parent, _, last = stem.rpartition("/")
                if parent != self.folder:
                    self._elsewhere.setdefault(last, []).append(parent)
        return self._elsewhere.get(name, [])

    def _below(self, base: str, dotted: str) -> list[Package]:
        """The modules of `a.b.c` below a folder; none where a is not there, and not beyond what is."""
        first, *rest = dotted.split(".")
        return self._down(join(base, first), rest)

    def _down(self, stem: str, names: Sequence[str]) -> list[Package]:
        found: list[Package] = []
        for name in ("", *names):
            stem = join(stem, name)
            package = self._package(stem)
            if not package.file and not self._is_folder(stem):
                if found:  # A package may look for its modules in other folders as well.
                    found += [self._package(join(root, name)) for root in self._roots(name)]
                break
            found.append(package)
        return found

    def _package(self, stem: str) -> Package:
        """A package wins over a module of the same name, as in Python."""
        if stem not in self._at:
            self._at[stem] = self._found(stem)
        return self._at[stem]

    def _found(self, stem: str) -> Package:
        for file in (f"{stem}/__init__.py", f"{stem}.py"):
            if self.tree.read(file) is not None:
                return Package(stem, file)
        return Package(stem, "")

    def _is_folder(self, stem: str) -> bool:
        return bool(self.tree.sources(stem))

    # ------------------------------------------------------------ names

    def meanings(self, path: str, chain: Chain, imports: Iterable[Alias] = ()) -> list[Meaning]:
        """What a chain may mean in a file, with the names that it is found by on the way.

        imports: those made around it in functions, which come before the names of its module.
        """
        if (path, chain) in self._meant and not imports:
            return self._meant[path, chain]
        found: dict[Meaning, None] = {}
        own = [alias for alias in imports if alias.name == chain[0]]
        for alias in own:
            self._through(path, alias, chain[1:], found, set())
        if not own:
            self._name(path, chain[0], chain[1:], found, set())
            self._meant[path, chain] = list(found)
        return list(found)

    def _name(
        self, path: str, name: str, rest: Chain, found: dict[Meaning, None], seen: set[tuple[str, str, Chain]]
    ) -> None:
        """A name at the top of a module."""
        if (path, name, rest) in seen:
            return
        seen.add((path, name, rest))
        source = self.source(path)
        if name in source.bound:
            found[Symbol(path, name)] = None
        for alias in source.aliases.get(name, ()):
            self._through(path, alias, rest, found, seen)
        for star in self._stars(source, name):
            self._star(path, star, name, rest, found, seen)
        if name not in source.bound and not any(isinstance(one, Symbol) and one.name == name for one in found):
            found[Symbol(path, name)] = None  # Something may bind it there from outside.
            found[Outside("", ".".join((name, *rest)))] = None

    def _stars(self, source: Source, name: str) -> Iterable[Alias]:
        """The star imports of a module that may bring a name, in their order."""
        if not source.stars:
            return ()
        if source.path not in self._bringing:
            index: dict[str, list[int]] = {}
            for n, star in enumerate(source.stars):
                for one in self._brought(source.path, star):
                    index.setdefault(one, []).append(n)
            self._bringing[source.path] = index
        index = self._bringing[source.path]
        return [source.stars[n] for n in sorted({*index.get(name, ()), *index.get(_ANYTHING, ())})]

    def _brought(self, path: str, star: Alias) -> set[str]:
        """The names that a star import may bring; _ANYTHING among them where that is not known."""
        names: set[str] = set()
        waiting, seen = [(path, star)], set[str]()
        while waiting:
            packages = self.packages(waiting[-1][1], waiting.pop()[0])
            if not packages:
                return {_ANYTHING}
            file = packages[-1].file
            if not file or file in seen:
                continue
            seen.add(file)
            target = self.source(file)
            if not target.module.lists_exports:
                names.update(target.bound)
                waiting += [(file, one) for one in target.stars]
            elif target.module.exports is None:
                return {_ANYTHING}
            else:
                names.update(target.module.exports)
        return names

    def _star(
        self,
        path: str,
        star: Alias,
        name: str,
        rest: Chain,
        found: dict[Meaning, None],
        seen: set[tuple[str, str, Chain]],
    ) -> None:
        packages = self.packages(star, path)
        if not packages:
            found[Outside(star.module, "*")] = None
            return
        if not packages[-1].file:
            return
        target = self.source(packages[-1].file)
        exports = target.module.exports
        if target.module.lists_exports:
            if exports is None:
                found[Symbol(target.path, "__all__")] = None
            elif name not in exports:
                return
        elif name.startswith("_"):
            return
        if name in target.bound or target.stars:
            self._name(target.path, name, rest, found, seen)
        sub = self._package(join(packages[-1].stem, name))
        if sub.file and name in (exports or ()):
            self._member(sub, rest, found, seen)

    def _through(
        self, path: str, alias: Alias, rest: Chain, found: dict[Meaning, None], seen: set[tuple[str, str, Chain]]
    ) -> None:
        """What an import binds, and the rest of the chain in it."""
        packages = self._packages(alias, path)
        n_found = len(found)
        if not packages:
            base = "." * alias.level + alias.module
            if alias.attribute == "*chain":
                base, *_ = base.split(".")
            names = (alias.attribute, *rest) if alias.attribute[:1] not in ("", "*") else rest
            found[Outside(base, ".".join(names))] = None
            return
        if alias.attribute[:1] in ("", "*"):
            parts = alias.module.split(".")
            wanted = parts[0] if alias.attribute == "*chain" else parts[-1]
            for package in [one for one in packages if one.stem.rpartition("/")[2] == wanted]:
                self._member(package, rest, found, seen)
        else:
            last = (alias.module or packages[-1].stem).replace("/", ".").rpartition(".")[2]
            for package in [one for one in packages if one.stem.rpartition("/")[2] == last]:
                self._member(package, (alias.attribute, *rest), found, seen)
        if len(found) == n_found and not any(package.file for package in packages):
            found[Outside("." * alias.level + alias.module, ".".join(rest))] = None  # a folder that only looks like it

    def _member(
        self, package: Package, rest: Chain, found: dict[Meaning, None], seen: set[tuple[str, str, Chain]]
    ) -> None:
        """A chain of attributes of a module."""
        if not rest:
            found[package] = None
            return
        name = rest[0]
        source = self.source(package.file) if package.file else None
        sub = None
        if source is None or package.file.endswith("/__init__.py"):
            sub = self._package(join(package.stem, name))
            if sub.file or self._is_folder(sub.stem):
                self._member(sub, rest[1:], found, seen)
        if source is None:
            return
        if name in source.bound or source.stars:
            self._name(package.file, name, rest[1:], found, seen)
        elif not (sub and sub.file):
            found[Symbol(package.file, name)] = None
        if "__getattr__" in source.bound and name not in source.bound:
            found[Symbol(package.file, "__getattr__")] = None


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name
