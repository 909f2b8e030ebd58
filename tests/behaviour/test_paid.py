"""Many prompts put to a server at which much goes wrong: each is answered once, and no answer is lost.

Answers are a function of the request, and what goes wrong is one of the request and of how often it was tried, so that
shards can be compared byte by byte. `PAID_PROMPTS=2000`, `PAID_KILLS=50` and `CAP=25000` are the long forms, which
`.ci/long` runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from buildsys.run.replies import ReplyLog
from tests.behaviour.conftest import Space
from tests.chat.server import Answer, Asked, ChatServer, error_body
from tests.cli.conftest import PROGRAM, environment
from tests.processes import children_of

N = int(os.environ.get("PAID_PROMPTS", "600"))
N_SHARDS = 8
IN_FLIGHT = 64
SLOWEST_S = 1.5
N_KILLS = int(os.environ.get("PAID_KILLS", "2"))
N_KILLED = N if N_KILLS > 10 else 300
CAP = int(os.environ.get("CAP", "500"))
SEED = int(os.environ.get("SEED", "20"))

RULES = """
config = "config.toml"

[rule.prompts]
run     = "scripts/gen.py::prepare"
params  = { n = "$n", shards = "$shards", name = "$name" }
outputs = { prompts = "made/prompts/{shard}.jsonl" }

[rule.replies]
each      = { shard = "@prompts[*]" }
chat      = "scripts/gen.py::build_request"
inputs    = { prompts = "@prompts" }
params    = { model = "$model", system = "$system", temperature = "$temperature" }
endpoint  = "$endpoint"
identity  = "test@1"
secrets   = { api_key = "TEST_API_KEY" }
in_flight = 64
outputs   = { replies = "made/replies/{shard}.jsonl" }

[rule.samples]
each    = { shard = "@replies[*]" }
run     = "scripts/gen.py::extract"
inputs  = { replies = "@replies" }
outputs = { samples = "made/samples/{shard}.jsonl" }

[rule.tokens]
each    = { shard = "@samples[*]" }
run     = "scripts/gen.py::tokenize"
inputs  = { samples = "@samples" }
outputs = { tokens = "made/tokens/{shard}.jsonl" }
"""
SCRIPT = """
import json

def prepare(prompts, *, n, shards, name):
    for shard in range(shards):
        rows = [{"id": f"r{i}", "text": f"question {i} " + "x" * 1000} for i in range(shard, n, shards)]
        (prompts / f"{name}{shard}.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))

def build_request(record, replies, *, model, system, temperature):
    if replies:
        return None
    messages = [{"role": "system", "content": system}, {"role": "user", "content": record["text"]}]
    return {"model": model, "messages": messages, "temperature": temperature}

def extract(replies, samples):
    with samples.open("w") as file:
        for line in replies.read_text().splitlines():
            row = json.loads(line)
            message = row["replies"][0]["choices"][0]["message"]
            reasoning = message.get("reasoning") or message.get("reasoning_content") or ""
            file.write(json.dumps({"id": row["id"], "text": reasoning + (message["content"] or "")}) + "\\n")

def tokenize(samples, tokens):
    tokens.write_text("".join(str(len(line)) + "\\n" for line in samples.read_text().splitlines()))
"""


def chance(asked: Asked, what: str = "") -> int:
    """0 to 999, the same for the same request."""
    return int.from_bytes(hashlib.blake2b(asked.raw + what.encode(), digest_size=8).digest(), "big") % 1000


def reply(asked: Asked) -> bytes:
    """One to four kilobytes, the reasoning where one server or another has it, or nowhere, and now and then cut."""
    n = chance(asked)
    text = f"answer to {asked.prompt.partition(' x')[0]} " + "y" * (1000 + 3 * n)
    message: dict[str, object] = {"role": "assistant", "content": text}
    for name, most in (("reasoning", 800), ("reasoning_content", 600)):
        if n < most:
            message[name] = "thinking" if n % 7 else None
    is_cut = n % 20 == 0
    if is_cut:
        message |= {"content": None, "reasoning": text}
    choice = {"index": 0, "message": message, "finish_reason": "length" if is_cut else "stop"}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": asked.body["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": 250, "completion_tokens": 250 + n},
    }
    return json.dumps(body).encode()


FAULTS: list[Callable[[Asked], Answer]] = [
    lambda asked: Answer(429, error_body("slow down"), {"retry-after-ms": "40"}),
    lambda asked: Answer(500, error_body("CUDA error")),
    lambda asked: Answer(503, error_body("loading model")),
    lambda asked: Answer(reset=True),
    lambda asked: Answer(body=reply(asked)[:500], content_length=len(reply(asked))),
    lambda asked: Answer(body=reply(asked)[:-20]),
    lambda asked: Answer(body=b"<html>Bad Gateway</html>"),
    lambda asked: Answer(body=error_body("upstream is gone")),
]


class Faulty:
    """What the server does. All that goes wrong ends with a request's third try; at first nothing is answered."""

    def __init__(self, slow_start_s: float = 0.5) -> None:
        self._started = time.monotonic()
        self._slow_start_s = slow_start_s

    def __call__(self, asked: Asked) -> Answer:
        if time.monotonic() < self._started + self._slow_start_s:
            return Answer(503, error_body("starting"))
        n = chance(asked, f"fault {asked.tries}")
        if asked.tries < 3 and n < 200:
            return FAULTS[n % len(FAULTS)](asked)
        delay_s = SLOWEST_S if n > 995 else 0.005 + n / 50_000
        return Answer(body=reply(asked), delay_s=delay_s)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(Faulty()) as running:
        yield running


@pytest.fixture
def chat(space: Space, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Space:
    monkeypatch.setenv("TEST_API_KEY", "the first key")
    space.write("rules/gen.toml", RULES)
    space.write("scripts/gen.py", SCRIPT)
    configure(space, server)
    return space


def configure(space: Space, server: ChatServer, **changed: object) -> None:
    values = {"n": N, "shards": N_SHARDS, "name": "s", "model": "m", "system": "be brief", "temperature": 0.5}
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**values, **changed}.items()]
    space.write("config.toml", "\n".join([*lines, f'endpoint = "{server.url}"', ""]))


def kept(space: Space) -> dict[str, bytes]:
    """Prompt -> the body that is in the log."""
    folder = space.root / ".buildsys/replies"
    if not folder.exists():
        return {}
    with ReplyLog(folder, writable=False) as log:
        found = {}
        for _, one, counts in log.answers():
            prompt = json.loads(one.request)["messages"][-1]["content"]
            assert counts
            assert prompt not in found
            found[prompt] = one.body
    return found


def shards(space: Space) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (space.root / "made/replies").iterdir()}


def test_every_prompt_is_answered_once_whatever_goes_wrong(chat: Space, server: ChatServer) -> None:
    assert chat.build().outcome == "done"
    assert len(server.answered) == N
    whole = {asked.prompt: reply(asked) for asked in server.asked}
    assert kept(chat) == whole
    rows = [json.loads(line) for data in shards(chat).values() for line in data.splitlines()]
    assert sorted(row["id"] for row in rows) == sorted(f"r{n}" for n in range(N))
    answers = {json.dumps(json.loads(body)) for body in whole.values()}
    assert {json.dumps(row["replies"][0]) for row in rows} == answers
    assert set(paid(server).values()) == {1}
    assert sum(asked.tries > 0 for asked in server.asked) > N // 10
    n_asked = len(server.asked)
    assert chat.build(force=["replies"]).outcome == "done"
    assert len(server.asked) == n_asked


def paid(server: ChatServer) -> Counter[str]:
    """How often each prompt was sent its reply whole: what came cut off, or is none, is no reply."""
    return Counter(asked.prompt for asked, answer in server.said if answer == Answer(body=reply(asked)))


# ---------------------------------------------------------------- kills


def started(space: Space) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, "build"], cwd=space.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def kill(build: subprocess.Popen[bytes]) -> None:
    for process in [build.pid, *children_of(build.pid)]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    build.communicate()


def test_kills_lose_nothing_that_was_paid_for(
    chat: Space, server: ChatServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    configure(chat, server, n=N_KILLED)
    assert chat.build("replies").outcome == "done"
    undisturbed = shards(chat)
    chance_of = random.Random(SEED)
    n_killed = n_twice = most_lost = n_rounds = 0
    while n_killed < N_KILLS:
        space = Space(tmp_path_factory.mktemp("killed"))
        for path in ("rules/gen.toml", "scripts/gen.py", "config.toml"):
            space.write(path, chat.read(path))
        server.forget()
        server.plan = Faulty(slow_start_s=0.1)
        n_lost, over = 0, False
        while not over:
            build = started(space)
            until = chance_of.randrange(20, N_KILLED // 4)
            n_asked = len(server.asked)
            while build.poll() is None and (len(server.asked) < n_asked + until or n_killed >= N_KILLS):
                time.sleep(0.002)
            time.sleep(chance_of.random() * 0.05)
            over = build.poll() is not None
            kill(build)
            n_killed += not over
            time.sleep(0.0 if over else SLOWEST_S + 0.2)  # What the server still answers nobody is counted by then.
            before, n_lost = n_lost, sum(paid(server).values()) - len(kept(space))
            # A reply that was sent by then and not read was in flight, and so was one that is not there yet.
            assert n_lost - before <= (0 if over else IN_FLIGHT)
            most_lost = max(most_lost, n_lost - before)
        n_twice += sum(paid(server).values()) - N_KILLED
        n_rounds += 1
        assert build.returncode == 0
        assert shards(space) == undisturbed
        assert len(kept(space)) == N_KILLED
    print(f"{n_killed} kills in {n_rounds} runs: {n_twice} replies paid twice, at most {most_lost} lost by a kill")


# ---------------------------------------------------------------- what asks nothing, and what asks all


def test_what_asks_for_nothing_and_what_asks_for_all(
    chat: Space, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plan = lambda asked: Answer(body=reply(asked))
    configure(chat, server, n=CAP)
    chat.build()
    assert len(server.asked) == CAP

    def asks(**changed: object) -> int:
        before = len(server.asked)
        configure(chat, server, **changed)
        assert chat.build().outcome == "done"
        return len(server.asked) - before

    n = CAP * 2 // 5
    assert asks(n=n) == 0, "a lower cap"
    assert asks(n=n, shards=13) == 0, "other shards"
    assert asks(n=n, shards=13, name="part") == 0, "shards of other names"
    monkeypatch.setenv("TEST_API_KEY", "the second key")
    assert asks(n=n) == 0, "another key"
    with ChatServer(lambda asked: Answer(body=reply(asked))) as other:
        configure(chat, other, n=n)
        assert chat.build(force=["replies"]).outcome == "done"
        assert other.asked == [], "another server"
    chat.replace("scripts/gen.py", 'reasoning + (message["content"] or "")', 'reasoning + (message["content"] or " ")')
    assert asks(n=n) == 0, "another way to read replies"
    chat.replace("scripts/gen.py", "str(len(line))", "str(len(line) + 1)")
    assert asks(n=n) == 0, "another way to tokenize"
    assert asks(n=n, temperature=0.6) == n
    assert asks(n=n, model="m2") == n
    assert asks(n=n, system="be long") == n
    chat.replace("scripts/gen.py", '"temperature": temperature}', '"temperature": temperature, "top_p": 0.9}')
    assert asks(n=n) == n
    chat.replace("scripts/gen.py", '"role": "user"', '**{}, "role": "user"')
    assert asks(n=n) == 0, "code that builds the same requests in another way"
