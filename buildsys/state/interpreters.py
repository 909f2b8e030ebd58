"""Interpreters that rules name: which Python each of them is, and what is installed for it.

Knows nothing of rules. An interpreter is asked by running a program in it (`inventory`), which takes a fifth of a
second; its answer is kept beside all that was looked at, so that nothing is run while a look gives the same.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from buildsys.digest import digest_of
from buildsys.errors import BuildError
from buildsys.state.disk import write_whole
from buildsys.state.distributions import Distributions
from buildsys.state.installed import is_metadata
from buildsys.state.inventory import FORMAT
from buildsys.state.looks import Looks

OLDEST: Final = (3, 9)
_PROGRAM: Final = Path(__file__).with_name("inventory.py")
_TIMEOUT_S: Final = 60.0
_SAID_LINES: Final = 5


@dataclass(frozen=True)
class Interpreter:
    """One interpreter. python: its path, absolute. version: "3.12". stdlib: top-level names, empty before 3.10.

    folders: where it lies, and what is installed for it. path: where it looks for modules.
    """

    python: str
    version: str
    stdlib: frozenset[str]
    distributions: Distributions
    folders: tuple[str, ...]
    path: tuple[str, ...]


class Interpreters:
    """Asks interpreters, each once. cache: folder for their answers. env: what they run in."""

    def __init__(self, looks: Looks, cache: Path, env: Mapping[str, str]) -> None:
        self._looks = looks
        self._cache = cache
        self._env = env
        self._known: dict[str, Interpreter] = {}

    def get(self, path: str) -> Interpreter:
        """path: absolute, or relative to the project. Raises BuildError where there is no Python that can be used."""
        if path not in self._known:
            self._known[path] = self._found(path, os.path.join(self._looks.root, path))
        return self._known[path]

    def _found(self, path: str, python: str) -> Interpreter:
        if not self._looks.is_file(path):
            raise BuildError(
                f"the interpreter {path} is missing",
                hint="make its environment, or write its path, absolute or from the project's folder",
            )
        told = self._told(path, python)
        version = tuple(told["version"])
        if version < OLDEST:
            raise BuildError(
                f"the interpreter {path} is too old: Python {version[0]}.{version[1]}",
                hint="workers need Python {}.{} or later".format(*OLDEST),
            )
        own, places = "{}.{}".format(*version), (tuple(told["own"]), tuple(told["folders"]))
        return Interpreter(python, own, frozenset(told["stdlib"]), Distributions.told(told), *places)

    def _told(self, path: str, python: str) -> dict[str, Any]:
        """What it last told, if nothing that it told of has changed since."""
        cache = self._cache / f"python-{digest_of(python)}.json"
        try:
            kept: dict[str, Any] = json.loads(cache.read_text())
            if kept["told"]["format"] == FORMAT and kept["seen"] == self._seen(path, kept["told"]["folders"]):
                return kept["told"]  # type: ignore[no-any-return]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # nothing yet, or what a kill cut short
        # Its folders are looked at before it is asked what is in them: what is installed meanwhile shows next time.
        seen = self._seen(path, self._ask(path, python)["folders"])
        told = self._ask(path, python)
        write_whole(cache, json.dumps({"seen": seen, "told": told}).encode())
        return told

    def _seen(self, path: str, folders: Sequence[str]) -> list[list[object]]:
        """All that says what is installed: the interpreter, its environment, and the metadata in its folders."""
        home = os.path.dirname(os.path.dirname(path))
        files = [path, os.path.join(home, "pyvenv.cfg"), *self._metadata(folders)]
        return [[file, *(self._looks.stat(file) or ())] for file in files]

    def _metadata(self, folders: Sequence[str]) -> Iterator[str]:
        for folder in folders:
            if not self._looks.is_dir(folder):
                continue
            for name, mark in sorted(self._looks.names(folder).items()):
                if is_metadata(name) and mark:
                    yield from (f"{folder}/{name}/{file}" for file in ("METADATA", "PKG-INFO"))
                elif is_metadata(name) or name.endswith(".pth"):
                    yield f"{folder}/{name}"

    def _ask(self, path: str, python: str) -> dict[str, Any]:
        try:
            done = subprocess.run(
                [python, str(_PROGRAM)],
                env=dict(self._env),
                cwd=self._looks.root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
            )
            told: dict[str, Any] = json.loads(done.stdout)
            return told
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = error.strerror or str(error) if isinstance(error, OSError) else f"no answer in {_TIMEOUT_S:.0f} s"
            said = ""
        except ValueError:
            reason, said = f"exit code {done.returncode}", "\n".join(done.stderr.strip().splitlines()[-_SAID_LINES:])
        raise BuildError(
            f"the interpreter {path} can't be used",
            facts=[("reason", reason)],
            excerpt=said,
            hint="name a Python, {}.{} or later, as the rule's `python`".format(*OLDEST),
        )
