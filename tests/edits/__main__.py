"""python -m tests.edits                          # `buildsys fingerprint` with a trace, on all cases
python -m tests.edits --static --only 'enum_*'     # without one
python -m tests.edits --cmd 'TOOL {dir} {entry}' [--record 'TOOL {dir} {entry} {state}']   # another tool

TOOL prints the fingerprint of the entry in the tree {dir}. --record runs the entry before the edit and keeps in {state}
what --cmd may use. Exit code 1 where anything is missed, over, unstable or broken.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.edits.case import CASES, Case, read_cases
from tests.edits.scoring import BAD, REFUSED, VERDICTS, Ask, Scored, score, score_ours


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.edits", usage=__doc__)
    parser.add_argument("--cmd")
    parser.add_argument("--record")
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--cases", default=CASES, type=Path)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    cases = read_cases(given.cases, given.only)
    if given.cmd:
        return report(score_command(cases, given.cmd, given.record))
    return report(score_ours(cases, given.processes, traced=not given.static))


def report(scored: Iterable[Scored]) -> int:
    """Prints what is not right, and how many there are of each verdict."""
    n_of: Counter[str] = Counter()
    for one in scored:
        n_of[one.verdict] += 1
        if one.verdict != "ok":
            print(one, flush=True)
    print("  ".join(f"{verdict} {n_of[verdict]}" for verdict in VERDICTS))
    return 1 if any(n_of[verdict] for verdict in BAD) else 0


def score_command(cases: list[Case], cmd: str, record: str | None) -> Iterator[Scored]:
    """How another program does, started anew for each fingerprint."""
    with TemporaryDirectory() as folder:
        state = Path(folder, "state")

        def asking(template: str) -> Ask:
            def ask(seed: int, tree: Path, entry: str, environment: dict[str, str]) -> str:
                command = template.format(
                    dir=shlex.quote(str(tree)), entry=shlex.quote(entry), state=shlex.quote(str(state))
                )
                changed = {**os.environ, **environment, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
                done = subprocess.run(
                    command, shell=True, cwd=tree, env=changed, capture_output=True, text=True, timeout=120
                )
                return done.stdout.strip() if done.returncode == 0 else REFUSED + " ".join(done.stderr.split())[-300:]

            return ask

        for case in cases:
            state.unlink(missing_ok=True)
            yield score(case, Path(folder, "tree"), asking(cmd), asking(record) if record else None)


if __name__ == "__main__":
    sys.exit(main())
