"""Replies that were given under a smaller cap of tokens, and ended of themselves before it.

Such a reply is what the same request under a larger cap may be answered with: the cap has had no part in it. Knows
nothing of when that is wanted.
"""

from __future__ import annotations

import json
from typing import Any, Final

from buildsys.run.conversation import CAPS, most_tokens
from buildsys.run.endpoint import chat_content
from buildsys.run.replies import Reply, ReplyLog, request_key

_ENDED: Final = frozenset({"stop", "tool_calls"})


class Shorter:
    """Reads the whole log when it is first asked, and no more after that."""

    def __init__(self, log: ReplyLog) -> None:
        self._log = log
        self._found: dict[str, list[tuple[int, str]]] | None = None

    def find(self, request: bytes, identity: str, sample: int) -> tuple[str, Reply] | None:
        """The answer under the largest cap that is smaller, and its key; None where there is none."""
        body = json.loads(request)
        cap = most_tokens(body)
        if cap is None:
            return None
        if self._found is None:
            self._found = self._read()
        known = [one for one in self._found.get(_without_cap(body, identity, sample), ()) if one[0] < cap]
        if not known:
            return None
        _, key = max(known)
        reply = self._log.get(key)
        return (key, reply) if reply and reply.kind == "reply" else None

    def _read(self) -> dict[str, list[tuple[int, str]]]:
        found: dict[str, list[tuple[int, str]]] = {}
        for key, reply, counts in self._log.answers():
            if not counts or reply.kind != "reply" or not _ended_of_itself(reply.body):
                continue
            body = json.loads(reply.request)
            cap = most_tokens(body)
            if cap is not None:
                found.setdefault(_without_cap(body, reply.identity, reply.sample), []).append((cap, key))
        return found


def _without_cap(body: dict[str, Any], identity: str, sample: int) -> str:
    return request_key({name: body[name] for name in body if name not in CAPS}, identity, sample)


def _ended_of_itself(body: bytes) -> bool:
    content = chat_content(body)
    return content is not None and all(choice.get("finish_reason") in _ENDED for choice in content["choices"])
