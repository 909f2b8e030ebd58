"""What a name in a piece of code belongs to: the function that binds it, or the module; and what imports bind.

Knows one piece at a time, and nothing of what names mean.
"""

from __future__ import annotations

import ast
from typing import Any, Final, NamedTuple

from buildsys.code.functions import Function

_DROPPED: Final = {"ctx", "type_comment", "kind", "type_ignores"}
_FIELDS: Final[dict[type, tuple[str, ...]]] = {}


class Alias(NamedTuple):
    """A name that an import binds: `from ..module import attribute as name` (level 2); attribute "" for a module.

    name: "" for a star import. Of a plain `import a.b` the name is a, and what is bound is the first of the chain.
    """

    name: str
    module: str
    attribute: str = ""
    level: int = 0


def aliases(node: ast.Import | ast.ImportFrom) -> list[Alias]:
    """What an import statement binds, in its order."""
    if isinstance(node, ast.Import):
        return [
            Alias(one.asname, one.name) if one.asname else Alias(one.name.partition(".")[0], one.name, "*chain")
            for one in node.names
        ]
    module = node.module or ""
    return [
        Alias("" if one.name == "*" else one.asname or one.name, module, one.name, node.level) for one in node.names
    ]


def fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The parts of a node that can make a difference."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(name for name in kind._fields if name not in _DROPPED)
    return _FIELDS[kind]


class Scope(NamedTuple):
    """local: names that are not global here. binds: whether a name that is bound here is bound in the module."""

    local: frozenset[str]
    binds: bool
    within: str
    in_class: bool = False


MODULE: Final = Scope(frozenset(), True, "")


def class_scope(name: str) -> Scope:
    """The body of a class at the top of its module: what it binds are members."""
    return Scope(frozenset(), False, f"{name}.", True)


def body_scope(node: Function, name: str, outer: Scope, *, walrus: bool = True) -> Scope:
    """The scope of a function's body. Names that it imports are kept: they are resolved where they are read.

    walrus: expressions in it may bind names.
    """
    bound, declared, imported = _bound(node.body, walrus=walrus)
    local = outer.local.union(parameters(node.args), bound)
    return Scope(frozenset(local - declared - imported), bool(declared), f"{name.partition('#')[0]}.")


def _bound(body: list[ast.stmt], *, walrus: bool) -> tuple[set[str], set[str], set[str]]:
    """Names that a function's body binds, those that it declares global, and those that it imports."""
    bound: set[str] = set()
    declared: set[str] = set()
    imported: set[str] = set()
    waiting: list[Any] = [*body]
    while waiting:
        node: Any = waiting.pop()
        kind: Any = node.__class__
        if kind is list:
            waiting += node
        elif kind is ast.Name:
            if node.ctx.__class__ is not ast.Load:
                bound.add(node.id)
        elif kind in _LEAVES or not hasattr(node, "_fields"):
            continue
        elif kind is ast.FunctionDef or kind is ast.AsyncFunctionDef or kind is ast.ClassDef:
            bound.add(node.name)
        elif kind is ast.Global:
            declared.update(node.names)
        elif kind is ast.Import or kind is ast.ImportFrom:
            imported.update(alias.name for alias in aliases(node) if alias.name)
        elif kind in _COMPREHENSIONS:
            # Only what `:=` binds in it is the function's.
            bound.update(
                inner.target.id
                for inner in (ast.walk(node) if walrus else ())
                if inner.__class__ is ast.NamedExpr and isinstance(inner.target, ast.Name)
            )
        else:
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if name.__class__ is str:  # `except ... as name`, and what a pattern captures
                bound.add(name)
            for field in fields_of(kind) if walrus else _binding_fields_of(kind):
                value = getattr(node, field, None)
                if value.__class__ is list or isinstance(value, ast.AST):
                    waiting.append(value)
    return bound, declared, imported


def _binding_fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The parts of a node in which names may be bound, unless `:=` does."""
    if kind not in _BINDING_FIELDS:
        binding = {*_BLOCKS, *_TARGETS, *({"value"} if kind is ast.Starred else ())}
        _BINDING_FIELDS[kind] = tuple(name for name in fields_of(kind) if name in binding)
    return _BINDING_FIELDS[kind]


_BINDING_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
_BLOCKS: Final = ("body", "handlers", "orelse", "finalbody", "items", "cases")
_TARGETS: Final = ("name", "target", "targets", "optional_vars", "elts", "pattern", "patterns", "kwd_patterns")
_LEAVES: Final = {ast.Constant, ast.Lambda, ast.Pass, ast.Break, ast.Continue, ast.Nonlocal}
_COMPREHENSIONS: Final = {ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp}


def parameters(args: ast.arguments) -> list[str]:
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [one.arg for one in (*named, *filter(None, (args.vararg, args.kwarg)))]


def unmangled(name: str) -> str:
    """A private name as it is written in its class, "" for what is none: __x for _C__x."""
    at = name.find("__", 2) if name[:1] == "_" and name[:2] != "__" and not name.endswith("__") else -1
    return name[at:] if at > 0 else ""
