"""What made something that is kept: the files of buildsys by which it was decided, as they are installed now.

Knows nothing of what is kept. What another version made, or files that were edited since, is made anew.
"""

from __future__ import annotations

import os
import sys
from functools import cache

import buildsys
from buildsys import __version__
from buildsys.digest import Digest, digest_of

_HOME = os.path.dirname(buildsys.__file__)


@cache
def maker(*places: str) -> Digest:
    """This version, as its files are, in this Python. places: files and folders of the package, as "code", "digest.py".

    Raises OSError for a place that is not there.
    """
    stats = [os.stat(file) for place in places for file in _files(os.path.join(_HOME, place))]
    return digest_of(__version__, sys.version, [[stat.st_mtime_ns, stat.st_size] for stat in stats])


def _files(place: str) -> list[str]:
    if not os.path.isdir(place):
        return [place]
    return [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith(".py")]
