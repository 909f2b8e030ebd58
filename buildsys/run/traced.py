"""What a run told of itself: the code that it used, and what it asked of the machine.

Knows nothing of rules, keys or what was declared: what of it is an input that nobody declared is for others to say.
Workers tell it with each of their replies; `run_entry` has a program of its own tell it of one call.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import dumps
from typing import Any, Final, Literal, NamedTuple

from buildsys.code.functions import function_names
from buildsys.model import Trace
from buildsys.run.messages import receive, send
from buildsys.run.places import holds_distributions, is_environment
from buildsys.run.process import exit_text

_ONCE: Final = Path(__file__).with_name("once.py")
_NO_SOURCES: Final = frozenset({".buildsys", ".git", "__pycache__"})
_SHORTEST_FUNCTION: Final = len("def f():0\n")

Touched = Literal["file", "folder", "exists"]


class Touch(NamedTuple):
    """One path that a run asked for before it had made anything there itself.

    kind: "file" (opened to be read), "folder" (listed), "exists" (whether it is there, or what it is).
    path: with "/" from the project where it lies in it, else absolute; as the code named it, links not followed.
    stat: size, mtime_ns, ctime_ns, inode and mode when it was first asked for, links followed; None where nothing was.
    own: the run has since written, made or removed it, or tried to. earlier: this call did not ask for it, but an
    earlier one of the same worker did, which may have left in memory what it found.
    """

    kind: Touched
    path: str
    stat: tuple[int, int, int, int, int] | None
    own: bool = False
    earlier: bool = False


class Asked(NamedTuple):
    """An environment variable that was looked up before the run had set it itself, whether it was there or not.

    name: "=names" where the run went through the names of all, "=values" where it took all values as well. ours:
    first-party code itself asked for it; else only code from outside did, on its behalf or not.
    """

    name: str
    ours: bool


@dataclass(frozen=True)
class Traced:
    """All of it since the fork of the worker, whichever of its actions did it; what was asked for, in order of names.

    packages: top-level modules from outside, without the standard library, that first-party code itself imported, or
    tried to, before anything else had imported them.
    commands: words of the child processes.
    """

    trace: Trace
    touches: tuple[Touch, ...] = ()
    variables: tuple[Asked, ...] = ()
    packages: frozenset[str] = frozenset()
    commands: tuple[tuple[str, ...], ...] = ()


def together(traced: Sequence[Traced]) -> Traced:
    """The runs of several workers as one."""
    touches: dict[tuple[str, str], Touch] = {}
    for one in (one for some in traced for one in some.touches):
        known = touches.setdefault((one.path, one.kind), one)
        touches[one.path, one.kind] = known._replace(own=known.own or one.own, earlier=known.earlier and one.earlier)
    variables: dict[str, bool] = {}
    for asked in (asked for some in traced for asked in some.variables):
        variables[asked.name] = asked.ours or variables.get(asked.name, False)
    return Traced(
        Trace(
            frozenset().union(*(some.trace.modules for some in traced)),
            frozenset().union(*(some.trace.functions for some in traced)),
            tuple(dict.fromkeys(why for some in traced for why in some.trace.unseen)),
        ),
        tuple(one for _, one in sorted(touches.items())),
        tuple(Asked(name, ours) for name, ours in sorted(variables.items())),
        frozenset().union(*(some.packages for some in traced)),
        tuple(words for some in traced for words in some.commands),
    )


UNTOLD: Final = Traced(Trace(unseen=("nothing was traced",)))
A_COMMAND: Final = Traced(Trace(unseen=("a command",)))


class Heard:
    """Puts together what one worker tells call by call (`tracing.Tracer.news`). sources: the texts that it runs."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._modules: set[str] = set()
        self._functions: set[str] = set()
        self._problems: dict[str, None] = {}
        self._touches: dict[tuple[str, str], Touch] = {}
        self._own: set[str] = set()
        self._lately: set[tuple[str, str]] = set()
        self._own_lately: set[str] = set()
        self._variables: dict[str, bool] = {}
        self._packages: set[str] = set()
        self._commands: list[tuple[str, ...]] = []
        self._traced = Traced(Trace())

    def add(self, told: Mapping[str, Any]) -> None:
        for path, numbers in told.get("functions", {}).items():
            self._ran(path, self._sources[path], numbers)
        self._problems.update(dict.fromkeys(told.get("problems", ())))
        for kind, path, stat in told.get("touches", ()):
            self._touches.setdefault((path, kind), Touch(kind, path, stat))
        self._lately = {(path, kind) for kind, path, _ in told.get("touches", ())}
        self._own_lately = set(told.get("own", ()))
        self._own |= self._own_lately
        for name, ours in told.get("variables", ()):
            self._variables[name] = ours or self._variables.get(name, False)
        self._packages.update(told.get("packages", ()))
        self._commands += map(tuple, told.get("commands", ()))
        self._traced = self._now()

    @property
    def traced(self) -> Traced:
        return self._traced

    @property
    def broken_off(self) -> Traced:
        """What there is of the trace of a worker that ended before it could tell the rest."""
        trace = self._traced.trace
        return replace(self._traced, trace=replace(trace, unseen=(*trace.unseen, "the worker ended in the middle")))

    def _ran(self, path: str, text: str, numbers: list[int]) -> None:
        self._modules.add(path)
        names = _names(text) if numbers else ()
        if numbers and max(numbers) >= len(names):
            self._problems[f"functions of {path}, which only its own Python can read"] = None
            return
        self._functions.update(f"{path}:{names[n]}" for n in numbers)

    def _now(self) -> Traced:
        return Traced(
            Trace(frozenset(self._modules), frozenset(self._functions), tuple(self._problems)),
            tuple(self._touch(one) for _, one in sorted(self._touches.items())),
            tuple(Asked(name, ours) for name, ours in sorted(self._variables.items())),
            frozenset(self._packages),
            tuple(self._commands),
        )

    def _touch(self, one: Touch) -> Touch:
        is_late = (one.path, one.kind) in self._lately
        return one._replace(own=one.path in (self._own_lately if is_late else self._own), earlier=not is_late)


@functools.lru_cache(maxsize=1024)
def _names(text: str) -> tuple[str, ...]:
    return tuple(function_names(text))


# ---------------------------------------------------------------- one call outside of a build


class EntryRun(NamedTuple):
    """How one call went. error: in one line, "" where it returned."""

    traced: Traced
    error: str


def run_entry(root: Path, module: str, function: str, environ: Mapping[str, str]) -> EntryRun:
    """Call `module.function()` in a process of its own, in this interpreter, with the project `root` first on its path.

    All that is below `root` is first-party, but for environments and folders with installed distributions; such folders
    come last on the path. Sources are read when they are imported. What is printed goes to stderr.
    """
    full = str(root.resolve())
    sources, foreign = _below(full)
    start = {"root": full, "module": module, "function": function, "most": sources, "foreign": foreign}
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, str(_ONCE), str(theirs.fileno())],
                env=dict(environ),
                cwd=full,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,
            )
        try:
            send(ours, dumps(start, protocol=4))
            reply = receive(ours)
        except (EOFError, OSError):
            how = exit_text(process.wait()) or "exit code 0"
            return EntryRun(Heard({}).broken_off, f"the run ended in the middle: {how}")
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
    heard = Heard(reply["texts"])
    heard.add(reply["told"])
    return EntryRun(heard.traced, reply["error"])


def _below(root: str) -> tuple[dict[str, int], list[str]]:
    """The first-party files below a folder, each with a number that its functions don't exceed; and foreign folders.

    Links to folders are followed, each folder once.
    """
    sources: dict[str, int] = {}
    foreign: list[str] = []
    seen: set[str] = set()
    for folder, folders, files in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen or (folder != root and is_environment(folder)):
            folders.clear()
            continue
        seen.add(real)
        if folder != root and holds_distributions(folder):
            foreign.append(folder)
            folders.clear()
            continue
        folders[:] = sorted(set(folders) - _NO_SOURCES)
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    sources[path] = os.path.getsize(path) // _SHORTEST_FUNCTION + 1
    return sources, foreign
