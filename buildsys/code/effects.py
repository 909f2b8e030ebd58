"""What a unit may change when its module is imported: names of the project, or something outside of it.

An effect on a name matters only to who reads the name; an effect on the outside matters to everybody. Knows no slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from buildsys.code.reading import Code
from buildsys.code.resolve import Outside, Package, Resolver, Symbol
from buildsys.code.scopes import Alias
from buildsys.code.units import Function, Unit


class Effects(NamedTuple):
    """symbols: names of the project whose objects may change. outside: something that is not the project's may."""

    symbols: frozenset[Symbol] = frozenset()
    outside: bool = False


NONE: Final = Effects()
_REACHES_OUT: Final = {"exec", "eval", "__import__", "open", "input", "breakpoint", "exit", "quit"}
"""Builtins that may do anything. Those that change what they are given are noted as writes of it."""
_CHANGES: Final = {"setattr", "delattr"}
_ACTING: Final = ("seed", "manual_seed", "set", "update", "register", "insert", "append", "add", "install", "use")
"""How names of functions from outside begin that are called for what they do, also where their result is kept."""
_GIVES: Final = {"getattr", "vars", "globals", "locals", "__import__", "open"}
"""Builtins that give something that is not known here, which may then be written into."""
_NAMESPACES: Final = {"vars", "globals", "locals"}
"""Those of them that give names."""


class EffectsOf:
    """Answers for the units of one slice's modules, each once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._of_symbol: dict[Symbol, Effects] = {}
        self._of_base: dict[Symbol, Effects] = {}
        self._of_function: dict[tuple[str, str], Effects] = {}

    def unit(self, path: str, unit: Unit) -> Effects:
        """What running the unit may change beside the names that it binds."""
        pieces = [unit.code, *(member.code for member in unit.members)]
        raises = Effects(outside=any("raise" in code.computed for code in pieces))  # Whoever imports it may fail.
        return _together([raises, *(self._code(path, code, ()) for code in pieces), *self._derived(path, unit)])

    def _derived(self, path: str, unit: Unit) -> Iterator[Effects]:
        """What a class tells those that it derives from, and its metaclass."""
        if unit.kind != "class":
            return
        for chain in unit.code.reads:
            for symbol in self._symbols(path, chain):
                yield self._heard(symbol) if chain in unit.bases else self.call(symbol)

    def _heard(self, symbol: Symbol) -> Effects:
        """What a base class does on being derived from: itself, its own bases and metaclass."""
        if symbol not in self._of_base:
            self._of_base[symbol] = NONE
            units = self._resolver.source(symbol.path).bound.get(symbol.name, ())
            told = [
                self._function(symbol.path, function)
                for unit in units
                for member in unit.members
                if "__init_subclass__" in member.code.binds
                for function in member.functions
            ]
            above = [effects for unit in units for effects in self._derived(symbol.path, unit)]
            self._of_base[symbol] = _together([*told, *above])
        return self._of_base[symbol]

    def _code(self, path: str, code: Code, imports: tuple[Alias, ...]) -> Effects:
        symbols: set[Symbol] = set()
        outside = False
        acts = set(code.acts)
        for chain in code.writes:
            for meaning in self._resolver.meanings(path, chain, imports):
                if isinstance(meaning, Symbol):
                    symbols |= self._aliases(meaning, set())
                elif isinstance(meaning, Outside):
                    outside |= bool(meaning.module) or chain[0] in ("__builtins__", *_GIVES)
        for chain in code.stirs:
            for meaning in self._resolver.meanings(path, chain, imports):
                if isinstance(meaning, Symbol) and self._can_change(meaning, classes=True):
                    symbols |= self._aliases(meaning, set())
                elif isinstance(meaning, Outside):
                    outside |= not meaning.module and chain[0] in _NAMESPACES
        runs_ours = changes = False
        for chain in code.calls:
            for meaning in self._resolver.meanings(path, chain, imports):
                if isinstance(meaning, Symbol):
                    effects = self.call(meaning)
                    runs_ours = True
                    symbols |= effects.symbols
                    outside |= effects.outside
                elif isinstance(meaning, Outside) and chain in acts:
                    outside |= bool(meaning.module) or "." in meaning.name or meaning.name in _REACHES_OUT
                    changes |= meaning.name in _CHANGES
                elif isinstance(meaning, Outside):
                    acting = chain[-1].startswith(_ACTING) if meaning.module else meaning.name in ("exec", "eval")
                    outside |= acting
            if len(chain) > 1:
                for place, function in self._resolver.methods.get(chain[-1], ()):
                    effects = self._function(place, function)
                    symbols |= effects.symbols
                    outside |= effects.outside
        if changes:
            for chain in code.reads:
                for meaning in self._resolver.meanings(path, chain, imports):
                    outside |= isinstance(meaning, Package)
                    symbols.update([meaning] if isinstance(meaning, Symbol) else ())
        if runs_ours or changes:
            symbols |= self._handed_over(path, code, imports)
        return Effects(frozenset(symbols), outside)

    def _handed_over(self, path: str, code: Code, imports: tuple[Alias, ...]) -> set[Symbol]:
        """What code that is called may get hold of, and change: all that can be changed of what is read."""
        return {
            symbol
            for chain in code.reads
            for meaning in self._resolver.meanings(path, chain, imports)
            if isinstance(meaning, Symbol) and self._can_change(meaning)
            for symbol in self._aliases(meaning, set())
        }

    def _can_change(self, symbol: Symbol, *, classes: bool = False) -> bool:
        """Its object may be changed: of what is called also a function may be, or a class, by what it is asked."""
        units = self._resolver.source(symbol.path).bound.get(symbol.name, ())
        kinds = ("other", "def", "class") if classes else ("other",)
        return any(unit.kind in kinds and not unit.constant for unit in units)

    def _aliases(self, symbol: Symbol, seen: set[Symbol]) -> set[Symbol]:
        """The name, and those whose objects it may stand for: `M = L` makes an effect on M one on L."""
        if symbol in seen:
            return seen
        seen.add(symbol)
        for unit in self._resolver.source(symbol.path).bound.get(symbol.name, ()):
            if unit.kind != "other":
                continue
            for chain in unit.code.reads:
                for meaning in self._resolver.meanings(symbol.path, chain):
                    if isinstance(meaning, Symbol) and self._can_change(meaning):
                        self._aliases(meaning, seen)
        return seen

    def call(self, symbol: Symbol) -> Effects:
        """What calling, deriving from or decorating with a name may change."""
        if symbol not in self._of_symbol:
            self._of_symbol[symbol] = NONE  # Where it calls itself, that adds nothing.
            self._of_symbol[symbol] = _together(
                self._called(symbol.path, unit)
                for unit in self._resolver.source(symbol.path).bound.get(symbol.name, ())
            )
        return self._of_symbol[symbol]

    def _called(self, path: str, unit: Unit) -> Effects:
        if unit.kind == "class":
            special = [member for member in unit.members if member.name.endswith("__")]
            own = [self._function(path, function) for member in special for function in member.functions]
            bases = [self.call(one) for base in unit.bases for one in self._symbols(path, base)]
            return _together([*own, *bases])
        return _together(self._function(path, function) for function in unit.functions)

    def _symbols(self, path: str, chain: tuple[str, ...]) -> list[Symbol]:
        return [one for one in self._resolver.meanings(path, chain) if isinstance(one, Symbol)]

    def _function(self, path: str, function: Function) -> Effects:
        key = path, function.name
        if key not in self._of_function:
            self._of_function[key] = NONE
            self._of_function[key] = self._body(path, function)
        return self._of_function[key]

    def _body(self, path: str, function: Function) -> Effects:
        declared = frozenset(Symbol(path, name) for name in function.body.binds)
        body = self._code(path, function.body, function.body.imports)
        inner = [self._function(path, one) for one in function.functions]
        return _together([Effects(declared), body, *inner])


def _together(effects: Iterable[Effects]) -> Effects:
    symbols: set[Symbol] = set()
    outside = False
    for one in effects:
        symbols |= one.symbols
        outside |= one.outside
    return Effects(frozenset(symbols), outside)
