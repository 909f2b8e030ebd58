"""The scopes of one source text: where each binds names, where names are read, and what stands around each of the two.

Follows Python's own rules for what a name means where; knows nothing of values, nor of other modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Position = tuple[int, int]
"""Line from 1 and column from 0, in bytes, as in syntax trees."""
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_STATEMENTS: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign)


@dataclass(frozen=True)
class Step:
    """One step from a node outward: it is in this field of its parent, at this index of a list."""

    parent: ast.AST
    field: str
    index: int
    outer: Step | None

    def outward(self) -> Iterator[Step]:
        """This step and all further ones, out to the module."""
        step: Step | None = self
        while step:
            yield step
            step = step.outer


class Binding(NamedTuple):
    """A place that binds a name. since: from where on it is bound there. step: None where that is in another scope."""

    since: Position
    node: ast.AST
    step: Step | None


@dataclass(frozen=True)
class Scope:
    """kind: a comprehension counts as a "function", which it is but for `:=`. declared: `global` or `nonlocal`."""

    kind: Literal["module", "class", "function"]
    outer: Scope | None = None
    comprehension: bool = False
    bound: dict[str, list[Binding]] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

    def visible(self) -> Iterator[Scope]:
        """The scopes in which a name is looked for, innermost first."""
        yield self
        scope = self.outer
        while scope:
            if scope.kind != "class":
                yield scope
            scope = scope.outer

    @property
    def module(self) -> Scope:
        scope = self
        while scope.outer:
            scope = scope.outer
        return scope


class Read(NamedTuple):
    """A place that reads a name, or deletes it."""

    name: str
    at: Position
    scope: Scope
    step: Step


class Scopes:
    """All of one text. module: its outermost scope. reads: in the order of the tree."""

    def __init__(self, tree: ast.Module) -> None:
        """Raises RecursionError where the tree is too deep for what is left of the stack."""
        self.module = Scope("module")
        self.reads: list[Read] = []
        self._nonlocal: list[tuple[str, Binding, Scope]] = []
        for step, node in _children(tree, None):
            self._visit(node, self.module, step)
        for name, binding, scope in self._nonlocal:
            outer = [one for one in scope.visible() if one is not scope and one.kind == "function"]
            owner = next((one for one in outer if name in one.bound), outer[0] if outer else self.module)
            owner.bound.setdefault(name, []).append(binding)

    def _visit(self, node: ast.AST, scope: Scope, step: Step) -> None:
        match node:
            case ast.Name():
                self._name(node, scope, step)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._function(node, scope, step)
            case ast.ClassDef():
                self._bind(node.name, node, scope, step)
                inner = self._typed(node, scope, step)
                self._within(node, Scope("class", inner), inner, step, {"body"})
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, scope, step)
            case ast.Global() | ast.Nonlocal():
                kind = "global" if isinstance(node, ast.Global) else "nonlocal"
                scope.declared.update(dict.fromkeys(node.names, kind))
            case _:
                for name in _bound_by(node):
                    self._bind(name, node, scope, step)
                for inner_step, child in _children(node, step):
                    self._visit(child, scope, inner_step)

    def _name(self, node: ast.Name, scope: Scope, step: Step) -> None:
        is_augmented = isinstance(step.parent, ast.AugAssign) and step.field == "target"
        if not isinstance(node.ctx, ast.Store) or is_augmented:
            self.reads.append(Read(node.id, (node.lineno, node.col_offset), scope, step))
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id, node, scope, step)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope, step: Step) -> None:
        if not isinstance(node, ast.Lambda):
            self._bind(node.name, node, scope, step)
        around = scope if isinstance(node, ast.Lambda) else self._typed(node, scope, step)
        inner = Scope("function", around)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for one in filter(None, every):
            inner.bound[one.arg] = [Binding((0, 0), one, None)]
        self._within(node, inner, around, step, {"body"})

    def _comprehension(self, node: ast.AST, scope: Scope, step: Step) -> None:
        """Its first iterable belongs to the scope around it."""
        inner = Scope("function", scope, comprehension=True)
        for inner_step, child in _children(node, step):
            if isinstance(child, ast.comprehension):
                for innermost, part in _children(child, inner_step):
                    is_first = inner_step.index == 0 and innermost.field == "iter"
                    self._visit(part, scope if is_first else inner, innermost)
            else:
                self._visit(child, inner, inner_step)

    def _typed(self, node: ast.AST, scope: Scope, step: Step) -> Scope:
        """The scope around what has type parameters: they are bound in it."""
        parameters = getattr(node, "type_params", [])
        if not parameters:
            return scope
        inner = Scope("function", scope)
        for one in parameters:
            inner.bound[one.name] = [Binding((0, 0), one, None)]
        return inner

    def _within(self, node: ast.AST, inner: Scope, around: Scope, step: Step, body: set[str]) -> None:
        for inner_step, child in _children(node, step):
            self._visit(child, inner if inner_step.field in body else around, inner_step)

    def _bind(self, name: str, node: ast.AST, scope: Scope, step: Step) -> None:
        since = _since(node, step)
        if isinstance(step.parent, ast.NamedExpr) and isinstance(node, ast.Name):
            while scope.comprehension and scope.outer:
                scope = scope.outer
        elsewhere = scope.declared.get(name)
        if elsewhere == "global" and scope.kind != "module":
            scope.module.bound.setdefault(name, []).append(Binding(since, node, None))
        elif elsewhere == "nonlocal":
            self._nonlocal.append((name, Binding(since, node, None), scope))
        else:
            scope.bound.setdefault(name, []).append(Binding(since, node, step))


def _children(node: ast.AST, outer: Step | None) -> Iterator[tuple[Step, ast.AST]]:
    for name, value in ast.iter_fields(node):
        items = value if isinstance(value, list) else [value]
        for index, item in enumerate(items):
            if isinstance(item, ast.AST):
                yield Step(node, name, index, outer), item


def _bound_by(node: ast.AST) -> list[str]:
    """The names that a node binds by itself, not by a `Name` in it."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return [(alias.asname or alias.name).partition(".")[0] for alias in node.names if alias.name != "*"]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def _since(node: ast.AST, step: Step) -> Position:
    """From where on a name is bound by what a node is part of: what is assigned is computed before."""
    if isinstance(node, ast.ExceptHandler):
        return node.body[0].lineno, node.body[0].col_offset
    for one in step.outward():
        if isinstance(one.parent, (*_STATEMENTS, ast.NamedExpr)) and one.field in ("target", "targets"):
            return _end(one.parent)
        if isinstance(one.parent, (ast.For, ast.AsyncFor)) and one.field == "target":
            return _end(one.parent.iter)
        if not isinstance(one.parent, (ast.Tuple, ast.List, ast.Starred)):
            break
    return _end(node)


def _end(node: ast.AST) -> Position:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0
