"""The figures of all packages as a table, and as the page `docs/fingerprints.md`."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

from tests.mutation.measure import Tally
from tests.mutation.prints import LEVELS

PAGE = Path(__file__).parents[2] / "docs" / "fingerprints.md"
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"
_HEADS = (
    "package",
    "functions",
    "entries",
    "ran",
    "left",
    "told",
    "stale",
    "did not run",
    "changed",
    "no-ops",
    "changed",
)


def table(tallies: list[Tally]) -> str:
    """A line a package and one for all; where there are two figures, they are of the traced and the static print."""
    rows = [_row(tally.package, [tally]) for tally in tallies]
    rows = [_HEADS, tuple("-" if n == 0 else "-:" for n in range(len(_HEADS))), *rows, _row("all", tallies)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADS))]
    return "\n".join("| " + " | ".join(map(_padded, row, widths)) + " |" for row in rows)


def _padded(text: str, width: int) -> str:
    if set(text) <= set("-:"):
        return "-" * (width - 1) + text[-1]
    return text.ljust(width) if not text[:1].isdigit() else text.rjust(width)


def _row(name: str, tallies: list[Tally]) -> tuple[str, ...]:
    def total(of: str) -> int:
        return sum(getattr(tally, of) for tally in tallies)

    def seen(what: str) -> list[int]:
        return [sum(len(getattr(tally.seen[level], what)) for tally in tallies) for level in LEVELS]

    return (
        name,
        f"{total('n_functions')}",
        f"{total('n_entries')}",
        f"{total('n_executed')}",
        " / ".join(map(str, seen("left"))),
        f"{total('n_telling')}",
        " / ".join(map(str, seen("stale"))),
        f"{total('n_idle')}",
        " / ".join(f"{share(n, total('n_idle')):.1f} %" for n in seen("idle")),
        f"{total('n_no_ops')}",
        " / ".join(f"{share(n, total('n_no_ops')):.1f} %" for n in seen("over")),
    )


def share(part: int, of: int) -> float:
    """In percent."""
    return 100 * part / of if of else 0.0


def write(tallies: list[Tally], asked: str) -> None:
    """Puts the figures into the page, with how they were made."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    made = (
        f"{datetime.date.today()}, commit {commit}, {os.cpu_count()} processors ({platform.machine()}), "
        f"Python {platform.python_version()}: `python -m tests.mutation{asked}`"
    )
    text = PAGE.read_text()
    head, _, rest = text.partition(_BEGIN)
    PAGE.write_text(f"{head}{_BEGIN}\n\n{table(tallies)}\n\n{made}\n\n{_END}{rest.partition(_END)[2]}")
