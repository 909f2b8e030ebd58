"""How long a plan takes and what it costs, by hand."""

from __future__ import annotations

import pytest

from buildsys.model import NO_SHARD, ActionId, Prices, RuleName, Shard
from buildsys.plan.estimate import Load, Spent, estimate


def act(name: str) -> ActionId:
    rule, _, shard = name.partition("/")
    return ActionId(RuleName(rule), Shard(shard) if shard else NO_SHARD)


def loads(**needs: str) -> list[Load]:
    """Actions of one rule each, with what they need, separated by blanks."""
    return [Load(act(name), needs=[act(need) for need in text.split()]) for name, text in needs.items()]


def took(**seconds: float) -> dict[RuleName, Spent]:
    return {RuleName(rule): Spent({act(rule): s}) for rule, s in seconds.items()}


def test_nothing_to_run_takes_nothing():
    found = estimate([], {}, 2, Prices())
    assert (found.seconds, found.requests, found.cost) == (0.0, 0, 0.0)


@pytest.mark.parametrize(
    ("jobs", "needs", "seconds"),
    [
        (1, {"a": "", "b": "", "c": ""}, 6.0),
        (2, {"a": "", "b": "", "c": ""}, 4.0),  # c starts when a has ended
        (9, {"a": "", "b": "", "c": ""}, 3.0),
        (9, {"a": "", "b": "a", "c": "b"}, 6.0),
        (2, {"a": "", "b": "a", "c": "a"}, 4.0),
        (1, {"c": "", "b": "elsewhere", "a": "b c"}, 6.0),
    ],
)
def test_actions_run_as_soon_as_what_they_need_is_there_and_a_job_is_free(jobs, needs, seconds):
    assert estimate(loads(**needs), took(a=1.0, b=2.0, c=3.0), jobs).seconds == seconds


def test_actions_wait_for_what_they_take():
    takers = [Load(act(f"a/{n}"), takes={"gpu": 2, "disk": 1}) for n in range(3)]
    spent = {RuleName("a"): Spent({act("a/0"): 5.0})} | took(b=12.0)
    assert estimate(takers, spent, 9, sizes={"gpu": 4, "disk": 9}).seconds == 10.0
    assert estimate(takers, spent, 9, sizes={"gpu": 3, "disk": 9}).seconds == 15.0
    assert estimate([*takers, *loads(b="")], spent, 2, sizes={"gpu": 9, "disk": 1}).seconds == 15.0
    assert estimate(takers, spent, 9, sizes={"gpu": 1}).seconds == 15.0, "a machine that has less refuses it anyway"


def test_the_time_of_the_jobs_is_told_beside_that_of_the_build():
    found = estimate(loads(a="", b=""), took(a=3.0, b=5.0), 2)
    assert (found.seconds, found.action_s) == (5.0, 8.0)


def test_a_shard_that_never_ran_takes_as_long_as_the_others_did():
    spent = {RuleName("a"): Spent({act("a/0"): 2.0, act("a/1"): 4.0})}
    assert estimate([Load(act("a/1"))], spent, 1).seconds == 4.0
    assert estimate([Load(act("a/2"))], spent, 1).seconds == 3.0


def test_what_was_never_done_is_named_and_not_guessed():
    found = estimate(loads(a="", b="a"), took(a=2.0), 1)
    assert (found.seconds, found.unknown_time) == (2.0, ("b",))
    assert estimate(loads(b=""), {}, 1).seconds is None


def test_what_may_come_out_equal_is_told_apart():
    found = estimate([Load(act("a")), Load(act("b"), certain=False, needs=[act("a")])], took(a=2.0, b=5.0), 1)
    assert (found.certain_s, found.seconds) == (2.0, 7.0)


REPLIES = RuleName("replies")
ASKED = {REPLIES: Spent({}, {}, request_s=0.5, input_tokens=20.0, output_tokens=100.0)}


def test_only_requests_that_are_not_answered_take_time_tokens_and_money():
    prices = Prices(request=1.0, input_token=0.01, output_token=0.1, action_hour=360.0, currency="EUR")
    load = Load(act("replies/0"), is_chat=True, requests=10, answered=6)
    found = estimate([load], ASKED, 1, prices)
    assert (found.requests, found.answered, found.seconds) == (4, 6, 2.0)
    assert (found.input_tokens, found.output_tokens) == (80.0, 400.0)
    assert (found.cost, found.currency) == (pytest.approx(4 + 0.8 + 40 + 0.2), "EUR")


def test_actions_that_wait_for_replies_take_no_jobs():
    chats = [Load(act(f"replies/{n}"), is_chat=True, requests=4) for n in range(3)]
    assert estimate([*chats, *loads(a="")], ASKED | took(a=2.0), 1).seconds == 2.0


def test_requests_that_cannot_be_counted_are_named():
    found = estimate([Load(act("replies/0"), is_chat=True, requests=None)], ASKED, 1)
    assert (found.requests, found.unknown_requests, found.seconds) == (0, ("replies",), None)


def test_tokens_and_time_of_a_rule_that_never_asked_are_not_known():
    found = estimate([Load(act("replies/0"), is_chat=True, requests=4)], {}, 1)
    assert (found.requests, found.unknown_tokens, found.unknown_time) == (4, ("replies",), ("replies",))
    answered = estimate([Load(act("replies/0"), is_chat=True, requests=4, answered=4)], {}, 1)
    assert (answered.seconds, answered.unknown_tokens, answered.unknown_time) == (0.0, (), ())


def test_gpus_cost_as_long_as_they_are_occupied_and_servers_until_all_is_done():
    prices = Prices(gpu_hour=3600.0, service_hour=360.0)
    found = estimate(
        [Load(act("a"), takes={"gpu": 4}, services=["verifier"]), *loads(b="")], took(a=10.0, b=5.0), 1, prices
    )
    assert found.gpu_s == 40.0
    assert found.cost == pytest.approx(40.0 + 15.0 * 0.1)
