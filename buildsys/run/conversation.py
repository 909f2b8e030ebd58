"""One conversation with a server: what it asks, what it hears, and the row that it becomes.

Knows nothing of sending, of logs or of time. Whether a request is well formed is decided here, before it is paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from buildsys.digest import digest_of
from buildsys.errors import BuildError, Place
from buildsys.run.endpoint import MOST_LEVELS, is_too_deep, mended, server_error, server_words
from buildsys.run.quality import finish_reason
from buildsys.run.replies import Reply, json_bytes, request_key

Record = Mapping[str, Any]
CAPS: Final = ("max_tokens", "max_completion_tokens")
"""What a request may call the most tokens that an answer may have."""

_MOST_TOKENS: Final = 2**53
"""Above this readers of JSON disagree on numbers: whoever says so has counted wrongly."""


def read_records(data: bytes, path: str) -> list[Record]:
    """The objects of JSON Lines, one a line that is not blank. Raises BuildError at the first line that is none.

    path: for errors. Lines end with a line feed and nothing else: what other ends of lines there are is white space
    between tokens or, like U+2028, text of a string.
    """
    records: list[Record] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_constant)
            if is_too_deep(record):
                raise RecursionError
        except json.JSONDecodeError as error:
            raise _no_record(error.msg, Place(path, number, error.colno)) from None
        except ValueError as error:
            raise _no_record(str(error), Place(path, number)) from None
        except RecursionError:
            raise _no_record(f"it is nested more than {MOST_LEVELS} levels deep", Place(path, number)) from None
        if not isinstance(record, dict):
            raise _no_record("it is no object", Place(path, number))
        records.append(record)
    return records


def _no_record(reason: str, place: Place) -> BuildError:
    return BuildError("a record is no JSON object", place=place, facts=[("reason", reason)])


def _no_constant(name: str) -> NoReturn:
    """Python alone takes these for JSON."""
    raise ValueError(f"{name} is no JSON")


@dataclass(frozen=True)
class Row:
    """One line of a `chat` output. replies: the raw body of each turn. error: why the server refused, else None."""

    record_id: str
    record: Record
    sample: int
    replies: tuple[bytes, ...]
    error: Mapping[str, Any] | None

    def line(self) -> bytes:
        """The row as one line of JSON, without its end. Replies are the bytes received, but for what spoils lines."""
        # In valid JSON a line break is always white space between tokens: in a string it has to be escaped.
        replies = b",".join(raw.replace(b"\n", b" ").replace(b"\r", b" ") for raw in self.replies)
        head = json_bytes({"id": self.record_id, "record": self.record, "sample": self.sample})
        return mended(head[:-1] + b',"replies":[' + replies + b'],"error":' + json_bytes(self.error) + b"}")


@dataclass(frozen=True)
class Asked:
    """One request of a call, for the manifest. sent: by this call, else it was in the log (or another call sent it).

    status: 0 where it stayed without an answer. started: seconds since 1970, 0 where that is not known. prompt_tokens,
    output_tokens: -1 where the server did not say. error: its words, in a refusal or instead of an answer. bad: what is
    wrong with the reply, see `quality`; nothing of one that never came.
    """

    key: str
    record_id: str
    sample: int
    turn: int
    sent: bool
    status: int
    started: float
    seconds: float
    endpoint: str
    model: str
    system_fingerprint: str
    finish_reason: str
    prompt_tokens: int
    output_tokens: int
    error: str
    bad: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ask:
    key: str
    body: bytes
    identity: str
    sample: int
    model: str
    most_tokens: int | None


class Conversation:
    """The turns of one sample of one record. heard: the decoded replies so far; asked: one entry a request."""

    def __init__(self, record: Record, sample: int) -> None:
        given = record.get("id")
        try:
            json_bytes(record)
        except (TypeError, ValueError) as error:
            raise BuildError(
                "a record is not JSON", facts=[("record", str(given or record))], hint=str(error)
            ) from error
        self.record_id = digest_of(record) if given is None else str(given)
        self.record = record
        self.sample = sample
        self.heard: list[Any] = []
        self.asked: list[Asked] = []
        self._raw: list[bytes] = []
        self._keys: list[str] = []
        self._error: dict[str, Any] | None = None

    def ask(self, body: object, identity: str) -> Ask | None:
        """The next request; None where there is none. Raises BuildError that names the record."""
        if body is None:
            return None
        if flaw := _flaw(body):
            raise self._error_at_this_turn(*flaw)
        assert isinstance(body, dict)
        try:
            key = request_key(body, identity, self.sample)
            ask = Ask(key, json_bytes(body), identity, self.sample, text_of(body["model"]), most_tokens(body))
        except (TypeError, ValueError, RecursionError) as error:
            raise self._error_at_this_turn("a request is not JSON", str(error)) from error
        if ask.key in self._keys:
            # Without this, a script that never returns None is asked for ever, and answered from the log.
            hint = "return None once `replies` has all it needs"
            raise self._error_at_this_turn("a request is asked again after its reply", hint)
        self._keys.append(ask.key)
        return ask

    def take(self, key: str, reply: Reply, content: Mapping[str, Any], sent: bool, bad: tuple[str, ...]) -> bool:
        """Hear the reply to the last request; False where the conversation is over with it.

        key: that it is kept under. content: its decoded body, empty in a refusal. bad: what is wrong with it.
        """
        self.asked.append(self._told(key, reply, content, sent, bad))
        if reply.kind == "refusal":
            self._error = {"status": reply.status, **server_error(reply.body)}
            return False
        self.heard.append(content)
        self._raw.append(reply.body)
        return True

    def miss(self, endpoint: str, words: str) -> None:
        """Note that the last request stayed without an answer, and what the server said instead."""
        self.asked.append(
            Asked(
                key=self._keys[-1],
                record_id=self.record_id,
                sample=self.sample,
                turn=len(self._keys) - 1,
                sent=True,
                status=0,
                started=0.0,
                seconds=0.0,
                endpoint=endpoint,
                model="",
                system_fingerprint="",
                finish_reason="",
                prompt_tokens=-1,
                output_tokens=-1,
                error=words,
            )
        )

    def row(self) -> Row:
        return Row(self.record_id, self.record, self.sample, tuple(self._raw), self._error)

    def row_with(self, last: Reply) -> Row:
        """As if this reply had been heard, and were the last."""
        error = {"status": last.status, **server_error(last.body)} if last.kind == "refusal" else None
        replies = self._raw if error else [*self._raw, last.body]
        return Row(self.record_id, self.record, self.sample, tuple(replies), error)

    def _error_at_this_turn(self, problem: str, hint: str) -> BuildError:
        return BuildError(problem, facts=[("record", self.record_id), ("turn", str(len(self._keys) + 1))], hint=hint)

    def _told(self, key: str, reply: Reply, content: Mapping[str, Any], sent: bool, bad: tuple[str, ...]) -> Asked:
        return Asked(
            key=key,
            record_id=self.record_id,
            sample=self.sample,
            turn=len(self._keys) - 1,
            sent=sent,
            status=reply.status,
            started=reply.started,
            seconds=reply.ended - reply.started,
            endpoint=reply.endpoint,
            model=reply.model,
            system_fingerprint=reply.system_fingerprint,
            finish_reason=finish_reason(content),
            prompt_tokens=tokens_of(content, "prompt_tokens"),
            output_tokens=tokens_of(content, "completion_tokens"),
            error=server_words(reply.body) if reply.kind == "refusal" else "",
            bad=bad,
        )


def most_tokens(body: Mapping[str, Any]) -> int | None:
    """How many tokens a request lets an answer have; None where it does not say."""
    caps = [cap for name in CAPS if type(cap := body.get(name)) is int]
    return min(caps) if caps else None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def tokens_of(content: Mapping[str, Any], name: str) -> int:
    """What a reply says of its usage; -1 where it says nothing that can be."""
    usage = content.get("usage")
    n = usage.get(name) if isinstance(usage, dict) else None
    return n if type(n) is int and 0 <= n <= _MOST_TOKENS else -1


def _flaw(body: object) -> tuple[str, str] | None:
    """What keeps this from being a request, and what to do about it."""
    if not isinstance(body, dict):
        return f"a request is no dict but {type(body).__name__}", "return the body of a chat completion, or None"
    for name in ("messages", "model"):
        if name not in body:
            return f'a request has no "{name}"', "return the body of a chat completion, or None"
    if body.get("stream"):
        return "a request asks for a stream", 'leave out "stream": replies are kept whole'
    return None
