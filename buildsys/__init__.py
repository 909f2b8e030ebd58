"""buildsys: a file-watching incremental build system for LLM data and training pipelines.

`buildsys.open` is the Python interface, for notebooks and tests. It is loaded when it is asked for: the program, which
starts often, pays nothing for it.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildsys.interface import OpenProject, open  # noqa: A004 - as gzip.open is

__version__ = "0.1.0"
__all__ = ["OpenProject", "open"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("buildsys.interface"), name)
    raise AttributeError(f"module 'buildsys' has no attribute {name!r}")
