"""What a run told of itself: the code that it used, and what it asked of the machine.

Knows nothing of rules, keys or what was declared: what of it is an input that nobody declared is for others to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from buildsys.model import Trace

Touched = Literal["file", "folder", "exists"]


class Touch(NamedTuple):
    """One path that a run asked for before it had made anything there itself.

    kind: "file" (opened to be read), "folder" (listed), "exists" (whether it is there, or what it is).
    path: with "/" from the project where it lies in it, else absolute; as the code named it, links not followed.
    stat: size, mtime_ns, ctime_ns, inode and mode when it was first asked for, links followed; None where nothing was.
    own: the run has since written, made or removed it, or tried to.
    """

    kind: Touched
    path: str
    stat: tuple[int, int, int, int, int] | None
    own: bool = False


class Asked(NamedTuple):
    """An environment variable that was looked up before the run had set it itself, whether it was there or not.

    ours: first-party code itself asked for it; else only code from outside did, on its behalf or not.
    """

    name: str
    ours: bool


@dataclass(frozen=True)
class Traced:
    """All of it since the fork of the worker, whichever of its actions did it; what was asked for, in order of names.

    packages: top-level modules from outside, without the standard library, that were imported.
    commands: words of the child processes.
    """

    trace: Trace
    touches: tuple[Touch, ...] = ()
    variables: tuple[Asked, ...] = ()
    packages: frozenset[str] = frozenset()
    commands: tuple[tuple[str, ...], ...] = ()


UNTOLD: Final = Traced(Trace(unseen=("nothing was traced",)))
A_COMMAND: Final = Traced(Trace(unseen=("a command",)))
