"""Replies that come bit by bit are kept whole, and are given up when nothing comes any more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from buildsys.errors import BuildError
from buildsys.run.chat import Endpoint
from buildsys.run.streamed import Assembly, Broken, merged
from tests.chat.asking import one_turn, records
from tests.chat.conftest import SHORT
from tests.chat.server import GOOD, Answer, ChatServer, error_body, events


def streamed(asked):
    return Answer(events=events(asked))


def bit_by_bit(server):
    return Endpoint(server.url, "m", stream=True)


def test_a_reply_that_comes_bit_by_bit_is_the_one_that_would_have_come_whole(engine, log):
    with ChatServer(streamed) as server:
        answered = engine().answer(records(1, 2), one_turn, bit_by_bit(server))
    bodies = [json.loads(row.replies[0]) for row in answered.rows]
    assert [body["choices"][0]["message"] for body in bodies] == [
        {"role": "assistant", "content": f"answer to q{n}", "reasoning": f"thinking of q{n} …"} for n in (1, 2)
    ]
    (choice,) = bodies[0]["choices"]
    assert (choice["finish_reason"], choice["stop_reason"], choice["index"]) == ("stop", 7, 0)
    assert choice["token_ids"] == list(range(len(choice["token_ids"])))
    assert bodies[0]["usage"]["completion_tokens"] == 7
    assert (bodies[0]["object"], bodies[0]["model"]) == ("chat.completion", "m")
    assert [asked.output_tokens for asked in answered.requests] == [7, 7]
    assert server.asked[0].body["stream"] is True
    assert "stream" not in json.loads(log.get(answered.requests[0].key).request)


def test_how_a_reply_came_is_in_no_key(engine):
    with ChatServer(lambda asked: streamed(asked) if asked.body.get("stream") else GOOD) as server:
        engine().answer(records(1), one_turn, bit_by_bit(server))
        assert engine().answer(records(1), one_turn, Endpoint(server.url, "m")).n_sent == 0
        engine().answer(records(2), one_turn, Endpoint(server.url, "m"))
        assert engine().answer(records(2), one_turn, bit_by_bit(server)).n_sent == 0


def test_a_stream_that_pauses_is_waited_for_and_one_that_stops_is_given_up(engine):
    def plan(asked):
        whole = events(asked)
        if asked.prompt == "q2" and asked.tries == 0:
            return Answer(events=(*whole[:3], *[b": still here\n\n"] * 4), pause_s=0.2)
        return Answer(events=whole, pause_s=0.1)

    patient = replace(SHORT, shortest_s=0.8, longest_s=0.8, idle_s=0.5)
    with ChatServer(plan) as server:
        answered = engine(patience=patient).answer(records(1, 2), one_turn, bit_by_bit(server))
    assert answered.n_sent == 2
    assert sorted(server.prompts) == ["q1", "q2", "q2"]


def test_a_stream_that_says_nothing_more_is_asked_anew(engine):
    def plan(asked):
        whole = events(asked)
        return Answer(events=whole) if asked.tries else Answer(events=whole[:3], pause_s=2.0)

    with ChatServer(plan) as server:
        patient = replace(SHORT, idle_s=0.3)
        assert engine(patience=patient).answer(records(1), one_turn, bit_by_bit(server)).n_sent == 1
    assert len(server.asked) == 2


CUT = {
    "before its end": lambda whole: whole[:4],
    "before its usage, but said to be over": lambda whole: (*whole[:4], whole[-1]),
    "by an error": lambda whole: (*whole[:3], b"data: " + error_body("out of memory") + b"\n\n"),
    "by no JSON": lambda whole: (*whole[:3], b"data: {\n\n", *whole[4:]),
    "by a choice that is none": lambda whole: (b'data: {"choices":[7]}\n\n', *whole),
}


@pytest.mark.parametrize("how", CUT)
def test_a_stream_that_is_cut_is_no_reply_and_asked_anew(engine, log, how):
    with ChatServer(
        lambda asked: Answer(events=CUT[how](events(asked))) if not asked.tries else streamed(asked)
    ) as server:
        answered = engine().answer(records(1), one_turn, bit_by_bit(server))
        assert len(server.asked) == 2
    assert b"answer to q1" in answered.rows[0].replies[0]
    assert len(log) == 1


def test_a_server_that_does_not_stream_or_refuses_is_understood_as_ever(engine):
    with ChatServer(lambda asked: GOOD if asked.prompt == "q1" else Answer(400, error_body("too long"))) as server:
        answered = engine().answer(records(1, 2), one_turn, bit_by_bit(server))
    assert b"answer to q1" in answered.rows[0].replies[0]
    assert answered.rows[1].error["message"] == "too long"
    with ChatServer(lambda asked: Answer(401, error_body("no"))) as server, pytest.raises(BuildError, match="takes no"):
        engine().answer(records(3), one_turn, bit_by_bit(server))


def test_calls_of_tools_are_put_together_by_their_numbers():
    parts = [
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"arguments": "}"}}]},
    ]
    message = {}
    for part in parts:
        message = merged(message, part, parts=True)
    assert message["tool_calls"] == [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]


def test_several_choices_are_kept_apart():
    assembly = Assembly()
    for index, text in ((1, "b"), (0, "a"), (1, "B"), (0, "A")):
        assembly.take("data: " + json.dumps({"choices": [{"index": index, "delta": {"content": text}}]}))
    assert not assembly.is_whole
    for index in (0, 1):
        assembly.take("data:" + json.dumps({"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]}))
    assembly.take("data: [DONE]")
    assert assembly.is_whole
    choices = json.loads(assembly.completion())["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["aA", "bB"]
    with pytest.raises(Broken):
        assembly.take("data: 7")


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\u0085"])
def test_what_other_readers_take_for_an_end_of_a_line_is_text(engine, odd):
    def plan(asked):
        whole = events(asked)
        chunk = json.loads(whole[3][6:])
        chunk["choices"][0]["delta"] = {"content": f"a{odd}b"}
        event = b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n"
        return Answer(events=(*whole[:3], event, *whole[4:]))

    with ChatServer(plan) as server:
        answered = engine().answer(records(1), one_turn, bit_by_bit(server))
        assert len(server.asked) == 1
    assert f"a{odd}b" in json.loads(answered.rows[0].replies[0])["choices"][0]["message"]["content"]


def test_a_server_that_refuses_to_stream_is_asked_without_and_a_refusal_of_that_counts(engine):
    def plan(asked):
        if "stream_options" in asked.body:
            return Answer(400, error_body("stream_options: extra fields not permitted"))
        return Answer(400, error_body("too long")) if asked.prompt == "q2" else GOOD

    with ChatServer(plan) as server:
        answered = engine().answer(records(1, 2), one_turn, bit_by_bit(server))
        assert len(server.asked) == 4
    assert b"answer to q1" in answered.rows[0].replies[0]
    assert answered.rows[1].error["message"] == "too long"
