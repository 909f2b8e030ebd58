"""What the file system has no single call for: a small file replaced as a whole, a path cleared, names that last.

Knows nothing of what is in a file.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file, or make it and its folder: whoever reads it sees all of the old bytes or all of the new ones.

    Not synced. A kill may leave a hidden file beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it; nothing happens where there is nothing."""
    if path.is_dir() and not path.is_symlink():
        import shutil  # loads what a build with nothing to do has no use for

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, as fsync does for a file's bytes."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
