"""What goes wrong between here and the server: nothing is lost, nothing is paid for twice, and people are told."""

import json
import socket
import threading
import time
from dataclasses import replace
from email.utils import formatdate

import pytest

from buildsys.errors import FAILED, USAGE, BuildError
from buildsys.run.chat import Endpoint
from buildsys.run.endpoint import mended, retry_after_s
from tests.chat.asking import one_turn, records
from tests.chat.conftest import SHORT
from tests.chat.server import GOOD, Answer, ChatServer, error_body

FAULTS = {
    "500": Answer(500, error_body("CUDA error")),
    "502 of a proxy": Answer(502, b"<html>Bad Gateway</html>"),
    "408": Answer(408, error_body("too slow")),
    "409": Answer(409, error_body("conflict")),
    "429": Answer(429, error_body("slow down"), {"retry-after-ms": "30"}),
    "503": Answer(503, error_body("loading model")),
    "reset": Answer(reset=True),
    "half a body": Answer(content_length=10_000),
    "a body cut off": Answer(body=b'{"choices": [{"message": {"con'),
    "no JSON": Answer(body=b"<html>hello</html>"),
    "no UTF-8": Answer(body=b'{"choices":[{"message":{"content":"\xff"}}]}'),
    "no choices": Answer(body=b'{"choices":[]}'),
    "a choice without message": Answer(body=b'{"choices":[{"index":0}]}'),
    "an error with status 200": Answer(body=error_body("upstream is gone")),
    "an empty body": Answer(body=b""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_once_is_asked_again_once(engine, fault):
    with ChatServer(lambda asked: FAULTS[fault] if asked.tries == 0 and asked.number % 2 else GOOD) as server:
        answered = engine().answer(records(*range(12)), one_turn, Endpoint(server.url, "m"))
        n_asked = len(server.asked)
        assert engine().answer(records(*range(12)), one_turn, Endpoint(server.url, "m")).n_sent == 0
    assert 12 < n_asked <= 24
    assert len(server.asked) == n_asked
    whole = [f'"answer to q{n}"'.encode() in row.replies[0] for n, row in enumerate(answered.rows)]
    assert all(whole)
    if FAULTS[fault].status != 200:
        assert set(server.answered.values()) == {1}


def test_a_reply_without_content_is_a_reply(engine):
    empty = b'{"choices":[{"message":{"content":null},"finish_reason":"stop"}],"usage":null}'
    with ChatServer(lambda asked: Answer(body=empty)) as server:
        answered = engine().answer(records(1), one_turn, Endpoint(server.url, "m"))
    assert answered.rows[0].replies == (empty,)
    assert answered.requests[0].output_tokens == -1
    assert len(server.asked) == 1


@pytest.mark.parametrize("said", ["99999999999999999999", "-1", "2.5", '"7"', "true", "null", "[]"])
def test_a_count_of_tokens_that_can_not_be_is_none(engine, said):
    body = (
        b'{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":3,"completion_tokens":%s}}' % said.encode()
    )
    with ChatServer(lambda asked: Answer(body=body)) as server:
        (asked,) = engine().answer(records(1), one_turn, Endpoint(server.url, "m")).requests
    assert (asked.prompt_tokens, asked.output_tokens) == (3, -1)


def test_an_answer_nested_without_end_is_no_reply(engine):
    deep = b'{"choices":[{"message":{"content":' + b"[" * 500 + b"]" * 500 + b"}}]}"
    with ChatServer(lambda asked: Answer(body=deep) if asked.tries == 0 else GOOD) as server:
        (row,) = engine().answer(records(1), one_turn, Endpoint(server.url, "m")).rows
    assert b"answer to q1" in row.replies[0]


def test_half_a_character_in_a_refusal_spoils_no_row(engine):
    with ChatServer(lambda asked: Answer(400, rb'{"error":{"message":"cut \ud83d"}}')) as server:
        answered = engine().answer(records(1), one_turn, Endpoint(server.url, "m"))
    assert answered.requests[0].error == "cut \ufffd"
    assert json.loads(answered.rows[0].line())["error"]["message"] == "cut \ufffd"


def test_half_a_character_is_no_reason_to_ask_again_and_spoils_no_row(engine, log, tmp_path):
    cut = rb'{"choices":[{"message":{"content":"cut \ud83d"}}]}'
    heard = []

    def script(turns):
        heard.extend(replies[0]["choices"][0]["message"]["content"] for _, replies in turns if replies)
        return one_turn(turns)

    with ChatServer(lambda asked: Answer(body=cut)) as server:
        answered = engine().answer([{"id": "r", "question": "\ude00?"}], script, Endpoint(server.url, "m"))
    assert len(server.asked) == 1
    assert server.asked[0].prompt == "\ude00?"
    assert log.get(answered.requests[0].key).body == cut
    assert heard == ["cut \ufffd"]
    row = json.loads(answered.rows[0].line())
    assert row["record"]["question"] == "\ufffd?"
    assert row["replies"][0]["choices"][0]["message"]["content"] == "cut \ufffd"


def test_only_lone_halves_of_characters_are_mended():
    assert mended(rb'"\ud83d\ude00 \\ud83d \n \u00fc"') == rb'"\ud83d\ude00 \\ud83d \n \u00fc"'
    assert mended(rb'"\ud83d \uDE00 \ud83d\ud83d\ude00 \\\ud83d"') == rb'"\ufffd \ufffd \ufffd\ud83d\ude00 \\\ufffd"'


def test_all_requests_wait_when_one_is_told_to(engine):
    with ChatServer(
        lambda asked: (
            Answer(429, error_body("slow down"), {"retry-after": "1"}) if asked.number == 8 else Answer(delay_s=0.01)
        )
    ) as server:
        answered = engine(in_flight=4, patience=replace(SHORT, busy_s=5)).answer(
            records(*range(40)), one_turn, Endpoint(server.url, "m")
        )
    sent_away = server.asked[8].at
    # What was on its way by then arrives in the first moments.
    assert [asked.number for asked in server.asked if sent_away + 0.4 < asked.at < sent_away + 1.0] == []
    assert answered.n_sent == 40
    assert len(server.asked) == 41


def test_retry_after_is_read_in_all_its_forms():
    assert retry_after_s({"retry-after": "2.5"}) == 2.5
    assert retry_after_s({"retry-after": "9", "retry-after-ms": "1500"}) == 1.5
    assert 55 < (retry_after_s({"retry-after": formatdate(time.time() + 60, usegmt=True)}) or 0) <= 60
    assert retry_after_s({"retry-after": formatdate(0, usegmt=True)}) == 0
    for nothing in ({}, {"retry-after": "soon"}, {"retry-after": "-1"}, {"retry-after": "inf"}):
        assert retry_after_s(nothing) is None


def test_a_server_that_has_ended_is_asked_no_more(engine):
    ended = BuildError("the service ended", facts=[("log", "v.log")], excerpt="out of memory", exit_code=FAILED)
    patience = replace(SHORT, busy_s=60, unseen_s=60, attempts=1000)
    lives = [True]

    def plan(asked):
        lives[0] = asked.number < 3
        return GOOD if lives[0] else Answer(reset=True)

    with ChatServer(plan) as server:
        endpoint = Endpoint(server.url, "m", gone=lambda: None if lives[0] else ended)
        began = time.monotonic()
        with pytest.raises(BuildError) as failed:
            engine(in_flight=1, patience=patience).answer(records(*range(10)), one_turn, endpoint)
        assert time.monotonic() - began < 5
    error = failed.value
    assert (error.problem, error.excerpt, error.exit_code) == ("the service ended", "out of memory", FAILED)
    assert ("log", "v.log") in error.facts
    assert ("answered", "3 of 10 requests") in error.facts


def test_a_request_that_never_works_fails_alone_and_the_rest_is_kept(engine):
    with ChatServer(lambda asked: FAULTS["500"] if asked.prompt == "q3" else GOOD) as server:
        with pytest.raises(BuildError, match="stayed without an answer") as failed:
            engine().answer(records(*range(10)), one_turn, Endpoint(server.url, "m"))
        assert server.prompts.count("q3") == SHORT.attempts
        assert set(server.answered) == {f"q{n}" for n in range(10)} - {"q3"}
        server.plan = lambda asked: GOOD
        answered = engine().answer(records(*range(10)), one_turn, Endpoint(server.url, "m"))
    assert (answered.n_sent, answered.n_reused) == (1, 9)
    assert ("it said", "500: CUDA error") in failed.value.facts
    assert ("answered", "9 of 10 requests") in failed.value.facts
    assert ("failed", "1") in failed.value.facts
    assert "buildsys build" in failed.value.hint
    assert failed.value.exit_code == FAILED


def test_a_server_that_only_fails_is_not_asked_for_ever(engine):
    with ChatServer(lambda asked: FAULTS["500"]) as server, pytest.raises(BuildError, match="20 requests in a row"):
        engine(in_flight=10).answer(records(*range(500)), one_turn, Endpoint(server.url, "m"))
    assert len(server.asked) <= (20 + 10) * SHORT.attempts


def test_a_refused_request_is_a_row_that_is_remembered(engine):
    long = Answer(400, b'{"error":{"message":"context  too long","type":"BadRequestError","code":400}}')
    plan = {"q1": GOOD, "q2": long, "q3": Answer(422, b'{"detail":"no"}'), "q4": Answer(413, b"too large")}
    with ChatServer(lambda asked: plan[asked.prompt]) as server:
        first = engine().answer(records(1, 2, 3, 4), one_turn, Endpoint(server.url, "m"))
        second = engine().answer(records(1, 2, 3, 4), one_turn, Endpoint(server.url, "m"))
    assert len(server.asked) == 4
    assert [row.error for row in first.rows] == [
        None,
        {"status": 400, "type": "BadRequestError", "code": 400, "message": "context  too long"},
        {"status": 422, "type": None, "code": None, "message": "no"},
        {"status": 413, "type": None, "code": None, "message": "too large"},
    ]
    assert [len(row.replies) for row in first.rows] == [1, 0, 0, 0]
    assert [row.line() for row in second.rows] == [row.line() for row in first.rows]
    assert [asked.status for asked in first.requests] == [200, 400, 422, 413]


def test_refusals_are_asked_again_on_demand_and_once(engine):
    refusing = Answer(400, error_body("no"))
    with ChatServer(lambda asked: refusing if asked.prompt != "q1" else GOOD) as server:
        engine().answer(records(1, 2, 3), one_turn, Endpoint(server.url, "m"))
        server.plan = lambda asked: Answer(400, error_body("still no")) if asked.prompt == "q3" else GOOD
        again = engine(retry_refused=True)
        answered = again.answer(records(1, 2, 3), one_turn, Endpoint(server.url, "m"))
        again.answer(records(1, 2, 3), one_turn, Endpoint(server.url, "m"))
        last = engine().answer(records(1, 2, 3), one_turn, Endpoint(server.url, "m"))
    assert sorted(server.prompts) == ["q1", "q2", "q2", "q3", "q3"]
    assert [row.error is None for row in answered.rows] == [True, True, False]
    assert [row.line() for row in last.rows] == [row.line() for row in answered.rows]


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "check VERIFIER_KEY"),
        (403, "check VERIFIER_KEY"),
        (404, "check the model"),
        (405, "check"),
        (307, "check"),
    ],
)
def test_a_wrong_key_or_model_stops_at_once(engine, status, hint):
    secret = "sk-wrong-secret-1"
    said = Answer(status, error_body(f"nothing here for {secret}"))
    with ChatServer(lambda asked: said) as server:
        endpoint = Endpoint(server.url, "m", api_key=secret, key_name="VERIFIER_KEY")
        with pytest.raises(BuildError, match="takes no requests") as failed:
            engine(in_flight=4).answer(records(*range(100)), one_turn, endpoint)
    assert len(server.asked) <= 8
    assert failed.value.exit_code == USAGE
    assert failed.value.hint.startswith(hint)
    assert "nothing here for [api key]" in str(failed.value)
    assert secret not in str(failed.value)


def test_the_same_error_in_all_of_the_first_replies_stops_the_call(engine):
    refusing = Answer(400, error_body("max_tokens must be positive"))
    with ChatServer(lambda asked: refusing) as server:
        with pytest.raises(BuildError, match="the first 20 replies carry the same error") as failed:
            engine(in_flight=4).answer(records(*range(500)), one_turn, Endpoint(server.url, "m"))
        assert "max_tokens must be positive" in str(failed.value)
        assert 20 <= len(server.asked) <= 24 + 4
        with pytest.raises(BuildError, match="carry the same error"):
            engine(in_flight=4).answer(records(*range(500)), one_turn, Endpoint(server.url, "m"))
    assert len(server.asked) <= 24 + 4 + 8


def test_refusals_with_reasons_of_their_own_stop_nothing(engine):
    with ChatServer(lambda asked: Answer(400, error_body(f"{asked.prompt} is too long"))) as server:
        answered = engine().answer(records(*range(60)), one_turn, Endpoint(server.url, "m"))
    assert len(server.asked) == 60
    assert all(row.error for row in answered.rows)


def test_nobody_there_is_told_after_a_while(engine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(BuildError, match="can't be reached") as failed:
        engine().answer(records(1, 2), one_turn, Endpoint(url, "m"))
    assert SHORT.unseen_s / 2 < time.monotonic() - began < 10
    assert ("server", f"{url}/v1") in failed.value.facts
    assert ("answered", "0 of 2 requests") in failed.value.facts


def test_a_server_that_comes_late_is_waited_for(engine):
    with socket.socket() as reserved:
        # Bound but not listening: the port is ours, and connections to it are refused.
        reserved.bind(("127.0.0.1", 0))
        server = ChatServer(on=reserved)
        threading.Timer(0.5, server.__enter__).start()
        answered = engine(patience=replace(SHORT, unseen_s=20)).answer(
            records(1, 2, 3), one_turn, Endpoint(server.url, "m")
        )
        server.__exit__()
    assert answered.n_sent == 3
    assert sorted(server.prompts) == ["q1", "q2", "q3"]


def test_a_server_that_is_always_busy_is_given_up(engine):
    with ChatServer(lambda asked: FAULTS["503"]) as server, pytest.raises(BuildError, match="too busy") as failed:
        engine(in_flight=2).answer(records(*range(10)), one_turn, Endpoint(server.url, "m"))
    assert ("it said", "503: loading model") in failed.value.facts


def test_a_wait_beyond_all_patience_is_told_at_once(engine):
    quota = Answer(429, error_body("quota is used up"), {"retry-after": "86400"})
    with ChatServer(lambda asked: quota) as server, pytest.raises(BuildError, match="too busy") as failed:
        engine(in_flight=2).answer(records(*range(10)), one_turn, Endpoint(server.url, "m"))
    assert "quota is used up (asks to wait for 86,400 s)" in str(failed.value)
    assert len(server.asked) <= 2


def test_a_slow_answer_is_not_lost_to_a_timeout_of_the_client(engine):
    with ChatServer(lambda asked: Answer(delay_s=1.0)) as server:
        impatient = replace(SHORT, connect_timeout_s=0.5)
        answered = engine(patience=impatient).answer(records(1), one_turn, Endpoint(server.url, "m"))
    assert answered.n_sent == 1
    assert len(server.asked) == 1


def test_an_answer_that_takes_too_long_is_asked_again(engine):
    with ChatServer(lambda asked: GOOD if asked.tries else Answer(delay_s=30)) as server:
        answered = engine(patience=replace(SHORT, shortest_s=0.5, longest_s=0.5)).answer(
            records(1), one_turn, Endpoint(server.url, "m")
        )
    assert answered.n_sent == 1
    assert len(server.asked) == 2
