"""Which paths count as asked for by a run: those of the project, and of the machine what is no part of the interpreter.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of who asks. Everything
is asked of the file system itself, and so goes unheard.
"""

from __future__ import annotations

import os
import stat as modes
import sys
from collections.abc import Iterable, Iterator
from posix import listdir, lstat, stat
from typing import Final

_SYSTEM: Final = ("/proc", "/sys", "/dev")
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/usr/tmp")
_TEMPORARY_BY: Final = ("TMPDIR", "TEMP", "TMP")
_SHARED: Final = ("", "/usr", "/usr/local")
"""Prefixes that hold much more than an interpreter."""
_INSTALLED: Final = ("/site-packages/", "/dist-packages/")
_STATE: Final = ".buildsys"
_MARKS_OF_AN_ENVIRONMENT: Final = ("pyvenv.cfg", "conda-meta")


class Places:
    """Tells the name under which a path counts. root: the project's folder.

    foreign: folders, absolute, that don't count wherever they lie; `foreign_folders` knows most of them.
    """

    def __init__(self, root: str, foreign: Iterable[str]) -> None:
        self.root = root.rstrip("/")
        self._below = f"{self.root}/"
        self._inner = tuple(f"{folder}/" for folder in (f"{self._below}{_STATE}", *foreign) if self._is_below(folder))
        # What holds the project is no reason to leave it out.
        system = (*_SYSTEM, *_temporary())
        self._outer = tuple(f"{folder}/" for folder in (*system, *foreign) if not self._is_below(folder))
        self._given = (self._below, *self._outer)
        self._environments: dict[str, bool] = {}

    def name(self, full: str) -> str | None:
        """Project-relative where it lies in the project, "" for the project, else absolute; None: it doesn't count."""
        folder = full if full[-1:] == "/" else f"{full}/"
        if folder.startswith(self._below):
            if folder.startswith(self._inner) or self._in_environment(full.rpartition("/")[0]):
                return None
            return full[len(self._below) :]
        if folder.startswith(self._outer):
            return None
        return None if any(part in folder for part in _INSTALLED) else full

    def is_given(self, full: str) -> bool:
        """Whether it is there as surely as the project, the interpreter and the system are: it holds one of them."""
        folder = full if full[-1:] == "/" else f"{full}/"
        return any(given.startswith(folder) for given in self._given)

    def _is_below(self, folder: str) -> bool:
        return folder.startswith(self._below) and len(folder) > len(self._below)

    def _in_environment(self, folder: str) -> bool:
        """Whether a folder of the project belongs to an environment of Python's or conda's in it."""
        if len(folder) <= len(self.root):
            return False
        known = self._environments.get(folder)
        if known is None:
            known = is_environment(folder) or self._in_environment(folder.rpartition("/")[0])
            self._environments[folder] = known
        return known


def is_environment(folder: str) -> bool:
    return any(_is_there(f"{folder}/{mark}") for mark in _MARKS_OF_AN_ENVIRONMENT)


def holds_distributions(folder: str) -> bool:
    """Whether it is a folder that packages were installed into."""
    try:
        return any(name.endswith(".dist-info") for name in listdir(folder))
    except OSError:
        return False


def foreign_folders() -> list[str]:
    """The interpreter, what is installed for it, and this program, under all the names that they have."""
    version = "python{}.{}".format(*sys.version_info)
    found = {os.path.dirname(os.__file__), os.path.dirname(os.path.abspath(__file__))}
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        prefix = prefix.rstrip("/")
        within = ("bin", f"lib/{version}", f"lib64/{version}", "lib/python3", f"include/{version}")
        found.update(f"{prefix}/{part}" for part in within) if prefix in _SHARED else found.add(prefix)
    found.update(folder.rstrip("/") for folder in sys.path if holds_distributions(folder))
    return sorted(found | {os.path.realpath(folder) for folder in found})


def _temporary() -> Iterator[str]:
    named = (os.environ.get(variable, "") for variable in _TEMPORARY_BY)
    for folder in (*_TEMPORARY, *(folder.rstrip("/") for folder in named if folder.startswith("/"))):
        if folder:
            yield folder
            yield os.path.realpath(folder)


def whole(path: str, folder: str) -> str:
    """A path from the root, without "." and "//"; without ".." where that can be said without following links."""
    if path[0] != "/":
        path = f"{folder}/{path}"
    if "//" not in path and "/." not in path and path[-1] != "/":
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != ".." and not _is_link("/" + "/".join(parts)):
            parts.pop()
        elif part not in ("", ".") and not (part == ".." and not parts):
            parts.append(part)
    return "/" + "/".join(parts)


def _is_there(path: str) -> bool:
    try:
        stat(path)
    except OSError:
        return False
    return True


def _is_link(path: str) -> bool:
    try:
        return modes.S_ISLNK(lstat(path).st_mode)
    except OSError:
        return False
