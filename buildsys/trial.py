"""One call of a function outside of a build, under a trace, and what of it is kept for its fingerprint.

Joins a folder's sources with the program that calls; knows nothing of digests.
"""

from __future__ import annotations

import os
from pathlib import Path

from buildsys.fingerprint import Kept, script_of
from buildsys.run.touches import stat_of
from buildsys.run.traced import Touch, Traced, run_entry
from buildsys.source_tree import SourceTree
from buildsys.state.looks import Looks


def run(root: Path, module: str, function: str) -> tuple[Kept, str]:
    """Call the function under a trace; what is to be kept of it, and its error in one line, "" where it returned."""
    script_of(SourceTree(Looks(root)), module)
    ended = run_entry(root, module, function, os.environ)
    return _kept(root, ended.traced), ended.error


def _kept(root: Path, traced: Traced) -> Kept:
    paths = [(one.kind, one.path) for one in traced.touches if not one.own or _is_as_found(root, one)]
    variables = [("variable", one.name) for one in traced.variables]
    words = [word for command in traced.commands for word in command]
    modules = [words[n + 1].replace(".", "/") for n, word in enumerate(words[:-1]) if word == "-m"]
    named = [*words, *(f"{stem}{end}" for stem in modules for end in (".py", "/__main__.py"))]
    scripts = [word for word in dict.fromkeys(named) if word.endswith(".py") and (root / word).is_file()]
    return Kept(
        traced.trace, tuple(dict.fromkeys([*paths, *variables])), tuple(scripts), tuple(sorted(traced.packages))
    )


def _is_as_found(root: Path, one: Touch) -> bool:
    """What a run may have written to is an input still where it has left it as it was."""
    return one.stat is not None and one.kind == "file" and stat_of(str(root / one.path)) == one.stat
