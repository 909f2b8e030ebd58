"""A package in a scratch tree: what its entries give there, which functions they run, and what buildsys makes of it.

Results and functions are those of `truth`, which knows nothing of buildsys; traces are those of `run.traced`.
"""

from __future__ import annotations

import ast
import compileall
import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from buildsys.model import Trace
from buildsys.run.traced import run_entry
from tests.mutation.packages import SCRIPT, Package
from tests.mutation.prints import LEVELS, Edited, Level, Sources, print_of

_PROGRAM = Path(__file__).with_name("truth.py")
_MODULE = SCRIPT.removesuffix(".py")


@dataclass(frozen=True)
class Ran:
    """What an entry did before any edit. functions: "file:name" of those that began, by the profiler; words: the names
    in their code. prints: the fingerprints, by level.
    """

    gave: str
    functions: frozenset[str]
    words: frozenset[str]
    trace: Trace
    prints: dict[Level, str]


class Bench:
    """The package, ready to be edited. A context manager."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self._folder = TemporaryDirectory(prefix="mutation-")
        self.tree = Path(self._folder.name, "tree")
        self.tree.mkdir()
        package.lay(self.tree)
        # By what is in them, for the time of a file is too coarse for edits that follow each other.
        compileall.compile_dir(self.tree, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        self.sources = Sources(self.tree)
        self._program = subprocess.Popen(
            [sys.executable, _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        self._program.communicate()
        self._folder.cleanup()

    def runs(self, entries: list[str]) -> dict[str, Ran]:
        """The entries as they are without an edit. They must give the same twice."""
        told, again = self._run(entries, profile=True), self._run(entries)
        return {entry: self._ran(entry, told[entry], again[entry]["gave"]) for entry in entries}

    def results(self, path: str, text: str, entries: list[str]) -> dict[str, str]:
        """What the entries give while a file has another text."""
        file = self.tree / path
        try:
            file.write_text(text)
            return {entry: one["gave"] for entry, one in self._run(entries).items()}
        finally:
            file.write_text(self.sources.texts[path])

    @contextmanager
    def asking(self, entry: str) -> Iterator[Callable[[str, str], bool]]:
        """Says of a file and a text whether `buildsys fingerprint` gives another digest with it: of what the entry used
        when it ran just now.
        """
        trace = Path(self._folder.name, "trace")
        before = self._command(entry, "--run", "--trace", str(trace))

        def ask(path: str, text: str) -> bool:
            file = self.tree / path
            try:
                file.write_text(text)
                return self._command(entry, "--trace", str(trace)) != before
            finally:
                file.write_text(self.sources.texts[path])

        yield ask

    def _command(self, entry: str, *options: str) -> str:
        command = [sys.executable, "-m", "buildsys.cli", "fingerprint", str(self.tree), f"{_MODULE}:{entry}", *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def prints(self, entry: str, tree: Sources | Edited, trace: Trace) -> dict[Level, str]:
        return {level: print_of(level, entry, tree, trace) for level in LEVELS}

    def _ran(self, entry: str, told: dict[str, Any], again: str) -> Ran:
        gave = told["gave"]
        assert gave.startswith("gave "), f"{entry}: {gave}"
        assert gave == again, f"{entry} gives now this, now that: {gave}, {again}"
        places = {
            self.sources.named[path, line]: (path, line)
            for path, line in told["ran"]
            if (path, line) in self.sources.named
        }
        traced = run_entry(self.tree, _MODULE, entry, os.environ)
        assert not traced.error, f"{entry}: {traced.error}"
        trace = traced.traced.trace
        words = (word for path, line in places.values() for word in _words(self.sources.places[path][line].node))
        prints = self.prints(entry, self.sources, trace)
        assert not any(" " in told for told in prints.values()), f"{entry} has no fingerprint: {prints}"
        return Ran(gave, frozenset(places), frozenset(words), trace, prints)

    def _run(self, entries: list[str], profile: bool = False) -> dict[str, dict[str, Any]]:
        assert self._program.stdin
        assert self._program.stdout
        asked = {"tree": str(self.tree), "module": _MODULE, "entries": entries, "profile": profile}
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        told = json.loads(self._program.stdout.readline())
        return told if isinstance(told, dict) else {entry: {"gave": told, "ran": []} for entry in entries}


def _words(tree: ast.AST) -> list[str]:
    """All names, attributes and texts of some code."""
    fields = ("id", "attr", "value", "name")
    return [
        word
        for node in ast.walk(tree)
        for word in (getattr(node, field, None) for field in fields)
        if isinstance(word, str)
    ]
