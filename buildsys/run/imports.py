"""What is done as soon as a module from outside has been imported.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of what is done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class AfterImport:
    """Stands in `sys.meta_path`, behind what finds first-party modules. then: by module name."""

    def __init__(self, then: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self.then = then

    def install(self, position: int) -> None:
        """What has been imported by now is done at once."""
        sys.meta_path.insert(position, self)
        for name, then in self.then.items():
            if name in sys.modules:
                then(sys.modules[name])

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        then = self.then.get(name)
        spec = PathFinder.find_spec(name, path) if then else None
        if then and spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_then(module: ModuleType) -> None:
                execute(module)
                then(module)

            spec.loader.exec_module = execute_and_then  # type: ignore[method-assign]
        return spec
