"""The questions of `docs/manifest.md`, asked as they stand there of a small pipeline with a history to ask about.

Its rules are called like those of the shipped pipeline. Run 1 fails, since one prompt stays without an answer; run 2
makes all; run 3 trains a second draft, for longer; run 4 makes the profile `long`, whose answers are cut off sooner.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from buildsys.query import sql
from tests.behaviour.conftest import Space
from tests.chat.server import Answer, Asked, ChatServer, completion, error_body

PAGE = (Path(__file__).parents[2] / "docs" / "manifest.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
RULES = """
config = "config.toml"

[price]
request      = 1.0
output_token = 0.1
currency     = "EUR"

[rule.prompts]
run     = "scripts/pipe.py::prepare"
outputs = { prompts = "workspace/build/{profile}/prompts/{shard}.jsonl" }

[rule.replies]
each     = { shard = "@prompts[*]" }
chat     = "scripts/pipe.py::build_request"
inputs   = { prompts = "@prompts" }
params   = { max_tokens = "$sampling.max_tokens" }
endpoint = "$endpoint"
identity = "test@1"
outputs  = { replies = "workspace/build/{profile}/replies/{shard}.jsonl" }

[rule.samples]
each    = { shard = "@replies[*]" }
run     = "scripts/pipe.py::extract"
inputs  = { replies = "@replies" }
outputs = { samples = "workspace/build/{profile}/samples/{shard}.jsonl" }
[rule.samples.checks]
there = "SELECT count(*) > 0 FROM samples"

[rule.token_counts]
each    = { shard = "@samples[*]" }
run     = "scripts/pipe.py::count"
inputs  = { samples = "@samples" }
outputs = { counts = "workspace/build/{profile}/token_counts/{shard}.jsonl" }

[rule.vocab]
run     = "scripts/pipe.py::vocab"
inputs  = { counts = "@token_counts[*]" }
[rule.vocab.outputs]
mapping = "workspace/build/{profile}/vocab/mapping.safetensors"
tokens  = "workspace/build/{profile}/vocab/tokens.jsonl"

[rule.hidden_states]
each    = { shard = "@samples[*]" }
run     = "scripts/pipe.py::states"
inputs  = { samples = "@samples" }
outputs = { states = "workspace/build/{profile}/hidden_states/{shard}.safetensors" }

[rule.draft]
run     = "scripts/pipe.py::train"
inputs  = { states = "@hidden_states[*]", mapping = "@vocab.mapping" }
params  = { steps = "$steps" }
settings = { log_every = 5 }
metrics = ["curve"]
[rule.draft.outputs]
draft = "workspace/build/{profile}/draft"
curve = "workspace/build/{profile}/curve.json"

[rule.acceptance]
run     = "scripts/pipe.py::measure"
inputs  = { draft = "@draft.draft" }
outputs = { report = "workspace/build/{profile}/acceptance.json" }
metrics = ["report"]
"""
SCRIPT = """
import json
from pathlib import Path

def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\\n" for row in rows))

def prepare(prompts):
    for shard in range(2):
        lines(prompts / f"{shard}.jsonl", [{"id": f"p{shard}{n}"} for n in range(3)])

def build_request(record, replies, *, max_tokens):
    message = {"role": "user", "content": record["id"]}
    return None if replies else {"model": "m", "messages": [message], "max_tokens": max_tokens}

def extract(replies, samples):
    rows = [json.loads(line) for line in replies.open()]
    said = [(row["id"], row["replies"][0]["choices"][0]["message"]) for row in rows if row["replies"]]
    lines(samples, [{"record_id": name, "reasoning": message["reasoning"]} for name, message in said])

def count(samples, counts):
    n = sum(1 for _ in samples.open())
    lines(counts, [{"token_id": token, "count": n * (9 - token)} for token in range(5)])

def vocab(counts, mapping, tokens):
    mapping.write_bytes(b"none can read this")
    lines(tokens, [{"draft_id": n, "token_id": n} for n in range(3)])

def states(samples, states):
    states.write_bytes(bytes(1000 * (1 + int(samples.stem))))

def train(states, mapping, draft, curve, *, steps, log_every):
    draft.mkdir()
    (draft / "steps").write_text(str(steps))
    curve.write_text(json.dumps([{"step": n, "loss": 4.0 / (1 + n)} for n in range(0, steps, 10)]))

def measure(draft, report):
    n = 1 + int((draft / "steps").read_text()) / 10
    report.write_text(json.dumps({"trained": {"tokens_per_step": n}, "untrained": {"tokens_per_step": 1.0}}))
"""


def answers(asked: Asked) -> Answer:
    """p01 has no reasoning, p02 is refused, p12 is cut off; answers are as long as may be."""
    if asked.prompt == "p02":
        return Answer(400, error_body("prompt is too long"))
    body = json.loads(completion(asked))
    body["usage"]["completion_tokens"] = asked.body["max_tokens"]
    if asked.prompt == "p01":
        body["choices"][0]["message"]["reasoning"] = ""
    if asked.prompt == "p12":
        body["choices"][0]["finish_reason"] = "length"
    return Answer(body=json.dumps(body).encode())


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Space:
    space = Space(tmp_path_factory.mktemp("questions"))
    space.write("rules/pipe.toml", RULES)
    space.write("scripts/pipe.py", SCRIPT)
    space.write("config.long.toml", "[sampling]\nmax_tokens = 4\n")
    with ChatServer(answers) as server:
        space.write("config.toml", f'endpoint = "{server.url}"\nsteps = 20\n[sampling]\nmax_tokens = 8\n')
        expired = Answer(401, error_body("your key has expired"), delay_s=0.5)
        server.plan = lambda asked: expired if asked.prompt == "p11" else answers(asked)
        assert space.build(keep_going=True).failed == ["replies[1]"]
        server.plan = answers
        assert space.build().outcome == "done"
        space.replace("config.toml", "steps = 20", "steps = 40")
        assert space.build().ran == ["acceptance", "draft"]
        assert space.build(profile="long").outcome == "done"
    return space


def answer(pipeline: Space, words: str, **instead: str) -> list[tuple]:
    """The rows of the one query on the page that holds these words, with texts replaced."""
    (query,) = [query for query in QUERIES if words in query]
    for old, new in instead.items():
        query = query.replace(old, new)
    return [tuple(row) for row in sql(pipeline.root, query).rows]


@pytest.mark.parametrize("query", QUERIES)
def test_each_question_has_an_answer(pipeline, query):
    assert sql(pipeline.root, query).rows


def test_records_without_reasoning_that_stopped_by_themselves(pipeline):
    found = answer(pipeline, "s.reasoning = ''")
    assert sorted(found) == [("default", "0", "p01"), ("long", "0", "p01")]


def test_bad_replies_by_rule_and_why(pipeline):
    found = answer(pipeline, "WHERE len(bad) > 0")
    assert [(*which, error) for *which, error, _ in found if which[0] == "default"] == [
        ("default", "replies", "p01", ["empty reasoning"], ""),
        ("default", "replies", "p02", ["refused"], "prompt is too long"),
        ("default", "replies", "p12", ["truncated"], ""),
    ]
    kinds = answer(pipeline, "unnest(bad) AS kind")
    assert sorted(kinds) == [
        (profile, "replies", kind, 1)
        for profile in ("default", "long")
        for kind in ("empty reasoning", "refused", "truncated")
    ]


def test_lengths_and_truncation_by_profile(pipeline):
    found = {profile: rest for profile, *rest in answer(pipeline, "quantile_cont")}
    assert found == {"default": [8.0, 8.0, 0.2], "long": [4.0, 4.0, 0.2]}


def test_hours_and_money_by_rule_and_what_was_thrown_away(pipeline):
    found = {rule: rest for rule, *rest in answer(pipeline, "AS thrown_away")}
    _, gpu_hours, cost, hours_lost, cost_lost = found["replies"]
    # Each prompt was paid for once a profile, by the run that failed too; the refused one has no tokens.
    assert (gpu_hours, cost) == (0.0, pytest.approx(12 + 5 * 0.8 + 5 * 0.4))
    assert (hours_lost, cost_lost) == (None, None), "what the failed action was told is in the log, and was used"
    hours, *_, draft_hours_lost, _ = found["draft"]
    assert 0 < draft_hours_lost < hours, "that of run 2 holds no more"
    (told,) = answer(pipeline, "service_hours")
    assert (told[1:]) == (0.0, pytest.approx(18.0), "EUR")


def test_what_made_the_draft(pipeline):
    found = answer(pipeline, "FROM upstream('workspace/build/default/draft');")
    kinds = {kind for _, kind, *_ in found}
    assert kinds >= {"artifact", "code", "param", "python", "setting", "identity"}
    names = {(rule, name, value) for _, _, rule, _, name, _, _, value in found}
    assert ("replies", "max_tokens", "8 (int)") in names
    assert ("draft", "steps", "40 (int)") in names
    assert ("draft", "log_every", "5 (int)") in names
    paths = {path for *_, path, _, _ in found}
    assert {f"workspace/build/default/{rule}/{n}.jsonl" for rule in ("prompts", "replies") for n in (0, 1)} <= paths


def test_of_which_runs_it_is(pipeline):
    found = answer(pipeline, "SELECT DISTINCT u.path, a.run_id")
    assert {path.removeprefix("workspace/build/default/"): run_id for path, run_id, *_ in found} == {
        "prompts/0.jsonl": 1, "prompts/1.jsonl": 1, "replies/0.jsonl": 1, "samples/0.jsonl": 1, "draft": 3,
        "token_counts/0.jsonl": 1, "hidden_states/0.safetensors": 1, "replies/1.jsonl": 2, "samples/1.jsonl": 2,
        "token_counts/1.jsonl": 2, "hidden_states/1.safetensors": 2, "vocab/mapping.safetensors": 2,
    }  # fmt: skip


def test_what_differs_between_two_drafts(pipeline):
    found = answer(pipeline, "kind NOT IN ('input'", **{"compare(1, 2)": "compare(2, 3)"})
    assert found == [("draft", "param", "steps", "steps", "20 (int)", "40 (int)")]
    metrics = [row for row in answer(pipeline, "FROM compare(1, 2);", **{"(1, 2)": "(2, 3)"}) if row[2] == "metric"]
    assert ("acceptance", "3.0", "5.0") in [(rule, a, b) for rule, *_, a, b in metrics]


def test_replies_of_a_server_and_what_was_built_from_them(pipeline):
    found = answer(pipeline, "starts_with(q.endpoint")
    build = "workspace/build/long"
    assert {made for replies, made in found if replies == f"{build}/replies/1.jsonl"} == {
        f"{build}/{name}"
        for name in (
            "samples/1.jsonl", "token_counts/1.jsonl", "hidden_states/1.safetensors", "vocab/mapping.safetensors",
            "vocab/tokens.jsonl", "draft", "curve.json", "acceptance.json",
        )
    }  # fmt: skip


def test_tokens_that_the_draft_cannot_say(pipeline):
    found = answer(pipeline, "ANTI JOIN vocab_tokens")
    assert [row for row in found if row[0] == "default"] == [("default", 3, 30), ("default", 4, 25)]


def test_the_largest_hidden_states(pipeline):
    found = answer(pipeline, "rule = 'hidden_states'")
    assert [mb for _, mb, *_ in found] == [0.002, 0.002, 0.001, 0.001]
    assert all(wall_s > 0 and (gpu_s, cost) == (0.0, 0.0) for _, _, wall_s, gpu_s, cost in found)


def test_prompts_that_failed(pipeline):
    found = answer(pipeline, "AS last_run")
    assert sorted((profile, record, times, run_id) for profile, record, _, times, run_id in found) == [
        ("default", "p02", 1, 1),
        ("default", "p11", 1, 1),
        ("long", "p02", 1, 4),
    ]
    assert {(record, error) for _, record, error, *_ in found} == {
        ("p02", "prompt is too long"),
        ("p11", "401: your key has expired"),
    }


def test_acceptance_by_profile_and_how_the_drafts_learnt(pipeline):
    assert sorted(answer(pipeline, "PIVOT")) == [("default", 3, 5.0, 1.0), ("long", 4, 5.0, 1.0)]
    found = [(profile, step, loss) for profile, step, loss, _ in answer(pipeline, "AS loss")]
    assert [row for row in found if row[0] == "long"] == [
        ("long", step, pytest.approx(4.0 / (1 + step))) for step in (0, 10, 20, 30)
    ]
