"""Real packages under mutation, a sample: no edit that matters goes unseen. `python -m tests.mutation` does more."""

from __future__ import annotations

import pytest

from tests.mutation import bench
from tests.mutation.__main__ import faults
from tests.mutation.measure import Extent, Tally, measure
from tests.mutation.packages import PACKAGES

_SMALL = Extent(functions=8, no_ops=3, entries=4, tries=2)


@pytest.mark.parametrize("package", ["attrs", "boltons", "marshmallow", "toolz", "voluptuous"])
def test_no_edit_that_matters_goes_unseen(package: str) -> None:
    tally = measure(PACKAGES[package], _SMALL)
    assert list(tally.faults()) == []
    assert tally.n_executed > 0
    assert tally.n_telling > 0
    assert tally.n_no_ops + tally.n_read > 0


def test_the_command_says_what_is_seen_in_process() -> None:
    tally = measure(PACKAGES["toolz"], Extent(functions=0, no_ops=1, entries=2, tries=1, asked=2))
    assert tally.n_asked > 1
    assert tally.otherwise == []


def test_a_command_that_says_otherwise_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = iter(range(10**6))
    monkeypatch.setattr(bench.Bench, "_command", lambda *_: str(next(texts)))
    tally = measure(PACKAGES["toolz"], Extent(functions=0, no_ops=1, entries=1, tries=1, asked=1))
    (told,) = tally.otherwise
    assert told.endswith("left it")
    assert list(tally.faults()) == [f"the command says otherwise: {told}"]


def test_a_fingerprint_that_never_changes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "print_of", lambda *_: "same")
    tally = measure(PACKAGES["toolz"], _SMALL)
    assert len(tally.seen["traced"].left) == tally.n_executed > 0
    assert len(tally.seen["traced"].stale) == len(tally.seen["static"].stale) == tally.n_telling > 0
    assert faults([tally]) == list(tally.faults())


def test_a_fingerprint_that_always_changes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = iter(range(10**6))
    monkeypatch.setattr(bench, "print_of", lambda *_: str(next(texts)))
    tally = measure(PACKAGES["voluptuous"], _SMALL)
    assert len(tally.seen["traced"].over) == tally.n_no_ops > 0
    assert len(tally.seen["traced"].idle) == tally.n_idle > 0
    assert faults([tally])[-2:] == [
        "voluptuous: 100 % of mutations of functions that did not run change its fingerprint",
        "100 % of all mutations of functions that did not run change a fingerprint",
    ]


def test_a_function_that_ran_and_is_not_in_the_trace_is_a_fault() -> None:
    tally = Tally("toolz", 1, 1, untraced=["entry with toolz/core.py:f"])
    assert faults([tally]) == ["not in the trace: entry with toolz/core.py:f"]


def test_every_package_has_at_least_twenty_deep_entries() -> None:
    assert {name: len(package.entries()) >= 20 for name, package in PACKAGES.items()} == dict.fromkeys(PACKAGES, True)
