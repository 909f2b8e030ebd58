"""One source text -> its units: what can be left out of a slice, each with what it reads, writes and defines.

A unit is a statement at the top of a module or of a class there; each name of an import is a unit of its own. Knows no
other module.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from buildsys.code.functions import OVERLOAD, overloads_of
from buildsys.code.known import INERT, means_of
from buildsys.code.reading import Chain, Code, Reader
from buildsys.code.scopes import MODULE, Alias, Scope, aliases, body_scope, class_scope
from buildsys.digest import digest_bytes

Kind = Literal["def", "class", "import", "main", "other"]


class Function(msgspec.Struct, frozen=True, array_like=True, eq=False, gc=False):
    """A function's body, and the functions defined in it. name: as `functions` gives it.

    yields: calling it only makes a generator. closes: the names of functions around it that it keeps in its closure.
    """

    name: str
    line: int
    body: Code
    functions: tuple[Function, ...] = ()
    yields: bool = False
    closes: tuple[str, ...] = ()


class Unit(msgspec.Struct, frozen=True, array_like=True, eq=False, gc=False):
    """One statement, equal to no other. code: what runs when it does: of a function or class its header; the members
    of a class are units of their own.

    name: what it binds, or the beginning of its text. line, end: its first and last, decorators included. plain: a
    class of which nothing but the header and what is asked for by name can matter, as far as its own text tells.
    inert: it has no decorator that may do more than describe what it decorates. constant: its value can't be changed.
    order: digest of the order of a class's members.
    """

    kind: Kind
    name: str
    line: int
    end: int
    code: Code
    functions: tuple[Function, ...] = ()
    members: tuple[Unit, ...] = ()
    bases: tuple[Chain, ...] = ()
    plain: bool = False
    inert: bool = True
    constant: bool = False
    order: str = ""


_SHOWN: Final = 40
_OF_THE_CLASS: Final = ("super", "__class__")


def units_of(tree: ast.Module, text: str) -> tuple[Unit, ...]:
    """All units in the order in which they run."""
    return tuple(_Parting(tree, walrus=":=" in text).units(tree.body, MODULE))


class _Parting:
    """Takes one module apart. Numbers the functions of one name as they come."""

    def __init__(self, tree: ast.Module, *, walrus: bool) -> None:
        self._checks = any(_binds(node, "TYPE_CHECKING") for node in tree.body)  # So it may be true.
        self._plain_object = not any(_may_bind(node, "object") for node in tree.body)
        self._is_overload = overloads_of(tree)
        self._n_of: Counter[str] = Counter()
        self._walrus = walrus

    def units(self, body: list[ast.stmt], scope: Scope) -> Iterator[Unit]:
        for node in (run for one in body for run in ([one] if self._checks else _run(one))):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from self._imports(node, scope)
            elif isinstance(node, ast.ClassDef) and not scope.in_class:
                yield self._class(node, scope)
            elif isinstance(node, ast.If) and _is_name_test(node):
                yield self._main(node, scope)
            elif not _is_idle(node) and not (self._is_overload(node) and _is_bound_again(node, body)):
                yield self._statement(node, scope)

    def _imports(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> Iterator[Unit]:
        for alias in aliases(node):
            digest = digest_bytes(repr(tuple(alias)).encode())
            binds = (alias.name,) if alias.name else ()
            code = Code(digest, imports=(alias,), binds=binds, computed=tuple(sorted(means_of(alias))))
            yield Unit("import", alias.name or f"from {alias.module} import *", node.lineno, _end(node), code)

    def _statement(self, node: Any, scope: Scope) -> Unit:
        reader = Reader(scope)
        code = reader.read([node])
        if scope.in_class:
            code = msgspec.structs.replace(code, binds=tuple(_members(node)))
        functions = self._functions(reader, ())
        is_def = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        name = f"{scope.within}{node.name}" if is_def else self._shown(node, code, scope)
        inert = not is_def or all(map(_is_inert, node.decorator_list))
        return Unit(
            "def" if is_def else "other",
            name,
            _start(node),
            _end(node),
            code,
            functions,
            inert=inert,
            constant=isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Constant),
        )

    def _main(self, node: ast.If, scope: Scope) -> Unit:
        reader = Reader(scope)
        code = reader.read([node])
        return Unit("main", "__main__", node.lineno, _end(node), code, self._functions(reader, ()))

    def _class(self, node: ast.ClassDef, scope: Scope) -> Unit:
        name = f"{scope.within}{node.name}"
        head = Reader(scope)
        head.bind(node.name)
        head.decorate(node)
        written = [] if [_dotted(base) for base in node.bases] == [("object",)] and self._plain_object else node.bases
        header = [*node.decorator_list, *written, *node.keywords, *(getattr(node, "type_params", None) or ())]
        code = head.read(header)
        members = tuple(self.units(node.body, class_scope(name)))
        names = [member.code.binds for member in members]
        doc = ast.get_docstring(node, clean=False)
        code = msgspec.structs.replace(
            code,
            digest=digest_bytes(f"{node.name} {len(written)} {code.digest}".encode()),
            docs=digest_bytes(doc.encode("utf-8", "surrogatepass")) if doc else "",
        )
        bases = [_dotted(base) for base in written]
        return Unit(
            "class",
            name,
            _start(node),
            _end(node),
            code,
            members=members,
            bases=tuple(base for base in bases if base),
            plain=not (node.decorator_list or node.keywords) and all(bases),
            inert=all(map(_is_inert, node.decorator_list)),
            order=digest_bytes(repr(names).encode()),
        )

    def _functions(self, reader: Reader, imports: tuple[Alias, ...]) -> tuple[Function, ...]:
        """The bodies of what was defined in a piece; what is imported around them they can read."""
        found = []
        for name, node, outer in reader.definitions:
            overload = self._is_overload(node)
            self._n_of[name] += not overload
            numbered = f"{name}#{self._n_of[name]}" if self._n_of[name] > 1 else name
            numbered = f"{name}{OVERLOAD}" if overload else numbered
            inner = Reader(body_scope(node, name, outer, walrus=self._walrus))
            body = inner.read(node.body)
            if imports:
                body = msgspec.structs.replace(body, imports=(*body.imports, *imports))
            functions = self._functions(inner, body.imports)
            own = {"__class__" for chain in body.reads if chain[0] in _OF_THE_CLASS}
            closes = outer.local & inner.locals.union(*(one.closes for one in functions)) | own
            found.append(Function(numbered, _start(node), body, functions, inner.yields, tuple(sorted(closes))))
        return tuple(found)

    def _shown(self, node: ast.stmt, code: Code, scope: Scope) -> str:
        if code.binds:
            return f"{scope.within}{code.binds[0]}"
        if hasattr(node, "body"):
            return f"{scope.within}{type(node).__name__.lower()}"
        line = ast.unparse(node)
        return scope.within + (line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…")


def _is_bound_again(node: ast.stmt, body: list[ast.stmt]) -> bool:
    """A function of its name is defined behind it."""
    name = getattr(node, "name", "")
    return any(
        isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == name
        for one in body[body.index(node) + 1 :]
    )


def _start(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", ())
    return min([int(node.lineno), *(int(one.lineno) for one in decorators)])


def _end(node: ast.stmt) -> int:
    return max(node.lineno, node.end_lineno or 0)


def _run(node: ast.stmt) -> list[ast.stmt]:
    """What of a statement may run: nothing that only type checkers see."""
    test = node.test if isinstance(node, ast.If) else None
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if isinstance(test, ast.UnaryOp) and negated:
        test = test.operand
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    if name != "TYPE_CHECKING" or not isinstance(node, ast.If):
        return [node]
    return node.body if negated else node.orelse


def _binds(node: ast.stmt, name: str) -> bool:
    """A plain assignment binds the name."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _may_bind(node: ast.stmt, name: str) -> bool:
    """The same of any statement, as far as it shows; a star import may bind anything."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any(alias.name in ("", name) for alias in aliases(node))
    return _binds(node, name) or getattr(node, "name", "") == name


def _is_idle(node: ast.stmt) -> bool:
    """It does nothing when its module is imported: a text, `pass`."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_name_test(node: ast.If) -> bool:
    """`if __name__ == "__main__":` without an `else`."""
    test = node.test
    if node.orelse or not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, *test.comparators]
    return any(isinstance(one, ast.Name) and one.id == "__name__" for one in sides) and any(
        isinstance(one, ast.Constant) and one.value == "__main__" for one in sides
    )


def _is_inert(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return name in INERT


def _dotted(base: ast.expr) -> Chain:
    """A base class as it is named, `Generic[T]` without its T; () where it is computed."""
    if isinstance(base, ast.Subscript):
        base = base.value
    names: list[str] = []
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    return (base.id, *reversed(names)) if isinstance(base, ast.Name) else ()


def _members(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a class body binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    for child in ast.walk(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child.name
        elif isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
            yield child.id
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            yield from (alias.name for alias in aliases(child) if alias.name)
