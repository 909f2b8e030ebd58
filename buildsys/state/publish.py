"""What was made, put in its place in the workspace: atomically, and without losing anything that a user put there.

Knows nothing of keys, of the manifest or of what is stale; whoever calls says which bytes are the build's own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from buildsys.digest import Digest
from buildsys.errors import BuildError
from buildsys.state import disk
from buildsys.state.files import Files, Seen
from buildsys.state.stats import Stat, members_of

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


def publish(files: Files, staged: Path, path: str, *, ours: Callable[[Digest], bool]) -> str:
    """Move the file or folder `staged` to `path`, whole or not at all; what is there is replaced.

    ours: whether bytes with that digest may be thrown away. Where they may not (a file that the build did not make, or
    that was edited), what was there is kept as `NAME.mine-1`, `.mine-2` ...; gives that path, else "".
    `staged` is gone afterwards. Where the system can exchange two names at once, a file that somebody writes at the
    very moment of the move is kept as well.
    """
    target = files.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    before = _look(files, path)
    expendable = before is not None and ours(before.digest)
    staged = _beside(staged, target)
    files.arriving(path, Stat.of(os.lstat(staged)))
    if not os.path.lexists(target):
        os.rename(staged, target)
        return ""
    old = _exchange(staged, target)
    if before is not None and expendable and _is_same(before, old):
        disk.remove(old)
        return ""
    return _keep(old, target, path)


def set_aside(files: Files, path: str, *, ours: Callable[[Digest], bool]) -> str:
    """Clear `path` without anything to put there: what is `ours` is removed, anything else kept as in `publish`."""
    target = files.root / path
    if not os.path.lexists(target):
        return ""
    if (seen := _look(files, path)) and ours(seen.digest):
        disk.remove(target)
        return ""
    return _keep(target, target, path)


def remove(files: Files, path: str, *, ours: Callable[[Digest], bool]) -> bool:
    """Remove a file or folder that no rule makes any more, and the folders that this leaves empty.

    False, with nothing done, where its bytes are not `ours`. True as well where there is nothing to remove.
    """
    if os.path.lexists(files.root / path):
        seen = _look(files, path)
        if seen is None or not ours(seen.digest):
            return False
        disk.remove(files.root / path)
    folder = (files.root / path).parent
    while folder != files.root and files.root in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            break
        folder = folder.parent
    return True


def _look(files: Files, path: str) -> Seen | None:
    """None as well for what can't be looked at: nobody knows what it is, so it is not the build's."""
    try:
        return files.look(path)
    except BuildError:
        return None


def _beside(staged: Path, target: Path) -> Path:
    """`staged` itself, or a hidden copy next to `target` where that is another file system (no rename reaches it)."""
    if _same_file_system(staged, target.parent):
        return staged
    near = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    disk.remove(near)
    shutil.move(staged, near)
    return near


def _same_file_system(path: Path, folder: Path) -> bool:
    return os.lstat(path).st_dev == os.stat(folder).st_dev


def _exchange(staged: Path, target: Path) -> Path:
    """Put `staged` at `target`; gives the path at which what was there is now."""
    if swap(staged, target):
        return staged
    aside = target.with_name(f".{target.name}.{os.getpid()}.old")
    os.rename(target, aside)
    os.rename(staged, target)
    return aside


def swap(one: Path, other: Path) -> bool:
    """Exchange two names at once; False where the system or the file system can't."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(code, os.strerror(code), str(other))


def _is_same(before: Seen, now_at: Path) -> bool:
    """Still what was seen before the move. The move itself changes the ctime of what was moved, nothing below it.

    A folder that holds a link of which the scan knows nothing is not the same: the build makes none.
    """
    try:
        if before.tree:
            return tuple(members_of(str(now_at), before.path, whole=True)) == before.members
        found = os.stat(now_at)
    except (BuildError, OSError):
        return False
    return (found.st_size, found.st_mtime_ns, found.st_ino) == (before.size, before.stat.mtime_ns, before.stat.inode)


def _keep(old: Path, target: Path, path: str) -> str:
    """Move what was at `path`, and is at `old` now, beside `target` under a free name; gives the path of that."""
    kept = _free_name(target)
    os.rename(old, kept)
    return path.rstrip("/").removesuffix(target.name) + kept.name


def _free_name(target: Path) -> Path:
    n = 1
    while os.path.lexists(kept := target.with_name(f"{target.name}.mine-{n}")):
        n += 1
    return kept
