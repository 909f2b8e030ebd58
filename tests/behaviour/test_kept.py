"""A service that stays up between builds: who uses it, what replaces it. The rest is in tests/run."""

from __future__ import annotations

import json

import pytest

from buildsys.query import sql
from buildsys.run.kept import KEPT, Kept, all_kept
from tests.behaviour.conftest import Space
from tests.run.conftest import alive

pytestmark = pytest.mark.timeout(120)

RULES = """
[service.v]
shell = "exec {python} scripts/server.py {inputs.model} {port}"
inputs = { model = "@model" }
ready = "http://127.0.0.1:{port}/health"
keep = true

[rule.model]
shell = "cp {inputs.source} {outputs.model}"
inputs = { source = "data/model.txt" }
outputs = { model = "build/model.txt" }

[rule.function]
run = "scripts/ask.py::function"
services = ["v"]
outputs = { out = "build/function.txt" }

[rule.command]
shell = "echo {services.v} > {outputs.out}"
services = ["v"]
outputs = { out = "build/command.txt" }

[rule.replies]
chat = "scripts/ask.py::build_request"
inputs = { prompts = "data/prompts.jsonl" }
endpoint = "service:v"
outputs = { replies = "build/replies.jsonl" }
"""
ASK = """
import urllib.request

def function(out, services):
    with urllib.request.urlopen(services["v"]) as answer:
        out.write_bytes(answer.read())

def build_request(record, replies):
    return None if replies else {"model": "m", "messages": [{"role": "user", "content": record["text"]}]}
"""
SERVER = """
import http.server, json, sys

class Handler(http.server.BaseHTTPRequestHandler):
    model = open(sys.argv[1]).read()

    def do_GET(self):
        self.answer(self.model)

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(json.dumps({"choices": [{"message": {"content": self.model}}], "model": "m"}))

    def answer(self, text):
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"""


class Kennel(Space):
    """A project whose service stays."""

    def server(self) -> Kept:
        (kept,) = all_kept(self.root / ".buildsys" / KEPT)
        return kept


@pytest.fixture
def space(tmp_path):
    space = Kennel(tmp_path)
    space.write("rules/kept.toml", RULES)
    space.write("scripts/ask.py", ASK)
    space.write("scripts/server.py", SERVER)
    space.write("data/model.txt", "small")
    space.write("data/prompts.jsonl", '{"text": "why?"}\n')
    yield space
    left = all_kept(space.root / ".buildsys" / KEPT)
    assert all(kept.end() for kept in left)


def test_rules_of_every_kind_use_the_server_that_the_last_build_left(space: Kennel) -> None:
    assert space.build().ran == ["command", "function", "model", "replies"]
    server = space.server()
    assert server.up
    assert space.read("build/function.txt") == "small"
    assert space.read("build/command.txt") == f"{server.url}\n"
    assert json.loads(space.read("build/replies.jsonl"))["replies"][0]["choices"][0]["message"]["content"] == "small"
    space.replace("rules/kept.toml", "echo {", "echo at {")
    space.replace("scripts/ask.py", "answer.read()", "answer.read() * 2")
    space.write("data/prompts.jsonl", '{"text": "how?"}\n')
    assert space.build().ran == ["command", "function", "replies"]
    assert space.server() == server
    assert space.read("build/command.txt") == f"at {server.url}\n"
    used = sql(space.root, "SELECT service_s > 0 AND service_s <= wall_s FROM runs").rows
    assert used == [(True,), (True,)], "each run had it for as long as it used it"


def test_another_model_brings_another_server_before_anything_asks_it(space: Kennel) -> None:
    space.build()
    old = space.server()
    space.write("data/model.txt", "large")
    assert space.build().ran == ["command", "function", "model", "replies"]
    assert space.read("build/function.txt") == "large"
    assert (alive(old.server.pid), space.server().up) == (False, True)


def test_a_build_with_nothing_to_do_needs_no_server(space: Kennel) -> None:
    space.build()
    assert space.server().end()
    assert space.build().ran == []
    assert all_kept(space.root / ".buildsys" / KEPT) == []


def test_a_kept_server_outlives_a_build_that_fails(space: Kennel) -> None:
    space.replace("scripts/ask.py", "out.write_bytes", "out.write_byte")
    assert space.build("function").failed == ["function"]
    server = space.server()
    assert server.up
    space.replace("scripts/ask.py", "out.write_byte", "out.write_bytes")
    assert space.build("function").ran == ["function"]
    assert space.server() == server
