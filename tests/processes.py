"""What runs on this machine, as /proc tells it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.run.conftest import alive


def children_of(pid: int) -> list[int]:
    """Those that still run, in the order in which they were started."""
    found: list[int] = []
    for one in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, one.read_text().split())
    return [child for child in found if alive(child)]


def processes_in(folder: Path) -> dict[int, str]:
    """Every process whose working folder is there or below, with its command: whoever started it, and left it."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            where = os.readlink(entry / "cwd")
            if alive(int(entry.name)) and Path(where).is_relative_to(folder):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found
