"""The page of figures shows those that are kept, and nothing that must not be."""

from __future__ import annotations

import json

import pytest

from tests.mutation import report
from tests.mutation.measure import Tally
from tests.mutation.packages import PACKAGES
from tests.mutation.report import KEPT, PAGE, figures, page, table


def test_the_page_shows_what_is_kept() -> None:
    kept = json.loads(KEPT.read_text())
    assert page(PAGE.read_text(), kept) == PAGE.read_text()
    assert kept.keys() <= PACKAGES.keys()
    assert len(kept) >= 6


def test_what_is_kept_holds_the_line() -> None:
    """As `python -m tests.mutation` does when it ends."""
    kept = {name: one["figures"] for name, one in json.loads(KEPT.read_text()).items()}
    bad = ("stale traced", "stale static", "left traced", "over traced", "otherwise", "untraced")
    assert {(name, what) for name, one in kept.items() for what in bad if one[what]} == set()
    assert max(one["idle traced"] / one["n_idle"] for one in kept.values()) <= 0.30
    assert sum(one["idle traced"] for one in kept.values()) / sum(one["n_idle"] for one in kept.values()) <= 0.15
    assert min(one["n_entries"] for one in kept.values()) >= 20


def test_a_row_tells_both_levels_and_the_last_one_tells_all() -> None:
    one, two = Tally("a", 3, 2, n_executed=4, n_idle=10), Tally("b", 1, 1, n_idle=30, n_asked=2)
    one.seen["static"].left += ["x"]
    two.seen["traced"].idle += ["x", "y"]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table({"a": figures(one), "b": figures(two)}).splitlines()
    ]
    assert rows[2] == [
        "a",
        "3",
        "2",
        "4",
        "4 / 3",
        "0",
        "0 / 0",
        "10",
        "0.0 % / 0.0 %",
        "0",
        "0.0 % / 0.0 %",
        "0, 0 otherwise",
    ]
    assert rows[4][7:9] == ["40", "5.0 % / 0.0 %"]


def test_a_package_that_is_measured_again_leaves_the_figures_of_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("figures")
    monkeypatch.setattr(report, "KEPT", folder / "kept")
    monkeypatch.setattr(report, "PAGE", folder / "page")
    report.PAGE.write_text("Head.\n\n<!-- figures -->\nold\n<!-- end of figures -->\nTail.\n")
    report.write([Tally("b", 1, 20), Tally("a", 1, 20)], " --seed 1")
    report.write([Tally("b", 7, 20)], "")
    text = report.PAGE.read_text()
    assert text.startswith("Head.\n\n<!-- figures -->\n\n| package")
    assert text.endswith("<!-- end of figures -->\nTail.\n")
    assert [line.split("|")[1:3] for line in text.splitlines() if line.startswith(("| a ", "| b "))] == [
        [" a       ", "         1 "],
        [" b       ", "         7 "],
    ]
    assert [line.rpartition(": ")[2] for line in text.splitlines() if line.startswith("- ")] == [
        "`python -m tests.mutation a --seed 1`",
        "`python -m tests.mutation b`",
    ]
