"""Servers that answer alike: which of them is asked next, when it wants to be left alone, and when to give one up.

Knows nothing of the log, of calls or of what is asked. All of it belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from buildsys.errors import FAILED, USAGE, BuildError
from buildsys.run.endpoint import Endpoint, Heard, Server
from buildsys.run.window import Window

_SLOW_S: Final = 0.2
"""Seconds a token, of a server that has not answered yet."""


@dataclass(frozen=True)
class Patience:
    """How long to try. All in seconds, but for attempts and alike.

    attempts: tries of a request that goes wrong at the server (5xx, resets, half bodies) before it has failed.
    backoff, max_backoff: pause after the first failure, doubled after each.
    busy: how long a server may answer nothing but "busy", or be gone. unseen: the same for one that never spoke.
    shortest, longest: a server that takes longer for a request has lost it; between them, it is as long as the most
    tokens that it may give take at the pace that was seen, several times over. idle: the same for an answer that comes
    bit by bit, from one to the next. alike: failures in a row that end a call.
    """

    attempts: int = 8
    backoff_s: float = 0.5
    max_backoff_s: float = 60.0
    busy_s: float = 900.0
    unseen_s: float = 60.0
    connect_timeout_s: float = 60.0
    shortest_s: float = 900.0
    longest_s: float = 24 * 3600.0
    idle_s: float = 300.0
    alike: int = 20

    def pause_s(self, n_failures: int) -> float:
        """With jitter, so that those who failed together don't come back together."""
        full = min(self.max_backoff_s, self.backoff_s * 2.0 ** min(n_failures - 1, 30))
        return full * random.uniform(0.5, 1.0)


class Trouble(Exception):
    """A request can't be answered. fatal: neither can any other of the call.

    cause: "server" where that is gone for good, and "access" where it lets nobody in: then no call of the rule can ask.
    """

    def __init__(
        self,
        problem: str,
        words: str,
        *,
        hint: str = "",
        exit_code: int = FAILED,
        fatal: bool = True,
        cause: Literal["request", "access", "server"] = "request",
        facts: Sequence[tuple[str, str]] = (),
        excerpt: str = "",
    ) -> None:
        super().__init__(problem, words)
        self.problem = problem
        self.words = words
        self.facts = facts
        self.excerpt = excerpt
        self.hint = hint
        self.exit_code = exit_code
        self.fatal = fatal
        self.cause = cause


class Pace:
    """Seconds a token of the answers of one server, waiting in its queue included."""

    _GAIN: Final = 0.1
    _MANY: Final = 4.0

    def __init__(self) -> None:
        self._mean_s: float | None = None
        self._spread_s = 0.0

    def note(self, seconds: float, n_tokens: int) -> None:
        each_s = seconds / max(n_tokens, 1)
        if self._mean_s is None:
            self._mean_s, self._spread_s = each_s, each_s / 2
            return
        self._spread_s += self._GAIN * (abs(each_s - self._mean_s) - self._spread_s)
        self._mean_s += self._GAIN * (each_s - self._mean_s)

    def deadline_s(self, most_tokens: int | None, patience: Patience) -> float:
        """How long an answer of so many tokens may take; None where it may have any number."""
        if most_tokens is None:
            return patience.longest_s
        each_s = _SLOW_S if self._mean_s is None else self._mean_s + self._MANY * self._spread_s
        return min(patience.longest_s, max(patience.shortest_s, self._MANY * each_s * most_tokens))


class Host:
    """What all requests to one server share: its connections, its wish to be left alone, and our patience with it.

    lost: why it is asked no more; None where it is.
    """

    def __init__(self, server: Server, patience: Patience, most: int) -> None:
        self.server = server
        self.lost: Trouble | None = None
        self.window = Window(most)
        self.pace = Pace()
        self._patience = patience
        self._n_in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._seen = False
        self._answered_at = 0.0
        self._failing_since = 0.0
        self._cool_until = 0.0
        self._cooled_at = 0.0
        self._n_busy = 0

    # ------------------------------------------------------------ who may go next

    @property
    def load(self) -> float:
        """The share of what it can take that it has."""
        return self._n_in_flight / self.window.limit

    def has_room(self) -> bool:
        """Whether one more may be sent to it now."""
        now = time.monotonic()
        return not self.lost and now >= self._cool_until and self.window.has_room(self._n_in_flight, now)

    def enter(self) -> None:
        self._n_in_flight += 1
        if self._n_in_flight < self.window.limit:
            self.wake()  # It may just have become larger, which nobody was told.

    def leave(self) -> None:
        self._n_in_flight -= 1
        self.wake()

    def wait(self, waiting: asyncio.Future[None]) -> None:
        """Have it done when there may be room."""
        self._waiting.append(waiting)
        now = time.monotonic()
        if now < self._cool_until:
            # Not all to the moment that was named: others were told the same.
            self._ring_in((self._cool_until - now) * random.uniform(1.0, 1.1))
        elif (grows_in_s := self.window.grows_in_s(now)) is not None:
            self._ring_in(grows_in_s)

    def wake(self) -> None:
        """Those who wait, as many as there is room for; all of them where nobody is asked here any more."""
        n = len(self._waiting) if self.lost else max(1, self.window.limit - self._n_in_flight)
        while self._waiting and n:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                n -= 1

    def _ring_in(self, seconds: float) -> None:
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(seconds + 0.001, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    # ------------------------------------------------------------ what it says

    def note(self, heard: Heard | None, asked_at: float, n_tokens: int = 0) -> None:
        """Take in how an attempt ended that began at `asked_at`; None where nobody waited for the end of it."""
        now = time.monotonic()
        if heard is None:
            return
        self._seen = self._seen or heard.status > 0
        wait_s = heard.retry_after_s or 0.0
        if heard.meaning in ("busy", "unreachable"):
            # Those that were in flight when the first was sent away say nothing new.
            if asked_at >= self._cooled_at:
                self._n_busy += 1
                self._cooled_at = now
            if not wait_s and self._n_busy > 1:
                # One alone may be an accident, and waits by itself.
                wait_s = self._patience.pause_s(self._n_busy - 1)
            self._failing_since = self._failing_since or now
            if heard.meaning == "busy":
                self.window.sent_away(asked_at, self._n_in_flight, now, heard.retry_after_s or 0.0)
        elif heard.meaning in ("reply", "refusal"):
            self._n_busy = 0
            self._failing_since = 0.0
            self._answered_at = now
            self.window.answered(max(n_tokens, 1), self._n_in_flight, now)
        if heard.meaning == "reply":
            self.pace.note(now - asked_at, n_tokens)
        self._cool_until = max(self._cool_until, now + wait_s if wait_s else 0.0)

    def judge(self, heard: Heard, failing_since: float | None) -> None:
        """Raise Trouble where this attempt leaves no use in going on.

        failing_since: how long the request has found no answer; None where others might answer it.
        """
        if heard.meaning == "misconfigured":
            raise _misconfigured(heard, self.server.endpoint)
        if heard.meaning != "busy" and (cause := self.server.endpoint.gone()):
            raise _gone(heard, cause)
        if heard.meaning == "transient":
            return
        patience_s = self._patience.busy_s if self._seen else self._patience.unseen_s
        now = time.monotonic()
        since = self._failing_since if failing_since is None else failing_since
        if max(now, self._cool_until) > max(since, self._answered_at) + patience_s:
            gone = heard.meaning == "unreachable"
            words = heard.words
            if self._cool_until > now + patience_s:
                words += f" (asks to wait for {self._cool_until - now:,.0f} s)"
            problem = "the server can't be reached" if gone else "the server is too busy to answer"
            raise Trouble(problem, words, cause="server")


class Fleet:
    """The hosts of one endpoint, of which any may be asked."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = hosts

    async def enter(self) -> Host:
        """One with room, once there is one: the least busy, given its size. To be left by `leave`.

        Raises Trouble where none is left.
        """
        while True:
            if all(host.lost for host in self.hosts):
                raise next(host.lost for host in reversed(self.hosts) if host.lost)
            if free := [host for host in self.hosts if host.has_room()]:
                host = min(free, key=lambda host: host.load)
                host.enter()
                return host
            await self._room()

    async def _room(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for host in self.hosts:
            host.wait(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                for host in self.hosts:
                    host.wake()  # It was this one's turn, and is another one's now.
            raise

    def give_up(self, host: Host, trouble: Trouble) -> None:
        """Ask it no more. Raises the trouble where it is the last."""
        host.lost = trouble
        host.wake()
        if all(one.lost for one in self.hosts):
            raise trouble


def _gone(heard: Heard, cause: BuildError) -> Trouble:
    return Trouble(
        cause.problem,
        heard.words,
        hint=cause.hint,
        exit_code=cause.exit_code,
        facts=cause.facts,
        excerpt=cause.excerpt,
        cause="server",
    )


def _misconfigured(heard: Heard, endpoint: Endpoint) -> Trouble:
    if heard.status in (401, 403):
        name = endpoint.key_name or "the API key named under `secrets`"
        hint = f"check {name}: {'it is not the right one' if endpoint.api_key else 'it is not set'}"
    elif heard.status == 404:
        hint = "check the model's name and the endpoint's URL"
    else:
        hint = "check the endpoint's URL, and that it serves the OpenAI chat API"
    return Trouble("the server takes no requests from here", heard.words, hint=hint, exit_code=USAGE, cause="access")
