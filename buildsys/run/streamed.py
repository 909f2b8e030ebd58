"""A chat completion that comes bit by bit, put together to the one that would have come whole.

Knows the events of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html) and the deltas of the chat
API, with whatever fields a server adds to them; nothing of connections and time.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_SAID_ONCE: Final = frozenset({"role", "id", "type"})
"""Texts that are told once, or told again, but never in parts."""


class Broken(Exception):
    """What came is no part of a chat completion; the server's words."""


class Assembly:
    """Takes lines as they come. is_whole: the last one has come."""

    def __init__(self) -> None:
        self._completion: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._is_over = False

    @property
    def is_whole(self) -> bool:
        ended = all(choice.get("finish_reason") for choice in self._choices.values())
        return self._is_over and bool(self._choices) and ended

    def take(self, line: str) -> None:
        """One line of the stream. Raises Broken where a server says that it went wrong, or nothing that makes sense."""
        if not line.startswith("data:"):
            return  # Comments keep the connection open; names and ids of events say nothing here.
        data = line[len("data:") :].strip()
        if data == "[DONE]":
            self._is_over = True
            return
        try:
            chunk = msgspec.json.decode(data)
        except msgspec.MsgspecError as error:
            raise Broken(f"a part that is no JSON: {error}") from None
        if not isinstance(chunk, dict) or "error" in chunk:
            raise Broken(data)
        for choice in chunk.pop("choices", None) or ():
            self._take_choice(choice)
        self._completion = merged(self._completion, chunk, parts=False)

    def completion(self) -> bytes:
        """The body of the whole answer."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        return msgspec.json.encode({**self._completion, "object": "chat.completion", "choices": choices})

    def _take_choice(self, choice: Any) -> None:
        if not isinstance(choice, dict) or not isinstance(delta := choice.pop("delta", {}), dict):
            raise Broken("a choice that is none")
        index = choice.get("index", 0)
        known = self._choices.setdefault(index, {"index": index, "message": {}})
        known["message"] = merged(known["message"], delta, parts=True)
        message = known.pop("message")
        self._choices[index] = {**merged(known, choice, parts=False), "message": message}


def merged(before: dict[str, Any], more: dict[str, Any], *, parts: bool) -> dict[str, Any]:
    """What two deltas come to. parts: texts go on; else the last one holds. Lists go on in any case."""
    result = dict(before)
    for name, value in more.items():
        known = result.get(name)
        if known is None:
            result[name] = _numbered([], value) if isinstance(value, list) else value
        elif value is None:
            continue
        elif isinstance(known, dict) and isinstance(value, dict):
            result[name] = merged(known, value, parts=parts)
        elif isinstance(known, list) and isinstance(value, list):
            result[name] = _numbered(known, value)
        elif parts and isinstance(known, str) and isinstance(value, str) and name not in _SAID_ONCE:
            result[name] = known + value
        else:
            result[name] = value
    return result


def _numbered(known: list[Any], more: list[Any]) -> list[Any]:
    """Calls of tools come in parts, each with the number of the call that it is a part of."""
    result = list(known)
    for value in more:
        number = value.get("index") if isinstance(value, dict) else None
        at = [n for n, one in enumerate(result) if isinstance(one, dict) and one.get("index") == number]
        if number is not None and at:
            result[at[0]] = merged(result[at[0]], value, parts=True)
        else:
            result.append(value)
    return result
