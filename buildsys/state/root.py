"""Where a project is: the nearest folder that holds rule files.

Knows nothing of what is in them, so that a command that needs no more finds its project at no cost.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from buildsys.errors import BuildError
from buildsys.state.layout import refuse_newer
from buildsys.state.looks import Looks

RULES: Final = "rules"
STATE: Final = ".buildsys"


def find_root(start: Path) -> Path:
    """The project that `start` lies in: the nearest folder upward that holds `rules/`.

    Raises BuildError where there is none, and where a newer buildsys has changed the layout of its state.
    """
    folder = Path(os.path.abspath(start))
    for candidate in (folder, *folder.parents):
        if rule_files(Looks(candidate)):
            refuse_newer(candidate / STATE)
            return candidate
    raise BuildError(
        "this is no buildsys project: no rules/*.toml here or in a folder above",
        facts=[("folder", str(folder))],
        hint="go to a project, or name one with -C DIR",
    )


def rule_files(looks: Looks) -> list[str]:
    """The rule files of a folder, sorted; hidden ones, as editors leave them beside a file that is open, are none."""
    try:
        names = looks.names(RULES)
    except OSError:
        return []
    return sorted(f"{RULES}/{name}" for name in names if name.endswith(".toml") and not name.startswith("."))
