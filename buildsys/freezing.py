"""Copies of the code that a command runs, so that it runs what was fingerprinted, whatever is saved meanwhile.

Knows nothing of commands: which words name a script is read in `commands`. Code that is installed as editable lies in a
folder of its own, from which Python imports before all that is installed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from buildsys.code.slice import Slice
from buildsys.digest import digest_of
from buildsys.state.editable import Home, is_outside

_ELSEWHERE: Final = ".elsewhere"
_VARIABLE: Final = "PYTHONPATH"


def freeze(code: Slice, folder: Path, homes: Sequence[Home] = ()) -> Path:
    """Write a slice's sources below `folder`, where they are not there yet, and give the folder that holds them.

    The same texts are always in the same place, and a text never changes there. homes: of what is installed as
    editable; links lead to what lies beside its modules, such as data, but for other sources.
    """
    texts = {path: text for path, text in code.sources.items() if not is_outside(path)}
    links: dict[str, str] = {}
    for home in homes:
        within = {_named(home, path): text for path, text in code.sources.items() if home.holds(path)}
        texts |= within
        links |= dict(_beside(f"{_ELSEWHERE}/{home.module.replace('.', '/')}", home.path))
    frozen = folder / digest_of(sorted(texts.items()), sorted(links.items()))
    if frozen.is_dir():
        return frozen
    folder.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".", dir=folder))
    for path, text in texts.items():
        _in(temporary, path).write_bytes(_encoded(text))
    for path, target in links.items():
        _in(temporary, path).symlink_to(target)
    try:
        temporary.rename(frozen)
    except OSError:
        if not frozen.is_dir():  # another thread was quicker, or else it is a real error
            raise
        shutil.rmtree(temporary)
    return frozen


def importing(frozen: Path, env: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a command imports what lies frozen there and is installed as editable."""
    before = env.get(_VARIABLE)
    return {**env, _VARIABLE: os.pathsep.join([str(frozen / _ELSEWHERE), *([before] if before else [])])}


def _named(home: Home, path: str) -> str:
    """Where a file of a home lies in the copy: by the name that it is imported by."""
    return f"{_ELSEWHERE}/{home.module.replace('.', '/')}{path[len(home.stem) :]}"


def _beside(path: str, place: str) -> Iterator[tuple[str, str]]:
    """What else lies in a folder of a package: (path in the copy, where it is), as far down as there are sources."""
    if not os.path.isdir(place):
        return
    with os.scandir(place) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = f"{path}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name == "__pycache__":
                    continue
                if _has_sources(entry.path):
                    yield from _beside(name, entry.path)
                    continue
            elif entry.name.endswith((".py", ".pyc")):
                continue
            yield name, entry.path


def _has_sources(folder: str) -> bool:
    return any(name.endswith(".py") for _, _, names in os.walk(folder) for name in names)


def _in(folder: Path, path: str) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _encoded(text: str) -> bytes:
    """The bytes that Python reads as this text, whatever encoding its first lines declare."""
    encoding, _ = tokenize.detect_encoding(BytesIO(text.encode("utf-8", "replace")).readline)
    return text.encode(encoding)
