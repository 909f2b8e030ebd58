"""Edits of one source text: mutations of a function's body, and edits that mean nothing.

Pure. A mutation changes the text where it stands and leaves the rest as it is written, as a hand would.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OTHER: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_QUOTES = re.compile(r"""^[rRuU]?('{3}|"{3}|'|")""")
_DROPPED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Delete, ast.Assert)


@dataclass(frozen=True)
class Edit:
    """What a text becomes. function: the first line of the one that is mutated (a decorator's), 0 of a no-op."""

    kind: str
    function: int
    line: int
    text: str


@dataclass(frozen=True)
class Place:
    """A function of a text: its first line (of a decorator, as the interpreter counts), its name, and its node."""

    line: int
    name: str
    node: Function


def parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def places(tree: ast.Module) -> list[Place]:
    """All functions of a text that have something to mutate or not, in no order of meaning."""
    return [
        Place(min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.name, node)
        for node in ast.walk(tree)
        if isinstance(node, Function)
    ]


def mutations(text: str, place: Place, n: int, chance: random.Random) -> list[Edit]:
    """Up to n mutations of one function: of its body and its defaults, not of the functions that stand in it."""
    source = _Source(text)
    changes = list(_changes(place.node))
    chance.shuffle(changes)
    found: list[Edit] = []
    for kind, node, new in changes:
        if len(found) == n:
            break
        changed = source.with_replaced(node, new)
        try:
            parsed(changed)
        except SyntaxError:
            continue
        found.append(Edit(kind, place.line, node.lineno, changed))
    return found


def no_ops(text: str, chance: random.Random) -> list[Edit]:
    """One edit of each kind that changes no result, unless code reads its own text."""
    tree = parsed(text)
    found = [
        _comment(text, tree, chance),
        _blank_lines(text, tree, chance),
        _reformatted(text, tree),
        _docstring(text, tree, chance),
    ]
    return [edit for edit in found if edit]


class _Source:
    """A text whose nodes can be replaced."""

    def __init__(self, text: str) -> None:
        self.tree = parsed(text)
        self._raw = text.encode()
        self._starts = [0]
        for line in self._raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        return self._raw[self._span(node)].decode()

    def with_replaced(self, node: ast.expr | ast.stmt, new: str) -> str:
        span = self._span(node)
        return (self._raw[: span.start] + new.encode() + self._raw[span.stop :]).decode()

    def _span(self, node: ast.expr | ast.stmt) -> slice:
        start = self._starts[node.lineno - 1] + node.col_offset
        return slice(start, self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0))


def _changes(function: Function) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """(kind, node, what to write in its place)."""
    for node in _own(function):
        if isinstance(node, ast.Constant) and not isinstance(node.value, type(...)) and node.value is not None:
            yield "constant", node, f"({_other_constant(node.value)!r})"
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield "condition", node.test, f"(not ({ast.unparse(node.test)}))"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
            swapped = ast.Compare(node.left, [_SWAPPED[type(node.ops[0])](), *node.ops[1:]], node.comparators)
            yield "comparison", node, f"({ast.unparse(swapped)})"
        elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER:
            yield "arithmetic", node, f"({ast.unparse(ast.BinOp(node.left, _OTHER[type(node.op)](), node.right))})"
        elif isinstance(node, ast.Return):
            yield "return", node, "return None" if node.value and ast.unparse(node.value) != "None" else "return 0"
        elif isinstance(node, _DROPPED):
            yield "statement", node, "pass"
    for default in [*function.args.defaults, *filter(None, function.args.kw_defaults)]:
        if isinstance(default, ast.Constant) and not isinstance(default.value, type(...)):
            yield "default", default, f"({_other_constant(default.value)!r})"


def _own(function: Function) -> Iterator[ast.AST]:
    """The nodes of a body that say what it does: no docstrings, annotations, or functions of their own."""
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node, ast.JoinedStr):  # where its parts stand is not told
            continue
        yield node
        skipped = [getattr(node, "annotation", None)]
        waiting += [child for child in reversed(list(ast.iter_child_nodes(node))) if child not in skipped]


def _other_constant(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float, complex)):
        return value + 1
    return value + ("x" if isinstance(value, str) else b"x")  # type: ignore[operator]


def _comment(text: str, tree: ast.Module, chance: random.Random) -> Edit | None:
    inner = [node for place in places(tree) for node in place.node.body[-1:] if node.lineno != place.node.lineno]
    if not inner:
        return None
    node = chance.choice(inner)
    lines = text.splitlines(keepends=True)
    if lines[node.lineno - 1][: node.col_offset].strip():  # it follows a semicolon or a colon
        return None
    lines.insert(node.lineno - 1, f"{' ' * node.col_offset}# a note\n")
    return _unless_it_differs("comment", node.lineno, "".join(lines), tree)


def _blank_lines(text: str, tree: ast.Module, chance: random.Random) -> Edit | None:
    starts = [node for node in tree.body if isinstance(node, (*Function.__args__, ast.ClassDef))]
    if not starts:
        return None
    node = chance.choice(starts)
    line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    lines = text.splitlines(keepends=True)
    lines.insert(line - 1, "\n\n\n")
    return _unless_it_differs("blank lines", line, "".join(lines), tree)


def _reformatted(text: str, tree: ast.Module) -> Edit | None:
    return _unless_it_differs("layout", 1, ast.unparse(tree) + "\n", tree)


def _docstring(text: str, tree: ast.Module, chance: random.Random) -> Edit | None:
    held = [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, (*Function.__args__, ast.ClassDef, ast.Module)) and ast.get_docstring(node, clean=False)
    ]
    if not held:
        return None
    node = chance.choice(held)
    source = _Source(text)
    changed = source.with_replaced(node, _QUOTES.sub(r"\g<0>Note: ", source.text_of(node), count=1))
    try:
        return Edit("docstring", 0, node.lineno, changed) if parsed(changed) else None
    except SyntaxError:
        return None


def _unless_it_differs(kind: str, line: int, changed: str, tree: ast.Module) -> Edit | None:
    try:
        same = ast.dump(parsed(changed)) == ast.dump(tree)
    except SyntaxError:
        return None
    return Edit(kind, 0, line, changed) if same else None
