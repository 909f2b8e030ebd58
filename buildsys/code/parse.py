"""One source text -> what it imports, what it defines, and a digest that formatting and comments can't change.

Knows nothing of other modules: names are as written; `resolve` finds what they mean.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from buildsys.code import computed
from buildsys.digest import Digest, digest_bytes
from buildsys.errors import FAILED, BuildError, Place, excerpt_of

_END = object()


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
    roams: it names a Python file, or something that runs code of other folders than the script's.
    defines: names bound at its top level by `def`, `class`, assignment or import; "*" stands for names not shown.
    exports: what its `__all__` lists, None where that is computed.
    """

    path: str
    digest: Digest
    imports: tuple[Import, ...]
    dynamic: bool
    roams: bool
    defines: frozenset[str]
    exports: tuple[str, ...] | None


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
            f"{error.msg}", place=Place(path, line, column), excerpt=excerpt_of(text, line), exit_code=FAILED
        ) from None
    except ValueError as error:  # a null byte
        raise Broken(str(error), place=Place(path), exit_code=FAILED) from None
    except (RecursionError, MemoryError):
        raise Broken("nested too deeply for Python", place=Place(path), exit_code=FAILED) from None
    nodes = list(ast.walk(tree))
    deferred = {id(node) for block in nodes for part in _deferred(block) for node in ast.walk(part)}
    names = [name for node in tree.body for name in _bound(node)]
    names += [name for node in nodes if isinstance(node, ast.Global) for name in node.names]
    return Module(
        path=path,
        digest=digest_bytes(_syntax(tree).encode("utf-8", "surrogatepass")),
        imports=tuple(found for node in nodes for found in _imports(node, id(node) in deferred)),
        dynamic=computed.may_import(nodes),
        roams=computed.may_leave_folder(nodes),
        defines=frozenset(names if not computed.may_define(nodes) else [*names, "*"]),
        exports=computed.star_names(nodes),
    )


def _syntax(tree: ast.Module) -> str:
    """The tree as a text, without positions. Not `ast.dump`: how deep that can go depends on who calls."""
    parts: list[str] = []
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.AST):
            parts.append(f"{type(node).__name__}(")
            waiting += [_END, *(getattr(node, name, None) for name in reversed(node._fields))]
        elif isinstance(node, list):
            parts.append("[")
            waiting += [_END, *reversed(node)]
        else:
            parts.append(")" if node is _END else f"{node!r},")
    return "".join(parts)


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
