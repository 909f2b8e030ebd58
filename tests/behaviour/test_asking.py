"""How a `chat` rule asks: turns, samples, several servers, bit by bit. By the servers' own counts."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.behaviour.conftest import Space
from tests.chat.server import GOOD, Answer, Asked, ChatServer, completion, events

RULES = """
[rule.replies]
each     = { shard = "prompts/{shard}.jsonl" }
chat     = "scripts/gen.py::build_request"
inputs   = { prompts = "prompts/{shard}.jsonl" }
endpoint = ENDPOINT
identity = "test@1"
outputs  = { replies = "made/{shard}.jsonl" }
"""
SCRIPT = """
def build_request(record, replies):
    messages = [{"role": "user", "content": record["text"]}]
    if len(replies) > record["turns"] - 1:
        return None
    for reply in replies:
        message = reply["choices"][0]["message"]
        messages += [{"role": "assistant", "content": message["content"]}]
        messages += [{"role": "user", "content": f"{record['text']}, really?"}]
    return {"model": "m", "messages": messages, "max_tokens": 100}
"""
N_SHARDS = 4
N = 15


@pytest.fixture
def chat(space: Space) -> Space:
    space.write("scripts/gen.py", SCRIPT)
    space.write("config.toml", 'none = []\nwrong = ["http://h", 7]\n')
    for shard in range(N_SHARDS):
        rows = [{"id": f"r{shard}-{n}", "text": f"question {shard}-{n}", "turns": 1 + n % 2} for n in range(N)]
        space.write(f"prompts/{shard}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return space


def configure(space: Space, endpoint: str, more: str = "") -> None:
    rules = RULES.replace("ENDPOINT", endpoint).replace("[rule.replies]", f"[rule.replies]\n{more}")
    space.write("rules/gen.toml", f'config = "config.toml"\n{rules}')


def rows(space: Space) -> list[dict[str, object]]:
    return [json.loads(line) for n in range(N_SHARDS) for line in space.read(f"made/{n}.jsonl").splitlines()]


def test_two_turns_three_samples_and_two_servers_of_unequal_speed(chat: Space) -> None:
    def slow(asked: Asked) -> Answer:
        return Answer(delay_s=0.3)

    n_first = N_SHARDS * N * 3
    n_second = N_SHARDS * (N // 2) * 3
    with ChatServer(slow) as first, ChatServer(lambda asked: Answer(delay_s=0.02)) as second:
        configure(chat, json.dumps([first.url, second.url]), "samples = 3\nin_flight = 6\ncanary = 2")
        assert chat.build().outcome == "done"
        asked = Counter(one.raw for one in (*first.asked, *second.asked))
        assert sum(asked.values()) == n_first + n_second
        assert set(asked.values()) == {3}
        assert max(first.max_in_flight, second.max_in_flight) <= 6
        assert 0 < 3 * len(first.asked) < len(second.asked)
        assert chat.build(force=["replies"]).outcome == "done"
        assert len(first.asked) + len(second.asked) == n_first + n_second
        configure(chat, json.dumps(second.url), "samples = 4")
        assert chat.build().outcome == "done"
        assert len(first.asked) + len(second.asked) == (n_first + n_second) // 3 * 4
    found = rows(chat)
    assert len(found) == N_SHARDS * N * 4
    for row in found:
        record = row["record"]
        said = [reply["choices"][0]["message"]["content"] for reply in row["replies"]]  # type: ignore[attr-defined]
        text = record["text"]  # type: ignore[index]
        assert said == [f"answer to {text}", f"answer to {text}, really?"][: record["turns"]]  # type: ignore[index]
    assert [row["sample"] for row in found[:4]] == [0, 1, 2, 3]


def test_a_server_that_is_lost_is_told_of_and_the_other_answers(chat: Space) -> None:
    def plan(asked: Asked) -> Answer:
        return Answer(delay_s=0.01)

    with ChatServer(plan) as server:
        dead = "http://127.0.0.1:9"
        configure(chat, json.dumps([dead, server.url]))
        assert chat.build().outcome == "done"
        assert set(server.answered.values()) == {1}


def test_how_a_rule_asks_is_in_no_key(chat: Space) -> None:
    with ChatServer(lambda asked: Answer(events=events(asked)) if asked.body.get("stream") else GOOD) as server:
        configure(chat, json.dumps(server.url))
        chat.build()
        n_asked = len(server.asked)
        configure(chat, json.dumps([server.url]), "stream = true\nin_flight = 3\ncanary = 5\nreuse_shorter = true")
        assert chat.build().ran == []
        assert chat.build(force=["replies"]).outcome == "done"
        assert len(server.asked) == n_asked


def test_replies_come_bit_by_bit_where_a_rule_says_so(chat: Space) -> None:
    with ChatServer(lambda asked: Answer(events=events(asked), pause_s=0.002)) as server:
        configure(chat, json.dumps(server.url), "stream = true")
        assert chat.build().outcome == "done"
        assert all(asked.body["stream"] for asked in server.asked)
    first = rows(chat)[0]["replies"][0]  # type: ignore[index]
    assert first["choices"][0]["message"]["reasoning"] == "thinking of question 0-0 …"
    assert first["usage"]["completion_tokens"] == 7


def test_a_larger_cap_asks_only_for_what_was_cut_where_a_rule_says_so(chat: Space) -> None:
    def plan(asked: Asked) -> Answer:
        is_cut = asked.prompt.endswith("-3") and asked.body["max_tokens"] == 100
        return Answer(body=completion(asked).replace(b'"stop"', b'"length"') if is_cut else None)

    with ChatServer(plan) as server:
        configure(chat, json.dumps(server.url))
        chat.build()
        n_asked = len(server.asked)
        configure(chat, json.dumps(server.url), "reuse_shorter = true")
        chat.replace("scripts/gen.py", '"max_tokens": 100', '"max_tokens": 200')
        assert chat.build().outcome == "done"
        again = server.asked[n_asked:]
        assert {asked.prompt.removesuffix(", really?") for asked in again} == {
            f"question {n}-3" for n in range(N_SHARDS)
        }
        assert chat.build(force=["replies"]).outcome == "done"
        assert len(server.asked) == n_asked + len(again)


@pytest.mark.parametrize(
    ("endpoint", "more", "problem"),
    [
        ("[]", "", "does not say where its requests go"),
        ('["service:v", "http://h"]', "", 'has "service:v"'),
        ('["h:80"]', "", 'is "h:80"'),
        ('"http://h"', "canary = -1", "canary"),
        ('"http://h"', "in_flight = 0", "in_flight"),
        ('"http://h"', 'stream = "yes"', "stream"),
        ('["http://h", ""]', "", "endpoint"),
        ('"$none"', "", "names no server"),
        ('"$wrong"', "", "which is no text"),
    ],
)
def test_how_not_to_ask_is_told_with_its_line(chat: Space, endpoint: str, more: str, problem: str) -> None:
    configure(chat, endpoint, more)
    refused = chat.build()
    assert refused.error
    assert problem in refused.error.problem
    assert "rules/gen.toml" in refused.error.render()
