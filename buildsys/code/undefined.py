"""Whether a name that a linter finds undefined surely is, where it is read: what blocks a rule must be no guess.

A linter reads from top to bottom and takes every line for one that runs. Here a name is sure only where Python's own
rules leave no way for it to be bound, and where nothing says that the line may be meant for another machine. Knows one
text; what other modules may do to it is for whoever asks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from buildsys.code.bindings import FUNCTIONS, Binding, Position, Read, Scope, Scopes, Step
from buildsys.code.outline import caught_by, expects, names_in

Kind = Literal["undefined", "early", "gone"]
"""undefined: nothing binds it. early: it is assigned only later. gone: Python removes it with its `except` block."""
_Doubt = Literal["never", "perhaps", "main", "annotation", "called"]

_MACHINE: Final = re.compile(
    "version|platform|implementation|^_?(IS_?)?(PY|PYPY|CPYTHON|JYTHON|WIN|WINDOWS|LINUX|MAC|MACOS|DARWIN)[0-9_]*$"
    "|^(globals|locals|vars|dir|builtins|__builtins__|maxsize|maxint|__debug__)$"
)
"""What a condition names that asks where it runs, or what there is."""
_PERHAPS: Final = frozenset(
    "unicode long xrange basestring raw_input unichr reduce file cmp execfile reload buffer apply intern coerce "
    "get_ipython display profile spark dbutils sc _".split()
)
"""Names that other surroundings bring: Python 2, notebooks, profilers."""
_SWALLOWING: Final = {"NameError", "UnboundLocalError"}
_BROAD: Final = {"", "Exception", "BaseException"}
_LEAVES: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_TRIES: Final = (ast.Try, ast.TryStar)


@dataclass(frozen=True)
class Verdict:
    """What is to be thought of one name.

    sure: a NameError is raised where the line runs. main: it runs only where the text is run as a program. called: it
    is in the body of a function, and so runs when that is called; else when the module is imported.
    annotation: it is one, of a kind that Python 3.14 no longer evaluates. since: the line that binds it too late, or 0.
    visible: the names that are bound there, sorted, for a hint.
    """

    kind: Kind
    sure: bool
    main: bool = False
    called: bool = False
    annotation: bool = False
    since: int = 0
    visible: tuple[str, ...] = ()


class Names:
    """Judges names of one text."""

    def __init__(self, tree: ast.Module) -> None:
        """Raises RecursionError, as `Scopes` does."""
        self._scopes = Scopes(tree)
        self._reads = {(read.name, read.at): read for read in self._scopes.reads}
        self._is_deferred = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "annotations" for alias in node.names)
            for node in tree.body
        )

    def judge(self, name: str, at: Position) -> Verdict | None:
        """The verdict on a name at a place; None where nothing is read there as it runs, as in a quoted annotation."""
        read = self._reads.get((name, at))
        return self._verdict(read) if read else None

    def _verdict(self, read: Read) -> Verdict | None:
        doubts = set(_doubts(read, self._is_deferred))
        if "never" in doubts:
            return None
        owner = next((scope for scope in _searched(read) if read.name in scope.bound), None)
        kind, is_sure, since = self._binding(read, owner)
        return Verdict(
            kind=kind,
            sure=is_sure and "perhaps" not in doubts and not self._is_probed(read),
            main="main" in doubts,
            called="called" in doubts,
            annotation="annotation" in doubts,
            since=since,
            visible=tuple(sorted({name for scope in read.scope.visible() for name in scope.bound} - {read.name})),
        )

    def _binding(self, read: Read, owner: Scope | None) -> tuple[Kind, bool, int]:
        """What there is to say of it, whether that is sure, and the line that binds it."""
        if owner is None:
            return "undefined", True, 0
        bindings = [one for one in owner.bound[read.name] if not _is_declaration(one)]
        lasting = [one for one in bindings if not _is_over(one, read)]
        since = min((one.since[0] for one in lasting), default=0)
        if owner is not read.scope or owner.kind == "class" or owner.comprehension:
            return "undefined", False, since
        if not lasting:
            return ("gone" if bindings else "early"), bool(bindings) or owner.kind == "function", 0
        return "early", all(_is_later(one, read) for one in lasting), since

    def _is_probed(self, read: Read) -> bool:
        """Some place asks whether it is there: `try: name ... except NameError`."""
        named = (other for other in self._scopes.reads if other.name == read.name)
        return any(_is_guarded(step, at_import=False) for other in named for step in other.step.outward())


def _searched(read: Read) -> Iterator[Scope]:
    """Where Python looks for it."""
    if read.scope.declared.get(read.name) == "global":
        return iter((read.scope.module,))
    return read.scope.visible()


def _is_declaration(binding: Binding) -> bool:
    """`x: int` alone binds nothing."""
    parent = binding.step.parent if binding.step else None
    return isinstance(parent, ast.AnnAssign) and parent.value is None


def _is_over(binding: Binding, read: Read) -> bool:
    """It is the name of an exception, and the read is not within the block that has it."""
    if not isinstance(binding.node, ast.ExceptHandler):
        return False
    return not any(step.parent is binding.node for step in read.step.outward())


def _is_later(binding: Binding, read: Read) -> bool:
    """Where the read is reached first, this was not reached before: neither above nor in an earlier round of a loop."""
    if binding.step is None or binding.since <= read.at:
        return False
    loops = {step.parent for step in binding.step.outward() if isinstance(step.parent, _LOOPS)}
    may_be_passed = False
    for step in read.step.outward():
        if _is_body(step) or isinstance(step.parent, ast.ClassDef):
            break
        if step.parent in loops and step.field not in ("iter", "target") and may_be_passed:
            return False
        may_be_passed = may_be_passed or bool(_conditions(step)) or _is_tried(step)
    return True


# ---------------------------------------------------------------- what stands around


def _doubts(read: Read, is_deferred: bool) -> Iterator[_Doubt]:
    """What the places around say: it is never evaluated, perhaps not meant to run; or when it runs, and as what."""
    steps = list(read.step.outward())
    is_called = False
    for n, step in enumerate(steps):
        at_import = not any(map(_is_body, steps[n:]))
        conditions = _conditions(step)
        if _is_lazy(step):
            yield "never"
        if _is_annotation(step):
            is_local = isinstance(step.parent, ast.AnnAssign) and not at_import
            yield "never" if is_deferred or is_local else "annotation"
        if isinstance(step.parent, ast.If) and names_in(step.parent.test) == {"__name__"}:
            yield "main" if at_import and step.field == "body" else "perhaps"
        elif isinstance(step.parent, ast.If) and "TYPE_CHECKING" in names_in(step.parent.test):
            yield "never" if step.field == "body" else "perhaps"
        elif (
            _is_unreachable(step)
            or any(map(_is_of_machine, conditions))
            or (at_import and isinstance(step.parent, ast.ExceptHandler))
            or (read.name in _PERHAPS and (conditions or _is_tried(step)))
            or (not is_called and (_is_guarded(step, at_import) or (at_import and conditions)))
        ):
            yield "perhaps"
        if _is_body(step):
            is_called = True
            yield "called"


def _is_body(step: Step) -> bool:
    """Outward of it is a function that is called some time, or never."""
    return isinstance(step.parent, (*FUNCTIONS, ast.Lambda)) and step.field == "body"


def _is_annotation(step: Step) -> bool:
    return step.field == "annotation" or step.field == "returns"


def _is_lazy(step: Step) -> bool:
    """It is evaluated when somebody asks for it: what type parameters and aliases are."""
    kind = type(step.parent).__name__
    return kind in ("TypeVar", "TypeVarTuple", "ParamSpec") or (kind == "TypeAlias" and step.field == "value")


def _is_guarded(step: Step, at_import: bool) -> bool:
    """What a missing name raises is caught there: on purpose, or by whatever catches all while a module is imported."""
    match step.parent:
        case ast.With() | ast.AsyncWith():
            return step.field == "body" and any(expects(item.context_expr) for item in step.parent.items)
        case ast.Try() | ast.TryStar():
            caught = set().union(*map(caught_by, step.parent.handlers)) if step.field == "body" else set()
            return bool(caught & _SWALLOWING) or (at_import and bool(caught & _BROAD))
    return False


def _is_unreachable(step: Step) -> bool:
    """A statement before it leaves the block."""
    block = getattr(step.parent, step.field)
    return isinstance(block, list) and any(isinstance(node, _LEAVES) for node in block[: step.index])


def _conditions(step: Step) -> list[ast.AST]:
    """What decides whether it runs, where something does."""
    field, parent = step.field, step.parent
    match parent:
        case ast.If() | ast.IfExp() | ast.While() if field != "test":
            is_constant = isinstance(parent.test, ast.Constant) and bool(parent.test.value) == (field == "body")
            return [] if is_constant else [parent.test]
        case ast.BoolOp():
            return list(parent.values[: step.index])
        case ast.comprehension() if field == "ifs":
            return list(parent.ifs[: step.index])
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp() if field != "generators":
            return [test for generator in parent.generators for test in (*generator.ifs, generator.iter)]
        case ast.For() | ast.AsyncFor() if field not in ("iter", "target"):
            return [parent.iter]
        case ast.match_case() if field != "pattern":
            return [parent.pattern]
    return []


def _is_tried(step: Step) -> bool:
    """What is raised before it, or there, decides whether it runs, or what comes after it."""
    return isinstance(step.parent, (*_TRIES, ast.ExceptHandler))


def _is_of_machine(test: ast.AST) -> bool:
    """A condition that has always the same answer on one machine."""
    if isinstance(test, ast.Constant):
        return True
    is_os = any(
        isinstance(node, ast.Attribute) and node.attr == "name" and getattr(node.value, "id", "") == "os"
        for node in ast.walk(test)
    )
    return is_os or any(map(_MACHINE.search, names_in(test)))
