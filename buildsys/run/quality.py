"""What is wrong with a reply, from its decoded body and its request: pure functions of one reply.

Knows nothing of servers, of the log, or of what is done about it. Whether a reply without reasoning is wrong depends on
its fellows, since models that never reason send none either: it is told here all the same, and `bad_among` looks at all
of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

TRUNCATED: Final = "truncated"
EMPTY_ANSWER: Final = "empty answer"
EMPTY_REASONING: Final = "empty reasoning"
REFUSED: Final = "refused"
INVALID_JSON: Final = "invalid JSON"

_REASONING: Final = ("reasoning", "reasoning_content")
"""What servers call it, the older ones by the second name; vLLM sends null where there is none."""
_JSON_FORMATS: Final = frozenset({"json_object", "json_schema"})


def flaws(content: Mapping[str, Any], request: bytes) -> tuple[str, ...]:
    """The kinds of what is wrong with a reply, each once; none where it is as it should be.

    content: its decoded body, as `endpoint.chat_content` gives it; empty where the server refused the request. request:
    the body that was sent. Of several choices any may be wrong. Of what is refused nothing else is told.
    """
    choices = content.get("choices", ())
    if not choices or any(map(_is_refused, choices)):
        return (REFUSED,)
    is_json = _asks_for_json(request)
    return tuple(dict.fromkeys(kind for choice in choices for kind in _kinds(choice, is_json)))


def finish_reason(content: Mapping[str, Any]) -> str:
    """Why a reply ended, of its first choice; "" where the server did not say, and where it refused the request."""
    choices = content.get("choices")
    reason = choices[0].get("finish_reason") if choices else None
    return reason if isinstance(reason, str) else ""


def bad_among(bad: Mapping[str, int], n_replies: int) -> dict[str, int]:
    """How many replies of one rule are bad, by kind; a lack of reasoning only where others of them have reasoning.

    bad: as `flaws` told them. n_replies: all of them, bad or not, with refusals.
    """
    n_mute = bad.get(EMPTY_REASONING, 0)
    none_reasons = n_mute + bad.get(REFUSED, 0) >= n_replies
    return {kind: n for kind, n in bad.items() if n and not (kind == EMPTY_REASONING and none_reasons)}


def _kinds(choice: Mapping[str, Any], is_json: bool) -> Iterator[str]:
    message = choice["message"]
    answer = message.get("content")
    has_answer = bool(answer.strip() if isinstance(answer, str) else answer)
    is_cut = choice.get("finish_reason") == "length"
    if is_cut:
        yield TRUNCATED
    elif not (has_answer or message.get("tool_calls") or message.get("function_call")):
        yield EMPTY_ANSWER
    if not any(isinstance(text := message.get(name), str) and text.strip() for name in _REASONING):
        yield EMPTY_REASONING
    if is_json and has_answer and not _is_json(answer):
        yield INVALID_JSON


def _is_refused(choice: Mapping[str, Any]) -> bool:
    return bool(choice["message"].get("refusal")) or choice.get("finish_reason") == "content_filter"


def _asks_for_json(request: bytes) -> bool:
    """Most requests have no format at all, which is seen without decoding them."""
    if b'"response_format"' not in request:
        return False
    wanted = json.loads(request).get("response_format")
    return isinstance(wanted, dict) and wanted.get("type") in _JSON_FORMATS


def _is_json(answer: object) -> bool:
    if not isinstance(answer, str):
        return False
    try:
        msgspec.json.decode(answer)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
