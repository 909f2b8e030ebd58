"""What this machine has for actions to occupy: GPUs, by the names that CUDA knows them by, and memory.

Knows nothing of who takes them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_DEVICE: Final = re.compile(r"nvidia[0-9]+")
_ASK_S: Final = 30.0
_CGROUP: Final = Path("/sys/fs/cgroup")


def gpus(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs that may be used, as they are named in `CUDA_VISIBLE_DEVICES`.

    Where that is set, its word is taken, whatever there is; CUDA ends it at the first one that is none, such as -1.
    Else there are as many as there are devices of the driver, or as its tool tells.
    """
    if VISIBLE in environ:
        named = [name.strip() for name in environ[VISIBLE].split(",")]
        ends = [n for n, name in enumerate(named) if not name or name.startswith("-")]
        return tuple(dict.fromkeys(named[: min(ends, default=len(named))]))
    n = sum(1 for name in os.listdir("/dev") if _DEVICE.fullmatch(name)) or _listed_by_driver()
    return tuple(map(str, range(n)))


def _listed_by_driver() -> int:
    tool = shutil.which("nvidia-smi")
    if not tool:
        return 0
    try:
        said = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=_ASK_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in said.stdout.splitlines())


def memory() -> int:
    """Bytes of memory, of the machine or of the control group that this process is limited by."""
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits())


def _limits() -> Iterator[int]:
    """The limits of the control group and of those above it, in either version of their file system."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            top, name = (_CGROUP / "memory", "memory.limit_in_bytes") if controllers else (_CGROUP, "memory.max")
            own = top / path.lstrip("/")
            for folder in (own, *own.parents):
                if folder.is_relative_to(top):
                    yield from _limit(folder / name)


def _limit(file: Path) -> Iterator[int]:
    try:
        yield int(file.read_text())
    except (OSError, ValueError):
        return  # no such group in this container, or "max"
