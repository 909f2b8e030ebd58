"""The programs of bench/ still run, on the least of work; what they measure is nothing that a test may assert."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from buildsys.fingerprint import fingerprint

BENCH = Path(__file__).parent.parent / "bench"
NAMES = ("fingerprint", "nothing_to_do", "realistic", "replies", "tracing")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Its modules, as attributes."""
    monkeypatch.syspath_prepend(str(BENCH))
    found = ModuleType("bench")
    vars(found).update({name: import_module(name) for name in NAMES})
    for name in ("fingerprint", "nothing_to_do"):  # A folder for bytecode that is new each time takes long to fill.
        monkeypatch.setattr(vars(found)[name], "keep_bytecode", lambda root: None)
    yield found
    for name in NAMES:
        del sys.modules[name]


def test_a_made_project_has_the_size_that_was_asked_for_and_runs(bench: Any, tmp_path: Path) -> None:
    made = bench.realistic.texts(50, 10_000, seed=1)
    assert (len(made), sum(text.count("\n") for text in made.values())) == (50, 10_000)
    assert made == bench.realistic.texts(50, 10_000, seed=1) != bench.realistic.texts(50, 10_000, seed=2)
    bench.realistic.write(tmp_path, 50, 10_000)
    ran = subprocess.run([sys.executable, "app/main.py"], cwd=tmp_path, env={"PYTHONPATH": "."}, capture_output=True)
    assert (ran.returncode, ran.stdout[:8]) == (0, b"['one', "), ran.stderr.decode()


def test_all_of_a_made_project_is_in_reach_of_its_entry(bench: Any, tmp_path: Path) -> None:
    bench.realistic.write(tmp_path, 50, 10_000)
    found = fingerprint(tmp_path, *bench.realistic.ENTRY.split(":"))
    assert len(found.code.sources) == 50


def test_fingerprints_are_measured(bench: Any) -> None:
    chosen = bench.fingerprint.cases()[1:4]
    measured = bench.fingerprint.measure(10, 700, 1, chosen)
    lines = bench.fingerprint.table(10, 700, measured).splitlines()
    assert lines[0].startswith("| 10 modules, 700 lines |")
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {case.tool.name}" for case in chosen]


def test_a_build_with_nothing_to_do_is_measured(bench: Any) -> None:
    measured = bench.nothing_to_do.measure(n_shards=2, n_rounds=1)
    assert "buildsys" in bench.nothing_to_do.table(2, measured)


def test_what_tracing_costs_is_measured_against_workers_that_trace_nothing(bench: Any, tmp_path: Path) -> None:
    place = bench.tracing.Place(tmp_path)
    with closing(bench.tracing.Workers(tmp_path, 1)) as workers:
        traced = bench.tracing.called(workers, place.job("work", "work", n=1)).trace.trace
    with bench.tracing.untraced(tmp_path / "untraced"), closing(bench.tracing.Workers(tmp_path, 1)) as workers:
        untraced = bench.tracing.called(workers, place.job("work", "work", n=1)).trace.trace
    assert traced.functions == {f"scripts/work.py:{name}" for name in ("work", "tokenize", "split", "keep", "read")}
    assert untraced.functions == frozenset()


def test_what_the_log_of_replies_costs_is_measured(bench: Any, tmp_path: Path) -> None:
    rows = [row.partition(" | ")[0] for row in bench.replies.write(tmp_path, 600)]
    assert rows[0] == "write, 256 at once"
    measured = bench.replies.read(tmp_path, 600)
    assert measured.keys() == {"open", "memory", "there", "in order", "not there"}
    assert all(measured[which] > 0 for which in measured.keys() - {"memory"})
