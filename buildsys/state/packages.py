"""What is installed for the interpreter that runs buildsys.

Knows nothing of other interpreters. Reading all metadata takes a tenth of a second, so what it says is kept beside the
stats of the folders that it was read from.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from buildsys.state.disk import write_whole
from buildsys.state.distributions import Distributions
from buildsys.state.installed import installed
from buildsys.state.inventory import FORMAT, inventory


def own_distributions(cache: Path) -> Distributions:
    """cache: a file to keep the answer in; ignored when it is of another environment, made where its place is known.

    That is a folder in the state of a project: whoever only looks at one makes none.
    """
    stamp = [FORMAT, *installed()]
    try:
        kept = json.loads(cache.read_text())
        if kept["stamp"] == stamp:
            return Distributions.told(kept["told"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing yet, or what a kill cut short: it is made anew
    told = json.loads(_inventory(json.dumps(stamp)))
    if cache.parent.parent.is_dir():
        write_whole(cache, json.dumps({"stamp": stamp, "told": told}).encode())
    return Distributions.told(told)


@lru_cache(maxsize=1)
def _inventory(stamp: str) -> str:
    """As JSON; asked once by a process that builds several projects, as long as the stamp is the same."""
    return json.dumps(inventory())
