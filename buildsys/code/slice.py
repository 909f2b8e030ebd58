"""What decides how a rule's code behaves: a fingerprint, the sources that it covers, and the symbols that explain it.

Two of them are made by one walk (`walk`): the slice, of all that the code can reach, and what of it a run has used, for
which a trace keeps the bodies of functions shut that did not run. Knows no file system.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from buildsys.code.parse import Broken, parse
from buildsys.code.reach import Reach, reach, root_of
from buildsys.code.reading import HANDED_ON, Chain, Code
from buildsys.code.resolve import Parse, Resolver, Symbol, Tree
from buildsys.code.scopes import Alias
from buildsys.code.units import Function, Unit
from buildsys.code.walk import Gate, Walk, Where, bodies
from buildsys.digest import Digest, digest_bytes, digest_of
from buildsys.errors import FAILED, BuildError, Place, nearest
from buildsys.model import Trace

_OWN_DOC: Final = ("__doc__",)
_READS_DOCS: Final = {"__doc__", "getdoc", "getsource", "getsourcelines"}
_DOCTORS: Final = {"doctest", "pydoc"}
_READS_NOTES: Final = {
    *("__annotations__", "signature", "Signature", "get_type_hints", "get_annotations", "getfullargspec"),
    *("getsource", "getsourcelines"),
}
_TYPED_BY_TORCH: Final = {"jit", "script"}
_READS_TEXT: Final = {"getsource", "getsourcelines", "findsource", "getcomments", "getblock"}
_READS_LINES: Final = {
    *("f_lineno", "tb_lineno", "co_firstlineno", "co_lines", "co_positions", "getsourcelines", "findsource"),
    *("getframeinfo", "getinnerframes", "getouterframes", "extract_stack", "extract_tb", "format_exc", "format_stack"),
    *("format_exception", "%lineno", "format_tb", "walk_tb", "walk_stack", "TracebackException", "StackSummary"),
}

_GIVES_FRAMES: Final = {"stack", "trace", "getinnerframes", "getouterframes"}
"""Functions of `inspect` that give frames with their lines."""
_READS_ORDER: Final = {"__dict__", "getmembers", "__members__", "vars", "dir"}
_READS_CODE: Final = {
    *("getclosurevars", "co_consts", "co_code", "co_names", "co_varnames", "co_nlocals", "dis", "marshal"),
    *("cloudpickle", "dill", "getsource", "getsourcelines"),
}
"""What sees the bodies of functions that do not run; so does `__code__`, unless a part of it is named."""
_READS_CLOSURES: Final = {"__closure__", "co_freevars", "co_cellvars", HANDED_ON}
_LONGEST_WAY: Final = 100
_ORDER_OF: Final = "order of "
_DEF: Final = re.compile(r"\s*(async\s+)?def\b")


class Reached(NamedTuple):
    """A symbol of a slice. name: as it is bound, "C.m" for a member of a class; a text where it binds nothing.

    digest: of what counts of it. line: its first. lines: first and last of each run of lines that tell of it, none
    where none do. via: the names by which it is reached, from the entry.
    """

    path: str
    name: str
    digest: Digest
    line: int = 0
    lines: tuple[tuple[int, int], ...] = ()
    via: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        return self.lines[-1][1] if self.lines else self.line

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path

    @property
    def label(self) -> str:
        """As differences between keys name it."""
        return f"{self.name} ({self.place})"


parse_once: Final[Parse] = lru_cache(4096)(parse)
"""Equal texts are parsed once in a process."""


@dataclass(frozen=True)
class Slice:
    """The code that an action can reach, or has used.

    fingerprint: equal means that none of it has changed.
    sources: path -> text, what a worker runs, whatever is saved meanwhile; wider than the slice.
    symbols: sorted by path and name.
    external: top-level names that it reads from outside the project, the standard library left out.
    preload: what importing the sources imports from outside, as "module" or "module:name": no first-party code runs.
    variables: environment variables that it reads by names that show.
    """

    fingerprint: Digest
    sources: dict[str, str]
    symbols: tuple[Reached, ...]
    external: frozenset[str]
    preload: frozenset[str]
    variables: frozenset[str] = frozenset()

    @property
    def imports(self) -> frozenset[str]:
        """All top-level names from outside that its import statements name, whether anything reads them or not."""
        return self.external.union(root_of(name.partition(":")[0]) for name in self.preload)

    def text(self, symbol: Reached) -> list[tuple[int, str]]:
        """The lines of one of its symbols, with their numbers; none where its digest is not of a text."""
        lines = self.sources.get(symbol.path, "").split("\n") if symbol.lines else []
        return [(n, lines[n - 1]) for first, last in symbol.lines for n in range(first, last + 1) if n <= len(lines)]


def slice_of(
    script: str,
    function: str,
    tree: Tree,
    stdlib: Collection[str] = sys.stdlib_module_names,
    folder: str | None = None,
    parse: Parse = parse_once,
) -> Slice:
    """The slice of `script::function`; with function "" that of the script run as a program.

    stdlib: the top-level names of the standard library that it runs with. folder: from which modules are imported,
    None for that of the script.
    Raises Broken where a module in reach does not parse or does not define the function, and BuildError where the
    script is missing.
    """
    found, resolver = _reached(script, function, tree, folder, parse)
    walk = Walk(resolver, lambda path, name: True, everything=True)
    walk.run(script, main=not function)
    if function:
        walk.name(script, function)
    walk.finish()
    return _slice(script, function, found, resolver, walk, stdlib)


def used_of(
    script: str,
    function: str,
    tree: Tree,
    trace: Trace,
    stdlib: Collection[str] = sys.stdlib_module_names,
    folder: str | None = None,
    parse: Parse = parse_once,
) -> Slice:
    """What of the code the traced run has used, as the sources have it now: equal fingerprints mean an equal run.

    Raises as `slice_of` does.
    """
    found, resolver = _reached(script, function, tree, folder, parse)
    walk, gone = _walk_used(script, function, resolver, trace, lambda path, name: f"{path}:{name}" in trace.functions)
    if _reads_code(walk.attributes | walk.names):
        walk, gone = _walk_used(script, function, resolver, trace, lambda path, name: True)
    return _slice(script, function, found, resolver, walk, stdlib, gone)


def _reads_code(names: Collection[str]) -> bool:
    parts = any(name.startswith("co_") for name in names)
    return not _READS_CODE.isdisjoint(names) or ("__code__" in names and not parts)


def _walk_used(script: str, function: str, resolver: Resolver, trace: Trace, gate: Gate) -> tuple[Walk, list[str]]:
    """The walk from all that ran, and what of that is no more."""
    tree = resolver.tree
    walk = Walk(resolver, gate, everything=False)
    walk.run(script, main=not function)
    if function:
        walk.name(script, function)
    walk.finish()
    gone = []
    # What distributions run of what is installed as editable may read any name of it.
    behind = {path for name in walk.external for path in resolver.behind(root_of(name)) if not name.startswith(".")}
    for path in sorted(trace.modules):
        if tree.read(path) is None:
            gone.append(path)
        elif path in behind:
            walk.whole(path)
        elif path not in walk.imported:
            walk.loose(path)
    for ran in sorted(trace.functions):
        path, _, name = ran.partition(":")
        if tree.read(path) is None or not walk.function(path, name):
            gone.append(ran)
    walk.finish()
    return walk, gone


def is_order(name: str) -> bool:
    """Whether a symbol is the order of statements that are symbols themselves."""
    return name.rpartition(":")[2].startswith(_ORDER_OF)


def merge(slices: Sequence[Slice]) -> Slice:
    """The slice of several scripts together."""
    if len(slices) == 1:
        return slices[0]
    return Slice(
        fingerprint=digest_of("merged", [one.fingerprint for one in slices]),
        sources={path: text for one in slices for path, text in one.sources.items()},
        symbols=tuple(sorted({symbol[:3]: symbol for one in slices for symbol in one.symbols}.values())),
        external=frozenset().union(*(one.external for one in slices)),
        preload=frozenset().union(*(one.preload for one in slices)),
    )


def _reached(script: str, function: str, tree: Tree, folder: str | None, parse: Parse) -> tuple[Reach, Resolver]:
    resolver = Resolver(tree, script.rpartition("/")[0] if folder is None else folder, parse=parse)
    found = reach(script, resolver)
    if found is None:
        raise BuildError(f"there is no script {script}", place=Place(script))
    entry = found.modules[script]
    known = entry.defines | ({"*"} if any(alias.attribute == "*" for alias in entry.imports) else set())
    if function and known.isdisjoint((function, "*")):
        raise Broken(
            f'{script} defines no "{function}"',
            place=Place(script),
            hint=nearest(function, sorted(entry.defines)),
            exit_code=FAILED,
        )
    return found, resolver if not found.roams else Resolver(tree, resolver.folder, roams=True, parse=parse)


def _slice(
    script: str,
    function: str,
    found: Reach,
    resolver: Resolver,
    walk: Walk,
    stdlib: Collection[str],
    gone: Sequence[str] = (),
) -> Slice:
    sources = dict(found.texts)
    for path in (*walk.imported, *walk.broken):  # Some may be named by a text alone.
        sources.setdefault(path, resolver.tree.read(path) or "")
    symbols = sorted([*_Symbols(walk, resolver, sources).all(), *_files(walk.broken, sources)])
    symbols += [Reached(*_split(name), digest_of("gone")) for name in gone]
    facts = [[path.removeprefix(f"{resolver.folder}/"), name, digest] for path, name, digest, *_ in symbols]
    return Slice(
        fingerprint=digest_of("slice", script.rpartition("/")[2], function, facts),
        sources=sources,
        symbols=tuple(symbols),
        external=frozenset(map(root_of, walk.external)).difference(stdlib, ("", "__future__")),
        preload=frozenset(name for name in found.preload if root_of(name.partition(":")[0]) not in stdlib),
        variables=frozenset(walk.variables),
    )


def _reads(unit: Unit) -> Iterator[Chain]:
    """What is read when its module is imported."""
    for piece in (unit, *unit.members):
        yield from piece.code.reads


def _split(name: str) -> tuple[str, str]:
    path, _, function = name.partition(":")
    return path, function or "*"


def _once(wheres: Sequence[Where], digests: Mapping[Where, Digest]) -> Sequence[Where]:
    """The first alone of imports that are all the same."""
    alike = all(where.piece.kind == "import" for where in wheres) and len({digests[where] for where in wheres}) == 1
    return wheres[:1] if alike else wheres


def _files(paths: Mapping[str, None], texts: Mapping[str, str]) -> Iterator[Reached]:
    for path in paths:
        text = texts.get(path, "")
        lines = ((1, text.count("\n") + 1),)
        yield Reached(path, "*", digest_bytes(text.encode("utf-8", "surrogatepass")), lines=lines)


class _Symbols:
    """The symbols of what was reached, with what counts of each."""

    def __init__(self, walk: Walk, resolver: Resolver, texts: Mapping[str, str]) -> None:
        self._walk = walk
        self._resolver = resolver
        self._texts = texts
        self._split: dict[str, list[str]] = {}
        read = walk.attributes | walk.names.difference(_OWN_DOC)
        outside = set(map(root_of, walk.external))
        self._docs = not read.isdisjoint(_READS_DOCS) or "help" in walk.names or not outside.isdisjoint(_DOCTORS)
        self._notes = not read.isdisjoint(_READS_NOTES) or ("torch" in outside and not read.isdisjoint(_TYPED_BY_TORCH))
        self._closures = not read.isdisjoint(_READS_CLOSURES)
        self._text = not read.isdisjoint(_READS_TEXT)
        frames = "inspect" in walk.names and not read.isdisjoint(_GIVES_FRAMES)
        asks = frames or "logging" in walk.names or not read.isdisjoint(("%record", "getframeinfo"))
        self._lines = not read.isdisjoint(_READS_LINES) or (asks and "lineno" in read)
        self._order = walk.any_attribute or not read.isdisjoint(_READS_ORDER)

    def all(self) -> Iterator[Reached]:
        by_path: dict[str, list[Where]] = {}
        for where in self._walk.included:
            by_path.setdefault(where.path, []).append(where)
        for path, wheres in by_path.items():
            order = {id(piece): n for n, piece in enumerate(self._pieces(path))}
            wheres.sort(key=lambda where: order[id(where.piece)])
            yield from self._of_module(path, wheres)
        yield from self._order_of_imports()
        for path in self._walk.imported:
            if Symbol(path, "__doc__") in self._walk.observed:
                yield Reached(path, "__doc__", digest_of(self._resolver.source(path).module.doc))
            if path not in self._walk.stated:  # What imports it now does not show; if a statement did, it is gone.
                yield Reached(path, "import", digest_of("unstated"))
        for name in self._walk.probed:
            found = [package.file for package in self._resolver.packages(Alias("", name), "")]
            yield Reached("", f"whether there is {name}", digest_of(found))
        for path in self._walk.listed:
            names = [unit.code.binds for unit in self._resolver.source(path).module.units]
            yield Reached(path, f"{_ORDER_OF}names", digest_of([list(some) for some in names if some]))

    def _pieces(self, path: str) -> Iterator[Unit]:
        for unit in self._resolver.source(path).module.units:
            yield unit
            yield from unit.members

    def _of_module(self, path: str, wheres: Sequence[Where]) -> Iterator[Reached]:
        by_name: dict[str, list[Where]] = {}
        for where in wheres:
            by_name.setdefault(where.piece.name, []).append(where)
        digests = {where: self._digest(where) for where in wheres}
        for name, same in by_name.items():
            same = [*_once(same, digests)]
            digest = digests[same[0]] if len(same) == 1 else digest_of([digests[where] for where in same])
            lines = tuple(run for where in same for run in self._runs_of_lines(where))
            yield Reached(path, name, digest, same[0].piece.line, lines, self._via(same[0]))
        yield from self._orders(path, wheres, digests)
        if self._notes or any(where.unit.kind == "class" for where in wheres):
            imports = self._resolver.source(path).module.imports
            if futures := [alias.attribute for alias in imports if alias.module == "__future__"]:
                yield Reached(path, "from __future__", digest_of(sorted(futures)))

    def _runs_of_lines(self, where: Where) -> Iterator[tuple[int, int]]:
        """Those of a class without the bodies of its methods, which are symbols of their own."""
        start = where.piece.line
        for method in where.piece.members:
            if method.kind == "def":
                texts = self._text_lines(where.path)
                head = next((n for n in range(method.line, method.end) if _DEF.match(texts[n - 1])), method.line)
                yield start, head
                start = method.end + 1
        if start <= where.piece.end:
            yield start, where.piece.end

    def _text_lines(self, path: str) -> list[str]:
        if path not in self._split:
            self._split[path] = self._texts[path].split("\n")
        return self._split[path]

    def _digest(self, where: Where) -> Digest:
        piece = where.piece
        notes = self._notes or not piece.inert
        parts: list[object] = [self._code(piece.code, notes)]
        parts += [self._body(where.path, function, notes) for function in piece.functions]
        if any(_OWN_DOC in code.reads for code in self._codes(where)):
            parts += [self._resolver.source(where.path).module.doc, where.unit.code.docs]
        if piece.kind == "class" and where.member is None:
            parts.append(self._members(where))
        if self._order and piece.order:
            parts.append(piece.order)
        if self._text:
            parts.append(self._text_lines(where.path)[piece.line - 1 : piece.end])
        if self._lines:
            parts.append(piece.line)
        return digest_of(*parts) if len(parts) > 1 or isinstance(parts[0], list) else piece.code.digest

    def _members(self, where: Where) -> object:
        """The names of a class's members that count, and the order of those where there is one."""
        counted = [
            member
            for member in where.unit.members
            if where in self._walk.by_names or where._replace(member=member) in self._walk.included
        ]
        n_of = Counter(member.code.binds for member in counted)
        fixed = sorted(str(member.code.binds) for member in counted if member.kind == "def")
        ordered = [one.code.binds for one in counted if one.kind != "def" or n_of[one.code.binds] > 1]
        return [fixed, [list(names) for names in ordered]] if counted else None

    def _codes(self, where: Where) -> Iterator[Code]:
        """The code of a unit that runs."""
        yield where.piece.code
        for function in where.piece.functions:
            yield from (body for name, body in bodies(function) if (where.path, name) in self._walk.bodies)

    def _code(self, code: Code, notes: bool) -> object:
        more = [code.docs if self._docs else "", code.notes if notes else ""]
        return [code.digest, *more] if any(more) else code.digest

    def _body(self, path: str, function: Function, notes: bool) -> object:
        if (path, function.name) not in self._walk.bodies:
            shape = ["yields"] if function.yields else []
            return [*shape, *(function.closes if self._closures else ())] or None
        return [
            self._code(function.body, notes),
            *filter(None, (self._body(path, inner, notes) for inner in function.functions)),
        ]

    def _orders(self, path: str, wheres: Sequence[Where], digests: Mapping[Where, Digest]) -> Iterator[Reached]:
        """The order of statements, for each name that several of them bind or change: of all that know the name."""
        units = [where for where in wheres if where.member is None]
        bind: dict[str, list[Where]] = {}
        for where in units:
            changed = {one.name for one in self._changed(where) if one.path == path}
            for name in changed.union(where.unit.code.binds):
                bind.setdefault(name, []).append(where)
        for name, binders in sorted(bind.items()):
            if len(_once(binders, digests)) < 2:
                continue
            known = [
                where for where in units if where in binders or any(chain[0] == name for chain in _reads(where.unit))
            ]
            lines = tuple(
                (unit.line, unit.line if unit.members or unit.functions else unit.end) for _, unit, _ in known
            )
            yield Reached(
                path, f"{_ORDER_OF}{name}", digest_of([digests[where] for where in known]), lines[0][0], lines
            )

    def _changed(self, where: Where) -> Collection[Symbol]:
        effects = self._walk.effects.get(where)
        return effects.symbols if effects else ()

    def _order_of_imports(self) -> Iterator[Reached]:
        """The order in which modules are imported that have effects on others."""
        acting = {where.path for where in self._walk.included if where in self._walk.effects and self._acts_out(where)}
        order = [path for path in self._walk.imported if path in acting]
        if len(order) > 1:
            folder = f"{self._resolver.folder}/"
            yield Reached(order[0], f"{_ORDER_OF}imports", digest_of([path.removeprefix(folder) for path in order]))

    def _acts_out(self, where: Where) -> bool:
        effects = self._walk.effects[where]
        return effects.outside or any(symbol.path != where.path for symbol in effects.symbols)

    def _via(self, where: Where) -> tuple[str, ...]:
        names: list[str] = []
        seen: set[Where] = set()
        at: Where | None = where
        while at is not None and at not in seen and len(names) < _LONGEST_WAY:
            seen.add(at)  # What looks a name up that it computes may reach itself.
            if not names or names[-1] != at.piece.name:
                names.append(at.piece.name)
            at = self._walk.included[at]
        return tuple(reversed(names))
