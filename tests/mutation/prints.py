"""What `buildsys.code` makes of a tree, and of the same tree in which one file has another text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from buildsys.code.functions import functions
from buildsys.code.slice import slice_of, used_of
from buildsys.errors import BuildError
from buildsys.model import Trace
from tests.mutation.mutants import Place, parsed, places
from tests.mutation.packages import SCRIPT

Level = Literal["traced", "static"]
LEVELS: tuple[Level, Level] = ("traced", "static")


class Sources:
    """The Python files of a tree, read once; a `Tree`.

    places: the functions of each file by their first line. named: what `buildsys` calls them, "file:name".
    """

    def __init__(self, tree: Path) -> None:
        files = sorted(tree.rglob("*.py"))
        self.texts = {file.relative_to(tree).as_posix(): file.read_text() for file in files}
        self._below: dict[str, list[str]] = {}
        self.places: dict[str, dict[int, Place]] = {}
        self.named: dict[tuple[str, int], str] = {}
        for path, text in self.texts.items():
            module = parsed(text)
            self.places[path] = {place.line: place for place in places(module)}
            names = {id(node): name for name, node in functions(module)}
            for line, place in self.places[path].items():
                self.named[path, line] = f"{path}:{names[id(place.node)]}"

    def read(self, path: str) -> str | None:
        return self.texts.get(path)

    def sources(self, folder: str) -> Sequence[str]:
        if folder not in self._below:
            self._below[folder] = [path for path in self.texts if path.startswith(f"{folder}/" if folder else "")]
        return self._below[folder]

    def elsewhere(self, name: str) -> Sequence[str]:
        return ()

    def behind(self, name: str) -> Sequence[str]:
        return ()

    def edited(self, path: str, text: str) -> Edited:
        return Edited(self, path, text)


class Edited:
    """The same with another text for one file."""

    def __init__(self, sources: Sources, path: str, text: str) -> None:
        self._sources, self._path, self._text = sources, path, text
        self.sources, self.elsewhere, self.behind = sources.sources, sources.elsewhere, sources.behind

    def read(self, path: str) -> str | None:
        return self._text if path == self._path else self._sources.read(path)


def print_of(level: Level, entry: str, tree: Sources | Edited, trace: Trace) -> str:
    """The fingerprint of the static slice, or of what the traced run used; what is wrong where there is none.

    Where the trace can't tell of all that ran, the whole slice counts too, as in `buildsys.fingerprint`.
    """
    try:
        used = used_of(SCRIPT, entry, tree, trace).fingerprint if level == "traced" else ""
        return used + (slice_of(SCRIPT, entry, tree).fingerprint if not used or trace.unseen else "")
    except BuildError as error:
        return str(error)
