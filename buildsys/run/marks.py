"""Which first-party files were imported and which of their functions began to run, by number, forked children included.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of files and calls. The
definitions of a text are counted from its top, `def` and `async def` alike, as `buildsys.code.functions` does.

Both ways write into one map of bytes that forked processes share. From Python 3.12 on `sys.monitoring` tells of the
first start of each function, for code objects of first-party files alone. Before that, each such function begins with
an assignment into the map: about 20 ns a call, and nobody who does not look at bytecode can tell.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import mmap
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

TOOL: Final = 4
"""Of the six tools that monitoring knows; 0 to 2 are for debuggers, coverage and profilers, 5 for optimizers."""
_PLACE: Final = "the map of the functions that ran, which takes this constant's place"
_IN_SYS: Final = "_buildsys_marks"
_BLOCKS: Final = ("body", "handlers", "orelse", "finalbody", "cases")


class Definition(NamedTuple):
    """One function. line: of the `def`; first: of its first decorator, where it has any, as its code object says."""

    line: int
    first: int
    node: ast.FunctionDef | ast.AsyncFunctionDef


def definitions(tree: ast.Module) -> list[Definition]:
    """All functions in their order.

    They are statements, so expressions, which are most of a tree, are not gone into. No line holds two definitions.
    """
    found: list[Definition] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            found.append(Definition(node.lineno, first, node))
        for block in _BLOCKS:
            waiting += getattr(node, block, ())
    found.sort(key=lambda one: one.line)
    return found


class Marks(mmap.mmap):
    """The map. Unpickled with code that holds it, it is found again where the process has it, else nobody reads it."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return eval, (f"__import__('sys').__dict__.get({_IN_SYS!r}, {{}})",)


class Witness(bytes):
    """A constant of monitored code, for nothing but to tell of it when a copy of the code is unpickled: it isn't."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return eval, (f"__import__('sys').__dict__.get({_IN_SYS!r}, int)()",)


_WITNESS = Witness()


class Executed:
    """Compiles first-party sources so that it can be told what of them ran.

    most: paths of the files, absolute, each with a number that its definitions don't exceed. not_followed: told of a
    file whose functions can't be followed. problem: told why others can't be. follows: whether code that is compiled is
    followed; else it is left as it is.
    """

    def __init__(
        self, most: Mapping[str, int], not_followed: Callable[[str], None], problem: Callable[[str], None]
    ) -> None:
        self.not_followed = not_followed
        self.follows = True
        self.start: dict[str, int] = {}  # Of each file: its own byte, which says that it was imported.
        size = 0
        for path, n in most.items():
            self.start[path] = size
            size += n + 1
        self.map = Marks(-1, size or 1)
        self.told = self.map[:]
        self.places: dict[tuple[str, int, str], int] = {}
        self.followed: list[tuple[str, str]] = []
        self.monitors = self._monitor()
        found_again = (lambda: problem("code that was unpickled")) if self.monitors else self.map
        setattr(sys, _IN_SYS, found_again)

    def compiled(self, path: str, text: str, filename: str) -> CodeType:
        """The code of a file that is being imported. Raises what compiling the text raises."""
        self.map[self.start[path]] = 1
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            return self._followed(path, text, filename)
        # A text that is no Python is told by Python; one too deep for its tree to be taken apart runs as it is.
        code = _compiled_plainly(text, filename)
        self.not_followed(path)
        return code

    def news(self) -> dict[str, list[int]]:
        """The files that were imported, and the functions that began to run, as far as not told before."""
        now = self.map[:]
        if now == self.told:
            return {}
        found: dict[str, list[int]] = {}
        paths = list(self.start)
        for n, path in enumerate(paths):
            start = self.start[path]
            end = self.start[paths[n + 1]] if n + 1 < len(paths) else len(now)
            if now[start:end] != self.told[start:end]:
                found[path] = [i - start - 1 for i in range(start + 1, end) if now[i] != self.told[i]]
        self.told = now
        return found

    def let_go(self) -> None:
        """Follow nothing from now on: all functions that there are get the code back that they have without marks.

        But for those that a function makes which runs just now.
        """
        if not self.follows or self.monitors:
            self.follows = False
            return
        self.follows = False
        plain = self._plain()
        for function in gc.get_objects():
            if type(function) is FunctionType:
                code = function.__code__
                own = plain.get(_place_of(code))
                if own is not None and own.co_freevars == code.co_freevars:
                    function.__code__ = own

    def is_followed(self, code: CodeType) -> bool:
        """Whether it tells of what runs of it, or of a function in it; a copy that is written somewhere does not."""
        return any(
            const is self.map or type(const) is Witness or (isinstance(const, CodeType) and self.is_followed(const))
            for const in code.co_consts
        )

    def as_written(self, code: CodeType) -> CodeType:
        """What it would be if it were not followed."""
        return self._plain().get(_place_of(code), code) if self.is_followed(code) else code

    def _plain(self) -> dict[tuple[str, int, str], CodeType]:
        """The code without marks, of all that is followed."""
        return {
            _place_of(part): part
            for text, filename in self.followed
            for whole in [_compiled_plainly(text, filename)]
            for part in (whole, *_functions_in(whole))
        }

    def _followed(self, path: str, text: str, filename: str) -> CodeType:
        tree = ast.parse(text, filename)
        found = definitions(tree)
        if not self.follows:
            return compile(tree, filename, "exec", dont_inherit=True)
        start = self.start[path] + 1
        if len(found) > self._room(path):
            raise ValueError("the file has grown since it was looked at")
        self.followed.append((text, filename))
        if not self.monitors:
            for n, one in enumerate(found):
                _mark(one.node, start + n)
            return self._with_map(compile(tree, filename, "exec", dont_inherit=True))
        code = _with_witness(compile(tree, filename, "exec", dont_inherit=True))
        place_of = {(one.first, one.node.name): start + n for n, one in enumerate(found)}
        for part in _functions_in(code):
            place = place_of.get((part.co_firstlineno, part.co_name))
            if place is not None:
                self.places[_place_of(part)] = place
                _monitoring().set_local_events(TOOL, part, _monitoring().events.PY_START)
        return code

    def _room(self, path: str) -> int:
        later = [start for start in self.start.values() if start > self.start[path]]
        return min(later, default=len(self.map)) - self.start[path] - 1

    def _with_map(self, code: CodeType) -> CodeType:
        consts = (
            self.map if _is_place(const) else self._with_map(const) if isinstance(const, CodeType) else const
            for const in code.co_consts
        )
        return code.replace(co_consts=tuple(consts))

    def _monitor(self) -> bool:
        """Whether this interpreter tells of the starts of functions; else they are marked."""
        if sys.version_info < (3, 12):
            return False
        monitoring = _monitoring()
        try:
            monitoring.use_tool_id(TOOL, "buildsys")
        except ValueError:
            return False
        marks, places, disable = self.map, self.places, monitoring.DISABLE

        def started(code: CodeType, _offset: int) -> object:
            place = places.get(_place_of(code))
            if place is not None:
                marks[place] = 1
            return disable

        monitoring.register_callback(TOOL, monitoring.events.PY_START, started)
        return True


def _compiled_plainly(text: str, filename: str) -> CodeType:
    try:
        return compile(text, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        # What is found only when the tree is compiled is told with the line that is on disk by now.
        lines = text.splitlines(keepends=True)
        if error.filename == filename and error.lineno and error.lineno <= len(lines):
            error.text = lines[error.lineno - 1]
        raise


def _monitoring() -> Any:
    return sys.monitoring  # type: ignore[attr-defined, unused-ignore]


def _with_witness(code: CodeType) -> CodeType:
    consts = (_with_witness(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_consts=(*consts, _WITNESS))


def _place_of(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _functions_in(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _functions_in(const)


def _is_place(const: object) -> bool:
    return isinstance(const, str) and const == _PLACE


def _mark(node: ast.FunctionDef | ast.AsyncFunctionDef, place: int) -> None:
    """Put the mark before the first statement, after the docstring, on the same line: no line is run that wasn't."""
    first = node.body[0]
    has_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    silent = (ast.Global, ast.Nonlocal)
    beside = next((one for one in node.body[has_docstring:] if not isinstance(one, silent)), first)
    decorators = getattr(beside, "decorator_list", None)
    at = decorators[0] if decorators else beside
    where = ast.Subscript(ast.Constant(_PLACE), ast.Constant(place), ast.Store())
    mark = ast.Assign([where], ast.Constant(1))
    for part in (mark, where, where.value, where.slice, mark.value):
        ast.copy_location(part, at)
    node.body.insert(1 if has_docstring else 0, mark)
