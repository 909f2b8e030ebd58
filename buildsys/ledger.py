"""What the log of replies holds, for people: counted, shown, taken to another machine and brought from there.

Knows nothing of rules and builds. A reply that is brought in has to be the answer to the request that it names.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from buildsys.errors import NO_SUCH_TARGET, BuildError, Place
from buildsys.run.conversation import text_of, tokens_of
from buildsys.run.endpoint import chat_content
from buildsys.run.replies import Reply, ReplyLog, request_key

_FIELDS: Final = [name for name in Reply.__struct_fields__ if name not in ("request", "body")]
_AT_ONCE: Final = 1000


@dataclass
class Stats:
    """Counts of one log. Times in seconds since 1970, tokens as servers told them, bytes of what was received.

    replies, refusals: those that count. not_counting: rejected ones, and refusals that were answered later. models,
    finish_reasons: of the replies that count, how many of each.
    """

    replies: int = 0
    refusals: int = 0
    not_counting: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    body_bytes: int = 0
    disk_bytes: int = 0
    first: float = 0.0
    last: float = 0.0
    models: Counter[str] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    notices: list[str] = field(default_factory=list)


def stats(folder: Path) -> Stats:
    """Reads all of it. notices: what is damaged."""
    found = Stats(disk_bytes=sum(path.stat().st_size for path in folder.iterdir()))
    with ReplyLog(folder, writable=False, thorough=True) as log:
        for _, reply, counts in log.answers():
            if not counts:
                found.not_counting += 1
                continue
            found.body_bytes += len(reply.body)
            found.first = min(found.first or reply.ended, reply.ended)
            found.last = max(found.last, reply.ended)
            if reply.kind == "refusal":
                found.refusals += 1
                continue
            content = chat_content(reply.body) or {}
            found.replies += 1
            found.prompt_tokens += max(0, tokens_of(content, "prompt_tokens"))
            found.output_tokens += max(0, tokens_of(content, "completion_tokens"))
            found.models[reply.model] += 1
            choices = content.get("choices") or [{}]
            found.finish_reasons[text_of(choices[0].get("finish_reason")) or "none"] += 1
        found.notices = log.notices
    return found


def find(folder: Path, prefix: str) -> list[tuple[str, Reply, bool]]:
    """The answers to the request whose id begins so, the one that counts last.

    Raises BuildError, exit 3, where there is none, or where several ids begin so.
    """
    with ReplyLog(folder, writable=False) as log:
        found = [one for one in log.answers() if one[0].startswith(prefix)]
    _only(prefix, {key for key, _, _ in found})
    return sorted(found, key=lambda one: one[2])


def ids_of(log: ReplyLog, prefixes: Sequence[str]) -> set[str]:
    """The ids of answered requests that begin so, one for each. Raises BuildError as `find`."""
    known = {key for key, _, _ in log.answers()} if prefixes else set()
    return {_only(prefix, {key for key in known if key.startswith(prefix)}) for prefix in prefixes}


def _only(prefix: str, found: Collection[str]) -> str:
    """The one id that was found."""
    ids = sorted(found)
    if len(ids) != 1:
        problem = f'no id of a request begins with "{prefix}"'
        if ids:
            problem = f'{len(ids):,} ids begin with "{prefix}": {", ".join(ids[:3])}{" ..." if len(ids) > 3 else ""}'
        hint = 'ids are the keys in `buildsys sql "FROM requests"`'
        raise BuildError(problem, hint=hint, exit_code=NO_SUCH_TARGET)
    return ids[0]


def as_row(key: str, reply: Reply) -> dict[str, Any]:
    """As JSON has it: bodies as text, or in base64 where they are none."""
    row: dict[str, Any] = {"id": key, **{name: getattr(reply, name) for name in _FIELDS}}
    for name in ("request", "body"):
        data: bytes = getattr(reply, name)
        try:
            row[name] = data.decode()
        except UnicodeDecodeError:
            row[f"{name}_base64"] = base64.b64encode(data).decode()
    return row


def write_all(folder: Path, out: IO[str]) -> int:
    """One line of JSON for each answer that counts; how many there are."""
    n = 0
    with ReplyLog(folder, writable=False) as log:
        for key, reply, counts in log.answers():
            if counts:
                out.write(json.dumps(as_row(key, reply), ensure_ascii=False) + "\n")
                n += 1
    return n


def bring_in(folder: Path, lines: Iterable[str], name: str) -> tuple[int, int]:
    """Put answers that `write_all` wrote into the log; how many were new, and how many it had.

    name: of the file, for errors. What stands before a line that is wrong is kept, so that the rest can follow. Raises
    BuildError for such a line, and where another process writes the log.
    """
    n_new, n_known, waiting = 0, 0, list[Future[None]]()
    with ReplyLog(folder) as log:
        for key, reply in _read(lines, name):
            known = log.get(key)
            if known and (known.kind == "reply" or reply.kind == "refusal"):
                n_known += 1
                continue
            n_new += 1
            waiting.append(log.put(key, reply))
            if len(waiting) == _AT_ONCE:
                _settle(waiting)
        _settle(waiting)
    return n_new, n_known


def _settle(waiting: list[Future[None]]) -> None:
    for one in waiting:
        one.result()
    waiting.clear()


def _read(lines: Iterable[str], name: str) -> Iterator[tuple[str, Reply]]:
    for n, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _answer(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError, msgspec.ValidationError) as error:
                problem = f"no reply that `buildsys replies export` wrote: {error}"
                raise BuildError(problem, place=Place(name, n), hint="the lines before it were taken") from None


def _answer(row: Mapping[str, Any]) -> tuple[str, Reply]:
    told = {name: row[name] for name in _FIELDS}
    for name in ("request", "body"):
        told[name] = row[name].encode() if name in row else base64.b64decode(row[f"{name}_base64"], validate=True)
    reply = msgspec.convert(told, Reply)
    request = json.loads(reply.request)
    if not isinstance(request, dict) or request_key(request, reply.identity, reply.sample) != row["id"]:
        raise ValueError("its id is not that of its request")
    return str(row["id"]), reply
