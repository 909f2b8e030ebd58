"""Rows of open-perfectblend's schema as conversations of the chat API."""

from typing import Any

ROLES = {"system": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant"}

Message = dict[str, str]


def clean(row: dict[str, Any]) -> list[Message] | None:
    """The conversation up to its last human turn, in the chat API's form; None when a part of it is broken."""
    turns = row.get("conversations") or []
    humans = [index for index, turn in enumerate(turns) if _role(turn) == "user"]
    kept = turns[: humans[-1] + 1] if humans else []
    messages = [{"role": _role(turn), "content": (turn.get("value") or "").strip()} for turn in kept]
    spoken = [message["role"] for message in messages if message["role"] != "system"]
    alternating = all(role == ("user", "assistant")[index % 2] for index, role in enumerate(spoken))
    if not messages or not alternating or not all(message["role"] and message["content"] for message in messages):
        return None
    return messages


def _role(turn: dict[str, Any]) -> str:
    return ROLES.get(turn.get("from") or "", "")
