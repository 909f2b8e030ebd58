"""Whether the cases say the truth: both sides are run, and an edit that changes the result must be said to.

`python -m tests.edits.labels [--only GLOB]` prints what each side gave.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.edits.case import SIDES, Case, read_cases

_PROGRAM = Path(__file__).with_name("entries.py")


@dataclass(frozen=True)
class Ran:
    """A case and what its entry gave on both sides, as texts."""

    case: Case
    before: str
    after: str

    @property
    def holds(self) -> bool:
        return (self.before != self.after) == self.case.changed


def run_both(cases: list[Case]) -> Iterator[Ran]:
    """The results of the entries, each side in a process of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as program,
    ):
        assert program.stdin
        assert program.stdout
        tree = Path(folder, "tree")
        for case in cases:
            gave = []
            for side in SIDES:
                case.place(side, tree)
                asked = {"tree": str(tree), "entry": case.entry, "environment": case.environments[side]}
                program.stdin.write(json.dumps(asked) + "\n")
                program.stdin.flush()
                gave.append(json.loads(program.stdout.readline()))
            yield Ran(case, *gave)
        program.stdin.close()


def main() -> int:
    """0 where every label holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.edits.labels", description=__doc__)
    parser.add_argument("--only", default="*")
    wrong = 0
    for ran in run_both(read_cases(only=parser.parse_args().only)):
        wrong += not ran.holds
        print(f"{'ok' if ran.holds else 'WRONG':5s} {ran.case.name}: {ran.before} | {ran.after}")
    print(f"{wrong} labels are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
