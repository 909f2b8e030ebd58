"""Limits of requests, tokens and cost, by the server's own count: what is sent, what is held back, and what is told."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from buildsys.model import Limits, Prices
from buildsys.run.chat import Endpoint
from buildsys.run.spending import HeldBack, Spending
from tests.chat.asking import one_turn, records, request
from tests.chat.server import GOOD, Answer, ChatServer, completion, error_body


def at_most(n: int) -> Spending:
    return Spending(Limits(max_requests=n))


def test_a_limit_of_requests_is_never_passed_by_many_in_flight_and_several_calls_at_once(engine, log):
    spending = at_most(10)
    one = engine(in_flight=64, spending=spending)
    with ChatServer(lambda asked: Answer(delay_s=0.05)) as server, ThreadPoolExecutor(3) as threads:
        calls = [
            threads.submit(one.answer, records(*range(n, n + 40)), one_turn, Endpoint(server.url, "m"))
            for n in (0, 40, 80)
        ]
        for call in calls:
            with pytest.raises(HeldBack):
                call.result()
    reached = spending.reached()
    assert len(server.asked) == 10
    assert reached
    assert (reached.limit, reached.most, reached.requests, reached.output_tokens) == ("max_requests", 10, 10, 70)
    assert (reached.kept, reached.left, reached.cost) == (10, 110, None)
    with ChatServer() as rest:
        engine().answer(records(*range(120)), one_turn, Endpoint(rest.url, "m"))
    assert sorted(server.prompts + rest.prompts) == sorted(f"q{n}" for n in range(120))


def test_a_limit_that_is_just_enough_holds_nothing_back(engine):
    spending = at_most(10)
    with ChatServer() as server:
        answered = engine(spending=spending).answer(records(*range(10)), one_turn, Endpoint(server.url, "m"))
    assert (answered.n_sent, len(server.asked)) == (10, 10)
    assert spending.reached() is None


def test_a_limit_of_nothing_sends_nothing_and_still_takes_what_the_log_has(engine):
    with ChatServer() as server:
        engine().answer(records(1, 2), one_turn, Endpoint(server.url, "m"))
        for limits in (Limits(max_requests=0), Limits(max_output_tokens=0), Limits(max_cost=0)):
            none = engine(spending=Spending(limits, Prices(output_token=1)))
            assert none.answer(records(1, 2), one_turn, Endpoint(server.url, "m")).n_reused == 2
            with pytest.raises(HeldBack):
                none.answer(records(1, 2, 3), one_turn, Endpoint(server.url, "m"))
    assert server.prompts == ["q1", "q2"]


def test_replies_of_the_log_count_nothing(engine):
    with ChatServer() as server:
        engine().answer(records(*range(20)), one_turn, Endpoint(server.url, "m"))
        answered = engine(spending=at_most(5)).answer(records(*range(25)), one_turn, Endpoint(server.url, "m"))
    assert (answered.n_sent, answered.n_reused, len(server.asked)) == (5, 20, 25)


@pytest.mark.parametrize("in_flight", [1, 64])
def test_equal_requests_count_once_whether_they_are_sent_or_held_back(engine, in_flight):
    spending = at_most(1)
    twins = [{"question": f"q{n % 2}", "n": n} for n in range(8)]
    with ChatServer(lambda asked: Answer(delay_s=0.05)) as server, pytest.raises(HeldBack):
        engine(in_flight=in_flight, spending=spending).answer(twins, one_turn, Endpoint(server.url, "m"))
    reached = spending.reached()
    assert reached
    assert (len(server.asked), reached.left) == (1, 1)


def test_tokens_stop_before_the_next_reply_would_pass_them(engine):
    spending = Spending(Limits(max_output_tokens=50))
    with ChatServer(lambda asked: Answer(delay_s=0.02)) as server, pytest.raises(HeldBack):
        engine(in_flight=4, spending=spending).answer(records(*range(40)), one_turn, Endpoint(server.url, "m"))
    reached = spending.reached()
    assert reached
    assert (len(server.asked), reached.output_tokens, reached.left) == (7, 49, 33)


def test_what_is_in_flight_as_a_limit_is_passed_comes_in_and_is_kept(engine, log):
    spending = Spending(Limits(max_output_tokens=50))
    with ChatServer(lambda asked: Answer(delay_s=0.3 + asked.number / 100)) as server, pytest.raises(HeldBack):
        engine(in_flight=16, spending=spending).answer(records(*range(40)), one_turn, Endpoint(server.url, "m"))
    reached = spending.reached()
    assert reached
    assert (len(server.asked), server.answered.total()) == (16, 16)
    assert (reached.output_tokens, reached.kept, reached.left) == (16 * 7, 16, 24)
    with ChatServer() as rest:
        engine().answer(records(*range(40)), one_turn, Endpoint(rest.url, "m"))
    assert len(rest.asked) == 24


@pytest.mark.parametrize(
    ("prices", "most", "n"),
    [
        (Prices(request=0.1), 0.3, 3),
        (Prices(request=0.1), 0.35, 3),
        (Prices(output_token=0.01), 0.3, 4),
        (Prices(input_token=0.1, request=1), 5.2, 4),
    ],
)
def test_a_limit_of_cost_goes_by_the_prices(engine, prices, most, n):
    spending = Spending(Limits(max_cost=most), prices)
    with ChatServer() as server, pytest.raises(HeldBack):
        engine(in_flight=2, spending=spending).answer(records(*range(20)), one_turn, Endpoint(server.url, "m"))
    reached = spending.reached()
    assert reached
    assert (len(server.asked), reached.limit) == (n, "max_cost")
    assert reached.cost == pytest.approx(n * (prices.request + 3 * prices.input_token + 7 * prices.output_token))


def test_the_first_limit_that_is_reached_is_told(engine):
    spending = Spending(Limits(max_requests=10, max_output_tokens=21, max_cost=100), Prices(output_token=1))
    with ChatServer() as server, pytest.raises(HeldBack):
        engine(in_flight=1, spending=spending).answer(records(*range(20)), one_turn, Endpoint(server.url, "m"))
    reached = spending.reached()
    assert reached
    assert (len(server.asked), reached.limit) == (3, "max_output_tokens")


def test_an_attempt_whose_answer_is_lost_counts_and_one_that_a_busy_server_sends_away_does_not(engine):
    def lost(asked):
        return Answer(500, error_body("oops")) if asked.tries == 0 else GOOD

    def busy(asked):
        return Answer(503, error_body("later")) if asked.number < 5 else GOOD

    with ChatServer(lost) as server, pytest.raises(HeldBack):
        engine(in_flight=1, spending=at_most(5)).answer(records(*range(9)), one_turn, Endpoint(server.url, "m"))
    assert (len(server.asked), server.answered.total()) == (5, 2)
    with ChatServer(busy) as server, pytest.raises(HeldBack):
        engine(in_flight=16, spending=at_most(5)).answer(records(*range(10, 26)), one_turn, Endpoint(server.url, "m"))
    assert (len(server.asked), server.answered.total()) == (10, 5)


def test_a_refusal_counts_as_a_request_that_was_answered(engine):
    spending = at_most(3)
    with ChatServer(lambda asked: Answer(400, error_body(f"no {asked.prompt}"))) as server, pytest.raises(HeldBack):
        engine(spending=spending).answer(records(*range(9)), one_turn, Endpoint(server.url, "m"))
    reached = spending.reached()
    assert reached
    assert (len(server.asked), reached.kept, reached.left) == (3, 3, 6)


def test_a_conversation_goes_on_where_a_limit_held_it_back(engine):
    def two_turns(turns):
        return [
            None if len(replies) == 2 else request({"question": f"{record['question']}/{len(replies)}"})
            for record, replies in turns
        ]

    spending = at_most(5)
    with ChatServer() as server:
        with pytest.raises(HeldBack):
            engine(spending=spending).answer(records(1, 2, 3), two_turns, Endpoint(server.url, "m"))
        assert len(server.asked) == 5
        reached = spending.reached()
        assert reached
        assert reached.left == 1
        answered = engine().answer(records(1, 2, 3), two_turns, Endpoint(server.url, "m"))
    assert (answered.n_sent, len(server.asked), len(set(server.prompts))) == (1, 6, 6)


def test_replies_that_do_not_tell_their_tokens_are_counted(engine):
    def silent(asked):
        body = json.loads(completion(asked))
        del body["usage"]
        return Answer(body=json.dumps(body).encode())

    spending = Spending(Limits(max_output_tokens=10))
    with ChatServer(silent) as server:
        engine(spending=spending).answer(records(*range(5)), one_turn, Endpoint(server.url, "m"))
    assert (spending.counts_tokens, spending.n_unmeasured) == (True, 5)
