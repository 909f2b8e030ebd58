"""What is wrong with a reply, by kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from buildsys.run.quality import bad_among, finish_reason, flaws

PLAIN = b'{"model":"m","messages":[]}'
GOOD = {"content": "yes", "reasoning": "since"}


def request(kind: str) -> bytes:
    return json.dumps({"model": "m", "response_format": {"type": kind}}).encode()


def reply(*messages: dict[str, Any], finish: str | None = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish} for message in messages]}


@pytest.mark.parametrize(
    ("message", "finish", "kinds"),
    [
        (GOOD, "stop", ()),
        ({"content": "yes", "reasoning_content": "since"}, "stop", ()),
        ({"content": "yes", "reasoning": None, "reasoning_content": "since"}, "stop", ()),
        (GOOD, "length", ("truncated",)),
        ({"content": None, "reasoning": "since"}, "length", ("truncated",)),
        ({"content": None, "reasoning": "since"}, "stop", ("empty answer",)),
        ({"content": " \n", "reasoning": "since"}, "stop", ("empty answer",)),
        ({"reasoning": "since"}, None, ("empty answer",)),
        ({"content": None, "reasoning": "since", "tool_calls": [{"id": "1"}]}, "tool_calls", ()),
        ({"content": None, "reasoning": "since", "tool_calls": []}, "stop", ("empty answer",)),
        ({"content": "yes"}, "stop", ("empty reasoning",)),
        ({"content": "yes", "reasoning": None}, "stop", ("empty reasoning",)),
        ({"content": "yes", "reasoning": " "}, "stop", ("empty reasoning",)),
        ({"content": ""}, "stop", ("empty answer", "empty reasoning")),
        ({"content": "ye"}, "length", ("truncated", "empty reasoning")),
        ({"content": None, "refusal": "I can't"}, "stop", ("refused",)),
        ({"content": "", "refusal": None}, "content_filter", ("refused",)),
    ],
)
def test_a_reply_is_bad_in_these_ways(message, finish, kinds):
    assert flaws(reply(message, finish=finish), PLAIN) == kinds


def test_what_the_server_refused_is_refused_and_has_no_reason_to_end():
    assert flaws({}, PLAIN) == ("refused",)
    assert finish_reason({}) == ""
    assert finish_reason(reply(GOOD, finish=None)) == ""
    assert finish_reason(reply(GOOD, GOOD)) == "stop"


def test_of_several_choices_any_may_be_bad():
    assert flaws(reply(GOOD, {"content": ""}, {"content": ""}), PLAIN) == ("empty answer", "empty reasoning")


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_json_that_was_asked_for_has_to_be_json(kind):
    def kinds(content: str | None, finish: str = "stop") -> tuple[str, ...]:
        return flaws(reply({"content": content, "reasoning": "since"}, finish=finish), request(kind))

    assert kinds('{"a": [1, "\\ud83d\\ude80"]}') == ()
    assert kinds('```json\n{"a": 1}\n```') == ("invalid JSON",)
    assert kinds('{"a": NaN}') == ("invalid JSON",)
    assert kinds('{"a": 1', "length") == ("truncated", "invalid JSON")
    assert kinds("[" * 100_000) == ("invalid JSON",)
    assert kinds(None) == ("empty answer",)


def test_text_that_was_asked_for_may_be_any():
    assert flaws(reply(GOOD), request("text")) == ()
    assert flaws(reply(GOOD), b'{"messages":[{"content":"what is \\"response_format\\"?"}]}') == ()


def test_a_lack_of_reasoning_is_bad_only_where_others_have_some():
    assert bad_among({"empty reasoning": 3, "truncated": 1}, 4) == {"empty reasoning": 3, "truncated": 1}
    assert bad_among({"empty reasoning": 4, "truncated": 1}, 4) == {"truncated": 1}
    assert bad_among({"empty reasoning": 3, "refused": 1}, 4) == {"refused": 1}
    assert bad_among({"empty reasoning": 0, "refused": 0}, 0) == {}
