"""The trace of one worker: all that ran in it and all that it asked of the machine since its fork, told bit by bit.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of calls.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

from .copies import code_in, readers, with_code
from .hooks import Hooks
from .marks import Executed
from .places import Places
from .touches import Touches

_WATCHES = re.compile(r"\b(setprofile|settrace|register_callback)\b")
"""What has functions called while nothing is monitored."""
_INTERPRETERS = ("_interpreters", "_xxsubinterpreters")


class Tracer:
    """Follows first-party code from the moment it is made.

    most: first-party files, absolute, with a number that their definitions don't exceed. names: what they are called
    when they are told of. foreign: as `Places` has it.
    """

    def __init__(
        self, hooks: Hooks, root: str, foreign: Iterable[str], most: Mapping[str, int], names: Mapping[str, str]
    ) -> None:
        self.hooks = hooks
        self.names = names
        self.touches = Touches(hooks, Places(root, foreign), most.__contains__)
        self.executed = Executed(most, self._not_followed, self.touches.problem)
        self.at_start = frozenset(sys.modules)
        hooks.writes, hooks.has_read = self._writes, self._has_read
        self.touches.listen()

    def look_at(self, name: str, text: str) -> None:
        """Follow no function that is compiled from now on, where code of this text reads the code of functions."""
        for reader in readers(text):
            self.executed.follows = False
            self.touches.problem(f"{reader} in {name}")
        if self.executed.monitors and (watch := _WATCHES.search(text)):
            self.touches.problem(f"{watch[0]} in {name}")

    def compiled(self, path: str, text: str, filename: str) -> CodeType:
        with self.quiet():
            return self.executed.compiled(path, text, filename)

    @property
    def importing(self) -> Callable[[str], None]:
        """To be told of each top-level module that is looked for: no module that was imported before is."""
        return functools.partial(self.hooks.hear, self.touches.imports)

    @property
    def after_import(self) -> dict[str, Callable[[ModuleType], None]]:
        """What is to be done with modules once they are imported."""
        return {"torch": self._watch_torch, "sqlite3": self._watch_sqlite}

    def fresh(self) -> None:
        """Another action begins."""
        self.touches.fresh()

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """What this thread does meanwhile is no doing of the run."""
        before, self.hooks.quiet = self.hooks.quiet, threading.get_ident()
        try:
            yield
        finally:
            self.hooks.quiet = before

    def news(self, first_party: Collection[str] = ()) -> dict[str, Any]:
        """What was not told before, as plain values. first_party: top-level names that are no packages from outside."""
        touches = self.touches
        if _was_compiled_by_torch():
            touches.problem("torch.compile")
        if self._has_more_interpreters():
            touches.problem("another interpreter in the process")
        touches.settle()
        found = {
            "functions": {self.names[path]: numbers for path, numbers in self.executed.news().items()},
            "touches": touches.touches,
            "own": touches.own,
            "variables": touches.variables,
            "packages": [name for name in touches.packages if name not in first_party],
            "commands": touches.commands,
            "problems": touches.problems,
        }
        touches.tell_anew()
        return {what: values for what, values in found.items() if values}

    def _writes(self, given: list[Any]) -> None:
        """Marshal writes code as it would be if nobody followed it; who runs that isn't heard."""
        if any(map(self.executed.is_followed, code_in(given[0]))):
            given[0] = with_code(given[0], self.executed.as_written)
            self.touches.problem("code that marshal wrote")

    def _has_read(self, found: object) -> None:
        if any(self.touches.is_ours(code.co_filename) for code in code_in(found)):
            self.touches.problem("code that marshal read")

    def _watch_torch(self, torch: Any) -> None:
        """Libraries compile functions of ours unasked; marks would be in their way, and what is compiled goes unheard.

        `torch.compile` compiles not only what it is given, but all that is called from there.
        """
        torch.compile = self._letting_go(torch.compile, "torch.compile", lambda _: True)
        torch.jit.script = self._letting_go(torch.jit.script, "torch.jit", self._is_ours)

    def _watch_sqlite(self, sqlite3: Any) -> None:
        connect, hear = sqlite3.connect, self.hooks.hear

        @functools.wraps(connect)
        def connecting(*args: Any, **options: Any) -> Any:
            database = args[0] if args else options.get("database")
            hear(functools.partial(self.touches.connects, as_uri=bool(options.get("uri"))), database)
            return connect(*args, **options)

        sqlite3.connect = sqlite3.dbapi2.connect = connecting

    def _letting_go(
        self, compiling: Callable[..., Any], problem: str, concerns: Callable[[object], bool]
    ) -> Callable[..., Any]:
        """What follows no function any more once it is called with something that concerns us."""

        @functools.wraps(compiling)
        def around(*args: Any, **options: Any) -> Any:
            with self.quiet():
                if concerns(args[0] if args else None):
                    self.executed.let_go()
                    self.touches.problem(problem)
            return compiling(*args, **options)

        return around

    def _is_ours(self, compiled: object) -> bool:
        """Whether a function, class or object is of first-party code."""
        code = getattr(getattr(compiled, "__func__", compiled), "__code__", None)
        if code is not None:
            return self.touches.is_ours(code.co_filename)
        kind = compiled if isinstance(compiled, type) else type(compiled)
        modules = (sys.modules.get(base.__module__) for base in kind.__mro__)
        return any(self.touches.is_ours(getattr(module, "__file__", "") or "") for module in modules)

    def _has_more_interpreters(self) -> bool:
        """Whether there may have been some: who loads the module for it makes one."""
        names = [name for name in _INTERPRETERS if name in sys.modules]
        return any(name not in self.at_start or len(sys.modules[name].list_all()) > 1 for name in names)

    def _not_followed(self, path: str) -> None:
        self.touches.problem(f"functions of {self.names[path]} that can't be followed")


def most_definitions(text: str) -> int:
    """A number that the definitions in a text don't exceed."""
    return text.count("def")


def _was_compiled_by_torch() -> bool:
    """Whether torch has put code of its own in the place of a function's: libraries do so unasked."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return bool(counters and counters.get("frames", {}).get("total"))
