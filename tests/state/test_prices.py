"""Money in the views: at the prices that each run had, of what was really done."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from buildsys.model import Prices, Usage
from buildsys.state.manifest import Manifest
from buildsys.state.rows import ActionRow, PricesRow, RequestRow, ServiceRow
from tests.state import small

PRICES = Prices(1.0, 0.1, 0.01, action_hour=36.0, service_hour=3600.0, gpu_hour=360.0, currency="EUR")
REPLIES = small.action("replies", "0")
ASKED = RequestRow("k", REPLIES.rule, REPLIES.shard, 0, "default", "r", prompt_tokens=20, output_tokens=-1, status=200)


@pytest.fixture
def manifest(root):
    manifest = Manifest.open(root / ".buildsys")
    yield manifest
    manifest.close()


def run(manifest: Manifest, prices: Prices | None) -> None:
    """One request sent and one from the log, in an action of 10 s on two GPUs, with a server for 5 s."""
    run_id = manifest.begin_run(command="buildsys build", profile="default", targets=[])
    manifest.commit([PricesRow(run_id, prices)] if prices else [])
    manifest.commit([replace(ASKED, run_id=run_id), replace(ASKED, run_id=run_id, reused=True)])
    usage, now = Usage(wall_s=10.0), time.time()
    manifest.commit([ActionRow(run_id, "default", REPLIES, "failed", None, usage=usage, gpus=2)])
    manifest.commit([ServiceRow(run_id, "verifier", now - 5, now)])
    manifest.finish_run(run_id, "failed")


def test_requests_actions_and_runs_have_their_cost(manifest):
    run(manifest, PRICES)
    assert manifest._fetch("SELECT cost FROM requests ORDER BY reused") == [(pytest.approx(3.0),), (0,)]
    assert manifest._fetch("SELECT gpu_s, cost FROM actions") == [(20.0, pytest.approx(0.1 + 2.0 + 3.0))]
    (told,) = manifest._fetch("SELECT service_s, cost, currency FROM runs")
    assert told == (pytest.approx(5.0), pytest.approx(5.1 + 5.0), "EUR")


def test_a_run_keeps_the_prices_that_it_had(manifest):
    run(manifest, PRICES)
    run(manifest, replace(PRICES, gpu_hour=0.0))
    run(manifest, None)
    assert manifest._fetch("SELECT cost FROM actions ORDER BY run_id") == [
        (pytest.approx(5.1),),
        (pytest.approx(3.1),),
        (None,),
    ]
    assert manifest._fetch("SELECT cost, currency FROM runs WHERE run_id = 3") == [(None, None)]
    assert manifest._fetch("SELECT gpu_s FROM actions WHERE run_id = 3") == [(20.0,)]
