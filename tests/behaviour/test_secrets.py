"""API keys from variables and files: they reach the server, and nothing that is kept."""

from __future__ import annotations

import json

import pytest

from buildsys.events import Notice
from tests.behaviour.conftest import Space
from tests.behaviour.test_asking import RULES, SCRIPT
from tests.chat.server import ChatServer

KEY = "sk-very-secret-of-the-test"


@pytest.fixture
def chat(space: Space) -> Space:
    space.write("scripts/gen.py", SCRIPT)
    for shard in range(4):
        space.write(f"prompts/{shard}.jsonl", json.dumps({"id": "r", "text": f"question {shard}", "turns": 1}) + "\n")
    return space


def configure(space: Space, server: ChatServer, named: str) -> None:
    rules = RULES.replace("ENDPOINT", json.dumps(server.url))
    space.write("rules/gen.toml", f'{rules}secrets = {{ api_key = "{named}" }}\n')


def keys(server: ChatServer) -> set[str | None]:
    return {asked.headers.get("authorization") for asked in server.asked}


@pytest.mark.parametrize("absolute", [False, True])
def test_a_key_is_read_from_a_file_and_kept_nowhere(chat: Space, absolute: bool) -> None:
    chat.write(".keys/verifier", f"  {KEY}\n")
    with ChatServer() as server:
        configure(chat, server, f"file:{chat.root}/.keys/verifier" if absolute else "file:.keys/verifier")
        assert chat.build().outcome == "done"
        assert keys(server) == {f"Bearer {KEY}"}
        kept = [path for path in (chat.root / ".buildsys").rglob("*") if path.is_file()]
        assert not [path for path in kept if KEY.encode() in path.read_bytes()]
        chat.write(".keys/verifier", "another key")
        assert chat.build().ran == []


@pytest.mark.parametrize(("text", "problem"), [(None, "a secret can't be read"), (" \n", "a secret is empty")])
def test_a_file_without_a_key_is_told_before_anything_is_sent(chat: Space, text: str | None, problem: str) -> None:
    if text:
        chat.write(".keys/verifier", text)
    with ChatServer() as server:
        configure(chat, server, "file:.keys/verifier")
        built = chat.build()
        assert built.outcome == "failed"
        assert problem in built.errors
        assert ".keys/verifier" in built.errors
        assert server.asked == []


def test_a_variable_that_is_not_set_is_told_of_once_and_asked_without(chat: Space) -> None:
    with ChatServer() as server:
        configure(chat, server, "TEST_KEY_THAT_NOBODY_SETS")
        built = chat.build()
        assert built.outcome == "done"
        told = [event.text for event in built.events if isinstance(event, Notice)]
        assert len(told) == 1
        assert told[0].startswith("TEST_KEY_THAT_NOBODY_SETS is not set: replies asks http://127.0.0.1")
        assert keys(server) == {None}


def test_only_chat_reads_secrets_from_files(chat: Space) -> None:
    chat.write(
        "rules/gen.toml",
        '[rule.a]\nshell = "date > {outputs.o}"\noutputs = { o = "made/o" }\nsecrets = { k = "file:x" }\n',
    )
    refused = chat.build()
    assert refused.error
    assert "secrets.k" in refused.error.problem
    assert "only chat" in refused.error.hint
