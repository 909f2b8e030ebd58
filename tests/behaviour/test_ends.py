"""How builds end that do not end by themselves: a bug, a service that dies under those who need it."""

from __future__ import annotations

import time

import pytest

from buildsys.events import ActionFinished, ActionStarted, Event
from tests.behaviour.conftest import Space

pytestmark = pytest.mark.timeout(60)


def test_a_bug_ends_what_runs_instead_of_waiting_for_it(space: Space) -> None:
    space.write(
        "rules/slow.toml",
        """
        [rule.slow]
        shell   = "sleep 1000; touch {outputs.out}"
        outputs = { out = "slow.txt" }

        [rule.quick]
        shell   = "while ! test -e begun; do sleep 0.01; done; touch {outputs.out}"
        outputs = { out = "quick.txt" }
        """,
    )

    def on_event(event: Event) -> None:
        if isinstance(event, ActionStarted) and event.action.rule == "slow":
            space.write("begun", "")
        if isinstance(event, ActionFinished):
            raise ZeroDivisionError("a bug")

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="a bug"):
        space.build(on_event=on_event)
    assert time.monotonic() - began < 20


RULES = """
[service.v]
shell = "exec {python} scripts/server.py {port}"
ready = "http://127.0.0.1:{port}/health"

[rule.replies]
each     = { shard = "data/{shard}.jsonl" }
chat     = "scripts/ask.py::build_request"
inputs   = { prompts = "data/{shard}.jsonl" }
endpoint = "service:v"
outputs  = { replies = "build/{shard}.jsonl" }
"""
ASK = """
def build_request(record, replies):
    return None if replies else {"model": "m", "messages": [{"role": "user", "content": record["text"]}]}
"""
# The first one dies of its third request.
SERVER = """
import http.server, json, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        Handler.asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        if Handler.asked == 3 and not os.path.exists("died"):
            open("died", "w").close()
            print("out of tokens", flush=True)
            os._exit(3)
        body = json.dumps({"choices": [{"message": {"content": "x"}}], "model": "m"}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_a_service_that_dies_fails_at_once_who_asks_it(space: Space) -> None:
    space.write("rules/chat.toml", RULES)
    space.write("scripts/ask.py", ASK)
    space.write("scripts/server.py", SERVER)
    space.write("data/a.jsonl", "".join(f'{{"text":"{n}"}}\n' for n in range(5)))
    began = time.monotonic()
    built = space.build()
    assert time.monotonic() - began < 30
    assert built.failed == ["replies[a]"]
    assert 'service "v" ended while it was needed' in built.errors
    assert "exit code 3" in built.errors
    assert "out of tokens" in built.errors
    again = space.build()
    assert again.ran == ["replies[a]"]
    assert len(space.read("build/a.jsonl").splitlines()) == 5
