"""One source text -> its units, what it imports and defines, and by which computed names it does things.

Knows nothing of other modules: names are as written; `resolve` finds what they mean.
"""

from __future__ import annotations

import ast
import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from buildsys.code.reading import Code
from buildsys.code.scopes import Alias
from buildsys.code.units import Function, Unit, units_of
from buildsys.digest import Digest, digest_bytes
from buildsys.errors import FAILED, BuildError, Place, excerpt_of


class Module(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A parsed source text; where it is does not matter.

    digest: of the text. imports: all of them, also those inside functions, `if` and `try`; deferred: those of them that
    are made when a function is called. computed: what it does by computed names, see `reading.COMPUTED`.
    defines: names bound at its top level; "*" stands for names not shown. exports: what its `__all__` lists, None where
    that is computed or missing. doc: its docstring.
    """

    digest: Digest
    units: tuple[Unit, ...]
    imports: tuple[Alias, ...]
    deferred: tuple[Alias, ...]
    computed: frozenset[str]
    defines: frozenset[str]
    exports: tuple[str, ...] | None
    lists_exports: bool
    doc: str


class Broken(BuildError):
    """A script that does not parse: a diagnostic that blocks its rules and invalidates nothing."""


def parse(path: str, text: str) -> Module:
    """Raises Broken with line, column and excerpt where the text is not Python."""
    with uncollected():
        return _module(path, text)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which goes again and again through a tree of which nothing is garbage yet.

    That is half of the time that parsing takes. Whoever finds it running starts it again, so threads end well.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _module(path: str, text: str) -> Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a user's script is no business of the build's
            tree = ast.parse(text)
            with suppress(RecursionError, MemoryError):  # How deep it may go depends on who calls.
                compile(tree, path, "exec", dont_inherit=True)  # Some of what parses is refused only here.
    except SyntaxError as error:
        line, column = error.lineno or 0, error.offset or 0
        raise Broken(
            f"{error.msg}", place=Place(path, line, column), excerpt=excerpt_of(text, line), exit_code=FAILED
        ) from None
    except ValueError as error:  # a null byte
        raise Broken(str(error), place=Place(path), exit_code=FAILED) from None
    except (RecursionError, MemoryError):
        raise Broken("nested too deeply for Python", place=Place(path), exit_code=FAILED) from None
    units = units_of(tree, text)
    at_import = [code for unit in units for code in _at_import(unit)]
    later = [code for unit in units for function in _functions(unit) for code in _bodies(function)]
    computed = frozenset(name for code in (*at_import, *later) for name in code.computed)
    exports = _exports(tree, text) if "__all__" in text else None
    names = {name for unit in units for name in unit.code.binds}
    names.update(name for code in later for name in code.binds)
    hidden = "namespace" in computed or "__getattr__" in names
    return Module(
        digest=digest_bytes(text.encode("utf-8", "surrogatepass")),
        units=units,
        imports=tuple(dict.fromkeys(alias for code in at_import for alias in code.imports)),
        deferred=tuple(dict.fromkeys(alias for code in later for alias in code.imports)),
        computed=computed,
        defines=frozenset(names | ({"*"} if hidden else set())),
        exports=exports,
        doc=ast.get_docstring(tree, clean=False) or "",
        lists_exports="__all__" in names or "namespace" in computed,
    )


def _at_import(unit: Unit) -> Iterator[Code]:
    """The code of a unit that runs when its module is imported."""
    yield unit.code
    for member in unit.members:
        yield from _at_import(member)


def _functions(unit: Unit) -> Iterator[Function]:
    yield from unit.functions
    for member in unit.members:
        yield from _functions(member)


def _bodies(function: Function) -> Iterator[Code]:
    yield function.body
    for inner in function.functions:
        yield from _bodies(inner)


def _exports(tree: ast.Module, text: str) -> tuple[str, ...] | None:
    """The names that `__all__` lists, where it stands; None where it is computed, or not there."""
    listed: list[str] = []
    n_literal = 0
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            target = node.target
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(value, (ast.List, ast.Tuple)):
            names = [item.value for item in value.elts if isinstance(item, ast.Constant)]
            if len(names) == len(value.elts):
                n_literal += 1
                listed += [name for name in names if isinstance(name, str)]
    if n_literal and text.count("__all__") > n_literal:  # Else it is named nowhere but where it is listed.
        n_named = sum(isinstance(node, ast.Name) and node.id == "__all__" for node in ast.walk(tree))
        return tuple(listed) if n_named == n_literal else None
    return tuple(listed) if n_literal else None
