"""What a discovered input is worth now: the answer that a run would get that asks for the same.

Knows nothing of rules, results or traces. Everything is asked through `looks`, so that a stamp holds only while all of
it is answered in the same way.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Mapping
from typing import Final

from buildsys.digest import digest_of
from buildsys.errors import BuildError
from buildsys.model import Discovered
from buildsys.state.files import Files
from buildsys.state.looks import Looks

CHANGING: Final = "changing"
"""A file that is written to while it is read: what no run has seen, so what was recorded is never equal to it."""
WRITTEN: Final = "written "
"""Before the value of what the runs of an action write to themselves, unheard: it is as the last one left it."""
BY_OTHERS_TOO: Final = "written by others too"
"""Of what others write to as well: no content of it can count, or they would run in turns for ever."""
NAMES_OF_ALL: Final = "=names"
VALUES_OF_ALL: Final = "=values"
"""Variables that can't be: the names of all that there are, and all with their values. As `run/touches` has them."""
OF_PYTHON: Final = " of "
"""Between a package and the Python that a rule names, for which it is installed."""
_UNREADABLE: Final = "unreadable"
_CACHES: Final = "__pycache__"


class Discoveries:
    """Answers for one build; safe to use from several threads.

    is_made: whether a path is an output of a rule, or leads to one: it is no name that a listing counts by. Of several
    questions for the same the first counts, as it does for `looks`. all_variables: those that count where a run goes
    through all of them, None for one that is not set; all of `environ` where nothing is said. only: a run finds no
    other ones set. versions: distribution -> version for a top-level name, and the Python that a rule names or "".
    """

    def __init__(
        self,
        files: Files,
        looks: Looks,
        is_made: Callable[[str], bool],
        environ: Mapping[str, str] | None = None,
        all_variables: Mapping[str, str | None] | None = None,
        *,
        only: bool = False,
        versions: Callable[[str, str], Mapping[str, str]] = lambda name, python: {},
    ) -> None:
        self._files = files
        self._only = only
        self._versions = versions
        self._looks = looks
        self._is_made = is_made
        self._environ = os.environ if environ is None else environ
        self._all_variables: Mapping[str, str | None] = self._environ if all_variables is None else all_variables
        self._known: dict[tuple[str, str], str] = {}

    def value_now(self, kind: str, name: str) -> str:
        """As `Discovered` has it, when it was first asked for in this build."""
        if (kind, name) not in self._known:
            self._known[kind, name] = self.look_again(kind, name)
        return self._known[kind, name]

    def is_unchanged(self, found: Discovered) -> bool:
        if found.value == BY_OTHERS_TOO:
            return True
        return self.value_now(found.kind, found.name) == found.value.removeprefix(WRITTEN)

    def look_again(self, kind: str, name: str) -> str:
        """The same at this moment: what a run saw that has just ended, if nothing has moved since."""
        match kind:
            case "file":
                return self._content(name)
            case "folder":
                return self._names(name)
            case "exists":
                return self._what(name)
            case "package":
                return self._package(name)
            case _:
                return self._variable(name)

    def _content(self, path: str) -> str:
        what = self._what(path)
        if what != "file":
            return what
        try:
            seen = self._files.look(path)
        except BuildError:
            return CHANGING if os.access(os.path.join(self._looks.root, path), os.R_OK) else _UNREADABLE
        return seen.digest if seen else ""

    def _names(self, folder: str) -> str:
        """Of what is in a folder, but for what builds and Python put there."""
        what = self._what(folder)
        if what != "folder":
            return what
        try:
            names = self._looks.names(folder)
        except OSError:
            return _UNREADABLE
        above = f"{folder}/" if folder else ""
        return digest_of(
            sorted(pair for pair in names.items() if pair[0] != _CACHES and not self._is_made(above + pair[0]))
        )

    def _what(self, path: str) -> str:
        try:
            found = self._looks.stat(path)
        except OSError:
            return _UNREADABLE
        if found is None:
            return ""
        return kind_of(found.mode)

    def _package(self, name: str) -> str:
        top, _, python = name.partition(OF_PYTHON)
        try:
            return ", ".join(f"{one} {version}" for one, version in sorted(self._versions(top, python).items()))
        except BuildError:
            return _UNREADABLE

    def _variable(self, name: str) -> str:
        """A digest, since nobody has said that the value may be told."""
        if name in (NAMES_OF_ALL, VALUES_OF_ALL):
            for one, holds in self._all_variables.items():
                self._looks.variable(one, holds)
            found = sorted((one, holds) for one, holds in self._all_variables.items() if holds is not None)
            return digest_of([one for one, _ in found] if name == NAMES_OF_ALL else found)
        if self._only and name not in self._all_variables:
            return ""
        value = self._environ.get(name)
        self._looks.variable(name, value)
        return "" if value is None else digest_of(value)


def kind_of(mode: int) -> str:
    """What is at a path, by the type bits of its mode."""
    return "file" if modes.S_ISREG(mode) else "folder" if modes.S_ISDIR(mode) else "other"
