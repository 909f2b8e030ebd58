"""Several servers that answer alike, slow ones, and replies that came under a smaller cap."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace

import pytest

from buildsys.errors import BuildError
from buildsys.model import Limits
from buildsys.run.brake import Brake
from buildsys.run.chat import Endpoint, Listener
from buildsys.run.hosts import Pace, Patience
from buildsys.run.spending import HeldBack, Spending
from tests.chat.asking import one_turn, records, request
from tests.chat.conftest import SHORT
from tests.chat.server import GOOD, Answer, ChatServer, completion, error_body


def two(first: ChatServer, second: ChatServer, **how: int) -> Endpoint:
    return Endpoint(first.url, "m", others=(second.url,), **how)


def test_two_servers_share_requests_by_their_speed(engine, log):
    def slow(asked):
        return Answer(delay_s=0.4)

    def fast(asked):
        return Answer(delay_s=0.02)

    with ChatServer(slow) as first, ChatServer(fast) as second:
        endpoint = two(first, second)
        answered = engine(in_flight=4).answer(records(*range(300)), one_turn, endpoint)
    assert sorted(first.prompts + second.prompts) == sorted(f"q{n}" for n in range(300))
    assert 4 * len(first.asked) < len(second.asked)
    assert len(first.asked) >= 8
    assert (first.max_in_flight, second.max_in_flight) == (4, 4)
    assert answered.n_sent == 300
    assert {asked.endpoint for asked in answered.requests} == {endpoint.url, *endpoint.others}


def test_one_of_two_servers_that_is_lost_is_left_out_and_told_of(engine):
    told = []

    class Told(Listener):
        def left_out(self, url, words):
            told.append((url, words))

    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    with ChatServer(lambda asked: Answer(delay_s=0.1)) as server:
        endpoint = Endpoint(url, "m", others=(server.url,))
        one = engine(in_flight=2, patience=replace(SHORT, unseen_s=0.3))
        answered = one.answer(records(*range(50)), one_turn, endpoint, listener=Told())
        assert answered.n_sent == 50
        assert sorted(server.prompts) == sorted(f"q{n}" for n in range(50))
    assert [one for one, _ in told] == [f"{url}/v1"]


def test_all_servers_lost_is_an_error(engine):
    with ChatServer() as first, ChatServer() as second:
        endpoint = two(first, second)
    with pytest.raises(BuildError, match="can't be reached"):
        engine(in_flight=4).answer(records(*range(50)), one_turn, endpoint)


def test_a_server_that_is_busy_hands_its_requests_to_the_other(engine):
    busy = Answer(429, error_body("slow down"), {"retry-after": "3"})
    with ChatServer(lambda asked: busy) as first, ChatServer(lambda asked: Answer(delay_s=0.01)) as second:
        began = time.monotonic()
        engine(in_flight=4).answer(records(*range(60)), one_turn, two(first, second))
        took_s = time.monotonic() - began
    assert took_s < 2.5
    assert sorted(second.prompts) == sorted(f"q{n}" for n in range(60))
    assert len(first.asked) <= 4


def test_a_wrong_key_at_one_server_is_an_error_at_once(engine):
    wrong = Answer(401, error_body("no"))
    with (
        ChatServer(lambda asked: wrong) as first,
        ChatServer() as second,
        pytest.raises(BuildError, match="takes no requests from here"),
    ):
        engine(in_flight=4).answer(records(*range(60)), one_turn, two(first, second))


def test_a_url_that_is_named_twice_is_one_server(engine):
    with ChatServer(lambda asked: Answer(delay_s=0.05)) as server:
        endpoint = Endpoint(server.url, "m", others=(server.url + "/v1", server.url))
        engine(in_flight=3).answer(records(*range(30)), one_turn, endpoint)
    assert server.max_in_flight == 3


# ---------------------------------------------------------------- time


def test_a_reply_that_takes_longer_than_any_timeout_of_the_client_is_asked_once(engine, monkeypatch):
    import aiohttp
    import httpx2
    import openai
    from openai import _base_client, _constants

    short = httpx2.Timeout(0.3, connect=0.3)
    for module in (openai, _base_client, _constants):
        if hasattr(module, "DEFAULT_TIMEOUT"):
            monkeypatch.setattr(module, "DEFAULT_TIMEOUT", short)
    monkeypatch.setattr(aiohttp.client, "DEFAULT_TIMEOUT", aiohttp.ClientTimeout(total=0.3, sock_connect=0.3))
    with ChatServer(lambda asked: Answer(delay_s=1.5)) as server:
        answered = engine().answer(records(1, 2), one_turn, Endpoint(server.url, "m"))
    assert sorted(server.prompts) == ["q1", "q2"]
    assert [asked.status for asked in answered.requests] == [200, 200]


def test_a_deadline_grows_with_the_tokens_and_the_pace():
    patience = Patience(shortest_s=10.0, longest_s=10_000.0)
    pace = Pace()
    assert pace.deadline_s(None, patience) == 10_000.0
    assert pace.deadline_s(8, patience) == 10.0
    unseen_s = pace.deadline_s(10_000, patience)
    for _ in range(50):
        pace.note(seconds=100.0, n_tokens=5_000)
    seen_s = pace.deadline_s(10_000, patience)
    assert 200.0 * 3 < seen_s < unseen_s
    for _ in range(50):
        pace.note(seconds=1000.0, n_tokens=5_000)
    assert pace.deadline_s(10_000, patience) > 2000.0 * 3
    for _ in range(50):
        pace.note(seconds=1.0, n_tokens=-1)
    assert pace.deadline_s(10_000, patience) == 10_000.0


def test_a_request_beyond_its_deadline_is_asked_anew_with_twice_the_time(engine):
    impatient = replace(SHORT, shortest_s=0.4, longest_s=0.4)
    with ChatServer(lambda asked: Answer(delay_s=0.6)) as server:
        answered = engine(patience=impatient).answer(records(1), one_turn, Endpoint(server.url, "m"))
    assert server.prompts == ["q1", "q1"]
    assert answered.n_sent == 1


# ---------------------------------------------------------------- a smaller cap


def capped(cap, name="max_tokens"):
    return lambda turns: [None if replies else request(record, **{name: cap}) for record, replies in turns]


def cut(asked):
    """Every second reply ends since it may not be longer."""
    body = completion(asked)
    return Answer(body=body.replace(b'"stop"', b'"length"') if int(asked.prompt[1:]) % 2 else body)


def test_what_ended_of_itself_under_a_smaller_cap_answers_a_larger_one_where_that_is_wanted(engine):
    with ChatServer(cut) as server:
        endpoint = Endpoint(server.url, "m")
        small = engine().answer(records(*range(10)), capped(100), endpoint)
        assert len(server.asked) == 10
        engine().answer(records(0, 2), capped(200), endpoint)
        assert len(server.asked) == 12, "not of its own accord"
        large = engine().answer(records(*range(10)), capped(300), endpoint, reuse_shorter=True)
        assert sorted(server.prompts[12:]) == ["q1", "q3", "q5", "q7", "q9"]
        smaller = engine().answer(records(4), capped(50), endpoint, reuse_shorter=True)
        other = engine().answer(records(4), capped(300), Endpoint(server.url, "other"), reuse_shorter=True)
    assert (large.n_sent, large.n_reused) == (5, 5)
    assert (smaller.n_sent, other.n_sent) == (1, 1)
    assert large.rows[4].replies == small.rows[4].replies
    assert large.requests[4].key == small.requests[4].key, "what is kept is what was asked"


def test_a_cap_by_either_name_counts_and_no_cap_is_none(engine):
    with ChatServer() as server:
        endpoint = Endpoint(server.url, "m")
        engine().answer(records(1), capped(100, "max_completion_tokens"), endpoint)
        again = engine().answer(records(1), capped(200, "max_completion_tokens"), endpoint, reuse_shorter=True)
        assert again.n_sent == 0
        assert engine().answer(records(1), one_turn, endpoint, reuse_shorter=True).n_sent == 1


def test_before_the_first_reply_what_is_in_flight_is_taken_for_as_long_as_it_may_be(engine):
    spending = Spending(Limits(max_output_tokens=1000))
    with ChatServer(lambda asked: Answer(delay_s=0.2)) as server, pytest.raises(HeldBack):
        engine(in_flight=64, spending=spending).answer(records(*range(500)), capped(300), Endpoint(server.url, "m"))
    assert server.max_in_flight <= 64
    first = [asked for asked in server.asked if asked.at < server.asked[0].at + 0.15]
    assert len(first) == 3
    reached = spending.reached()
    assert reached
    assert reached.output_tokens <= 1000


def test_one_request_is_sent_though_it_may_pass_the_limit(engine):
    spending = Spending(Limits(max_output_tokens=100))
    with ChatServer() as server, pytest.raises(HeldBack):
        engine(in_flight=8, spending=spending).answer(records(*range(50)), capped(30_000), Endpoint(server.url, "m"))
    assert len(server.asked) == 14


# ---------------------------------------------------------------- a brake


def test_a_brake_keeps_the_rest_from_being_sent_and_lets_come_what_is_in_flight(engine, log):
    brake = Brake()
    with ChatServer(lambda asked: Answer(delay_s=0.3)) as server:
        threading.Timer(0.1, lambda: brake.pull(BuildError("that is enough"))).start()
        with pytest.raises(BuildError, match="that is enough"):
            engine(in_flight=8).answer(records(*range(100)), one_turn, Endpoint(server.url, "m"), brake=brake)
        assert len(server.asked) == 8
        assert len(log) == 8
        with pytest.raises(BuildError, match="that is enough"):
            engine(in_flight=8).answer(records(*range(100)), one_turn, Endpoint(server.url, "m"), brake=brake)
        assert engine().answer(records(*range(8)), one_turn, Endpoint(server.url, "m"), brake=brake).n_sent == 0
        assert len(server.asked) == 8
        server.plan = lambda asked: GOOD
        assert engine().answer(records(*range(100)), one_turn, Endpoint(server.url, "m")).n_sent == 92


def test_a_flight_that_anothers_brake_ends_is_begun_anew(engine):
    shared = engine(in_flight=1)
    brake = Brake()
    failed = []

    def braked(server):
        try:
            shared.answer(records(*range(10)), one_turn, Endpoint(server.url, "m"), brake=brake)
        except BuildError as error:
            failed.append(error.problem)

    with ChatServer(lambda asked: Answer(delay_s=0.2)) as server:
        first = threading.Thread(target=braked, args=(server,))
        first.start()
        threading.Timer(0.3, lambda: brake.pull(BuildError("enough"))).start()
        time.sleep(0.1)
        answered = shared.answer(records(*range(10)), one_turn, Endpoint(server.url, "m"))
        first.join()
    assert failed == ["enough"]
    assert len(answered.rows) == 10
    assert sorted(server.prompts) == sorted(f"q{n}" for n in range(10))


# ---------------------------------------------------------------- who speaks


def speaking(model):
    return lambda asked: Answer(body=completion(asked).replace(b'"model": "m"', f'"model": "{model}"'.encode()))


def test_another_model_than_before_stops_the_rule_until_it_is_built_again(engine, log):
    with ChatServer(speaking("m-2025")) as server:
        endpoint = Endpoint(server.url, "m")
        engine().answer(records(*range(10)), one_turn, endpoint, brake=Brake())
        server.plan = speaking("m-2026")
        with pytest.raises(BuildError, match="another model answers") as stopped:
            engine(in_flight=2).answer(records(*range(60)), one_turn, endpoint, brake=Brake())
        assert {("so far", "m-2025"), ("now", "m-2026"), ("asked for", "m")} <= set(stopped.value.facts)
        n_asked = len(server.asked)
        assert 10 < n_asked <= 13
        assert len(log) == n_asked
        engine().answer(records(*range(60)), one_turn, endpoint, brake=Brake())
    assert len(server.asked) == 60


def test_models_that_are_asked_for_by_other_names_or_say_no_name_are_none(engine):
    def by_record(turns):
        return [None if replies else {**request(record), "model": record["id"]} for record, replies in turns]

    with ChatServer() as server:
        assert engine().answer(records(*range(10)), by_record, Endpoint(server.url, "m"), brake=Brake()).n_sent == 10
        server.plan = speaking("")
        assert engine().answer(records(*range(20, 30)), one_turn, Endpoint(server.url, "m")).n_sent == 10
