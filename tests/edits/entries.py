"""A program that runs entries: each in a process of its own, forked from one that has imported nothing of them.

It reads a JSON object a line, {tree, entry, environment}, and answers with what the entry gave, as a text. Standard
library only, and little of it, so that a file of a tree can hide a module; knows nothing of buildsys.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import TextIO

_LIMIT_S = 60


def main() -> None:
    """Answers until its input ends. What entries print goes nowhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.dont_write_bytecode = True
    for line in sys.stdin:
        answers.write(json.dumps(_in_a_fork(json.loads(line), answers)) + "\n")
        answers.flush()


def _in_a_fork(asked: dict, answers: TextIO) -> str:
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        os.close(answers.fileno())
        os.close(0)
        signal.alarm(_LIMIT_S)
        os.environ.update(asked["environment"])
        os.write(into, result_of(asked["tree"], asked["entry"]).encode("utf-8", "surrogatepass"))
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as stream:
        told = stream.read().decode("utf-8", "surrogatepass")
    _, status = os.waitpid(child, 0)
    return told if status == 0 else f"ended with status {status}"


def result_of(tree: str, entry: str) -> str:
    """The repr of what `module:function` of a tree returns, or what it raises; in this process."""
    os.chdir(tree)
    packages = [name for name in sorted(os.listdir(tree)) if _holds_distributions(f"{tree}/{name}")]
    sys.path[:0] = [tree, *(f"{tree}/{name}" for name in packages)]
    module, _, function = entry.partition(":")
    try:
        return f"gave {getattr(importlib.import_module(module), function)()!r}"
    except BaseException as error:
        return f"raised {type(error).__name__}: {error}"


def _holds_distributions(folder: str) -> bool:
    return os.path.isdir(folder) and any(name.endswith(".dist-info") for name in os.listdir(folder))


if __name__ == "__main__":
    main()
