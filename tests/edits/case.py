"""One case: a tree before an edit and after it, an entry, and whether the edit can change what the entry gives.

Knows no fingerprint: `scoring` asks for them, `entries` runs the code.
"""

from __future__ import annotations

import fnmatch
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CASES = Path(__file__).parent / "cases"

Side = Literal["before", "after"]
SIDES: tuple[Side, Side] = ("before", "after")


@dataclass(frozen=True)
class Case:
    """A folder of `cases/`.

    changed: the entry gives another result after the edit. must: where it does not, a rebuild is a defect.
    environments: variables that are set besides those of the caller, by side.
    """

    folder: Path
    entry: str
    changed: bool
    must: bool
    category: str
    reason: str
    environments: dict[Side, dict[str, str]]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def may_be_refused(self) -> bool:
        """Its code is broken after the edit, so that no fingerprint is right as well."""
        return self.name.startswith("syntax_error") or self.name == "entry_removed"

    @property
    def sides(self) -> tuple[Path, Path]:
        """The folders of its trees."""
        return self.folder / "before", self.folder / "after"

    def place(self, side: Side, tree: Path) -> None:
        """Makes `tree` that side's, at the same path for both, as an edit in an editor does."""
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(self.folder / side, tree)


def read_case(folder: Path) -> Case:
    with (folder / "case.toml").open("rb") as stream:
        told = tomllib.load(stream)
    return Case(
        folder=folder,
        entry=told["entry"],
        changed={"changed": True, "same": False}[told["expected"]],
        must={"must": True, "may": False}[told["tier"]],
        category=told["category"],
        reason=told["reason"],
        environments={"before": told["env_before"], "after": told["env_after"]},
    )


def read_cases(folder: Path = CASES, only: str = "*") -> list[Case]:
    """All cases below a folder whose names fit the pattern, sorted."""
    return [read_case(one) for one in sorted(folder.iterdir()) if fnmatch.fnmatch(one.name, only)]
