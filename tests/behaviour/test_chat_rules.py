"""Requests of `chat` rules, by the server's own count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from buildsys.collect import Collector, Keep
from buildsys.errors import LIMIT, BuildError
from buildsys.events import LimitReached, Notice
from buildsys.interface import open as open_project
from buildsys.model import Limits
from buildsys.plan.estimate import Estimate
from buildsys.project import Project
from buildsys.query import sql
from buildsys.run.replies import sizes
from buildsys.survey import survey
from tests.behaviour.conftest import Built, Space
from tests.chat.server import Answer, ChatServer, Plan, error_body

RULES = """
config = "config.toml"

[rule.prompts]
run     = "scripts/gen.py::prepare"
params  = { n = "$n", shards = "$shards" }
outputs = { prompts = "build/{profile}/prompts/{shard}.jsonl" }

[rule.replies]
each     = { shard = "@prompts[*]" }
chat     = "scripts/gen.py::build_request"
inputs   = { prompts = "@prompts" }
params   = { temperature = "$temperature" }
endpoint = "$endpoint"
identity = "test@1"
secrets  = { api_key = "TEST_API_KEY" }
outputs  = { replies = "build/{profile}/replies/{shard}.jsonl" }

[rule.samples]
each    = { shard = "@replies[*]" }
run     = "scripts/gen.py::extract"
inputs  = { replies = "@replies" }
outputs = { samples = "build/{profile}/samples/{shard}.jsonl" }
[rule.samples.checks]
reasoned = "SELECT avg((reasoning <> '')::INT) >= 0.9 FROM samples"
"""
SCRIPT = """
import json

def prepare(prompts, *, n, shards):
    for shard in range(shards):
        rows = [{"id": f"r{i}", "text": f"question {i}"} for i in range(n) if i * shards // 64 == shard]
        if rows:
            (prompts / f"{shard}.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))

def build_request(record, replies, *, temperature):
    if replies:
        return None
    message = {"role": "user", "content": record["text"]}
    return {"model": "m", "messages": [message], "temperature": temperature}

def extract(replies, samples):
    with samples.open("w") as file:
        for line in replies.open():
            row = json.loads(line)
            message = row["replies"][0]["choices"][0]["message"] if row["replies"] else {}
            sample = {"record_id": row["id"], "reasoning": message.get("reasoning_content") or ""}
            file.write(json.dumps(sample) + "\\n")
"""
N = 32


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def chat(space: Space, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Space:
    monkeypatch.setenv("TEST_API_KEY", "secret-of-the-test")
    space.write("rules/gen.toml", RULES)
    space.write("scripts/gen.py", SCRIPT.replace("reasoning_content", "reasoning"))
    configure(space, server)
    return space


def configure(space: Space, server: ChatServer, *, n: int = N, shards: int = 8, temperature: float = 0.5) -> None:
    space.write("config.toml", f'n = {n}\nshards = {shards}\ntemperature = {temperature}\nendpoint = "{server.url}"\n')


def test_every_prompt_is_asked_once_and_never_again(chat: Space, server: ChatServer) -> None:
    assert chat.build().outcome == "done"
    assert sorted(server.prompts) == sorted(f"question {n}" for n in range(N))
    rows = [json.loads(line) for line in chat.read("build/default/replies/1.jsonl").splitlines()]
    assert [row["id"] for row in rows] == [f"r{n}" for n in range(8, 16)]
    assert chat.build().ran == []
    assert len(server.asked) == N


def test_a_forced_rule_asks_for_nothing_that_was_answered(chat: Space, server: ChatServer) -> None:
    chat.build()
    forced = chat.build(force=["replies"])
    assert {name.partition("[")[0] for name in forced.ran} == {"replies"}
    assert len(server.asked) == N


def test_mended_parsing_sends_nothing(chat: Space, server: ChatServer) -> None:
    chat.write("scripts/gen.py", SCRIPT)
    built = chat.build(keep_going=True)
    assert built.failed == [f"samples[{n}]" for n in range(4)], "the field has another name: the check says so"
    assert 'check "reasoned" failed' in built.errors
    chat.write("scripts/gen.py", SCRIPT.replace("reasoning_content", "reasoning"))
    built = chat.build()
    assert built.outcome == "done"
    assert len(server.asked) == N


def test_a_lower_cap_sends_nothing_and_touches_no_shard_but_the_cut_one(chat: Space, server: ChatServer) -> None:
    chat.build()
    configure(chat, server, n=20)
    built = chat.build()
    assert built.ran == ["prompts", "replies[2]", "samples[2]"]
    assert not (chat.root / "build/default/samples/3.jsonl").exists()
    configure(chat, server)
    assert chat.build().ran == [], "all of it was there before"
    assert len(server.asked) == N


def test_resharding_and_another_address_send_nothing(chat: Space, server: ChatServer) -> None:
    chat.build()
    configure(chat, server, shards=13)
    assert chat.build().outcome == "done"
    with ChatServer() as other:
        configure(chat, other, shards=13)
        assert chat.build().ran == [], "where a server is, is no part of a key"
        assert other.asked == []
    assert len(server.asked) == N


def test_another_temperature_asks_everything(chat: Space, server: ChatServer) -> None:
    chat.build()
    configure(chat, server, temperature=0.7)
    chat.build()
    assert len(server.asked) == 2 * N


def test_a_refused_request_is_an_error_row_and_is_remembered(chat: Space, server: ChatServer) -> None:
    server.plan = lambda asked: Answer(400, error_body("too long")) if asked.prompt.endswith(" 9") else Answer()
    assert chat.build("replies").outcome == "done"
    rows = [json.loads(line) for line in chat.read("build/default/replies/1.jsonl").splitlines()]
    assert [row["id"] for row in rows if row["error"]] == ["r9"]
    assert len(server.asked) == N


def refuse(*numbers: int) -> Plan:
    """Records with these numbers are refused."""
    refused = {f"question {n}" for n in numbers}
    return lambda asked: Answer(400, error_body("too long")) if asked.prompt in refused else Answer()


def asked_since(server: ChatServer, n: int) -> list[str]:
    return sorted(server.prompts[n:])


def test_what_was_refused_is_asked_again_on_request_and_nothing_else(chat: Space, server: ChatServer) -> None:
    server.plan = refuse(9, 10, 30)
    chat.replace("rules/gen.toml", ">= 0.9", ">= 0.5")
    chat.build()
    server.plan = refuse(10)
    chat.build(force=["replies"])
    assert len(server.asked) == N, "it is remembered"

    built = chat.build(retry_failed=True)
    assert asked_since(server, N) == ["question 10", "question 30", "question 9"]
    assert built.ran == ["replies[1]", "replies[3]", "samples[1]", "samples[3]"]
    rows = [json.loads(line) for line in chat.read("build/default/replies/1.jsonl").splitlines()]
    assert [row["id"] for row in rows if row["error"]] == ["r10"]
    assert json.loads(chat.read("build/default/samples/3.jsonl").splitlines()[6])["reasoning"]

    server.plan = refuse()
    assert chat.build(retry_failed=True).ran == ["replies[1]", "samples[1]"]
    assert asked_since(server, N + 3) == ["question 10"]
    assert chat.build(retry_failed=True).ran == []
    assert chat.build().ran == []
    assert len(server.asked) == N + 4


def test_a_refusal_that_is_repeated_rebuilds_nothing_downstream(chat: Space, server: ChatServer) -> None:
    server.plan = refuse(9)
    chat.replace("rules/gen.toml", ">= 0.9", ">= 0.8")
    chat.build()
    assert chat.build(retry_failed=True).ran == ["replies[1]"]
    assert len(server.asked) == N + 1


def test_a_result_that_is_restored_is_asked_again_too(chat: Space, server: ChatServer) -> None:
    server.plan = refuse(9)
    chat.build("replies")
    configure(chat, server, n=4)
    chat.build("replies")
    configure(chat, server)
    server.plan = refuse()
    built = chat.build("replies", retry_failed=True)
    assert built.ran == ["replies[1]"]
    assert {"replies[2]", "replies[3]"} <= {*built.restored, *built.actions("reused")}
    assert asked_since(server, N) == ["question 9"]


def test_other_profiles_take_the_new_answer_from_the_log(chat: Space, server: ChatServer) -> None:
    chat.write("config.other.toml", "")
    server.plan = refuse(9)
    chat.build("replies")
    chat.build("replies", profile="other")
    server.plan = refuse()
    chat.build("replies", retry_failed=True)
    assert asked_since(server, N) == ["question 9"]
    assert chat.build("replies", profile="other", retry_failed=True).ran == ["replies[1]"]
    assert chat.read("build/other/replies/1.jsonl") == chat.read("build/default/replies/1.jsonl")
    assert len(server.asked) == N + 1


def test_a_plan_counts_what_would_be_asked_again(chat: Space, server: ChatServer) -> None:
    server.plan = refuse(9, 10, 30)
    chat.replace("rules/gen.toml", ">= 0.9", ">= 0.5")
    chat.build()
    assert survey(Project(chat.root)).up_to_date
    found = survey(Project(chat.root), jobs=2, retry_refused=True)
    planned = {str(one.action): (one.fate, one.reason) for one in found.actions if one.fate != "reuse"}
    assert planned["replies[1]"] == ("run", "some of its requests were refused")
    assert planned["replies[3]"] == ("run", "some of its requests were refused")
    assert sorted(planned) == ["replies[1]", "replies[3]", "samples[1]", "samples[3]"]
    assert found.estimate
    assert (found.estimate.requests, found.estimate.answered) == (3, N - 3)
    assert len(server.asked) == N


def test_a_wrong_key_stops_at_once_and_is_named_nowhere(chat: Space, server: ChatServer) -> None:
    server.plan = lambda asked: Answer(401, error_body("invalid api key"))
    built = chat.build()
    assert built.outcome == "failed"
    assert "invalid api key" in built.errors
    kept = [path for path in (chat.root / ".buildsys").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"secret-of-the-test" in path.read_bytes()]


def test_a_build_request_that_fails_names_its_line(chat: Space) -> None:
    chat.replace("scripts/gen.py", 'record["text"]', 'record["txt"]')
    built = chat.build()
    assert "KeyError: 'txt'" in built.errors
    assert 'record["txt"]' in built.errors


def test_replies_of_an_action_that_fails_are_counted_and_kept(chat: Space, server: ChatServer) -> None:
    refusing = Answer(401, error_body("your key has expired"), delay_s=1.5)
    server.plan = lambda asked: refusing if asked.prompt.endswith(" 31") else Answer()
    assert chat.build("replies").failed == ["replies[3]"]
    assert sql(chat.root, "SELECT sum(requests_sent) FROM actions").rows == [(N - 1,)]
    failed = sql(chat.root, "SELECT record_id, status, error FROM requests WHERE error <> ''").rows
    assert failed == [("r31", 0, "401: your key has expired")]
    assert sql(chat.root, "SELECT count(*) FROM requests").rows == [(N,)]
    server.plan = lambda asked: Answer()
    assert chat.build("replies").outcome == "done"
    assert len(server.asked) == N + 1


def test_only_replies_that_no_result_rests_on_are_ever_removed_and_only_on_request(
    chat: Space, server: ChatServer
) -> None:
    chat.build()
    configure(chat, server, temperature=0.9)
    chat.build()
    n_paid = len(server.asked)

    def collect(keep: Keep) -> None:
        with closing(Collector(Project(chat.root))) as collector:
            collector.collect(collector.plan(keep))

    collect(Keep(1))
    collect(Keep(2, replies=False))
    configure(chat, server)
    chat.build(force=["replies"])
    assert len(server.asked) == n_paid
    collect(Keep(1, replies=False))
    assert len(sizes(chat.root / ".buildsys/replies")) == N
    configure(chat, server, temperature=0.9)
    chat.build(force=["replies"])
    assert len(server.asked) == n_paid + N


def test_a_run_costs_what_it_sent(chat: Space) -> None:
    prices = "request = 0.5\ninput_token = 0.25\noutput_token = 1\ncurrency = 'EUR'"
    chat.write("rules/price.toml", f"[price]\n{prices}\n")
    chat.build()
    paid = N * (0.5 + 3 * 0.25 + 7)
    assert sql(chat.root, "SELECT cost, currency FROM runs").rows == [(paid, "EUR")]
    chat.replace("scripts/gen.py", 'return {"model": "m",', 'return {"model": "m", **{},')
    assert "replies[3]" in chat.build().ran
    assert sql(chat.root, "SELECT cost FROM runs ORDER BY run_id").rows == [(paid,), (0,)]


def planned(chat: Space) -> Estimate:
    found = survey(Project(chat.root), jobs=2).estimate
    assert found
    return found


def test_a_plan_counts_what_is_to_be_sent_and_what_is_answered(chat: Space, server: ChatServer) -> None:
    assert planned(chat).unknown_requests == ("replies",)
    refusing = Answer(401, error_body("your key has expired"), delay_s=0.5)
    server.plan = lambda asked: refusing if asked.prompt.endswith(" 31") else Answer()
    chat.build("replies")
    n_kept = len(server.asked) - 1
    found = planned(chat)
    assert (found.requests, found.answered, found.unknown_requests) == (N - n_kept, n_kept, ())
    server.plan = lambda asked: Answer()
    chat.build()
    assert (planned(chat).requests, planned(chat).answered) == (0, N)
    configure(chat, server, temperature=0.9)
    found = planned(chat)
    assert (found.requests, found.answered, found.output_tokens) == (N, 0, 7.0 * N)
    assert len(server.asked) == N + 1


def test_what_a_request_is_made_of_and_no_rule_declares_counts(chat: Space, server: ChatServer) -> None:
    chat.write("extra/system.txt", "be brief")
    chat.replace("scripts/gen.py", 'record["text"]}', 'record["text"] + open("extra/system.txt").read()}')
    built = chat.build()
    assert ["extra/system.txt" in text for text in notices(built)] == [True]
    assert len(server.asked) == N
    assert chat.build().ran == []
    chat.write("extra/system.txt", "be long")
    assert [action for action in chat.build().ran if action.startswith("replies")]
    assert len(server.asked) == 2 * N


def test_an_edit_of_what_no_request_was_made_by_asks_nothing(chat: Space, server: ChatServer) -> None:
    chat.replace("scripts/gen.py", "    message = {", '    if record["text"] == "odd":\n        odd()\n    message = {')
    chat.replace("scripts/gen.py", "def extract", "def odd():\n    return 1\n\ndef extract")
    chat.build()
    chat.replace("scripts/gen.py", "return 1", "return 2")
    assert chat.build().ran == []
    assert len(server.asked) == N


# ---------------------------------------------------------------- limits


def reached(built: Built) -> LimitReached:
    (event,) = [event for event in built.events if isinstance(event, LimitReached)]
    return event


def test_a_limit_stops_requests_and_nothing_else_and_the_next_build_asks_for_the_rest(
    chat: Space, server: ChatServer
) -> None:
    server.plan = lambda asked: Answer(delay_s=0.1)
    chat.write("rules/limits.toml", "[limits]\nmax_requests = 10\n")
    chat.write("rules/other.toml", '[rule.other]\nshell = "echo 1 > {outputs.o}"\noutputs = { o = "made/o" }\n')
    built = chat.build()
    assert (built.outcome, len(server.asked)) == ("limit", 10)
    assert {"other", "prompts"} <= set(built.ran)
    assert built.failed == []
    told = reached(built)
    assert (told.limit, told.requests, told.output_tokens, told.kept, told.left) == ("max_requests", 10, 70, 10, N - 10)
    assert len(sizes(chat.root / ".buildsys/replies")) == 10
    assert sql(chat.root, "SELECT outcome FROM runs").rows == [("limit",)]
    assert sql(chat.root, "SELECT count(*) FROM requests").rows == [(10,)]
    assert chat.build(limits=Limits(max_requests=N - 10)).outcome == "done"
    assert sorted(server.prompts) == sorted(f"question {n}" for n in range(N))


def test_a_limit_leaves_what_holds_and_finishes_what_needs_no_more_requests(chat: Space, server: ChatServer) -> None:
    configure(chat, server, n=16)
    chat.build()
    configure(chat, server)
    built = chat.build(limits=Limits(max_requests=3))
    assert (built.outcome, len(server.asked)) == ("limit", 19)
    assert built.actions("reused") == ["replies[0]", "replies[1]", "samples[0]", "samples[1]"]
    assert built.actions("cancelled") == ["replies[2]", "replies[3]"]
    assert built.actions("skipped") == ["samples[2]", "samples[3]"]
    assert len(chat.read("build/default/samples/1.jsonl").splitlines()) == 8
    assert sql(chat.root, "SELECT count(*) FROM samples").rows == [(16,)]
    chat.build()
    assert len(server.asked) == N


def test_a_build_that_needs_no_request_is_stopped_by_no_limit(chat: Space, server: ChatServer) -> None:
    chat.build()
    chat.replace("scripts/gen.py", '"reasoning": message', '"n": 1, "reasoning": message')
    built = chat.build(force=["replies"], limits=Limits(max_requests=0))
    assert built.outcome == "done"
    assert "samples[3]" in built.ran
    assert not [event for event in built.events if isinstance(event, LimitReached)]


def test_a_failure_beside_a_limit_is_a_failure(chat: Space) -> None:
    chat.write("rules/other.toml", '[rule.other]\nshell = "false > {outputs.o}"\noutputs = { o = "made/o" }\n')
    built = chat.build(keep_going=True, limits=Limits(max_requests=1))
    assert (built.outcome, built.failed) == ("failed", ["other"])
    assert reached(built).kept == 1


def test_a_limit_of_cost_goes_by_the_prices_of_the_project(chat: Space, server: ChatServer) -> None:
    refused = chat.build(limits=Limits(max_cost=5.0))
    assert refused.error
    assert refused.error.problem == "--max-cost has no price to go by"
    chat.write("rules/price.toml", "[price]\nrequest = 0.5\ncurrency = 'EUR'\n")
    built = chat.build(limits=Limits(max_cost=5.0))
    assert (built.outcome, len(server.asked)) == ("limit", 10)
    assert (reached(built).cost, reached(built).currency) == (5.0, "EUR")
    assert sql(chat.root, "SELECT cost FROM runs").rows == [(5.0,)]


def test_a_limit_that_no_reply_tells_the_use_of_is_warned_of_once(chat: Space, server: ChatServer) -> None:
    body = b'{"choices": [{"message": {"content": "a", "reasoning": "b"}, "finish_reason": "stop"}]}'
    server.plan = lambda asked: Answer(body=body)
    built = chat.build(limits=Limits(max_output_tokens=1))
    assert ["do not tell how many tokens" in text for text in notices(built)] == [True]


def test_a_plan_tells_the_limits_that_its_requests_would_pass(chat: Space, server: ChatServer) -> None:
    chat.build()
    configure(chat, server, temperature=0.9)

    def passed(**limits: int) -> list[tuple[str, float, float]]:
        found = survey(Project(chat.root), jobs=2, limits=Limits(**limits)).limits_passed
        return [(limit.name, limit.most, limit.amount) for limit in found]

    assert passed(max_requests=10, max_output_tokens=70) == [
        ("max_requests", 10, N),
        ("max_output_tokens", 70, 7.0 * N),
    ]
    assert passed(max_requests=N, max_output_tokens=7 * N) == []
    assert len(server.asked) == N


def test_a_notebook_gets_a_limit_raised(chat: Space, server: ChatServer) -> None:
    with pytest.raises(BuildError, match="max_requests stopped the build") as raised:
        open_project(chat.root).build(limits=Limits(max_requests=2))
    assert raised.value.exit_code == LIMIT
    assert len(server.asked) == 2


def notices(built: Built) -> list[str]:
    return [event.text for event in built.events if isinstance(event, Notice)]
