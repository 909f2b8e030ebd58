"""One source text -> what it imports, what it defines, and a digest that formatting and comments can't change.

Knows nothing of other modules: names are as written; `resolve` finds what they mean.
"""

from __future__ import annotations

import ast
import warnings
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
    nodes = list(ast.walk(tree))
    deferred = {id(node) for block in nodes if _defers(block) for node in ast.walk(block)}
    return Module(
        path=path,
        digest=digest_bytes(ast.dump(tree).encode("utf-8", "surrogatepass")),
        imports=tuple(found for node in nodes for found in _imports(node, id(node) in deferred)),
        dynamic=any(_is_dynamic(node) for node in nodes),
        defines=frozenset(name for node in tree.body for name in _bound(node)),
    )


def _imports(node: ast.AST, deferred: bool) -> list[Import]:
    if isinstance(node, ast.Import):
        return [Import(alias.name, deferred=deferred) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [Import(node.module or "", tuple(alias.name for alias in node.names), node.level, deferred)]
    return []


def _defers(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING"
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


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
