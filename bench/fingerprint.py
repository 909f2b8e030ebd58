"""What it costs to ask for the fingerprint of a function, cold and warm, in a project as people write them.

    python bench/fingerprint.py                  # 50 modules, 10,000 lines, 15 rounds
    python bench/fingerprint.py --rounds 5 --modules 100 --lines 50000
    python bench/fingerprint.py --write          # adds what it measured to bench/RESULTS.md

"The command" is the whole process, from its start to its end; "within it" is only the fingerprinting, in a process of
its own that has imported what it needs. Cold: nothing was kept of any earlier call. Warm: the folder has the .buildsys
of a build, and nothing has changed; where there is none, nothing is ever kept, and each call is a cold one. What Python
needs for the same texts stands beside it. The bytecode of buildsys itself is there in all cases.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import realistic
from nothing_to_do import RESULTS, Tool, keep_bytecode, machine

SCRIPT = "from app.main import run\n\n\ndef go(target):\n    target.write_text(repr(run()))\n"
RULE = """
[rule.made]
run     = "scripts/go.py::go"
inputs  = {}
outputs = { target = "build/made.txt" }
"""
WITHIN = f"""
import json, sys, time
from pathlib import Path
from buildsys.fingerprint import fingerprint

clocks = time.perf_counter(), time.process_time()
fingerprint(Path(sys.argv[1]).resolve(), *{realistic.ENTRY!r}.split(":"))
print(json.dumps([time.perf_counter() - clocks[0], time.process_time() - clocks[1]]))
"""
PYTHON = """
import ast, gc, json, sys, time
from pathlib import Path

texts = [path.read_text() for path in Path(sys.argv[1]).rglob("*.py")]
gc.disable()
clocks = time.perf_counter(), time.process_time()
for text in texts:
    compile(ast.parse(text), "", "exec")
print(json.dumps([time.perf_counter() - clocks[0], time.process_time() - clocks[1]]))
"""


@dataclass
class Told(Tool):
    """A program that tells itself what it took, in place of its process."""

    def call(self, root: Path) -> None:
        wall, cpu = json.loads(
            subprocess.run(self.command, cwd=root, capture_output=True, text=True, check=True).stdout
        )
        self.wall.append(wall)
        self.cpu.append(cpu)


@dataclass
class Case:
    """A tool, and what is done to the project before each of its calls."""

    tool: Tool
    before: Callable[[Path], None] = field(default=lambda root: None)


def cases() -> list[Case]:
    program = str(Path(sysconfig.get_path("scripts")) / "buildsys")
    command = [program, "fingerprint", "scripts", realistic.ENTRY]
    within = [sys.executable, "-c", WITHIN, "scripts"]
    return [
        Case(Tool("python -c 'import click'", [sys.executable, "-c", "import click"])),
        Case(Told("Python: parse and compile the same texts", [sys.executable, "-c", PYTHON, "scripts"])),
        Case(Tool("cold, nothing is kept: the command", command), without_state),
        Case(Told("within it", within), without_state),
        Case(Tool("cold, and kept: the command", command), without_cache),
        Case(Told("within it", within), without_cache),
        Case(Tool("one module edited: the command", command), edit),
        Case(Told("within it", within), edit),
        Case(Tool("warm: the command", command)),
        Case(Told("within it", within)),
        Case(Tool("a build, cold: looks at all and runs one action", [program, "build"]), without_state),
        Case(Tool("a build after a comment that runs nothing", [program, "build"]), comment),
        Case(Tool("a build with nothing to do", [program, "build"])),
    ]


def without_state(root: Path) -> None:
    shutil.rmtree(root / ".buildsys", ignore_errors=True)
    shutil.rmtree(root / "build", ignore_errors=True)


def without_cache(root: Path) -> None:
    without_state(root)
    (root / ".buildsys").mkdir()


def edit(root: Path) -> None:
    """Change a number in one module; another one each time."""
    file = root / "scripts/app/main.py"
    text = file.read_text()
    file.write_text(f"{text}\n\nEDITED = {text.count('EDITED')}\n")


def comment(root: Path) -> None:
    with (root / "scripts/app/main.py").open("a") as file:
        file.write("# a comment\n")


def lay_out(root: Path, n_modules: int, n_lines: int) -> None:
    realistic.write(root / "scripts", n_modules, n_lines)
    (root / "scripts/go.py").write_text(SCRIPT)
    (root / "rules").mkdir()
    (root / "rules/bench.toml").write_text(RULE)


def measure(n_modules: int, n_lines: int, n_rounds: int, measured: Sequence[Case]) -> list[Tool]:
    """The cases, one after another in each round, so that they build on one another and share what the machine does."""
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        lay_out(root, n_modules, n_lines)
        keep_bytecode(root)
        for _ in range(n_rounds + 1):
            for case in measured:
                case.before(root)
                case.tool.call(root)
        for case in measured:
            del case.tool.wall[:1], case.tool.cpu[:1]  # made bytecode
        return [case.tool for case in measured]
    finally:
        shutil.rmtree(root)


def table(n_modules: int, n_lines: int, measured: Sequence[Tool]) -> str:
    """As Markdown."""
    head = f"{n_modules} modules, {n_lines:,} lines"
    lines = [f"| {head} | wall, median | least | CPU, median | least |", "|---|---|---|---|---|"]
    for tool in measured:
        times = (statistics.median(tool.wall), min(tool.wall), statistics.median(tool.cpu), min(tool.cpu))
        lines.append(f"| {tool.name} | {' | '.join(f'{1000 * one:.0f} ms' for one in times)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--modules", type=int, default=50)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    measured = measure(given.modules, given.lines, given.rounds, cases())
    text = f"{table(given.modules, given.lines, measured)}\n{machine()}\n"
    print(text)
    if given.write:
        with RESULTS.open("a") as results:
            results.write(f"\n## Fingerprints\n\n{text}")


if __name__ == "__main__":
    main()
