"""Other programs that look at source texts: ruff for names and words, another interpreter for what it can compile.

Each is one process for all texts. Knows neither rules nor what is done about what is found.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from buildsys.code.findings import SYNTAX, Fault, Said, fault_of

_PROGRAM: Final = Path(__file__).with_name("compiles.py")
_TIMEOUT_S: Final = 60.0
_NEWEST: Final = 13
"""The newest minor version of Python that every ruff we can run with knows."""
_SELECT: Final = "F821,F823,F405"


@functools.cache
def ruff() -> str:
    """The path of ruff, "" where it is not installed."""
    try:
        from ruff import find_ruff_bin  # looks for it where it was installed, which a search of PATH may not find

        return str(find_ruff_bin())
    except (ImportError, FileNotFoundError):
        return ""


def ruff_stamp() -> str:
    """What differs once another ruff is installed; "" without one."""
    try:
        stat = os.stat(ruff())
    except OSError:
        return ""
    return f"{ruff()} {stat.st_size} {stat.st_mtime_ns}"


def ask_ruff(texts: Sequence[tuple[str, str]]) -> list[list[Said]] | None:
    """What ruff says of each text, in order; None where it can't be asked. texts: pairs of a file's name and its text.

    It is given copies in UTF-8, so it sees what was read and not what is saved meanwhile, whatever its encoding. Of the
    user's settings for ruff none count: they say what is to be styled how, and not what is there when a rule runs.
    """
    version = f"py3{min(sys.version_info.minor, _NEWEST)}"
    command = [ruff(), "check", "--isolated", "--no-cache", "--exit-zero", "--quiet", "--output-format", "json"]
    command += ["--no-respect-gitignore", "--config", "exclude = []", "--target-version", version, "--select", _SELECT]
    env = {name: value for name, value in os.environ.items() if not name.startswith("RUFF_")}
    with tempfile.TemporaryDirectory(prefix="buildsys-") as folder:
        for n, (name, text) in enumerate(texts):
            file = Path(folder, str(n), "__init__.py" if name == "__init__.py" else "text.py")
            file.parent.mkdir()
            file.write_bytes(text.encode("utf-8", "replace"))
        try:
            done = subprocess.run(
                [*command, folder], env=env, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
            )
            told = [(_number(one), _said(one)) for one in json.loads(done.stdout)]
        except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError):
            return None
    said: list[list[Said]] = [[] for _ in texts]
    for n, one in told:
        said[n].append(one)
    return said


def _number(told: Mapping[str, Any]) -> int:
    return int(Path(told["filename"]).parent.name)


def _said(told: Mapping[str, Any]) -> Said:
    start, end = told["location"], told["end_location"]
    return Said(told["code"] or SYNTAX, told["message"], start["row"], start["column"], end["row"], end["column"])


def compile_elsewhere(python: str, env: Mapping[str, str], texts: Sequence[str]) -> list[Fault | None] | None:
    """What the interpreter at this path finds wrong with each text, in order; None where it can't be asked."""
    try:
        done = subprocess.run(
            [python, str(_PROGRAM)],
            env=dict(env),
            input=json.dumps(list(texts)),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
        told = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return [
        fault_of(text, message[0], message[1], message[2], (message[3], message[4])) if message else None
        for text, message in zip(texts, told, strict=True)
    ]
