"""What a syntax tree tells of things that it does by computed names: imports, definitions, code from other folders.

Knows no other module. Names are taken as they are written: what is called like a means counts as one, since to take too
much code into a fingerprint costs a run, and to take too little serves stale results.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

_IMPORTING: Final = {"__import__", "exec", "eval", "importlib", "runpy", "pkgutil", "imp", "builtins", "__builtins__"}
_IMPORTING_ATTRIBUTES: Final = {"__import__", "import_module"}
_ELSEWHERE: Final = frozenset(
    ("addsitedir", "spec_from_file_location", "SourceFileLoader", "load_source", "run_path", "__path__")
)
_DEFINING: Final = {"globals", "locals", "setattr", "exec", "eval"}
_FILE: Final = re.compile(r"\.py(?!\w)")
_ALL: Final = "__all__"


def may_import(nodes: Sequence[ast.AST]) -> bool:
    """It may import modules whose names it does not show."""
    return any(
        (isinstance(node, ast.Name) and node.id in _IMPORTING)
        or (isinstance(node, ast.Attribute) and node.attr in _IMPORTING_ATTRIBUTES)
        or any(module.partition(".")[0] in _IMPORTING for module in _modules(node))
        for node in nodes
    )


def may_leave_folder(nodes: Sequence[ast.AST]) -> bool:
    """It may run files that no import finds from the script's folder: it names one, or where to look for some."""
    return (
        not _ELSEWHERE.isdisjoint(name for node in nodes for name in _names(node))
        or any(isinstance(node, ast.Name) and node.id == "exec" for node in nodes)
        or any(_FILE.search(text) for text in _texts(nodes))
        or _uses_of_sys(nodes, {"path", "meta_path", "path_hooks"})
    )


def may_define(nodes: Sequence[ast.AST]) -> bool:
    """It may bind names at its top level that no statement there shows."""
    return _uses_of_sys(nodes, {"modules"}) or any(
        (isinstance(node, ast.Name) and node.id in _DEFINING)
        or (isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "__getattr__")
        or (isinstance(node, ast.Call) and not node.args and getattr(node.func, "id", "") == "vars")
        for node in nodes
    )


def star_names(nodes: Sequence[ast.AST]) -> tuple[str, ...] | None:
    """The names that `__all__` lists, where it stands; None where it is computed."""
    listed: list[str] = []
    literal: set[int] = set()
    for node in nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            target = node.target
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == _ALL and isinstance(value, (ast.List, ast.Tuple)):
            texts = [item.value for item in value.elts if isinstance(item, ast.Constant)]
            names = [text for text in texts if isinstance(text, str)]
            if len(names) == len(value.elts):
                literal.add(id(target))
                listed += names
    if any(_ALL in _names(node) and id(node) not in literal for node in nodes):
        return None
    return tuple(listed)


def _uses_of_sys(nodes: Sequence[ast.AST], attributes: set[str]) -> bool:
    names = {"sys"}
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.asname for alias in node.names if alias.name == "sys" and alias.asname)
        if isinstance(node, ast.ImportFrom) and node.module == "sys":
            named = {alias.name for alias in node.names}
            if "*" in named or named & attributes:
                return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in attributes
        and isinstance(node.value, ast.Name)
        and node.value.id in names
        for node in nodes
    )


def _texts(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The texts that it may do something with: not those that stand alone, as docstrings do."""
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def _names(node: ast.AST) -> Iterator[str]:
    """The names that one node shows, also as a text: `getattr(module, "name")`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias):
        yield node.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
