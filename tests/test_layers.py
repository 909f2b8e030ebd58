"""Imports point one way, the pure stages stay pure, and nothing heavy is loaded before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "buildsys"
LAYERS = [
    {"__init__", "errors", "request"},
    {"digest", "phrases"},
    {"model"},
    {"events"},
    {"spec", "code"},
    {"plan"},
    {"state", "run"},
    {"makers", "source_tree"},
    {"project"},
    {"commands", "freezing", "proofreader", "slicing", "template"},
    {"sources"},
    {"prepare", "past", "profiles", "readers", "fingerprint"},
    {"counting"},
    {"assess", "measured", "preflight", "reached", "staged", "trial"},
    {"diagnostics", "shared", "workload", "ephemeral", "discover"},
    {"handover"},
    {"launch", "sandbox"},
    {"canary"},
    {"teller"},
    {"survey", "doctor", "collect", "execute", "starts", "supply", "tidy"},
    {"deliver", "explain", "ledger", "query", "serving"},
    {"workshop"},
    {"build"},
    {"interface", "accept", "reject"},
    {"tally"},
    {"terminal"},
    {"console"},
    {"cli"},
]
"""From below to above; what stands in one layer does not know each other."""
PURE = ["errors.py", "request.py", "digest.py", "model.py", "events.py", "spec/*.py", "code/*.py", "plan/*.py"]
IMPURE = {
    *("os", "io", "pathlib", "shutil", "tempfile", "subprocess", "multiprocessing", "socket", "threading", "time"),
    *("asyncio", "duckdb", "pyarrow", "openai", "random"),
}
HEAVY = ["torch", "transformers", "datasets", "openai", "duckdb", "pyarrow", "numpy", "rich"]


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """(module, whether the import runs whenever the file is imported) of every import of a file."""
    tree = ast.parse(file.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) in top


def part_of(module: str) -> str:
    """The part of the package that a module lies in: "buildsys.plan.key" -> "plan"."""
    return [*module.split("."), "__init__"][1]


def level(part: str) -> int:
    return next(n for n, layer in enumerate(LAYERS) if part in layer)


FILES = sorted(PACKAGE.rglob("*.py"))


def test_every_file_has_a_layer() -> None:
    parts = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in FILES}
    assert parts == set().union(*LAYERS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_imports_point_one_way(file: Path) -> None:
    own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module, _ in imports(file):
        part = part_of(module)
        if module.partition(".")[0] == "buildsys" and part != own:
            assert level(part) < level(own), f"{file.name} imports {module}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_no_import_of_our_own_hides_in_a_function(file: Path) -> None:
    hidden = [module for module, top in imports(file) if module.startswith("buildsys") and not top]
    assert hidden == [] or file.parent.name == "cli", "only a command waits for what it needs"


@pytest.mark.parametrize("pattern", PURE)
def test_the_pure_stages_know_no_clock_file_process_or_database(pattern: str) -> None:
    found = {
        f"{file.relative_to(PACKAGE)}: {module}"
        for file in PACKAGE.glob(pattern)
        for module, _ in imports(file)
        if module.partition(".")[0] in IMPURE
    }
    assert found == set()


def test_a_file_of_the_package_is_short_and_so_are_its_functions() -> None:
    for file in FILES:
        text = file.read_text()
        assert text.count("\n") <= 600, f"{file} is too long"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert (node.end_lineno or 0) - node.lineno <= 80, f"{file}:{node.lineno} {node.name} is too long"


@pytest.mark.parametrize("statement", ["import buildsys", "import buildsys.build", "import buildsys.survey"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
