"""Checks that are stopped: they end at once, and say nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from buildsys.errors import Place
from buildsys.model import Check
from buildsys.run.checks import Cancelled, Checks
from tests.run.conftest import within

ENDLESS = "SELECT count(*) > 0 FROM range(100000000000) a, range(100000000000) b WHERE a.range + b.range < 0"


def check(sql: str) -> Check:
    return Check("one", sql, Place("rules/r.toml", 1))


@pytest.mark.parametrize("begun", [False, True])
def test_cancel_ends_checks_wherever_they_are(tmp_path: Path, begun: bool) -> None:
    checks = Checks()
    told = [check(f"COPY (SELECT 1) TO '{tmp_path}/{n}.csv'; {ENDLESS}") for n in range(2)]
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(checks.run, [one, check("SELECT true")], [], {}) for one in told]
        assert not begun or within(20, lambda: len(list(tmp_path.glob("*.csv"))) == 2)
        checks.cancel()
        for one in running:
            with pytest.raises(Cancelled):
                one.result(20)


def test_after_cancel_no_check_begins(tmp_path: Path) -> None:
    checks = Checks()
    checks.cancel()
    with pytest.raises(Cancelled):
        checks.run([check(f"COPY (SELECT 1) TO '{tmp_path}/begun.csv'")], [], {})
    assert list(tmp_path.iterdir()) == []
