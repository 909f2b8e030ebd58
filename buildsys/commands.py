"""The scripts of a shell command: which files of the project it runs, and how it is given frozen copies of them.

A script that is overlooked is one whose edits are never seen. So a command that names scripts in a way that can't be
followed is refused. Joins the reading of commands with the file system; knows nothing of rules, keys and results.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from buildsys.code.command import HIDDEN, Command, Word
from buildsys.code.slice import Slice
from buildsys.errors import BuildError, Place
from buildsys.model import Param
from buildsys.state.looks import Looks

_BY_PATH: Final = "name the script by its path from the project's folder, so that edits of its code are seen"
_MODULE: Final = re.compile("-[A-Za-z]*?m(.*)")
_CODE: Final = re.compile("-[A-Za-z]*c|eval")
_IMPORT: Final = re.compile(r"\b(?:from\s+([\w.]+)\s+import\s+(\w+)|import\s+([\w., ]+))")


def command_values(params: Iterable[Param], settings: Iterable[Param] = ()) -> dict[str, str | Sequence[str]]:
    """Values as words of a command: a list becomes several, true and false are written as in the config."""
    return {
        f"{group}.{param.name}": [_word(one) for one in param.value]
        if isinstance(param.value, list)
        else _word(param.value)
        for group, given in (("params", params), ("settings", settings))
        for param in given
    }


def scripts_of(
    command: str,
    values: Mapping[str, str | Sequence[str]],
    looks: Looks,
    place: Place,
    elsewhere: Callable[[str], Sequence[str]] = lambda name: (),
) -> list[str]:
    """The project's scripts that a command runs, in their order. values: those of params and settings.

    elsewhere: see `resolve.Tree`. Raises BuildError for a command that names a script in a way that can't be followed,
    or a file that is no input.
    """
    return list(dict.fromkeys(_Reading(Command(command, values), looks, place, elsewhere).scripts()))


def fill_command(
    command: str, values: Mapping[str, str | Sequence[str]], code: Slice | None, frozen: Callable[[Slice], Path]
) -> str:
    """A command with its braces filled in and quoted, and its scripts named by their frozen copies.

    values: "inputs.x", "params.y" ... -> text, or a list of texts, which become words of their own.
    """
    filled = Command(command, values)
    if code is None:
        return filled.text

    def is_script(path: str) -> bool:
        return bool(_script(path, code.sources.__contains__))

    named = [piece for word in filled.words(is_script) for piece in _pieces(word, is_script) if is_script(piece.text)]
    return filled.within(str(frozen(code)), named)


@dataclass(frozen=True)
class _Reading:
    """A command looked at in the folder that it runs in."""

    command: Command
    looks: Looks
    place: Place
    elsewhere: Callable[[str], Sequence[str]]

    def scripts(self) -> Iterator[str]:
        try:
            words = self.command.words(self._is_file)
        except ValueError as error:
            raise self._error(f"the command is not a shell command: {error}") from None
        self._refuse_modules(words)
        moved = any(word.text in ("cd", "pushd") for word in words)
        for word in words:
            for piece in _pieces(word, self._is_file):
                if script := self._script(piece.text):
                    if moved:
                        problem = f"the command changes its folder, and names a script by its path: {piece.text}"
                        raise self._error(problem, "leave out `cd`, and name each file by its path from the project")
                    if piece.at < 0:
                        raise self._error(f"a value holds the path of a script: {script}", _BY_PATH)
                    yield script
                else:
                    self._refuse_what_is_overlooked(piece, moved)

    def _refuse_what_is_overlooked(self, piece: Word, moved: bool) -> None:
        text = piece.text
        if HIDDEN in text or self._is_outside(text):
            return
        if text.endswith(".py"):
            if moved or os.path.isabs(text) or not piece.is_value:
                raise self._error(f"the command names a script in a way that can't be followed: {text}", _BY_PATH)
        elif self._is_file(text):
            hint = "declare it under `inputs` and write {inputs.NAME}, so that edits of it are seen"
            raise self._error(f"the command reads a file that is no input: {text}", hint)

    def _refuse_modules(self, words: Sequence[Word]) -> None:
        """Code of the project that Python would find by a name, and commands that a value holds."""
        paths = {piece.text for word in words for piece in word.pieces() if not self._is_outside(piece.text)}
        folders = ["", *(path for path in paths if self.looks.is_dir(path))]
        for flag, word in pairwise([*words, Word(())]):
            if found := _MODULE.fullmatch(flag.text):
                module = found[1] or word.text
                if self._is_ours(module, folders, "__main__.py"):
                    raise self._error(f"the command runs a module of the project by its name: -m {module}", _BY_PATH)
            if _CODE.fullmatch(flag.text) and word.is_value and (".py" in word.text or " -m" in word.text):
                raise self._error(f"a value holds a command: {word.text}", "write it into the rule")
        for name in self._imported():
            if self._is_ours(name, folders, "__init__.py"):
                raise self._error(f"the command imports a module of the project: {name}", "write it as a script")
        for word in words:
            variable, _, places = word.text.partition("=")
            if variable == "PYTHONPATH" and not all(HIDDEN in at or self._is_outside(at) for at in places.split(":")):
                raise self._error("the command sets PYTHONPATH", "put what a script imports beside it")

    def _imported(self) -> Iterator[str]:
        """The modules that code within the command imports, where it is Python."""
        for found in _IMPORT.finditer(self.command.text):
            yield from [found[1], f"{found[1]}.{found[2]}"] if found[1] else re.split("[, ]+", found[3])

    def _is_ours(self, module: str, folders: Iterable[str], program: str) -> bool:
        path = module.replace(".", "/")
        return bool(self.elsewhere(module.partition(".")[0])) or any(
            self.looks.is_file(posixpath.join(folder, file))
            for folder in folders
            for file in (f"{path}.py", f"{path}/{program}")
        )

    def _is_file(self, path: str) -> bool:
        return bool(self._script(path)) or self.looks.is_file(path)

    def _script(self, path: str) -> str:
        return _script(path, self.looks.is_file)

    def _is_outside(self, path: str) -> bool:
        """An absolute path that leads to nothing in the project."""
        if HIDDEN in path or not os.path.isabs(path):
            return False
        self.looks.exists(path)  # where links lead to shows in the stat
        real = os.path.realpath(path)
        return not any(
            Path(found).is_relative_to(root)
            for found in (os.path.normpath(path), real)
            for root in (self.looks.root, os.path.realpath(self.looks.root))
        )

    def _error(self, problem: str, hint: str = "") -> BuildError:
        return BuildError(problem, place=self.place, hint=hint)


def _pieces(word: Word, is_file: Callable[[str], bool]) -> Iterable[Word]:
    return (word,) if is_file(word.text) else word.pieces()


def _script(path: str, exists: Callable[[str], bool]) -> str:
    """What Python runs for a path from the project's folder: the file, or a folder's `__main__.py`; or ""."""
    plain = posixpath.normpath(path)
    if path and not plain.startswith("/") and ".." not in path.split("/"):
        for script in (plain, posixpath.normpath(f"{plain}/__main__.py")):
            if script.endswith(".py") and exists(script):
                return script
    return ""


def _word(value: object) -> str:
    return json.dumps(value) if isinstance(value, (bool, dict)) else str(value)
