"""The packages that are mutated, laid out as first-party code beside the entries that use them.

They are installed by the extra `dev`; their own tests are left out.
"""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation.mutants import parsed

ENTRIES = Path(__file__).with_name("entries")
SCRIPT = "entries.py"


@dataclass(frozen=True)
class Package:
    """name: also that of its entries. modules: what is imported by these names, if not by its own."""

    name: str
    modules: tuple[str, ...] = ()
    left_out: tuple[str, ...] = field(default=("tests", "__pycache__", "*.pyc", "*.so", "*.c", "*.pyi"))

    def lay(self, tree: Path) -> None:
        """Makes `tree` hold the package's source and its entries."""
        for module in self.modules or (self.name,):
            found = importlib.util.find_spec(module)
            assert found
            for folder in found.submodule_search_locations or ():
                shutil.copytree(folder, tree / module, ignore=shutil.ignore_patterns(*self.left_out))
        shutil.copy(ENTRIES / f"{self.name}.py", tree / SCRIPT)

    def entries(self) -> list[str]:
        """The names of the functions that are run."""
        tree = parsed((ENTRIES / f"{self.name}.py").read_text())
        return [node.name for node in tree.body if hasattr(node, "args") and not node.name.startswith("_")]


PACKAGES = {
    package.name: package
    for package in (
        Package("attrs", ("attr", "attrs")),
        Package("boltons"),
        Package("docutils"),
        Package("jinja2"),
        Package("lark"),
        Package("marshmallow"),
        Package("mistune"),
        Package("networkx"),
        Package("toolz", ("toolz", "tlz")),
        Package("voluptuous"),
    )
}
