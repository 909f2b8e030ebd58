"""The files that a new project starts with, and putting them where none of the user's is.

Knows where the templates are: with an installed buildsys in its package, in a checkout at the places that the build
configuration takes them from. Knows nothing of what is in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from buildsys.errors import BuildError

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parent
_EAGLE3_PARTS: Final = ("rules", "workspace/configs", "workspace/data", "workspace/scripts", "workspace/verifier")
_IGNORED: Final = (".buildsys/", "workspace/build/", "__pycache__/")

TEMPLATES: Final = ("first", "eagle3")


@dataclass(frozen=True)
class Started:
    """What `start` did. unignored: lines that the user's own `.gitignore` lacks."""

    paths: tuple[str, ...]
    unignored: tuple[str, ...]


def files_of(template: str) -> dict[str, Path]:
    """Path in a project -> the file to copy there."""
    packaged = _PACKAGE / "templates" / template
    if packaged.is_dir():
        return dict(_below(packaged, packaged))
    if template == "eagle3":
        return {path: file for part in _EAGLE3_PARTS for path, file in _below(_CHECKOUT / part, _CHECKOUT)}
    root = _CHECKOUT / "templates" / template
    return dict(_below(root, root))


def start(folder: Path, template: str) -> Started:
    """Make a project in `folder`, which is made where it is missing.

    Raises BuildError, with nothing written, where a file of the user's is in the way; one that says the same is not.
    A `.gitignore` is left as it is.
    """
    files = files_of(template)
    _refuse_project(folder)
    if taken := [path for path, file in files.items() if not _is_free(folder / path, file)]:
        raise BuildError(
            "files are in the way, and init overwrites nothing",
            facts=[("file", path) for path in taken],
            hint="move them, or make the project in another folder: buildsys init DIR",
        )
    try:
        for path, file in files.items():
            _write(folder / path, file.read_bytes())
        return Started(tuple(files), _ignore(folder / ".gitignore"))
    except OSError as error:
        raise BuildError(
            "the project can't be written", facts=[("file", str(error.filename)), ("reason", error.strerror or "")]
        ) from error


def _below(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file.relative_to(root).as_posix(), file


def _refuse_project(folder: Path) -> None:
    if rules := sorted((folder / "rules").glob("*.toml")):
        raise BuildError(
            "this is a project already",
            facts=[("rules", str(rules[0]))],
            hint="make another in a new folder: buildsys init DIR",
        )


def _is_free(target: Path, file: Path) -> bool:
    """Nothing is there but perhaps a file that says the same, and no file where a folder is to be."""
    if os.path.lexists(target):
        return target.is_file() and target.read_bytes() == file.read_bytes()
    return next(folder for folder in target.parents if os.path.lexists(folder)).is_dir()


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        with target.open("xb") as file:
            file.write(content)


def _ignore(path: Path) -> tuple[str, ...]:
    """Have git ignore state and outputs; gives the lines that a `.gitignore` which is there lacks."""
    if not path.exists():
        _write(path, "".join(f"{line}\n" for line in _IGNORED).encode())
        return ()
    present = {line.strip().strip("/") for line in path.read_text(errors="replace").splitlines()}
    return tuple(line for line in _IGNORED if line.strip("/") not in present)
