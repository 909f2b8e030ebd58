"""What a source text imports and binds, with places, and what it may do to names that no statement shows.

For diagnostics, where the code fingerprint has its own, wider reading: here a name counts as unknown only where it
surely is. Knows no other text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_MEANS: Final = {
    **dict.fromkeys(("global_enum", "_convert_", "_convert"), "opaque"),
    **dict.fromkeys(("f_globals", "__globals__"), "meddles"),
}
"""Names and attributes by which a module gets names at its top level that no statement of it shows."""
_OF_SYS: Final = {
    "path": ("moves",),
    "meta_path": ("moves",),
    "path_hooks": ("moves",),
    "modules": ("opaque", "meddles"),
}
_MAY_DO: Final = re.compile(
    r"\bsys\s*\.\s*(path|meta_path|modules)|\b(from|import)\s+sys\s+(as|import)\b|\b(vars|locals|install)\s*\("
    r"|\b(globals|exec|global_enum|_convert_?|f_globals|__globals__|builtins|__builtins__|setattr|addsitedir|__path__|__dict__)\b"
)
"""Only where a text holds one of these, its expressions are looked at."""
_MISSING: Final = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", ""}


@dataclass(frozen=True)
class Imported:
    """One import as written: `from ..module import names` (level 2); names is empty for a plain `import module`.

    optional: the text says what is done without it. main: it is made only where the text is run as a program. called:
    in a function, when that is called.
    line, column, width: of the statement, from 1; in characters, as people count.
    """

    module: str
    names: tuple[str, ...]
    level: int
    line: int
    column: int
    width: int
    optional: bool = False
    main: bool = False
    called: bool = False

    @property
    def written(self) -> str:
        return "." * self.level + self.module


@dataclass(frozen=True)
class Outline:
    """One text. binds: names bound at its top level, wherever that is done. opaque: it may have others.

    sets: names that it sets in other modules. meddles: it may give all modules names. moves: it may import from
    folders that are not known.
    """

    imports: tuple[Imported, ...]
    binds: frozenset[str]
    opaque: bool = False
    sets: frozenset[str] = frozenset()
    meddles: bool = False
    moves: bool = False

    @property
    def stars(self) -> tuple[Imported, ...]:
        return tuple(one for one in self.imports if one.names == ("*",))


def outline(text: str, tree: ast.Module) -> Outline:
    """The outline of a text that compiles, and its tree."""
    lines = text.split("\n")
    statements = list(_statements(tree.body, frozenset()))
    imports = [(node, around) for node, around in statements if isinstance(node, (ast.Import, ast.ImportFrom))]
    ours = {name for node, _ in imports for name in _bound(node)}
    declared = {name for node, _ in statements if isinstance(node, ast.Global) for name in node.names}
    sets = {name for node, _ in statements for name in _set_in(node, ours)}
    does = set(_does(tree, ours)) if _MAY_DO.search(text) else set()
    return Outline(
        imports=tuple(one for node, around in imports for one in _imported(node, around, lines)),
        binds=frozenset({*_bound_at_top(tree.body), *declared}),
        opaque="opaque" in does,
        sets=frozenset(sets),
        meddles="meddles" in does,
        moves="moves" in does,
    )


# ---------------------------------------------------------------- statements


def _statements(body: Sequence[ast.stmt], around: frozenset[str]) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
    """All statements, with what stands around each: "optional", "main", "called", "never"."""
    for node in body:
        yield node, around
        for inner, doubts in _blocks(node, around):
            yield from _statements(inner, around | doubts)


def _blocks(node: ast.stmt, around: frozenset[str]) -> Iterator[tuple[Sequence[ast.stmt], frozenset[str]]]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.body, frozenset({"called"})
        case ast.If():
            names = names_in(node.test)
            is_main = names == {"__name__"} and "called" not in around
            yield node.body, frozenset({"main"} if is_main else {"never" if "TYPE_CHECKING" in names else "optional"})
            yield node.orelse, frozenset({"optional"})
        case ast.Try() | ast.TryStar():
            caught = {name for handler in node.handlers for name in caught_by(handler)}
            yield node.body, frozenset({"optional"} if caught & _MISSING else ())
            yield [*node.orelse, *node.finalbody], frozenset()
            yield [part for handler in node.handlers for part in handler.body], frozenset({"optional"})
        case ast.With() | ast.AsyncWith():
            is_expected = any(expects(item.context_expr) for item in node.items)
            yield node.body, frozenset({"optional"} if is_expected else ())
        case ast.Match():
            yield [part for case in node.cases for part in case.body], frozenset({"optional"})
        case ast.For() | ast.AsyncFor() | ast.While():
            yield [*node.body, *node.orelse], frozenset()
        case ast.ClassDef():
            yield node.body, frozenset()


def _imported(node: ast.Import | ast.ImportFrom, doubts: frozenset[str], lines: Sequence[str]) -> Iterator[Imported]:
    if "never" in doubts:
        return
    line = lines[node.lineno - 1]
    column = characters(line, node.col_offset)
    end = characters(line, node.end_col_offset or 0) if node.end_lineno == node.lineno else len(line)
    place = node.lineno, column + 1, max(1, end - column)
    kinds = "optional" in doubts, "main" in doubts, "called" in doubts
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Imported(alias.name, (), 0, *place, *kinds)
    else:
        yield Imported(node.module or "", tuple(alias.name for alias in node.names), node.level, *place, *kinds)


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    return ((alias.asname or alias.name).partition(".")[0] for alias in node.names)


def _bound_at_top(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that a module's own statements bind."""
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
                continue
            case ast.Lambda():
                continue
            case ast.Import() | ast.ImportFrom():
                yield from _bound(node)
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
        waiting += ast.iter_child_nodes(node)


def _set_in(node: ast.stmt, ours: set[str]) -> Iterator[str]:
    """The names that a statement sets in what was imported: `module.name = ...`."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in ours:
            yield target.attr


# ---------------------------------------------------------------- what no statement shows


def _does(tree: ast.Module, ours: set[str]) -> Iterator[str]:
    """What it may do that no statement shows: "opaque", "meddles", "moves"; `ours` are the names that it imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="globals" | "exec") | ast.Call(func=ast.Name(id="vars" | "locals"), args=[]):
                yield "opaque"
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _MEANS:
                yield _MEANS[name]
            case ast.Attribute(attr=name, value=ast.Name(id=module)) if module in ours and name in _OF_SYS:
                yield from _OF_SYS[name]
            case ast.Name(id="builtins" | "__builtins__"):
                yield "meddles"
            case ast.Call(func=ast.Name(id="install") | ast.Attribute(attr="install")):
                yield "meddles"
            case ast.Call(func=ast.Name(id="setattr" | "vars"), args=[ast.Name(id=module), *_]) if module in ours:
                yield "meddles"
            case ast.Attribute(attr="__dict__", value=ast.Name(id=module)) if module in ours:
                yield "meddles"
            case ast.Name(id="addsitedir" | "__path__") | ast.Attribute(attr="addsitedir" | "__path__"):
                yield "moves"
            case ast.ImportFrom(module="sys", names=names):
                named = {alias.name for alias in names}
                yield from (does for name in _OF_SYS if name in named or "*" in named for does in _OF_SYS[name])


def names_in(node: ast.AST) -> set[str]:
    """The names and attributes in an expression."""
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def caught_by(handler: ast.ExceptHandler) -> set[str]:
    """The names of what a handler catches; "" for all."""
    return names_in(handler.type) if handler.type else {""}


def expects(manager: ast.expr) -> bool:
    """A context manager that takes an exception for well: `suppress`, or what a test calls so."""
    return not names_in(manager).isdisjoint(("suppress", "raises", "assertRaises", "assertRaisesRegex"))


def characters(line: str, n_bytes: int) -> int:
    """How many characters of a line these bytes are."""
    return len(line.encode("utf-8", "surrogatepass")[:n_bytes].decode("utf-8", "ignore"))
