"""What a build costs that has nothing to do, against ninja and make on the same files in the same run.

    python bench/nothing_to_do.py 1000 10000            # shards; three actions each
    python bench/nothing_to_do.py 1000 --write          # adds what it measured to bench/RESULTS.md

Each tool builds `data/N.txt` three times over, into a folder of its own. Then all take turns, so that whatever else the
machine does falls on each alike. Wall-clock times are medians; CPU times are user and system together.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")
STEPS = ("one", "two", "three")
SCRIPT = """
import shutil


def copy(source, target):
    shutil.copyfile(source, target)
"""
NINJA = "rule copy\n  command = cp $in $out\n"
MAKE = ".PHONY: all\n"


@dataclass
class Tool:
    """A command that has nothing to do, and what its calls took, in seconds."""

    name: str
    command: Sequence[str]
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def call(self, root: Path) -> None:
        started = time.perf_counter()
        process = subprocess.Popen(self.command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"{self.name} failed"
        self.wall.append(time.perf_counter() - started)
        self.cpu.append(usage.ru_utime + usage.ru_stime)


def keep_bytecode(root: Path) -> None:
    """Let what is started keep its bytecode, as it is on people's machines, in a folder that goes with the others."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(root / "bytecode")


def tools() -> list[Tool]:
    """Those that are there; the first two are what the others stand beside."""
    scripts = Path(sysconfig.get_path("scripts"))
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    found = [Tool("python -c 'import click'", [sys.executable, "-c", "import click"])]
    for name, *args in (("ninja", "-C", "."), ("make", "-s", "-f", "Makefile"), ("buildsys", "build")):
        if program := shutil.which(name, path=path):
            found.append(Tool(name, [program, *args]))
    return found


def lay_out(root: Path, n_shards: int) -> None:
    """The sources, and the build files of each tool."""
    for folder in ("data", "rules", "scripts"):
        (root / folder).mkdir(parents=True)
    for shard in range(n_shards):
        (root / f"data/{shard}.txt").write_text(f"{shard}\n")
    (root / "scripts/copy.py").write_text(SCRIPT)
    (root / "rules/bench.toml").write_text("".join(map(rule, STEPS, ("", *STEPS))))
    edges = [
        (f"{'data' if not before else f'{{tool}}/{before}'}/{shard}.txt", f"{{tool}}/{step}/{shard}.txt")
        for step, before in zip(STEPS, ("", *STEPS), strict=False)
        for shard in range(n_shards)
    ]
    for tool in ("ninja", "make"):
        for step in STEPS:
            (root / tool / step).mkdir(parents=True)
    ninja = [f"build {target}: copy {source}\n".format(tool="ninja") for source, target in edges]
    (root / "build.ninja").write_text(NINJA + "".join(ninja))
    make = [f"all: {target}\n{target}: {source}\n\tcp $< $@\n".format(tool="make") for source, target in edges]
    (root / "Makefile").write_text(MAKE + "".join(make))


def rule(step: str, before: str) -> str:
    source = f"@{before}" if before else "data/{shard}.txt"
    each = f"@{before}[*]" if before else source
    return f"""
[rule.{step}]
each    = {{ shard = "{each}" }}
run     = "scripts/copy.py::copy"
inputs  = {{ source = "{source}" }}
outputs = {{ target = "build/{step}/{{shard}}.txt" }}
"""


def measure(n_shards: int, n_rounds: int) -> list[Tool]:
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        lay_out(root, n_shards)
        keep_bytecode(root)
        measured = tools()
        for tool in measured:
            tool.call(root)  # builds
        for _ in range(1 + n_rounds):
            for tool in measured:
                tool.call(root)
        for tool in measured:
            del tool.wall[:2], tool.cpu[:2]
        return measured
    finally:
        shutil.rmtree(root)


def table(n_shards: int, measured: Sequence[Tool]) -> str:
    """As Markdown, with the ratio of each to ninja."""
    by_name = {tool.name: tool for tool in measured}
    peer = by_name.get("ninja")
    lines = [f"| {n_shards:,} shards, {3 * n_shards:,} actions | wall, median | least | CPU | CPU by ninja's |"]
    lines.append("|---|---|---|---|---|")
    for tool in measured:
        cpu = statistics.median(tool.cpu)
        ratio = f"{cpu / statistics.median(peer.cpu):.2f}" if peer else "-"
        wall = f"{1000 * statistics.median(tool.wall):.0f} ms | {1000 * min(tool.wall):.0f} ms"
        lines.append(f"| {tool.name} | {wall} | {1000 * cpu:.0f} ms | {ratio} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    load = os.getloadavg()[0]
    return (
        f"{datetime.date.today()}, commit {commit}, {os.cpu_count()} processors ({platform.machine()}), "
        f"Linux {platform.release()}, Python {platform.python_version()}, load {load:.1f} at the end"
    )


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shards", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    tables = [table(n_shards, measure(n_shards, given.rounds)) for n_shards in given.shards]
    text = "\n".join(tables) + f"\n{machine()}\n"
    print(text)
    if given.write:
        with RESULTS.open("a") as results:
            results.write(f"\n## Nothing to do\n\n{text}")


if __name__ == "__main__":
    main()
