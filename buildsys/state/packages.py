"""Which distribution, in which version, provides an imported name.

Knows the environment of the running interpreter. Reading all metadata takes a tenth of a second, so the map is kept
beside the stats of the folders that it was read from.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_ABSENT = "not installed"


class Packages:
    """Versions of installed distributions by the top-level names that they provide."""

    def __init__(self, cache: Path) -> None:
        """cache: a file to keep the map in; made when it is missing, ignored when it is of another environment."""
        self._cache = cache
        self._provided: dict[str, list[str]] | None = None

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """Distribution -> version for the imported names; a name that nothing provides is `{name: "not installed"}`."""
        wanted = sorted(names)
        if not wanted:
            return {}
        if self._provided is None:
            self._provided = self._load()
        found: dict[str, str] = {}
        for name in wanted:
            for line in self._provided.get(name, [f"{name}=={_ABSENT}"]):
                distribution, _, version = line.partition("==")
                found[distribution] = version
        return found

    def _load(self) -> dict[str, list[str]]:
        stamp = installed()
        try:
            kept = json.loads(self._cache.read_text())
            if kept["stamp"] == stamp:
                provided: dict[str, list[str]] = kept["provided"]
                return provided
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no map yet, or one that a kill cut short: it is made anew
        provided = _read_metadata()
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._cache.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"stamp": stamp, "provided": provided}))
        temporary.replace(self._cache)
        return provided


def installed() -> list[object]:
    """What differs once other versions are installed: installing and upgrading make a new folder of metadata."""
    found: list[object] = [sys.version]
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                metadata = sorted(
                    (entry for entry in entries if _is_metadata(entry.name)), key=lambda entry: entry.path
                )
        except OSError:  # no folder, or an archive
            continue
        for entry in metadata:
            stat = entry.stat(follow_symlinks=False)
            found.append([entry.path, stat.st_mtime_ns, stat.st_ino])
    return found


def _is_metadata(name: str) -> bool:
    return name.lower().endswith((".dist-info", "egg-info"))


def _read_metadata() -> dict[str, list[str]]:
    from importlib import metadata

    return {
        name: sorted({f"{distribution}=={metadata.version(distribution)}" for distribution in distributions})
        for name, distributions in metadata.packages_distributions().items()
    }
