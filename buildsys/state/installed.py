"""What tells, without reading anything, whether other distributions are installed.

Knows only where the running interpreter looks for them; which they are is for `packages`.
"""

from __future__ import annotations

import os
import sys


def installed() -> list[object]:
    """What differs once other versions are installed: installing and upgrading make a new folder of metadata.

    Editable installs also have files by which `sys.path` is extended.
    """
    found: list[object] = [sys.version]
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                metadata = sorted((entry for entry in entries if _tells(entry.name)), key=lambda entry: entry.path)
        except OSError:  # no folder, or an archive
            continue
        for entry in metadata:
            stat = entry.stat(follow_symlinks=False)
            found.append([entry.path, stat.st_mtime_ns, stat.st_ino])
    return found


def is_metadata(name: str) -> bool:
    """Whether a name in a folder of packages is that of a distribution's metadata, a folder or a file."""
    return name.lower().endswith((".dist-info", "egg-info"))


def _tells(name: str) -> bool:
    return is_metadata(name) or name.endswith(".pth")
