"""The function definitions of a source text, in the order in which they stand in it, and what each is called.

Knows nothing of names' meanings. The program in a worker counts the same definitions (`run/tracing`), so a number that
it tells is an index into what is given here.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

Function = ast.FunctionDef | ast.AsyncFunctionDef
OVERLOAD: Final = "@overload"
_TYPING: Final = ("typing", "typing_extensions")


def functions(tree: ast.Module) -> list[tuple[str, Function]]:
    """(name, definition) of every `def` and `async def`, outer ones first, as the text has them from top to bottom.

    A name is dotted from the module: "C.method", "outer.inner"; the second of a name is "name#2". One that is there for
    type checkers alone is "name@overload", and does not count. Lambdas are parts of what they stand in.
    """
    n_of: Counter[str] = Counter()
    is_overload = overloads_of(tree)
    found = []
    for scope, node in _definitions(tree):
        name = f"{scope}{node.name}"
        if is_overload(node):
            found.append((f"{name}{OVERLOAD}", node))
            continue
        n_of[name] += 1
        found.append((f"{name}#{n_of[name]}" if n_of[name] > 1 else name, node))
    return found


def overloads_of(tree: ast.Module) -> Callable[[ast.AST], bool]:
    """Whether a node of the module is a function that only says to type checkers how another may be called."""
    names: set[str] = set()
    modules: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in _TYPING:
            names.update(one.asname or one.name for one in node.names if one.name == "overload")
        elif isinstance(node, ast.Import):
            modules.update(one.asname or one.name for one in node.names if one.name in _TYPING)

    def is_overload(node: ast.AST) -> bool:
        return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            (isinstance(one, ast.Name) and one.id in names)
            or (
                isinstance(one, ast.Attribute)
                and one.attr == "overload"
                and isinstance(one.value, ast.Name)
                and one.value.id in modules
            )
            for one in node.decorator_list
        )

    return is_overload if names or modules else lambda node: False


def function_names(text: str) -> list[str]:
    """The names alone; none where the text is not Python."""
    try:
        return [name for name, _ in functions(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _definitions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """All definitions by position: decorators and defaults come before the name, as they are run."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    found: list[tuple[tuple[int, int], str, Function]] = []
    while waiting:
        scope, node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(((node.lineno, node.col_offset), scope, node))
        within = (
            f"{scope}{node.name}." if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else scope
        )
        waiting += [(within, child) for child in ast.iter_child_nodes(node)]
    found.sort(key=lambda one: one[0])
    return ((scope, node) for _, scope, node in found)
