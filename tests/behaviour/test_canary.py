"""What a canary stops, and what it lets through, by the server's own count."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from buildsys.events import ActionFinished, Notice
from buildsys.model import Limits
from buildsys.run import chat as engine
from buildsys.run.hosts import Patience
from buildsys.run.replies import ReplyLog
from tests.behaviour.conftest import Built, Space
from tests.chat.server import Answer, Asked, ChatServer, completion, error_body

RULES = """
[rule.replies]
each     = { shard = "prompts/{shard}.jsonl" }
chat     = "scripts/gen.py::build_request"
inputs   = { prompts = "prompts/{shard}.jsonl" }
endpoint = "ENDPOINT"
identity = "test@1"
canary   = 4
outputs  = { replies = "made/replies/{shard}.jsonl" }

[rule.samples]
each    = { shard = "@replies[*]" }
run     = "scripts/gen.py::extract"
inputs  = { replies = "@replies", words = "words.txt" }
outputs = { samples = "made/samples/{shard}.jsonl" }

[rule.lengths]
each    = { shard = "@samples[*]" }
run     = "scripts/gen.py::lengths"
inputs  = { samples = "@samples", prompts = "prompts/{shard}.jsonl" }
outputs = { lengths = "made/lengths/{shard}.jsonl" }
[rule.lengths.checks]
reasoned = "SELECT id, n FROM lengths WHERE n = 0"

[rule.unchecked]
each    = { shard = "@lengths[*]" }
run     = "scripts/gen.py::unchecked"
inputs  = { lengths = "@lengths" }
outputs = { unchecked = "made/unchecked/{shard}.txt" }
"""
SCRIPT = """
import json

def build_request(record, replies):
    return None if replies else {"model": "m", "messages": [{"role": "user", "content": record["text"]}]}

def extract(replies, words, samples):
    assert words.read_text() == "words"
    with samples.open("w") as file:
        for line in replies.read_text().splitlines():
            row = json.loads(line)
            message = row["replies"][0]["choices"][0]["message"]
            file.write(json.dumps({"id": row["id"], "reasoning": message.get("reasoning") or ""}) + "\\n")

def lengths(samples, prompts, lengths):
    with lengths.open("w") as file:
        for line in samples.read_text().splitlines():
            row = json.loads(line)
            file.write(json.dumps({"id": row["id"], "n": len(row["reasoning"])}) + "\\n")

def unchecked(lengths, unchecked):
    with open("CALLS", "a") as file:
        file.write("unchecked\\n")
    unchecked.write_text("")
"""
N_SHARDS = 5
N = 100
"""Of each shard."""


def mute(asked: Asked) -> Answer:
    """A reply whose reasoning has another name."""
    return Answer(body=completion(asked).replace(b'"reasoning"', b'"thoughts"'))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def chat(space: Space, server: ChatServer) -> Space:
    space.write("rules/gen.toml", RULES.replace("ENDPOINT", server.url))
    space.write("scripts/gen.py", SCRIPT)
    space.write("words.txt", "words")
    for shard in range(N_SHARDS):
        rows = [{"id": f"r{shard}-{n}", "text": f"question {shard}-{n}"} for n in range(N)]
        space.write(f"prompts/{shard}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return space


def one_shard(space: Space, n: int) -> None:
    for shard in range(1, N_SHARDS):
        (space.root / f"prompts/{shard}.jsonl").unlink()
    rows = [{"id": f"r{i}", "text": f"question {i}"} for i in range(n)]
    space.write("prompts/0.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def n_kept(space: Space) -> int:
    with ReplyLog(space.root / ".buildsys/replies", writable=False) as log:
        return sum(1 for _ in log.answers())


def notices(built: Built) -> list[str]:
    return [event.text for event in built.events if isinstance(event, Notice)]


def test_replies_that_pass_cost_nothing_and_are_told_of(chat: Space, server: ChatServer) -> None:
    built = chat.build()
    assert built.outcome == "done"
    assert len(server.asked) == N_SHARDS * N
    assert notices(built) == ["replies: the first 4 replies went through samples, lengths and passed 1 check"]
    assert {asked.prompt for asked in server.asked[:4]} == {f"question 0-{n}" for n in range(4)}
    assert notices(chat.build()) == []


@pytest.mark.parametrize("keep_going", [False, True])
def test_replies_that_fail_a_check_stop_the_rule_before_the_rest_is_asked(
    chat: Space, server: ChatServer, keep_going: bool
) -> None:
    server.plan = mute
    built = chat.build(keep_going=keep_going)
    assert built.outcome == "failed"
    assert len(server.asked) == 4
    assert 'check "reasoned" failed for lengths[0] on 4 replies' in built.errors
    assert "r0-0" in built.errors
    assert '"thoughts": "thinking of question 0-0' in built.errors
    assert "SELECT id, n FROM lengths WHERE n = 0" in built.errors
    assert "rules/gen.toml" in built.errors
    assert built.actions("ran") == []
    n_failed = N_SHARDS if keep_going else 1
    assert len(built.failed) >= n_failed


def test_a_mended_script_uses_the_replies_of_the_canary(chat: Space, server: ChatServer) -> None:
    n = 400
    for shard in range(N_SHARDS):
        rows = [{"id": f"r{shard}-{i}", "text": f"question {shard}-{i}"} for i in range(n)]
        chat.write(f"prompts/{shard}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    server.plan = mute
    chat.build()
    assert chat.build().outcome == "failed"
    assert len(server.asked) == 4, "what is known to be bad is not asked beyond"
    chat.replace("scripts/gen.py", 'get("reasoning")', 'get("thoughts")')
    assert chat.build().outcome == "done"
    assert len(server.asked) == N_SHARDS * n
    assert set(server.answered.values()) == {1}


def test_code_that_fails_stops_the_rule_with_its_line(chat: Space, server: ChatServer) -> None:
    chat.replace("scripts/gen.py", 'row["replies"][0]["choices"]', 'row["replies"][0]["choice"]')
    built = chat.build()
    assert len(server.asked) == 4
    assert "KeyError: 'choice' for samples[0] on 4 replies" in built.errors
    assert 'row["replies"][0]["choice"]' in built.errors
    assert "answer to question 0-0" in built.errors


def test_only_what_has_checks_is_tried(chat: Space, server: ChatServer) -> None:
    server.plan = mute
    chat.build()
    assert not (chat.root / "CALLS").exists()


def test_a_check_may_wait_until_there_is_more(chat: Space, server: ChatServer) -> None:
    chat.replace(
        "rules/gen.toml",
        'reasoned = "SELECT id, n FROM lengths WHERE n = 0"',
        'many = { sql = "SELECT count(*) > 50 FROM lengths", canary = false }',
    )
    built = chat.build()
    assert built.outcome == "done"
    assert notices(built) == ["replies: the first 4 replies went through samples, lengths and passed 0 checks"]


def test_a_single_bad_reply_among_many_is_the_one_that_is_shown(chat: Space, server: ChatServer) -> None:
    chat.replace("rules/gen.toml", "canary   = 4", "canary   = 64")
    server.plan = lambda asked: mute(asked) if asked.prompt == "question 0-37" else Answer()
    built = chat.build()
    assert len(server.asked) == 64
    assert "thinking of question 0-37" in built.errors
    assert "thinking of question 0-0 " not in built.errors


def test_a_parser_that_vanishes_later_stops_the_rule_and_loses_nothing(chat: Space, server: ChatServer) -> None:
    one_shard(chat, 1500)
    server.plan = lambda asked: Answer(body=mute(asked).body if asked.number >= 300 else None, delay_s=0.2)
    built = chat.build()
    assert built.outcome == "failed"
    assert 300 < len(server.asked) < 1500
    assert [text for text in notices(built) if "no more is sent" in text]
    assert 'check "reasoned" failed for lengths[0]' in built.errors
    n_asked = len(server.asked)
    assert chat.build().outcome == "failed"
    assert len(server.asked) == n_asked, "what an earlier build left is looked at first"
    chat.replace("scripts/gen.py", 'get("reasoning")', 'get("reasoning") or message.get("thoughts")')
    assert chat.build().outcome == "done"
    assert len(server.asked) == 1500
    assert set(server.answered.values()) == {1}


def test_a_canary_ends_with_the_build(chat: Space, server: ChatServer) -> None:
    server.plan = lambda asked: Answer(401)
    built = chat.build(keep_going=True)
    assert built.outcome == "failed"
    assert len(server.asked) <= 4 * N_SHARDS
    server.plan = lambda asked: Answer()
    assert chat.build().outcome == "done"


def test_small_shards_are_asked_all_at_once_after_the_first(chat: Space, server: ChatServer) -> None:
    chat.replace("rules/gen.toml", "canary   = 4", "canary   = 1000")
    built = chat.build()
    assert built.outcome == "done"
    assert len(notices(built)) == 1
    assert {asked.prompt.partition("-")[0] for asked in server.asked[:N]} == {"question 0"}


# ---------------------------------------------------------------- what must not stop a rule

CHECK = 'reasoned = "SELECT id, n FROM lengths WHERE n = 0"'


def test_a_check_that_waits_for_whole_shards_is_asked_of_no_part(chat: Space, server: ChatServer) -> None:
    one_shard(chat, 800)
    chat.replace("rules/gen.toml", CHECK, 'all = { sql = "SELECT count(*) = 800 FROM lengths", canary = false }')
    server.plan = lambda asked: Answer(delay_s=0.15)
    assert chat.build(limits=Limits(max_requests=300)).outcome == "limit"
    assert chat.build().outcome == "done", "neither of what came, nor of what an earlier build left"


def test_a_rule_that_is_built_on_request_only_stops_nothing(chat: Space) -> None:
    chat.replace("rules/gen.toml", "[rule.lengths]", "[rule.lengths]\ndefault = false")
    chat.replace("rules/gen.toml", "[rule.unchecked]", "[rule.unchecked]\ndefault = false")
    chat.replace("rules/gen.toml", CHECK, 'never = "SELECT false"')
    assert chat.build().outcome == "done"


def test_conversations_that_end_early_are_not_taken_for_all(chat: Space, server: ChatServer) -> None:
    """One in twelve gives up after its first turn; the check allows one in five."""
    one_shard(chat, 700)
    once = 'return None if replies else {"model": "m", "messages": [{"role": "user", "content": record["text"]}]}'
    assert once in SCRIPT
    twice = """
    messages = [{"role": "user", "content": record["text"]}]
    if not replies:
        return {"model": "m", "messages": messages}
    if len(replies) == 2 or not replies[0]["choices"][0]["message"]["content"]:
        return None
    return {"model": "m", "messages": [*messages, {"role": "user", "content": record["text"] + " again"}]}
"""
    script = SCRIPT.replace(once, twice.strip()).replace('row["replies"][0]', 'row["replies"][-1]')
    chat.write("scripts/gen.py", script.replace('message.get("reasoning") or ""', 'message["content"] or ""'))
    chat.replace("rules/gen.toml", CHECK, 'answered = "SELECT avg((n > 0)::INT) >= 0.8 FROM lengths"')

    def plan(asked: Asked) -> Answer:
        gives_up = int(asked.prompt.split()[1]) % 12 == 5 and "again" not in asked.prompt
        text = json.dumps(f"answer to {asked.prompt}").encode()
        return Answer(body=completion(asked).replace(text, b'""') if gives_up else None, delay_s=0.15)

    server.plan = plan
    assert chat.build().outcome == "done"


def test_first_replies_of_which_nothing_is_left_have_nothing_to_check(chat: Space) -> None:
    chat.replace(
        "scripts/gen.py",
        "            row = json.loads(line)\n            message",
        """            row = json.loads(line)
            if int(row["id"].rpartition("-")[2]) < 4:
                continue
            message""",
    )
    assert chat.build().outcome == "done"


# ---------------------------------------------------------------- what ends a call loses nothing


def test_a_script_that_fails_on_a_reply_lets_come_what_is_in_flight(chat: Space, server: ChatServer) -> None:
    one_shard(chat, 900)
    chat.replace(
        "scripts/gen.py",
        "return None if replies else",
        'return replies[0]["choices"][0]["message"]["content"].strip() and None if replies else',
    )

    def plan(asked: Asked) -> Answer:
        text = json.dumps(f"answer to {asked.prompt}").encode()
        is_null = asked.prompt == "question 100"
        return Answer(body=completion(asked).replace(text, b"null") if is_null else None, delay_s=0.4)

    server.plan = plan
    built = chat.build("replies")
    assert "AttributeError" in built.errors
    assert n_kept(chat) == len(server.asked) < 900


@pytest.mark.parametrize("status", [401, 403])
def test_a_request_that_is_not_allowed_lets_come_what_is_in_flight(
    chat: Space, server: ChatServer, status: int
) -> None:
    one_shard(chat, 600)
    refusing = Answer(status, error_body("no"))
    server.plan = lambda asked: refusing if asked.prompt == "question 300" else Answer(delay_s=0.6)
    assert chat.build("replies").outcome == "failed"
    assert n_kept(chat) == len(server.asked) - 1


def test_every_error_shows_a_reply_that_fails(chat: Space, server: ChatServer) -> None:
    one_shard(chat, 700)
    rows = [{"id": f"r1-{n}", "text": f"question 1-{n}"} for n in range(700)]
    chat.write("prompts/1.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    chat.replace("scripts/gen.py", 'assert words.read_text() == "words"', "import time; time.sleep(0.1)")
    server.plan = lambda asked: mute(asked) if asked.number == 250 else Answer(delay_s=0.2)
    built = chat.build()
    errors = [event.error for event in built.events if isinstance(event, ActionFinished) and event.error]
    assert errors
    assert ['"thoughts"' in error for error in errors] == [True] * len(errors)


@pytest.mark.parametrize("how", ["gone", "busy"])
def test_a_server_that_is_gone_is_waited_for_once(
    chat: Space, server: ChatServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(engine, "Patience", lambda: Patience(unseen_s=1.5, busy_s=1.5))
    if how == "gone":
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        chat.replace("rules/gen.toml", server.url, f"http://127.0.0.1:{port}")
    server.plan = lambda asked: Answer(503)
    began = time.monotonic()
    assert chat.build(keep_going=True).outcome == "failed"
    assert time.monotonic() - began < 1.5 * N_SHARDS
