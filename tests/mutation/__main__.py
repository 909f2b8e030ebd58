"""python -m tests.mutation                            # all packages: prints the figures
python -m tests.mutation lark toolz --functions 400     # these, with so many functions mutated in each
python -m tests.mutation --write                        # and keeps their figures in docs/fingerprints.md

Exit code 1 where an edit went unseen, or the share of needless changes is too large.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.mutation.measure import Extent, Tally, measure
from tests.mutation.packages import PACKAGES
from tests.mutation.report import figures, share, table, write

_MOST_IN_ONE, _MOST_IN_ALL = 30, 15
"""Percent of mutations of functions that did not run that may change a traced fingerprint."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", usage=__doc__)
    parser.add_argument("packages", nargs="*", metavar="package", help=", ".join(PACKAGES))
    parser.add_argument("--functions", type=int, default=150, help="mutated in each package")
    parser.add_argument("--no-ops", type=int, default=30, help="files of each package that get edits that mean nothing")
    parser.add_argument("--tries", type=int, default=3, help="entries for each edit, that ran it and that did not")
    parser.add_argument("--asked", type=int, default=5, help="entries of each of which the command is asked as well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    extent = Extent(given.functions, given.no_ops, 0, given.tries, given.seed, given.asked)
    chosen = [PACKAGES[name] for name in given.packages or PACKAGES]
    with ProcessPoolExecutor(given.processes) as pool:
        tallies = list(pool.map(partial(measure, extent=extent), chosen))
    for fault in faults(tallies):
        print(fault)
    print(table({tally.package: figures(tally) for tally in tallies}))
    if given.write:
        write(tallies, "".join(f" {word}" for word in sys.argv[1:] if word != "--write" and word not in PACKAGES))
    return 1 if faults(tallies) else 0


def faults(tallies: list[Tally]) -> list[str]:
    """What must not be, in words."""
    found = [fault for tally in tallies for fault in tally.faults()]
    found += [
        f"{tally.package}: {much:.0f} % of mutations of functions that did not run change its fingerprint"
        for tally in tallies
        if (much := share(len(tally.seen["traced"].idle), tally.n_idle)) > _MOST_IN_ONE
    ]
    n_changed = sum(len(tally.seen["traced"].idle) for tally in tallies)
    if (much := share(n_changed, sum(tally.n_idle for tally in tallies))) > _MOST_IN_ALL:
        found.append(f"{much:.0f} % of all mutations of functions that did not run change a fingerprint")
    return found


if __name__ == "__main__":
    sys.exit(main())
