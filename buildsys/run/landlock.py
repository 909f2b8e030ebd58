"""A sandbox of the Linux kernel, Landlock: what a process and its children may read and write, for good.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of rules. Landlock
refuses to open what is not allowed, with EACCES; whether a path exists can still be asked. What was opened before goes
on, and so do other threads: a process has to have one alone.
"""

from __future__ import annotations

import errno
import functools
import os
import platform
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence

Limits = tuple[Sequence[str], Sequence[str]]
"""Files and folders, absolute, with all below them: (those that may be read, those that may be written to as well)."""

SYSTEM = (
    *"/usr /lib /lib32 /lib64 /bin /sbin /etc /opt /nix/store /proc /sys /dev /var/lib/ca-certificates".split(),
    *"/run/systemd/resolve /run/resolvconf /run/NetworkManager /run/current-system /run/opengl-driver".split(),
)
"""What programs and their libraries read of the system; home folders, data and temporary folders are not in it."""
DEVICES = ("/dev", "/proc/self")

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on all architectures since they were added, but for Alpha."""
_PRCTL = {"x86_64": 157, "aarch64": 167, "riscv64": 167, "ppc64le": 171, "s390x": 172, "loongarch64": 167}
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << n for n in range(4))
_CHANGE = sum(1 << n for n in range(4, 13))  # make and remove
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # since versions 2 and 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_REFUSED = os.strerror(errno.EACCES)
_WORD = re.compile(r"[^\s'\"`:,;()<>\[\]]+")
_TOLD = re.compile(rf"['\"‘`]([^'\"’`]+)['\"’`]|(\S+): {_REFUSED}|{_REFUSED}: ['\"]?([^'\"]+)")
"""Where programs name the path that was refused: in quotes, or beside the words that say so."""


@functools.cache
def version() -> int:
    """That of the kernel's Landlock, 0 where it has none or it is switched off."""
    if sys.platform != "linux" or platform.machine() not in _PRCTL:
        return 0
    try:
        return _call(_CREATE, None, 0, 1)
    except (ImportError, OSError):
        return 0


def restrict(limits: Limits) -> None:
    """Limit this process and all that it starts from now on. Raises OSError where that can't be done."""
    if len(os.listdir("/proc/self/task")) > 1:
        raise OSError(errno.EBUSY, "a process with several threads can't be limited")
    known = _READ | _WRITE_FILE | _CHANGE
    known |= (_REFER if version() >= 2 else 0) | (_TRUNCATE if version() >= 3 else 0)
    ruleset = _call(_CREATE, struct.pack("=Q", known), 8, 0)
    try:
        read, write = limits
        for paths, rights in ((read, _READ), (DEVICES, _READ | _WRITE_FILE), (write, known)):
            for path in paths:
                _allow(ruleset, path, rights & known)
        for path in ("/dev/shm",):  # where processes share memory
            _allow(ruleset, path, known)
        _call(_PRCTL[platform.machine()], _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Nothing where there is no such path."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        _call(_ADD, ruleset, 1, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def refused(error: BaseException, limits: Limits, folder: str) -> str:
    """The path beyond the limits that an error tells of, absolute; "" where it tells of none.

    folder: from which relative paths are.
    """
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            waiting += [other for other in (one.__cause__, one.__context__) if other]
            names = [getattr(one, name, None) for name in ("filename2", "filename")]
            named = [os.fsdecode(name) for name in names if isinstance(name, (str, bytes))]
            if found := next(_beyond(named, limits, folder), "") or refused_in(str(one), limits, folder):
                return found
    return ""


def refused_in(text: str, limits: Limits, folder: str) -> str:
    """The same, of what a program said."""
    for line in reversed(text.splitlines()):
        if _REFUSED in line:
            told = [name for found in _TOLD.findall(line) for name in found if _is_name(name, folder)]
            # Any other word is one only where it leads to what can't even be read.
            others = [word for word in _WORD.findall(line) if _is_hidden(os.path.join(folder, word), limits)]
            if found := next(_beyond([*told, *others], limits, folder), ""):
                return found
    return ""


def _beyond(names: Iterable[str], limits: Limits, folder: str) -> Iterator[str]:
    """Those paths that are, or could be made, and may not be opened in one of two ways."""
    for name in names:
        path = os.path.normpath(os.path.join(folder, name))
        real = os.path.realpath(path)
        is_path = os.path.lexists(real) or os.path.isdir(os.path.dirname(real))
        if is_path and not _is_below(real, (*limits[1], *DEVICES)):
            yield path


def _is_name(word: str, folder: str) -> bool:
    """It names a file that is there, or it looks like one that is to be made."""
    return bool(word) and (os.path.lexists(os.path.join(folder, word)) or "/" in word or "." in word)


def _is_hidden(path: str, limits: Limits) -> bool:
    return os.path.lexists(path) and not _is_below(os.path.realpath(path), [*limits[0], *limits[1], *DEVICES])


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def _call(number: int, *arguments: object) -> int:
    """A system call. Raises OSError where that fails."""
    import ctypes  # Some builds of Python have none; they need it for nothing else.

    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in (number, *arguments)]
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    result = int(library.syscall(*wide))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
