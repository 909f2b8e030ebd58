"""A program that runs the entries of a tree, each in a process of its own, and tells what they gave and what ran.

It reads a JSON object a line, {tree, module, entries, profile}, and answers with {entry: {gave, ran, modules}}.
ran: [file, first line] of all functions of the tree whose bodies began since the fork, by `sys.setprofile`, those that
importing the module calls with them. modules: the files of the tree that were imported.
Standard library only: what a tree holds must not have been imported from elsewhere.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import resource
import signal
import sys
import threading
import warnings
from typing import Any

_LIMIT_S = 10
_MEMORY = 3 << 30


def main() -> None:
    """Answers until its input ends. What entries print goes nowhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.dont_write_bytecode = True
    for line in sys.stdin:
        asked = json.loads(line)
        answers.write(json.dumps(_in_a_fork(functools.partial(_all, **asked))) + "\n")
        answers.flush()


def _in_a_fork(work: Any) -> Any:
    """What it returns, or how the process ended."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        told = json.dumps(work()).encode("utf-8", "surrogatepass")
        with os.fdopen(into, "wb") as stream:
            stream.write(told)
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as stream:
        told = stream.read()
    _, status = os.waitpid(child, 0)
    return json.loads(told) if status == 0 else f"ended with status {status}"


def _all(tree: str, module: str, entries: list[str], profile: bool) -> dict[str, Any]:
    os.chdir(tree)
    sys.path.insert(0, tree)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    ran: set[tuple[str, int]] = set()
    nothing: dict[str, Any] = {"ran": [], "modules": []}
    if profile:
        _profile(tree + "/", ran)
    signal.alarm(_LIMIT_S)
    try:
        imported = importlib.import_module(module)
    except BaseException as error:
        return {entry: {"gave": f"import raised {type(error).__name__}: {error}", **nothing} for entry in entries}
    signal.alarm(0)
    told = {}
    for entry in entries:
        gave = _in_a_fork(functools.partial(_one, tree + "/", imported, entry, ran))
        told[entry] = {"gave": gave, **nothing} if isinstance(gave, str) else gave
    return told


def _one(prefix: str, module: Any, entry: str, ran: set[tuple[str, int]]) -> dict[str, Any]:
    signal.alarm(_LIMIT_S)
    try:
        value = getattr(module, entry)()
        sys.setprofile(None)
        gave = f"gave {value!r}"
    except BaseException as error:
        sys.setprofile(None)
        gave = f"raised {type(error).__name__}: {error}"
    files = [str(getattr(one, "__file__", None)) for one in list(sys.modules.values())]
    modules = sorted({file[len(prefix) :] for file in files if file.startswith(prefix)})
    return {"gave": gave, "ran": sorted(ran), "modules": modules}


def _profile(prefix: str, ran: set[tuple[str, int]]) -> None:
    def note(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(prefix) and code.co_name != "<module>":
            ran.add((code.co_filename[len(prefix) :], code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)


if __name__ == "__main__":
    main()
