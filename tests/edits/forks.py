"""A program that runs commands of buildsys, each in a process forked from this one, which has loaded them already.

It reads a JSON object a line, {words, folder, environment}, and answers with {code, out, err}. What is spared is the
start of Python and its imports: a command sees a process of its own, with the hash seed of this one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).parents[2]
_LIMIT_S = 60


class Forks:
    """Such a program, from the outside. A context manager."""

    def __init__(self, seed: int) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *error: object) -> None:
        self._program.communicate()

    def run(self, words: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str, str]:
        """Exit code, output and errors of `buildsys WORDS`."""
        assert self._program.stdin
        assert self._program.stdout
        asked = {"words": words, "folder": str(folder), "environment": environment}
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        told = json.loads(self._program.stdout.readline())
        return told["code"], told["out"], told["err"]


def main() -> None:
    from buildsys import trial  # noqa: F401  loaded here, so that forks need not
    from buildsys.cli import fingerprint, main  # noqa: F401

    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if not child:
                _become(asked, out, err)
            _, status = os.waitpid(child, 0)
            told = {"code": os.waitstatus_to_exitcode(status), "out": _text(out), "err": _text(err)}
        answers.write(json.dumps(told) + "\n")
        answers.flush()


def _become(asked: dict, out: BinaryIO, err: BinaryIO) -> None:
    """Runs the command and ends, as the program `buildsys` would."""
    from buildsys.cli.main import main as program

    code = 1
    signal.alarm(_LIMIT_S)
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.chdir(asked["folder"])
        os.environ.update(asked["environment"])
        sys.argv = ["buildsys", *asked["words"]]
        program()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


if __name__ == "__main__":
    main()
