"""One source text -> what it imports, what it defines, and a digest that formatting and comments can't change.

Knows nothing of other modules: names are as written; `resolve` finds what they mean.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from buildsys.digest import Digest, digest_bytes
from buildsys.errors import BuildError, Place, excerpt_of

_DYNAMIC_NAMES = frozenset({"__import__", "exec", "eval", "importlib", "runpy", "pkgutil", "imp"})


@dataclass(frozen=True)
class Import:
    """One import as written: `from ..module import names` (level 2); names is empty for a plain `import module`.

    deferred: it is made when a function is called, or only for type checkers, and not when its module is imported.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    deferred: bool = False


@dataclass(frozen=True)
class Module:
    """A parsed source text.

    digest: of its syntax tree without positions, so comments, blank lines and formatting do not count.
    imports: all of them, also those inside functions, `if` and `try`.
    dynamic: it names something that imports or runs code by a computed name.
    defines: names bound at its top level by `def`, `class`, assignment or import.
    """

    path: str
    digest: Digest
    imports: tuple[Import, ...]
    dynamic: bool
    defines: frozenset[str]


class Broken(BuildError):
    """A script that does not parse: a diagnostic that blocks its rules and invalidates nothing."""


def parse(path: str, text: str) -> Module:
    """Raises Broken with line, column and excerpt where the text is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a user's script is no business of the build's
            tree = ast.parse(text)
    except SyntaxError as error:
        line, column = error.lineno or 0, error.offset or 0
        raise Broken(
            f"{error.msg}", place=Place(path, line, column), excerpt=excerpt_of(text, line), exit_code=1
        ) from None
    except ValueError as error:  # a null byte
        raise Broken(str(error), place=Place(path), exit_code=1) from None
    except (RecursionError, MemoryError):
        raise Broken("nested too deeply for Python", place=Place(path), exit_code=1) from None
    nodes = list(ast.walk(tree))
    deferred = {id(node) for block in nodes for part in _deferred(block) for node in ast.walk(part)}
    return Module(
        path=path,
        digest=_digest(tree, text),
        imports=tuple(found for node in nodes for found in _imports(node, id(node) in deferred)),
        dynamic=any(_is_dynamic(node) for node in nodes),
        defines=frozenset(name for node in tree.body for name in _bound(node)),
    )


def _digest(tree: ast.Module, text: str) -> Digest:
    try:
        syntax = ast.dump(tree)
    except RecursionError:  # Python compiles what is nested several times deeper; its formatting counts, then
        syntax = text
    return digest_bytes(syntax.encode("utf-8", "surrogatepass"))


def _imports(node: ast.AST, deferred: bool) -> list[Import]:
    if isinstance(node, ast.Import):
        return [Import(alias.name, deferred=deferred) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [Import(node.module or "", tuple(alias.name for alias in node.names), node.level, deferred)]
    return []


def _deferred(node: ast.AST) -> Sequence[ast.AST]:
    """What of a node does not run when its module is imported."""
    if isinstance(node, ast.If):
        name = node.test.attr if isinstance(node.test, ast.Attribute) else getattr(node.test, "id", "")
        return node.body if name == "TYPE_CHECKING" else ()
    return (node,) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ()


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _DYNAMIC_NAMES
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        roots = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        return any(root.partition(".")[0] in _DYNAMIC_NAMES for root in roots)
    return False


def _bound(node: ast.stmt) -> list[str]:
    """Names that a top-level statement binds, also inside `if`, `try`, `with` and loops."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    names: list[str] = []
    for child in ast.walk(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(child.name)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            names.append(child.id)
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            names += [(alias.asname or alias.name).partition(".")[0] for alias in child.names]
    return names
