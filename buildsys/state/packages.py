"""Which distribution, in which version, provides an imported name.

Knows the environment of the running interpreter. Reading all metadata takes a tenth of a second, so the map is kept
beside the stats of the folders that it was read from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from buildsys.state.disk import write_whole
from buildsys.state.installed import installed
from buildsys.state.inventory import provided

_ABSENT = "not installed"


class Packages:
    """Versions of installed distributions by the top-level names that they provide."""

    def __init__(self, cache: Path) -> None:
        """cache: a file to keep the map in; made when it is missing, ignored when it is of another environment."""
        self._cache = cache
        self._provided: dict[str, list[str]] | None = None

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """Distribution -> version for the imported names; a name that nothing provides is `{name: "not installed"}`."""
        if self._provided is None and (names := list(names)):
            self._provided = self._load()
        return versions_of(names, self._provided or {})

    def _load(self) -> dict[str, list[str]]:
        stamp = installed()
        try:
            kept = json.loads(self._cache.read_text())
            if kept["stamp"] == stamp:
                return kept["provided"]  # type: ignore[no-any-return]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no map yet, or one that a kill cut short: it is made anew
        found = provided()
        write_whole(self._cache, json.dumps({"stamp": stamp, "provided": found}).encode())
        return found


def versions_of(names: Iterable[str], provided: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Distribution -> version for imported names, by what each name is provided by."""
    found: dict[str, str] = {}
    for name in sorted(names):
        for line in provided.get(name, [f"{name}=={_ABSENT}"]):
            distribution, _, version = line.partition("==")
            found[distribution] = version
    return found
