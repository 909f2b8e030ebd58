"""Who imports modules from outside, and what is done as soon as one has been imported.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of what is done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class AfterImport:
    """Stands in `sys.meta_path`, behind what finds first-party modules.

    begins: told of each top-level module that is looked for. then: what is done with a module, by its name.
    """

    def __init__(self, begins: Callable[[str], None], then: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self.begins, self.then = begins, then

    def install(self, position: int) -> None:
        """What has been imported by now is done at once."""
        sys.meta_path.insert(position, self)
        for name, then in self.then.items():
            if name in sys.modules:
                then(sys.modules[name])

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None:
            self.begins(name)
        then = self.then.get(name)
        spec = PathFinder.find_spec(name, path) if then else None
        if then and spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_then(module: ModuleType) -> None:
                execute(module)
                then(module)

            spec.loader.exec_module = execute_and_then  # type: ignore[method-assign]
        return spec


def is_standard(name: str) -> bool:
    known = getattr(sys, "stdlib_module_names", None)  # from Python 3.10 on
    return name in known if known else _lies_in_standard(name)


def _lies_in_standard(name: str) -> bool:
    spec = PathFinder.find_spec(name)
    place = spec.origin or "" if spec else ""
    return place.startswith(os.path.dirname(os.__file__)) and "site-packages" not in place
