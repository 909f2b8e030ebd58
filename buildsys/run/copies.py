"""What runs copies of functions that nobody would hear of: who makes them by a text's names, and what marshal writes.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of traces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, Final

READERS: Final = frozenset(
    {"bytecode", "cloudpickle", "dill", "numba", "taichi", "tensorflow", "tilelang", "triton", "typeguard"}
)
"""Modules that read the bytecode or syntax of functions, and run what they make of it in their place."""
TORCH_READERS: Final = frozenset(
    {"compile", "cond", "jit", "export", "flex_attention", "onnx", "fx", "while_loop", "_dynamo", "_higher_order_ops"}
)
_COPIERS: Final = ("CodeType", "coroutine")
"""Of the module `types`: what makes code objects of others' parts."""
_MAY_READ: Final = re.compile(
    rf"\b({'|'.join(sorted({*READERS, *TORCH_READERS, *_COPIERS, 'torch_compile', 'co_[a-z]+'}))})\b"
)
_WHAT_RUNS: Final = ("co_code", "co_consts")
"""The parts of a code object that hold what it does."""
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASKERS: Final = ("isinstance", "issubclass")


def readers(text: str) -> list[str]:
    """What in a text reads the code of functions to run another in its place: "torch.compile"; in order."""
    if not _MAY_READ.search(text):
        return []
    try:
        return sorted(set(_read_by(ast.parse(text))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # Told where it is imported.


def _read_by(tree: ast.Module) -> Iterator[str]:
    imported: dict[str, str] = {}  # Bound name: the module that it is.
    copiers: dict[str, str] = {}  # Bound name: what of `types` it is.
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _reading(alias.name)
                imported[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield from _reading(f"{node.module}.{alias.name}")
                if node.module == "types" and alias.name in _COPIERS:
                    copiers[alias.asname or alias.name] = alias.name
    torch = "torch" in (name.partition(".")[0] for name in imported.values())
    harmless = set(map(id, (*_types_only(tree), *_of_texts(tree))))
    for node in ast.walk(tree):
        if id(node) in harmless:
            continue
        if isinstance(node, ast.keyword) and (node.arg == "torch_compile" or (node.arg or "").startswith("co_")):
            yield str(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in copiers:
            yield copiers[node.id]
        elif isinstance(node, ast.Attribute):
            base = imported.get(node.value.id, "") if isinstance(node.value, ast.Name) else None
            if base == "types" and node.attr in _COPIERS:
                yield f"types.{node.attr}"
            elif base == "torch" and node.attr in TORCH_READERS:
                yield f"torch.{node.attr}"
            elif torch and not base and node.attr == "compile":
                yield f"{ast.unparse(node)}"


def _reading(module: str) -> Iterator[str]:
    top, _, rest = module.partition(".")
    if top in READERS:
        yield top
    elif top == "torch":
        yield from (f"torch.{part}" for part in rest.split(".") if part in TORCH_READERS)


def _types_only(tree: ast.Module) -> Iterator[ast.AST]:
    """Where a type is named and not called: in annotations, for `isinstance`, in comparisons."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation:
            yield from ast.walk(node.annotation)
        elif isinstance(node, _FUNCTIONS) and node.returns:
            yield from ast.walk(node.returns)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ASKERS:
            for argument in node.args[1:]:
                yield from ast.walk(argument)
        elif isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)


# ---------------------------------------------------------------- code that was compiled where it is changed


def _of_texts(tree: ast.Module) -> Iterator[ast.AST]:
    """What makes a code object of one that the same function has compiled from a text: no function's copy."""
    if not any(isinstance(node, ast.Call) and _is_compile(node) for node in ast.walk(tree)):
        return
    shared = {name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    for scope in ast.walk(tree):
        if isinstance(scope, (ast.Module, *_FUNCTIONS)):
            own = list(_own(scope.body))
            compiled = _compiled(own, {one.arg for one in ast.walk(scope) if isinstance(one, ast.arg)}) - shared
            for node in own:
                if isinstance(node, ast.Call) and _is_copy_of(node, compiled):
                    yield from (node.func, *node.keywords)


def _own(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the functions and classes in it."""
    waiting = [*body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _compiled(own: Sequence[ast.AST], given: set[str]) -> set[str]:
    """The names in a scope that are bound to nothing but what `compile` gave, and copies of it. given: arguments."""
    values: dict[str, list[ast.expr]] = {}
    otherwise = set(given)
    assigned: set[int] = set()
    for node in own:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                assigned.add(id(target))
                values.setdefault(target.id, []).append(node.value)
    for node in own:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in assigned:
            otherwise.add(node.id)
        otherwise.update(str(getattr(node, field, "")) for field in ("name", "asname", "rest"))
    found = values.keys() - otherwise
    while True:
        kept = {name for name in found if all(_is_compile(one) or _is_copy_of(one, found) for one in values[name])}
        if kept == found:
            return kept
        found = kept


def _is_compile(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "compile"


def _is_copy_of(node: ast.AST | None, names: set[str]) -> bool:
    """Whether it makes a code object, and what that does is of these names: `code.replace(co_name=...)`."""
    if not isinstance(node, ast.Call):
        return False
    parts = [*node.args, *(one.value for one in node.keywords)]
    held = {one.attr for one in parts if isinstance(one, ast.Attribute) and _is_part(one, names)}
    if isinstance(node.func, ast.Attribute) and node.func.attr == "replace" and _is_named(node.func.value, names):
        return all(one.arg not in (None, *_WHAT_RUNS) or _is_part(one.value, names) for one in node.keywords)
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    return name == "CodeType" and held.issuperset(_WHAT_RUNS)


def _is_part(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Attribute) and _is_named(node.value, names)


def _is_named(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


# ---------------------------------------------------------------- code that is written and read


def code_in(value: object) -> Iterator[CodeType]:
    """The code objects in what marshal writes or has read; not those within them."""
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, CodeType):
            yield one
        elif isinstance(one, (tuple, list, set, frozenset)):
            waiting += one
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]


def with_code(value: Any, new: Callable[[CodeType], CodeType]) -> Any:
    """The same with other code objects in it."""
    if isinstance(value, CodeType):
        return new(value)
    if type(value) in (tuple, list, set, frozenset):
        return type(value)(with_code(one, new) for one in value)
    if type(value) is dict:
        return {with_code(key, new): with_code(one, new) for key, one in value.items()}
    return value
