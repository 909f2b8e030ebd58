"""The walk that makes a slice: from its roots along names, into all that the code can reach.

What is reached by a name counts with every binding of it; a method counts by its name, on whatever object. Of a
function that the gate keeps shut only what ran at its definition counts. Knows no files and no digests of slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from buildsys.code.effects import NONE, Effects, EffectsOf
from buildsys.code.parse import Broken
from buildsys.code.reading import Chain, Code
from buildsys.code.resolve import Outside, Package, Resolver, Symbol, join
from buildsys.code.scopes import Alias
from buildsys.code.units import Function, Unit

Gate = Callable[[str, str], bool]
"""Whether the body of a function, told by path and name, may run."""
_PLAIN_BASES: Final = frozenset(
    "object ABC Generic Protocol Exception BaseException ValueError TypeError KeyError RuntimeError LookupError "
    "AttributeError IndexError OSError NotImplementedError StopIteration ArithmeticError Warning UserWarning int str "
    "float bytes bool complex".split()
)
"""Bases from outside that call no method of ours but those with special names."""
_COUNT_NAMES: Final = frozenset(("ABC", "ABCMeta", "Protocol"))
"""Bases that mind which members a class has, whatever is done with them."""
_ASKED_FOR: Final = frozenset(
    "keys items values close read write readline readlines seek tell flush fileno isatty throw acquire release mode "
    "encoding tolist shape dtype".split()
)
"""Names of methods that libraries ask for, of whatever object they are given."""


_ASK_NOTES: Final = frozenset(("__annotations__", "get_annotations", "get_type_hints"))
"""What gives the annotated names of a class."""
_NAMESPACES: Final = frozenset(("__globals__", "f_globals", "func_globals"))
"""Attributes that give all names of some module."""


class Where(NamedTuple):
    """A unit in its module; within a class, the member of it."""

    path: str
    unit: Unit
    member: Unit | None = None

    @property
    def piece(self) -> Unit:
        return self.member or self.unit


class Walk:
    """Everything that was reached so far. Ask it to `start` somewhere, then `finish`.

    included: units, by how they were reached: what reached them, None for a root. bodies: functions gone into.
    imported: the modules that run, in the order in which they are imported. broken: files that may be and do not parse.
    observed: names whose objects are looked at. attributes, names: read of any object, and of any module;
    any_attribute: also by computed names. listed:
    modules whose names something may go through. external: what is read from outside, as it is imported. variables: of
    the environment, as far as they show. effects: of the units that have some.
    by_names: classes of which the names of all members count.
    stated: modules that an import statement names. probed: modules that are only looked for.
    """

    def __init__(self, resolver: Resolver, gate: Gate, *, everything: bool) -> None:
        """everything: a computed name may mean anything; else it means what the caller starts with."""
        self._resolver = resolver
        self._gate = gate
        self._everything = everything
        self._effects = EffectsOf(resolver)
        self.imported: dict[str, None] = {}
        self.broken: dict[str, None] = {}
        self.included: dict[Where, Where | None] = {}
        self.bodies: dict[tuple[str, str], Function] = {}
        self.observed: set[Symbol] = set()
        self.attributes: set[str] = set()
        self.names: set[str] = set()
        self.external: set[str] = set()
        self.variables: set[str] = set()
        self.listed: set[str] = set()
        self.probed: set[str] = set()
        self.stated: set[str] = set()
        self.effects: dict[Where, Effects] = {}
        self.by_names: set[Where] = set()
        self._named: set[Symbol] = set()
        self._waiting: list[Callable[[], None]] = []
        self._effects_on: dict[Symbol, list[Where]] = {}
        self._by_attribute: dict[str, list[Callable[[], None]]] = {}
        self.any_attribute = False
        self._open: set[str] = set()
        self._loose: set[str] = set()
        self._classes: list[Where] = []
        self._mains: set[str] = set()
        self._namespaces_read = False
        self._judged: dict[Symbol, bool] = {}
        self._minds_names: dict[Symbol, bool] = {}

    # ------------------------------------------------------------ roots

    def run(self, path: str, *, main: bool = False) -> None:
        """A module that is imported, or run as a program."""
        self.stated.add(path)
        if main and path not in self._mains:
            self._mains.add(path)
            if path in self.imported:
                self._include_all(Where(path, unit) for unit in self._units(path) if unit.kind == "main")
        self._import(path)

    def name(self, path: str, name: str) -> None:
        """A name at the top of a module, as that of an entry function."""
        for meaning in self._resolver.meanings(path, (name,)):
            if isinstance(meaning, Symbol):
                self._see(meaning, None, observed=True)

    def function(self, path: str, name: str) -> bool:
        """A function that ran, wherever it is; False where there is none of that name."""
        place = self._resolver.source(path).functions.get(name)
        if place is None:
            return False
        self._import(path)
        where = Where(path, place.unit)
        self._include(where, None)
        if place.member:
            self._include(Where(path, place.unit, place.member), where)
        return True

    def whole(self, path: str) -> None:
        """All that a module binds: something may get at it by a computed name."""
        if path in self._open:
            return
        self._open.add(path)
        self._import(path)
        for unit in self._units(path):
            if unit.kind != "main":
                self._include(Where(path, unit), None)
                for name in unit.code.binds:
                    self._chain(Where(path, unit), (name,), (), observed=True)
        for star in self._resolver.source(path).stars:
            for package in self._resolver.packages(star, path)[-1:]:
                if package.file:
                    self.whole(package.file)

    def loose(self, path: str) -> None:
        """A module that was imported by a computed name: what it binds is reached as attributes are."""
        if path in self._loose:
            return
        self._loose.add(path)
        self._import(path)
        for unit in self._units(path):
            for name in unit.code.binds:
                self._wait_for(name, partial(self._chain, Where(path, unit), (name,), (), observed=True))

    def finish(self) -> None:
        """Follow everything that is not followed yet."""
        while self._waiting:
            self._waiting.pop()()

    # ------------------------------------------------------------ modules

    def _units(self, path: str) -> tuple[Unit, ...]:
        return self._resolver.source(path).module.units

    def _import(self, path: str) -> None:
        if path in self.imported:
            return
        self.imported[path] = None
        if self._namespaces_read:
            self._waiting.append(partial(self.loose, path))
        for unit in self._units(path):
            where = Where(path, unit)
            if unit.kind == "main":
                if path in self._mains:
                    self._include(where, None)
                continue
            for piece in (unit, *unit.members):
                self._run_imports(piece.code.imports, path, where)
            if unit.kind == "import":
                continue
            if self._everything:
                self._run_calls(path, unit)
            effects = self._effects.unit(path, unit)
            if effects != NONE:
                self.effects[where] = effects
            if effects.outside or (path in self._mains and unit.code.acts):
                self._include(where, None)  # What a program prints is a result of it.
            elif effects.symbols:
                for symbol in effects.symbols:
                    self._effects_on.setdefault(symbol, []).append(where)
                if not self.observed.isdisjoint(effects.symbols):
                    self._include(where, None)

    def _run_calls(self, path: str, unit: Unit) -> None:
        """What a statement calls runs when its module is imported, whoever reads what it makes; and it may raise."""
        for piece in (unit, *unit.members):
            for chain in piece.code.calls:
                for meaning in self._resolver.meanings(path, chain):
                    if isinstance(meaning, Symbol):
                        self._see(meaning, None, observed=False)

    def _run_imports(self, imports: Iterable[Alias], path: str, where: Where) -> None:
        for alias in imports:
            for package in self._resolver.packages(alias, path):
                if package.file:
                    self.stated.add(package.file)
                    self._import(package.file)

    # ------------------------------------------------------------ units

    def _include_all(self, wheres: Iterable[Where], by: Where | None = None) -> None:
        for where in wheres:
            self._include(where, by)

    def _include(self, where: Where, by: Where | None) -> None:
        if where in self.included:
            return
        self.included[where] = by
        if where.member and Where(where.path, where.unit) not in self.included:
            self._include(Where(where.path, where.unit), by)
        self._waiting.append(lambda: self._follow(where))

    def _follow(self, where: Where) -> None:
        piece = where.piece
        if piece.kind == "import":
            self._imported_by_name(where)
            return
        self._code(where, piece.code, ())
        if where.member:
            self._siblings(where)
        for function in piece.functions:
            self._function(where, function)
        if piece.kind == "class" and where.member is None:
            self._class(where)

    def _siblings(self, where: Where) -> None:
        """What a statement of a class body reads that others of it bind."""
        code = where.piece.code
        read = {chain[0] for chain in (*code.reads, *code.calls, *code.writes, *code.stirs)}
        for member in where.unit.members:
            if member is not where.member and not read.isdisjoint(member.code.binds):
                self._include(where._replace(member=member), where)

    def _imported_by_name(self, where: Where) -> None:
        code = where.piece.code
        for name in code.binds if where.member else ():
            self._chain(where, (name,), code.imports, observed=True)
        for alias in code.imports:
            if not self._resolver.packages(alias, where.path):
                self._outside(alias.module if not alias.level else "")
        for name in code.computed:
            self._computed(where, name)

    def _function(self, where: Where, function: Function) -> None:
        if self._gate(where.path, function.name):
            self.bodies[where.path, function.name] = function
            self._run_imports(function.body.imports, where.path, where)
            self._code(where, function.body, function.body.imports)
        for inner in function.functions:
            self._function(where, inner)

    def _class(self, where: Where) -> None:
        """Its members, by name; those that something outside may call, all of them."""
        self._classes.append(where)
        open_base = not where.unit.plain or any(self._is_open(where.path, base) for base in where.unit.bases)
        if any(self._counts_names(where.path, base) for base in where.unit.bases):
            self.by_names.add(where)
        for member in where.unit.members:
            inner = Where(where.path, where.unit, member)
            names = member.code.binds
            special = not names or any(_is_special(name) for name in names)
            acts = member.kind == "other" and (
                member.code.acts or member.code.computed or member.code.writes or member.code.stirs
            )
            if open_base or special or acts or not member.inert or self.any_attribute:
                self._include(inner, where)
            for name in (*names, *(_ASK_NOTES if member.kind == "other" else ())):
                self._wait_for(name, partial(self._include, inner, where))
        if "__subclasses__" in self.attributes:
            self._follow_subclasses()

    def _is_open(self, path: str, base: Chain) -> bool:
        """Whether a base class, or what it derives from, is from outside and may call what it finds by its name."""
        for meaning in self._resolver.meanings(path, base):
            if isinstance(meaning, Outside):
                if base[-1] not in _PLAIN_BASES:
                    return True
            elif isinstance(meaning, Symbol) and meaning not in self._judged:
                self._judged[meaning] = False
                units = self._resolver.source(meaning.path).bound.get(meaning.name, ())
                self._judged[meaning] = any(self._may_call(meaning.path, unit) for unit in units)
            if isinstance(meaning, Symbol) and self._judged[meaning]:
                return True
        return False

    def _counts_names(self, path: str, base: Chain) -> bool:
        """Whether a base class, or what it derives from, minds which members there are."""
        for meaning in self._resolver.meanings(path, base):
            if isinstance(meaning, Outside) and base[-1] in _COUNT_NAMES:
                return True
            if isinstance(meaning, Symbol) and meaning not in self._minds_names:
                self._minds_names[meaning] = False
                units = self._resolver.source(meaning.path).bound.get(meaning.name, ())
                self._minds_names[meaning] = any(
                    self._counts_names(meaning.path, one) for unit in units for one in unit.bases
                )
            if isinstance(meaning, Symbol) and self._minds_names[meaning]:
                return True
        return False

    def _may_call(self, path: str, unit: Unit) -> bool:
        if unit.kind != "class":
            return unit.kind == "other"
        return not unit.plain or any(self._is_open(path, base) for base in unit.bases)

    def _wait_for(self, name: str, reach: Callable[[], None]) -> None:
        """Reach it once something reads an attribute of this name."""
        if name in self.attributes or self.any_attribute:
            reach()
        else:
            self._by_attribute.setdefault(name, []).append(reach)

    def _follow_subclasses(self) -> None:
        for path in list(self.imported):
            for unit in self._units(path):
                if unit.kind == "class" and self._derives(path, unit):
                    self._include(Where(path, unit), None)

    def _derives(self, path: str, unit: Unit) -> bool:
        known = {Symbol(where.path, where.unit.name) for where in self._classes}
        return any(meaning in known for base in unit.bases for meaning in self._resolver.meanings(path, base))

    # ------------------------------------------------------------ names

    def _code(self, where: Where, code: Code, imports: tuple[Alias, ...]) -> None:
        """Follow all that a piece of code names."""
        for name in code.attributes:
            self._attribute(name)
        self.names.update(chain[0] for chain in code.reads)
        for name in _ASK_NOTES.intersection(chain[0] for chain in code.reads):
            self._attribute(name)
        for chain in code.reads:
            self._chain(where, chain, imports, observed=True)
        for chain in code.calls:
            self._chain(where, chain, imports, observed=chain not in code.acts or len(chain) == 1)
        for chain in code.acts:
            self._act(where, chain, imports)
        for chain in (*code.writes, *code.stirs):
            self._chain(where, chain, imports, observed=False)
        for text in code.texts:
            self._text(where, text)
        for alias in code.imports:
            if alias.attribute == "*module":  # What is done with it does not show: as of any object.
                for package in self._resolver.packages(alias, where.path):
                    if package.file:
                        self.loose(package.file)
        for name in code.computed:
            self._computed(where, name)
        for taker, given in code.hands:
            self._hand(where, taker, given, imports)

    def _chain(self, where: Where, chain: Chain, imports: tuple[Alias, ...], *, observed: bool) -> None:
        for meaning in self._resolver.meanings(where.path, chain, imports):
            if isinstance(meaning, Symbol):
                self._see(meaning, where, observed=observed)
            elif isinstance(meaning, Package):
                if meaning.file and observed:
                    self.whole(meaning.file)
            elif meaning.module:
                self._outside(meaning.module)

    def _hand(self, where: Where, taker: Chain, given: Chain, imports: tuple[Alias, ...]) -> None:
        """A class that something outside is given: it may look at any part of it."""
        meanings = self._resolver.meanings(where.path, given, imports)
        symbols = [one for one in meanings if isinstance(one, Symbol) and one.name == given[-1]]
        if symbols and any(isinstance(one, Outside) for one in self._resolver.meanings(where.path, taker, imports)):
            for symbol in symbols:
                for unit in self._resolver.source(symbol.path).bound.get(symbol.name, ()):
                    for member in unit.members:
                        self._include(Where(symbol.path, unit, member), where)

    def _outside(self, module: str) -> None:
        """Something from outside, which may run what is installed as editable by itself."""
        if module not in self.external:
            self.external.add(module)
            if self._everything and not module.startswith("."):
                self._take(self._resolver.behind(module.partition(".")[0]))

    def _act(self, where: Where, chain: Chain, imports: tuple[Alias, ...]) -> None:
        """A call for what it does. Where a function of ours is called, it is looked at; a method's object is not."""
        for meaning in self._resolver.meanings(where.path, chain, imports):
            if isinstance(meaning, Symbol):
                units = self._resolver.source(meaning.path).bound.get(meaning.name, ())
                function = meaning.name == chain[-1] and any(unit.kind != "other" for unit in units)
                self._see(meaning, where, observed=function)

    def _see(self, symbol: Symbol, by: Where | None, *, observed: bool) -> None:
        if symbol not in self._named:
            self._named.add(symbol)
            self._import(symbol.path)
            if symbol.name == "__annotations__":
                self.whole(symbol.path)
            for unit in self._resolver.source(symbol.path).bound.get(symbol.name, ()):
                self._include(Where(symbol.path, unit), by)
        if observed and symbol not in self.observed:
            self.observed.add(symbol)
            self._include_all(self._effects_on.get(symbol, ()), by)

    def _attribute(self, name: str) -> None:
        if name in self.attributes:
            return
        self.attributes.add(name)
        for reach in self._by_attribute.pop(name, ()):
            reach()
        if name == "__subclasses__":
            self._waiting.append(self._follow_subclasses)
        if name in _NAMESPACES:
            self._read_namespaces()

    def _read_namespaces(self) -> None:
        """Names of any module may be got at as attributes are."""
        if not self._namespaces_read:
            self._namespaces_read = True
            self._waiting += [partial(self.loose, path) for path in self.imported]

    def _text(self, where: Where, text: str) -> None:
        """A dotted name in a text, which may be looked up by it: as a chain that begins with a module."""
        if text.startswith("$"):
            self.variables.add(text[1:])
            return
        if text.startswith("-m "):
            self._program(text[3:], where.path)
            return
        if text.startswith("?"):
            self.probed.add(text[1:])
        elif text.startswith("="):
            self.external.add(text[1:])
        if ".py" in text or text[:1] in "?=":
            return
        first, *rest = text.replace(":", ".").split(".")
        for n in range(len(rest), -1, -1):
            packages = self._resolver.packages(Alias("", ".".join((first, *rest[:n]))), where.path)
            if len(packages) == n + 1 and packages[-1].file:
                for package in packages:
                    if package.file:
                        self._import(package.file)
                if rest[n:]:
                    self._see(Symbol(packages[-1].file, rest[n]), where, observed=True)
                return

    def _program(self, module: str, path: str) -> None:
        """A module that a text says is run as a program: what runs it tells itself which it was."""
        packages = self._resolver.packages(Alias("", module), path) if self._everything else []
        if packages and len(packages) > module.count("."):
            last = packages[-1]
            inner = join(last.stem, "__main__") + ".py"
            for file in (last.file, inner if self._resolver.tree.read(inner) is not None else ""):
                if file:
                    self._load(file, main=True)

    def _computed(self, where: Where, what: str) -> None:
        if what == "namespace":
            self.listed.add(where.path)
            self.whole(where.path)
        elif what == "modules":
            self._read_namespaces()
        elif what == "attribute" and not self.any_attribute:
            self.any_attribute = True
            waiting = [one for found in self._by_attribute.values() for one in found]
            self._by_attribute.clear()
            for reach in waiting:
                reach()
        elif self._everything and what == "import":
            self._take(self._resolver.beside(where.path))
        elif self._everything and what == "elsewhere":
            self._take(self._resolver.tree.sources(""))
            self._take(self._resolver.beside(where.path))
        elif self._everything and what == "file":
            self._files_named(where)

    def _files_named(self, where: Where) -> None:
        """The files that a text of the unit names, as programs; any of the project where the name is computed."""
        pieces = [where.piece.code, *(body for function in where.piece.functions for _, body in bodies(function))]
        texts = [text for code in pieces for text in code.texts if ".py" in text]
        names = {word.rpartition("/")[2] for text in texts for word in text.replace('"', " ").replace("'", " ").split()}
        found = [path for path in self._resolver.tree.sources("") if path.rpartition("/")[2] in names]
        if found:
            for path in found:
                self._load(path, main=True)
        elif any(name.partition(".py")[0].strip("*") == "" for name in names if ".py" in name):
            self._take(self._resolver.tree.sources(""))

    def _take(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._load(path, main=False)

    def _load(self, path: str, *, main: bool) -> None:
        """A file that may be run. One that does not parse would fail only if it were."""
        try:
            self._resolver.source(path)
        except Broken:
            self.broken[path] = None
            return
        if main:
            self.run(path, main=True)
        self.whole(path)


def _is_special(name: str) -> bool:
    """Something may look it up that does not show: the language itself, or a library."""
    return (name.startswith("__") and name.endswith("__")) or name in _ASKED_FOR


def bodies(function: Function) -> Iterator[tuple[str, Code]]:
    """The body of a function and of those within it, by name."""
    yield function.name, function.body
    for inner in function.functions:
        yield from bodies(inner)
