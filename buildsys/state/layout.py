"""The layout of a project's state folder: its number, and the way there from an older one.

The manifest and the log of replies have versions of their own for what is in them; this is about which files there are
and what they are called. Knows nothing of what is in the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from buildsys.errors import BuildError
from buildsys.state.disk import write_whole

MIGRATIONS: Final[tuple[Callable[[Path], None], ...]] = ()
"""Entry n takes the folder from layout n + 1 to n + 2, also where an earlier try was killed half way."""
_NAME: Final = "layout"


def refuse_newer(state: Path) -> None:
    """Raises BuildError where a newer buildsys has changed the layout: nothing in there means what it seems to."""
    if (found := _number(state)) > len(MIGRATIONS) + 1:
        raise BuildError(
            "a newer buildsys has worked in this project",
            facts=[
                ("state", str(state)),
                ("its layout", str(found)),
                ("this one knows", str(len(MIGRATIONS) + 1)),
            ],
            hint="install that version, or a later one",
        )


def bring_up_to_date(state: Path) -> None:
    """Migrate an older layout; only for the process that holds the build lock. Raises BuildError for a newer one."""
    refuse_newer(state)
    found = _number(state)
    for n, migrate in enumerate(MIGRATIONS[found - 1 :], start=found + 1):
        migrate(state)
        _write(state, n)
    if not (state / _NAME).exists():
        _write(state, found)


def _number(state: Path) -> int:
    """1 as well where nobody wrote it down: the first layout had no number. So too for what a lost write left empty."""
    try:
        return int((state / _NAME).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return 1


def _write(state: Path, number: int) -> None:
    write_whole(state / _NAME, b"%d\n" % number)
