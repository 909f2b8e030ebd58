"""The function definitions of a source text, in the order in which they stand in it, and what each is called.

Knows nothing of names' meanings. The program in a worker counts the same definitions (`run/tracing`), so a number that
it tells is an index into what is given here.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> list[tuple[str, Function]]:
    """(name, definition) of every `def` and `async def`, outer ones first, as the text has them from top to bottom.

    A name is dotted from the module: "C.method", "outer.inner"; the second of a name is "name#2". Lambdas are parts of
    what they stand in.
    """
    n_of: Counter[str] = Counter()
    found = []
    for scope, node in _definitions(tree):
        name = f"{scope}{node.name}"
        n_of[name] += 1
        found.append((f"{name}#{n_of[name]}" if n_of[name] > 1 else name, node))
    return found


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
