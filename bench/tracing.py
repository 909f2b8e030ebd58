"""What it costs that runs are traced: a call, a question, an action, and with `--pipeline` all of the shipped pipeline.

    python bench/tracing.py                      # in this Python and in all others that are found
    python bench/tracing.py --pipeline           # besides, builds the pipeline with and without a trace: some minutes
    python bench/tracing.py --write              # adds what it measured to bench/RESULTS.md

What is compared runs in turns in the same run. There is no way to switch tracing off: where a number needs one, the
workers' program is copied and its tracer replaced. Times are the least of many; those of actions are CPU times.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nothing_to_do import RESULTS, machine

import buildsys
from buildsys.run import process
from buildsys.run.workers import Job, JobResult, Workers

VERSIONS = ("3.12", "3.13", "3.14")
PROGRAM = process.PROGRAM
EMPTY = "def empty(): pass\n"
CALLS = """
import time
import outside
from inside import empty

def loop(function, n):
    calls = range(n)
    started = time.process_time()
    for _ in calls:
        function()
    return (time.process_time() - started) / n * 1e9

def measure(rounds, n):
    both = [[loop(empty, n), loop(outside.empty, n)] for _ in range(rounds)]
    return [min(ours for ours, _ in both), min(theirs for _, theirs in both)]
"""
QUESTIONS = """
import copy, os, time, timeit

ASKED = {
    "os.stat of a path asked for before": "os.stat(path)",
    "os.path.exists, not there": "os.path.exists('/no/such')",
    "open and close": "open(path).close()",
    "os.environ.get": "os.environ.get('NO_SUCH')",
    "copy.deepcopy of a message": "copy.deepcopy(message)",
}

def measure(rounds, n):
    names = {"os": os, "path": os.path.abspath("data.txt"), "copy": copy, "message": {"role": "user", "content": "x"}}
    return {
        what: min(timeit.repeat(code, timer=time.process_time, globals=names, number=n, repeat=rounds)) / n * 1e9
        for what, code in ASKED.items()
    }
"""
WORK = """
import json

def tokenize(text):
    return [word for word in split(text) if keep(word)]

def split(text): return text.split()

def keep(word): return len(word) > 1

def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]

def work(n):
    rows = read("rows.jsonl")
    return sum(len(tokenize(row["text"])) for _ in range(n) for row in rows)
"""
NO_TRACER = """
import contextlib

class Touches:
    def keep_set(self): pass

class Tracer:
    after_import = {}
    touches = Touches()
    def __init__(self, *_): pass
    def compiled(self, path, text, filename): return compile(text, filename, "exec", dont_inherit=True)
    def look_at(self, *_): pass
    def importing(self, name): pass
    def fresh(self): pass
    def news(self, *_): return {}
    def quiet(self): return contextlib.nullcontext()

def most_definitions(text): return 0
"""
NO_HOOKS = """
class Hooks:
    def install(self): pass
"""


def interpreters() -> Iterator[tuple[str, str]]:
    """(version, path) of this Python and of the others that are found."""
    yield "{}.{}".format(*sys.version_info), sys.executable
    for version in VERSIONS:
        beside = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        for found in [*filter(None, [shutil.which(f"python{version}")]), *map(str, beside)]:
            asked = subprocess.run([found, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
            if asked.returncode == 0:
                yield version, asked.stdout.strip()
                break


class Place:
    """A folder with scripts, and calls of their functions."""

    def __init__(self, root: Path, python: str = sys.executable) -> None:
        self.root = root
        self.python = python
        for name, text in {"inside": EMPTY, "calls": CALLS, "questions": QUESTIONS, "work": WORK}.items():
            self.write(f"scripts/{name}.py", text)
        self.write("lib/outside.py", EMPTY)
        self.write("data.txt", "x")
        self.write("rows.jsonl", '{"text": "some words that are a row of text, more or less"}\n' * 1000)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip())

    def job(self, script: str, function: str, **arguments: object) -> Job:
        return Job(
            python=self.python,
            combination="one",
            preload=(),
            sources={f"scripts/{file.name}": file.read_text() for file in (self.root / "scripts").iterdir()},
            folder="scripts",
            script=f"scripts/{script}.py",
            function=function,
            arguments=arguments,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.root / "lib")},
            log=self.root / "log",
        )


def called(workers: Workers, job: Job) -> JobResult:
    result = workers.call(job)
    assert result.ok, result.error
    return result


@contextlib.contextmanager
def untraced(folder: Path) -> Iterator[None]:
    """Workers that start meanwhile have no trace."""
    if not folder.exists():
        shutil.copytree(PROGRAM.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "tracing.py").write_text(NO_TRACER)
        (folder / "hooks.py").write_text(NO_HOOKS)
    process.PROGRAM = folder / PROGRAM.name
    try:
        yield
    finally:
        process.PROGRAM = PROGRAM


def calls(root: Path) -> str:
    """First-party calls beside calls of the same function from outside, in the same worker."""
    lines = ["| a call of an empty function | ours | from outside | tracing |", "|---|---|---|---|"]
    for version, python in interpreters():
        place = Place(root, python)
        with contextlib.closing(Workers(root, 1)) as workers:
            ours, theirs = called(workers, place.job("calls", "measure", rounds=15, n=1_000_000)).value  # type: ignore[misc]
        way = "monitored" if version >= "3.12" else "marked"
        lines.append(f"| Python {version}, {way} | {ours:.1f} ns | {theirs:.1f} ns | {ours - theirs:+.1f} ns |")
    return "\n".join(lines) + "\n"


def questions(root: Path) -> str:
    place = Place(root)
    job = place.job("questions", "measure", rounds=15, n=20_000)
    with contextlib.closing(Workers(root, 1)) as workers:
        traced: Any = called(workers, job).value
    with untraced(root / "untraced"), contextlib.closing(Workers(root, 1)) as workers:
        plain: Any = called(workers, job).value
    lines = ["| a question | traced | untraced | tracing |", "|---|---|---|---|"]
    for what, ns in traced.items():
        lines.append(f"| {what} | {ns:.0f} ns | {plain[what]:.0f} ns | {ns - plain[what]:+.0f} ns |")
    return "\n".join(lines) + "\n"


def actions(root: Path, rounds: int = 15) -> str:
    """Actions that do next to nothing, and one that calls small functions all the time; in turns."""
    place = Place(root)
    took: dict[str, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for _ in range(rounds):
        for with_trace in (True, False):
            program = contextlib.nullcontext() if with_trace else untraced(root / "untraced")
            with program, contextlib.closing(Workers(root, 1)) as workers:
                first = called(workers, place.job("inside", "empty"))
                took["the first call of a worker, wall"][with_trace].append(first.wall_s)
                warm = [called(workers, place.job("inside", "empty")).wall_s for _ in range(50)]
                took["a call of a warm worker, wall"][with_trace].append(statistics.median(warm))
                work = called(workers, place.job("work", "work", n=30))
                took["360,000 small calls, CPU"][with_trace].append(work.cpu_s)
    lines = ["| an action | traced | untraced | tracing |", "|---|---|---|---|"]
    for what, both in took.items():
        traced, plain = min(both[True]), min(both[False])
        lines.append(
            f"| {what} | {1000 * traced:.2f} ms | {1000 * plain:.2f} ms | {1000 * (traced - plain):+.2f} ms, "
            f"{100 * (traced / plain - 1):+.1f} % |"
        )
    return "\n".join(lines) + "\n"


def pipeline(root: Path, rounds: int) -> str:
    """CPU seconds in workers, by rule, of whole builds in turns."""
    took: dict[str, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for n in range(rounds):
        for with_trace in (n % 2 == 0, n % 2 == 1):
            program = contextlib.nullcontext() if with_trace else untraced(root / "untraced")
            with program:
                for function, cpu_s in _built(root / f"{n}-{with_trace}").items():
                    took[function][with_trace].append(cpu_s)
    rows = [(what, min(both[True]), min(both[False])) for what, both in took.items()]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    lines = [f"| the shipped pipeline, least CPU of {rounds} | traced | untraced | tracing |", "|---|---|---|---|"]
    lines += [f"| {what} | {a:.2f} s | {b:.2f} s | {100 * (a / b - 1):+.1f} % |" for what, a, b in rows]
    return "\n".join(lines) + "\n"


def _built(root: Path) -> dict[str, float]:
    """Build a fresh copy of the pipeline; CPU seconds of the calls of each function."""
    ours = Path(buildsys.__file__).parent.parent
    for folder in ("rules", *(f"workspace/{name}" for name in ("configs", "data", "scripts", "verifier"))):
        shutil.copytree(ours / folder, root / folder)
    took: dict[str, float] = defaultdict(float)
    call = Workers.call

    def counted(workers: Workers, job: Job) -> JobResult:
        result = call(workers, job)
        took[job.function] += result.cpu_s
        return result

    Workers.call = counted  # type: ignore[method-assign]
    try:
        done = buildsys.open(root).build()
        assert done.outcome == "done", done
    finally:
        Workers.call = call  # type: ignore[method-assign]
    return took


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--pipeline", type=int, nargs="?", const=1, default=0, metavar="ROUNDS")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        root = Path(folder).resolve()
        tables = [measure(root) for measure in (calls, questions, actions)]
        if given.pipeline:
            tables.append(pipeline(root, given.pipeline))
    text = "\n".join(tables) + f"\n{machine()}\n"
    print(text)
    if given.write:
        with RESULTS.open("a") as results:
            results.write(f"\n## Tracing\n\n{text}")


if __name__ == "__main__":
    main()
