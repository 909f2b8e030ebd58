"""Paths that match a pattern of a rule file, in the order in which people count.

Knows nothing of rules or digests. Two kinds: `{shard}` stands for one shard name, `*` for any part of a file name.
Names that start with a dot are skipped (editors and copies in progress leave such), unless the pattern has the dot too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from buildsys.model import SHARD_NAME, Shard, natural_key
from buildsys.state.looks import Looks

_SHARD = "{shard}"


def matches(looks: Looks, pattern: str) -> dict[Shard, str]:
    """Shard name -> path for every existing path that fits a pattern with `{shard}`, in natural order of the names.

    `{shard}` may stand in any part of the path, and more than once: it is the same name everywhere.
    """
    found = dict(_shards(looks, pattern))
    return {Shard(name): found[name] for name in sorted(found, key=natural_key)}


def expand(looks: Looks, pattern: str) -> list[str]:
    """The existing paths that fit a pattern with `*`, in natural order; of a plain path itself, where it exists."""
    paths = [""]
    for part in pattern.split("/"):
        paths = [f"{path}{name}/" for path in paths for name in _fitting(looks, path, part)]
    return sorted((path.rstrip("/") for path in paths), key=natural_key)


def _shards(looks: Looks, pattern: str) -> Iterator[tuple[str, str]]:
    """The first part with `{shard}` is looked up; what follows it is a plain path once the shard is known."""
    parts = pattern.split("/")
    at = next(i for i, part in enumerate(parts) if _SHARD in part)
    folder = "".join(f"{part}/" for part in parts[:at])
    before, *after = parts[at].split(_SHARD)
    fits = re.compile(f"{re.escape(before)}({SHARD_NAME})" + r"(?:\1)".join(map(re.escape, after)))
    for name in looks.names(folder):
        match = fits.fullmatch(name)
        if match and (before or not name.startswith(".")):
            path = "/".join([folder + name, *(part.replace(_SHARD, match[1]) for part in parts[at + 1 :])])
            if looks.exists(path):
                yield match[1], path


def _fitting(looks: Looks, folder: str, part: str) -> list[str]:
    if "*" not in part:
        return [part] if looks.exists(folder + part) else []
    fits = re.compile(".*".join(map(re.escape, part.split("*"))))
    hidden = part.startswith(".")
    return [name for name in looks.names(folder) if fits.fullmatch(name) and name.startswith(".") <= hidden]
