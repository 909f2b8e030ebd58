"""The program by which an interpreter tells what it is and what is installed for it, as JSON.

Run by path in any Python from 3.9 on, so it imports nothing but the standard library.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]  # This folder is no place to import from.

import json
from importlib import metadata


def provided() -> dict[str, list[str]]:
    """The distributions, "name==version", by the top-level names that they provide; as imports find them, by path."""
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if not name or name.lower() in seen:
            continue  # hidden by one of an earlier folder, or half removed
        seen.add(name.lower())
        for top in _tops(one):
            found.setdefault(top, set()).add(f"{name}=={one.version}")
    return {top: sorted(lines) for top, lines in found.items()}


def _tops(one: metadata.Distribution) -> set[str]:
    declared = (one.read_text("top_level.txt") or "").split()
    if declared:
        return set(declared)
    sources = [file for file in one.files or () if file.suffix == ".py"]
    return {file.parts[0] if len(file.parts) > 1 else file.stem for file in sources}


if __name__ == "__main__":
    told = {
        "version": list(sys.version_info[:2]),
        "folders": sys.path,
        "stdlib": sorted(getattr(sys, "stdlib_module_names", ())),
        "provided": provided(),
    }
    print(json.dumps(told))
