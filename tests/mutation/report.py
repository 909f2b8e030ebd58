"""The figures of packages as a table, and on the page `docs/fingerprints.md`; those that are there are kept as data.

A package's figures stay until it is measured again, so that packages can be measured one by one.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.mutation.measure import Tally
from tests.mutation.prints import LEVELS

PAGE = Path(__file__).parents[2] / "docs" / "fingerprints.md"
KEPT = Path(__file__).with_name("figures.json")
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"
_COUNTS = ("n_functions", "n_entries", "n_executed", "n_telling", "n_idle", "n_no_ops", "n_read", "n_asked")
_SEEN = ("stale", "left", "idle", "over")
_HEADS = (
    "package",
    "functions",
    "entries",
    "mutations of what ran",
    "changed it",
    "changed the result",
    "stale",
    "mutations of what did not run",
    "changed it",
    "neutral edits",
    "changed it",
    "asked of the command",
)

Figures = Mapping[str, int]


def figures(tally: Tally) -> dict[str, int]:
    """All counts of a package: "n_idle", "idle traced", "idle static" ..."""
    found = {name: int(getattr(tally, name)) for name in _COUNTS}
    found |= {f"{name} {level}": len(getattr(tally.seen[level], name)) for name in _SEEN for level in LEVELS}
    return {**found, "otherwise": len(tally.otherwise), "untraced": len(tally.untraced)}


def table(packages: Mapping[str, Figures]) -> str:
    """A line a package and one for all; of two figures, the first is of the traced, the second of the static print."""
    rows = [_row(name, one) for name, one in packages.items()]
    rows = [_HEADS, tuple("-" if n == 0 else "-:" for n in range(len(_HEADS))), *rows]
    rows.append(_row("all", _sum(packages.values())))
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADS))]
    return "\n".join("| " + " | ".join(map(_padded, row, widths)) + " |" for row in rows)


def _sum(some: Iterable[Figures]) -> Figures:
    some = list(some)
    return {name: sum(one[name] for one in some) for name in some[0]} if some else {}


def _padded(text: str, width: int) -> str:
    if set(text) <= set("-:"):
        return "-" * (width - 1) + text[-1]
    return text.ljust(width) if not text[:1].isdigit() else text.rjust(width)


def _row(name: str, of: Figures) -> tuple[str, ...]:
    def shares(what: str, total: str) -> str:
        return " / ".join(f"{share(of[f'{what} {level}'], of[total]):.1f} %" for level in LEVELS)

    return (
        name,
        f"{of['n_functions']}",
        f"{of['n_entries']}",
        f"{of['n_executed']}",
        " / ".join(f"{of['n_executed'] - of[f'left {level}']}" for level in LEVELS),
        f"{of['n_telling']}",
        " / ".join(f"{of[f'stale {level}']}" for level in LEVELS),
        f"{of['n_idle']}",
        shares("idle", "n_idle"),
        f"{of['n_no_ops']}",
        shares("over", "n_no_ops"),
        f"{of['n_asked']}, {of['otherwise']} otherwise",
    )


def share(part: int, of: int) -> float:
    """In percent."""
    return 100 * part / of if of else 0.0


def write(tallies: list[Tally], asked: str) -> None:
    """Keeps the figures, with how they were made, and puts all that are kept on the page."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    machine = f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}"
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for tally in tallies:
        made = f"{datetime.date.today()}, commit {commit}, {machine}: `python -m tests.mutation {tally.package}{asked}`"
        kept[tally.package] = {"made": made, "figures": figures(tally)}
    kept = dict(sorted(kept.items()))
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(PAGE.read_text(), kept))


def page(text: str, kept: Mapping[str, Mapping[str, object]]) -> str:
    """The page with the figures that are kept."""
    head, _, rest = text.partition(_BEGIN)
    made = "\n".join(f"- {one['made']}" for one in kept.values())
    shown = table({name: one["figures"] for name, one in kept.items()})  # type: ignore[misc]
    return f"{head}{_BEGIN}\n\n{shown}\n\n{made}\n\n{_END}{rest.partition(_END)[2]}"
