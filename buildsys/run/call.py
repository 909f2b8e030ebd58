"""One call of the request engine: what it tells, what has come of it, and whether it makes sense to go on.

Knows nothing of servers and of the log. The engine's loop and the thread that made the call both hold it; what they
share is set whole, or only grows.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from buildsys.errors import BuildError
from buildsys.events import RequestCounts
from buildsys.run.brake import Brake
from buildsys.run.conversation import Asked, Conversation, Record, Row, tokens_of
from buildsys.run.endpoint import Endpoint, chat_content, server_words
from buildsys.run.hosts import Patience, Trouble
from buildsys.run.quality import finish_reason, flaws
from buildsys.run.replies import Reply

Build = Callable[[list[tuple[Record, list[Any]]]], list[dict[str, Any] | None]]
"""(record, decoded replies so far) of every conversation -> the next request of each, None where it is over."""


class Listener:
    """What a call tells whoever makes it, in the caller's thread. Here nobody listens."""

    def before_first(self) -> None:
        """Of the first records, one is about to be asked. What this raises ends the call, as in the next two."""

    def after_first(self, rows: Sequence[Row]) -> None:
        """They have their answers, of which some have just come, or one of the other records is about to be asked."""

    def before_rest(self, rows: Callable[[int], Sequence[Row]]) -> None:
        """One of the other records is about to be asked. rows: the last n of them that are complete by now."""

    def progress(self, counts: RequestCounts) -> None:
        """Now and then, and at the end. Totals since the call was made."""

    def look(self, rows: Callable[[int], Sequence[Row]]) -> None:
        """Now and then while requests are in flight. rows: the last n that are complete by now."""

    def left_out(self, url: str, words: str) -> None:
        """One of several servers is asked no more."""

    def ended(self, requests: tuple[Asked, ...]) -> None:
        """All that was asked, also where the call raises."""


class Cancelled(Exception):
    """The call was ended by `cancel` or `close`; what was answered is in the log."""


class Told(NamedTuple):
    """The answer to a request, which is kept under `key`. content: decoded, empty in a refusal. sent: by this call.

    bad: what is wrong with it. model: that was asked for.
    """

    key: str
    reply: Reply
    content: Mapping[str, Any]
    sent: bool
    bad: tuple[str, ...]
    model: str


Settled = dict[int, Told]


@dataclass
class Turn:
    """told: the answers, in the order in which they came, and to which of the conversations. It only grows."""

    conversations: list[Conversation]
    told: list[tuple[int, Told]] = field(default_factory=list)


Found = tuple[Reply, Mapping[str, Any] | None]
"""The answer that is in the log, and its decoded body, None where that is yet to be decoded."""


def told_of(model: str, key: str, reply: Reply, content: Mapping[str, Any] | None = None, *, sent: bool) -> Told:
    if content is None:
        content = (chat_content(reply.body) if reply.kind == "reply" else None) or {}
    return Told(key, reply, content, sent, flaws(content, reply.request), model)


@dataclass
class Progress:
    """is_paid_for: it is sent, and its answer is not in the log yet."""

    is_paid_for: bool = False


@dataclass(eq=False)
class Call:
    """One call of `answer`: its counts, and whether it makes sense to go on."""

    endpoint: Endpoint
    build: Build
    listener: Listener
    brake: Brake
    patience: Patience
    reuse_shorter: bool
    counts: RequestCounts
    turn: Turn = field(default_factory=lambda: Turn([]))
    finish_reasons: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    n_good: int = 0
    failures: list[Trouble] = field(default_factory=list)
    unanswered: dict[int, str] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    n_failed_in_a_row: int = 0
    last_error: str = ""
    n_last_error: int = 0
    future: concurrent.futures.Future[None] | None = None
    stopped: Exception | None = None
    workers: list[asyncio.Task[None]] = field(default_factory=list)
    awaits: dict[asyncio.Task[Any], Progress] = field(default_factory=dict)
    cancelled: bool = False
    first: tuple[Row, ...] | None = None
    is_sending: bool = False
    is_at_rest: bool = False
    is_held_back: bool = False

    @property
    def is_stopped(self) -> bool:
        return self.stopped is not None or self.brake.is_pulled

    def stop(self, error: Exception) -> None:
        """Send no more. What is in flight comes in, and is kept, but where the server is gone."""
        self.stopped = self.stopped or error
        if isinstance(error, Trouble) and error.cause == "server":
            for worker in self.workers:
                if worker is not asyncio.current_task():
                    worker.cancel()

    def cut(self) -> None:
        """End those that only wait for their turn."""
        for worker in self.workers:
            progress = self.awaits.get(worker)
            if not (progress and progress.is_paid_for):
                worker.cancel()

    def add(self, **more: int) -> None:
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + n for name, n in more.items()})

    def note_known(self, told: Told) -> None:
        """An answer that cost nothing. It never ends the call, but it counts as evidence."""
        self._judge(told)
        self.add(done=1)
        if told.reply.kind == "reply":
            self.n_good += 1
            self.brake.recall(told.model, told.reply.model)
        else:
            self._count_error(told.reply)

    def note(self, told: Told) -> None:
        """An answer that was waited for. It ends the call where all there is so far is one and the same error."""
        self.n_failed_in_a_row = 0
        self._judge(told)
        if told.reply.kind == "reply":
            self.n_good += 1
            self.brake.hear(told.model, told.reply.model, told.reply.endpoint)
            n_output, n_input = (
                max(0, tokens_of(told.content, name)) if told.sent else 0
                for name in ("completion_tokens", "prompt_tokens")
            )
            self.add(done=1, sent=told.sent, output_tokens=n_output, input_tokens=n_input)
            return
        self.add(done=1, sent=told.sent)
        self._count_error(told.reply)
        if not self.n_good and self.n_last_error >= self.patience.alike:
            problem = f"the first {self.n_last_error} replies carry the same error"
            self.stop(Trouble(problem, self.last_error, hint="change the request that the script builds"))

    def note_failed(self, trouble: Trouble) -> None:
        """A request that stayed without an answer; the others go on, unless too many fail one after the other."""
        if trouble.fatal:
            self.stop(trouble)
            return
        self.failures.append(trouble)
        self.n_failed_in_a_row += 1
        if self.n_failed_in_a_row >= self.patience.alike:
            problem = f"{self.n_failed_in_a_row} requests in a row stayed without an answer"
            self.stop(Trouble(problem, trouble.words))

    def report(self) -> None:
        self.listener.progress(replace(self.counts, finish_reasons=dict(self.finish_reasons), bad=dict(self.bad)))
        while self.left_out:
            self.listener.left_out(*self.left_out.pop())

    def before_sending(self) -> None:
        """Tell the listener, once for the first records and once for the rest."""
        if self.first is None and not self.is_sending:
            self.is_sending = True
            self.listener.before_first()
        elif self.first is not None and not self.is_at_rest:
            self.is_at_rest = True
            if self.first and not self.is_sending:
                self.listener.after_first(self.first)
            self.listener.before_rest(self._rows_by_now)

    def look(self) -> None:
        """Let the listener look. What goes wrong with that ends the call, without losing what is in flight."""
        try:
            self.listener.look(self._rows_by_now)
        except Cancelled:
            raise
        except Exception as error:
            self.stop(error)

    def _rows_by_now(self, n: int) -> list[Row]:
        """The last n conversations that are over, while others of their turn have no answer yet.

        None before the last turn: those that end early may be of a kind.
        """
        told = [(self.turn.conversations[at], one) for at, one in self.turn.told[-n:]]
        replied = [(c, one) for c, one in told if one.content]
        going_on = self.build([(c.record, [*c.heard, one.content]) for c, one in replied])
        if any(body is not None for body in going_on):
            return []
        return [c.row_with(one.reply) for c, one in told]

    def error(self, trouble: Trouble) -> BuildError:
        facts = [*trouble.facts, ("server", self.endpoint.url), ("it said", trouble.words)]
        facts.append(("answered", f"{self.counts.done:,} of {self.counts.total:,} requests"))
        if self.failures:
            facts.append(("failed", f"{len(self.failures):,}"))
        go_on = "the replies so far are kept: `buildsys build` asks only for the rest"
        hint = f"{trouble.hint}; {go_on}" if trouble.hint else go_on
        return BuildError(trouble.problem, facts=facts, excerpt=trouble.excerpt, hint=hint, exit_code=trouble.exit_code)

    def _judge(self, told: Told) -> None:
        self.bad.update(told.bad)
        if told.content:
            self.finish_reasons[finish_reason(told.content) or "none"] += 1

    def _count_error(self, reply: Reply) -> None:
        self.add(refused=1)
        error = f"{reply.status}: {server_words(reply.body)}"
        self.n_last_error = self.n_last_error + 1 if error == self.last_error else 1
        self.last_error = error
