"""What amounts come to against limits, and what is said where they are too much."""

from __future__ import annotations

from dataclasses import replace

from buildsys.errors import LIMIT
from buildsys.events import LimitReached
from buildsys.model import Limits, Prices
from buildsys.plan.limits import Amount, against, spent_text, stopped

REACHED = LimitReached("max_requests", 10, 10, 70, None, "", kept=10, left=22)


def test_an_amount_is_seen_by_every_limit_that_there_is():
    limits = Limits(max_requests=10, max_cost=0.3, max_output_tokens=50)
    seen = list(against(limits, Prices(request=0.1), Amount(3, 100, 60)))
    assert [(limit.name, limit.is_reached, limit.is_passed) for limit in seen] == [
        ("max_requests", False, False),
        ("max_output_tokens", True, True),
        ("max_cost", True, False),
    ]
    assert list(against(Limits(), None, Amount(10**9, 10**9, 10**9))) == []


def test_what_is_spent_is_told_against_each_limit():
    limits = Limits(max_requests=1000, max_cost=10.0, max_output_tokens=2_000_000)
    seen = against(limits, Prices(request=0.0125), Amount(328, 9, 1_260_000))
    assert [spent_text(limit, "EUR") for limit in seen] == [
        "328 of 1,000 requests",
        "1.2M of 2M tokens",
        "4.10 of 10 EUR",
    ]


def test_the_end_tells_the_limit_what_was_spent_what_is_kept_and_what_is_left():
    error = stopped(REACHED)
    assert error.exit_code == LIMIT
    assert error.render().splitlines() == [
        "error: max_requests stopped the build",
        "  limit:      10 requests",
        "  spent:      10 requests, 70 output tokens",
        "  kept:       10 replies",
        "  left to do: 22 requests, as far as they are known",
        "hint: build again, for as much again, or raise max_requests: what is kept is not asked for again",
    ]


def test_the_end_tells_what_came_in_beyond_the_limit():
    facts = dict(stopped(replace(REACHED, limit="max_output_tokens", most=50)).facts)
    assert facts["limit"] == "50 output tokens, passed by what was in flight"
    facts = dict(stopped(replace(REACHED, limit="max_cost", most=2.5, cost=2.4, currency="EUR", kept=1)).facts)
    assert facts["limit"] == "2.50 EUR"
    assert facts["spent"] == "10 requests, 70 output tokens, 2.40 EUR"
    assert facts["kept"] == "1 reply"
