"""The request engine: puts the records of a `chat` action to a server, and gives the replies in the records' order.

Knows nothing of rules, files or actions, and runs no user code: `build` is a call into a worker process. Whatever is in
the log of replies is not asked; what is asked counts once the log has it on the disk. There is one thread with one
event loop and one budget of requests in flight, whatever number of threads call `answer`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from buildsys.errors import FAILED, USAGE, BuildError
from buildsys.run.conversation import Ask, Asked, Conversation, Record, Row, text_of, tokens_of
from buildsys.run.endpoint import Endpoint, Heard, Server, chat_content, server_words
from buildsys.run.replies import Reply, ReplyLog
from buildsys.run.spending import HeldBack, Spending

Build = Callable[[list[tuple[Record, list[Any]]]], list[dict[str, Any] | None]]
"""(record, decoded replies so far) of every conversation -> the next request of each, None where it is over."""
Progress = Callable[[int, int, int, int, int], None]
"""done, total, sent: requests. output_tokens, input_tokens: of those sent. Totals since `answer` was called."""

PROGRESS_S: Final = 0.2


@dataclass(frozen=True)
class Patience:
    """How long to try. All in seconds, but for attempts and alike.

    attempts: tries of a request that goes wrong at the server (5xx, resets, half bodies) before it has failed.
    backoff, max_backoff: pause after the first failure, doubled after each.
    busy: how long a server may answer nothing but "busy", or be gone. unseen: the same for one that never spoke.
    timeout: for one request; a server that takes longer has lost it. alike: failures in a row that end a call.
    """

    attempts: int = 8
    backoff_s: float = 0.5
    max_backoff_s: float = 60.0
    busy_s: float = 900.0
    unseen_s: float = 60.0
    connect_timeout_s: float = 60.0
    timeout_s: float = 6 * 3600.0
    alike: int = 20

    def pause_s(self, n_failures: int) -> float:
        """With jitter, so that those who failed together don't come back together."""
        full = min(self.max_backoff_s, self.backoff_s * 2.0 ** min(n_failures - 1, 30))
        return full * random.uniform(0.5, 1.0)


@dataclass(frozen=True)
class Answered:
    """rows: in the order of the records, and of the samples within each. n_sent + n_reused is all requests."""

    rows: tuple[Row, ...]
    n_sent: int
    n_reused: int
    requests: tuple[Asked, ...]


class Cancelled(Exception):
    """The call was ended by `cancel` or `close`; what was answered is in the log."""


class ChatEngine:
    """Asks what the log does not hold. `answer` may be called from many threads at once.

    retry_refused: ask again what was refused in an earlier build (once in the life of this engine). spending: counts
    what is sent, and holds back what its limits don't allow.
    """

    def __init__(
        self,
        replies: ReplyLog,
        *,
        in_flight: int = 64,
        patience: Patience | None = None,
        retry_refused: bool = False,
        spending: Spending | None = None,
    ) -> None:
        self._replies = replies
        self._in_flight = in_flight
        self._patience = patience or Patience()
        self._retry_refused = retry_refused
        self.spending = spending or Spending()
        self._lock = threading.Lock()
        self._calls: set[_Call] = set()
        self._hosts: dict[tuple[str, str | None], _Host] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._cancelled = False
        # Touched by the loop's thread alone.
        self._budget = asyncio.Semaphore(in_flight)
        self._flights: dict[str, _Flight] = {}
        self._refused_now: set[str] = set()

    def answer(
        self,
        records: Sequence[Record],
        build: Build,
        endpoint: Endpoint,
        samples: int = 1,
        on_progress: Progress = lambda *counts: None,
        on_end: Callable[[tuple[Asked, ...]], object] = lambda requests: None,
    ) -> Answered:
        """Every record's conversation, held `samples` times. Blocks; callbacks are called in the caller's thread.

        on_end: gets the requests that were made, also where this raises.

        Raises BuildError where a request can't be made or stays without an answer, HeldBack where a limit allows no
        more of them, Cancelled after `cancel`. Replies that came are in the log in any case, so the same call goes on
        where this one ended.
        """
        conversations = [Conversation(record, sample) for record in records for sample in range(samples)]
        call = _Call(endpoint, on_progress, self._patience.alike, n_total=len(conversations))
        with self._lock:
            if self._cancelled:
                raise Cancelled
            self._calls.add(call)
        try:
            self._converse(call, conversations, build)
        finally:
            with self._lock:
                self._calls.discard(call)
            requests = tuple(asked for c in conversations for asked in c.asked)
            on_end(requests)
        return Answered(tuple(c.row() for c in conversations), call.n_sent, len(requests) - call.n_sent, requests)

    def cancel(self) -> None:
        """End all calls, with their requests in flight, and all later ones."""
        with self._lock:
            self._cancelled = True
            for call in self._calls:
                call.cancelled = True
                if call.future:
                    call.future.cancel()

    def close(self) -> None:
        """End everything. The log stays open: it is the caller's. May be called twice."""
        self.cancel()
        if self._loop and self._thread:
            asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    # ------------------------------------------------------------ the caller's thread

    def _converse(self, call: _Call, conversations: list[Conversation], build: Build) -> None:
        live, first = conversations, True
        while live and not call.cancelled:
            bodies = build([(c.record, c.heard) for c in live])
            asks = [(c, c.ask(body, call.endpoint.identity)) for c, body in zip(live, bodies, strict=True)]
            going_on = [(c, ask) for c, ask in asks if ask]
            call.n_total += len(going_on) - (len(live) if first else 0)
            settled: _Settled = {}
            try:
                self._settle_all(call, [ask for _, ask in going_on], settled)
            finally:
                live = [c for n, (c, _) in enumerate(going_on) if n in settled and c.take(*settled[n])]
                for n, words in call.unanswered.items():
                    going_on[n][0].miss(call.endpoint.url, words)
            first = False
        if call.cancelled:
            raise Cancelled
        if call.is_held_back:
            raise HeldBack

    def _settle_all(self, call: _Call, asks: list[Ask], settled: _Settled) -> None:
        """A reply for each request, and whether this call sent it; the log first, then the server."""
        for n, ask in enumerate(asks):
            if known := self._known(ask.key):
                call.note_known(known)
                settled[n] = known, False
        call.report()
        missing = [(n, ask) for n, ask in enumerate(asks) if n not in settled]
        if missing:
            self._wait(call, self._host(call.endpoint), missing, settled)
            call.report()
        if call.failures:
            raise call.error(call.failures[-1])

    def _known(self, key: str) -> Reply | None:
        reply = self._replies.get(key)
        again = reply and reply.kind == "refusal" and self._retry_refused and key not in self._refused_now
        return None if again else reply

    def _host(self, endpoint: Endpoint) -> _Host:
        place = endpoint.url, endpoint.api_key
        with self._lock:
            if place not in self._hosts:
                limits = self._patience
                server = Server(
                    endpoint,
                    connections=self._in_flight,
                    connect_timeout_s=limits.connect_timeout_s,
                    timeout_s=limits.timeout_s,
                )
                self._hosts[place] = _Host(server, limits)
            return self._hosts[place]

    def _wait(self, call: _Call, host: _Host, missing: list[tuple[int, Ask]], settled: _Settled) -> None:
        with self._lock:
            if call.cancelled:
                raise Cancelled
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="chat engine", daemon=True)
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(self._ask_all(call, host, missing, settled), self._loop)
            call.future = future
        try:
            while not concurrent.futures.wait([future], timeout=PROGRESS_S).done:
                call.report()
            future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled from None
        except _Trouble as trouble:
            raise call.error(trouble) from None
        finally:
            # Where it is not done, this thread was interrupted: nobody waits for the replies any more.
            future.cancel()
            call.report()  # What was sent was sent, though the call fails.

    # ------------------------------------------------------------ the loop's thread

    async def _ask_all(self, call: _Call, host: _Host, missing: list[tuple[int, Ask]], settled: _Settled) -> None:
        todo = iter(missing)

        async def work() -> None:
            for n, ask in todo:
                try:
                    settled[n] = await self._settle(call, host, ask)
                except HeldBack:
                    # What is in flight comes in: it is paid for.
                    call.is_held_back = True
                except _Trouble as trouble:
                    call.unanswered[n] = trouble.words
                    call.note_failed(trouble)

        # No more tasks than can be in flight: a task a request would be gigabytes where there are millions.
        await _all_or_none([work() for _ in range(min(self._in_flight, len(missing)))])
        self.spending.hold_back(ask.key for n, ask in missing if n not in settled and n not in call.unanswered)

    async def _settle(self, call: _Call, host: _Host, ask: Ask) -> tuple[Reply, bool]:
        """The reply from the log, from anybody's request that is in flight, or from one of our own."""
        if known := self._known(ask.key):
            call.note_known(known)
            return known, False
        flight = self._flights.get(ask.key)
        mine = flight is None
        if flight is None:
            self.spending.go_on()
            flight = self._flights[ask.key] = _Flight(asyncio.create_task(self._fly(host, ask)))
        flight.n_waiting += 1
        try:
            # Another call may wait for it too, so it ends with the last that waits, not with the one that began it.
            reply = await asyncio.shield(flight.task)
        finally:
            flight.n_waiting -= 1
            if not flight.n_waiting:
                flight.task.cancel()
                del self._flights[ask.key]
        call.note(reply, sent=mine)
        return reply, mine

    async def _fly(self, host: _Host, ask: Ask) -> Reply:
        """Ask until there is an answer and the log has it. Raises _Trouble when patience is at its end."""
        n_failures, failing_since = 0, 0.0
        while True:
            began, heard = await self._attempt(host, ask)
            if heard.meaning in ("reply", "refusal"):
                return await self._keep(host, ask, heard, began)
            failing_since = failing_since or time.monotonic()
            host.judge(heard, failing_since)
            if heard.meaning == "transient":
                n_failures += 1
                if n_failures >= self._patience.attempts:
                    raise _Trouble("requests stayed without an answer", heard.words, fatal=False)
                await asyncio.sleep(self._patience.pause_s(n_failures))

    async def _attempt(self, host: _Host, ask: Ask) -> tuple[float, Heard]:
        """One request within the budget, once the server wants to be asked; and when it began."""
        while True:
            await host.cool_down()
            async with self._budget:
                # Others may have been told to wait while this one stood in line.
                if host.is_cooling():
                    continue
                if self.spending.begin():
                    return await self._send(host, ask)
                await self.spending.settled()

    async def _send(self, host: _Host, ask: Ask) -> tuple[float, Heard]:
        began, asked_at = time.time(), time.monotonic()
        heard = None
        try:
            heard = await host.server.ask(ask.body)
        finally:
            self.spending.end(heard)
        host.note(heard, asked_at)
        return began, heard

    async def _keep(self, host: _Host, ask: Ask, heard: Heard, began: float) -> Reply:
        reply = Reply(
            kind="refusal" if heard.meaning == "refusal" else "reply",
            request=ask.body,
            identity=ask.identity,
            sample=ask.sample,
            status=heard.status,
            body=heard.body,
            started=began,
            ended=time.time(),
            model=text_of(heard.content.get("model")),
            system_fingerprint=text_of(heard.content.get("system_fingerprint")),
            endpoint=host.server.endpoint.url,
        )
        await asyncio.wrap_future(self._replies.put(ask.key, reply))
        self.spending.keep()
        if reply.kind == "refusal":
            self._refused_now.add(ask.key)
        # The log may hold an earlier answer, and that is the one that every later build will see.
        return self._replies.get(ask.key) or reply

    async def _shut_down(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for host in self._hosts.values():
            await host.server.close()


async def _all_or_none(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all of them; the first error, or a cancellation, ends the rest before it is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ---------------------------------------------------------------- one call, one request


@dataclass
class _Flight:
    task: asyncio.Task[Reply]
    n_waiting: int = 0


class _Trouble(Exception):
    """A request can't be answered. fatal: neither can any other of the call."""

    def __init__(
        self,
        problem: str,
        words: str,
        *,
        hint: str = "",
        exit_code: int = FAILED,
        fatal: bool = True,
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


_Settled = dict[int, tuple[Reply, bool]]


@dataclass(eq=False)
class _Call:
    """One call of `answer`: its counts, and whether it makes sense to go on."""

    endpoint: Endpoint
    on_progress: Progress
    alike: int
    n_total: int
    n_done: int = 0
    n_sent: int = 0
    n_output_tokens: int = 0
    n_input_tokens: int = 0
    n_good: int = 0
    failures: list[_Trouble] = field(default_factory=list)
    unanswered: dict[int, str] = field(default_factory=dict)
    n_failed_in_a_row: int = 0
    last_error: str = ""
    n_last_error: int = 0
    future: concurrent.futures.Future[None] | None = None
    cancelled: bool = False
    is_held_back: bool = False

    def note_known(self, reply: Reply) -> None:
        """An answer that cost nothing. It never ends the call, but it counts as evidence."""
        self.n_done += 1
        if reply.kind == "reply":
            self.n_good += 1
        else:
            self._count_error(reply)

    def note(self, reply: Reply, *, sent: bool) -> None:
        """An answer that was waited for. Raises _Trouble where all there is so far is one and the same error."""
        self.n_done += 1
        self.n_sent += sent
        self.n_failed_in_a_row = 0
        if reply.kind == "reply":
            self.n_good += 1
            if sent:
                content = chat_content(reply.body) or {}
                self.n_output_tokens += max(0, tokens_of(content, "completion_tokens"))
                self.n_input_tokens += max(0, tokens_of(content, "prompt_tokens"))
            return
        self._count_error(reply)
        if not self.n_good and self.n_last_error >= self.alike:
            problem = f"the first {self.n_last_error} replies carry the same error"
            raise _Trouble(problem, self.last_error, hint="change the request that the script builds")

    def note_failed(self, trouble: _Trouble) -> None:
        """A request that stayed without an answer; the others go on, unless too many fail one after the other."""
        if trouble.fatal:
            raise trouble
        self.failures.append(trouble)
        self.n_failed_in_a_row += 1
        if self.n_failed_in_a_row >= self.alike:
            raise _Trouble(f"{self.n_failed_in_a_row} requests in a row stayed without an answer", trouble.words)

    def report(self) -> None:
        self.on_progress(self.n_done, self.n_total, self.n_sent, self.n_output_tokens, self.n_input_tokens)

    def error(self, trouble: _Trouble) -> BuildError:
        facts = [*trouble.facts, ("server", self.endpoint.url), ("it said", trouble.words)]
        facts.append(("answered", f"{self.n_done:,} of {self.n_total:,} requests"))
        if self.failures:
            facts.append(("failed", f"{len(self.failures):,}"))
        go_on = "the replies so far are kept: `buildsys build` asks only for the rest"
        hint = f"{trouble.hint}; {go_on}" if trouble.hint else go_on
        return BuildError(trouble.problem, facts=facts, excerpt=trouble.excerpt, hint=hint, exit_code=trouble.exit_code)

    def _count_error(self, reply: Reply) -> None:
        error = f"{reply.status}: {server_words(reply.body)}"
        self.n_last_error = self.n_last_error + 1 if error == self.last_error else 1
        self.last_error = error


# ---------------------------------------------------------------- one server


class _Host:
    """What all requests to one server share: its connections, its wish to be left alone, and our patience with it."""

    def __init__(self, server: Server, patience: Patience) -> None:
        self.server = server
        self._patience = patience
        self._seen = False
        self._answered_at = 0.0
        self._cool_until = 0.0
        self._cooled_at = 0.0
        self._n_busy = 0

    def is_cooling(self) -> bool:
        return time.monotonic() < self._cool_until

    async def cool_down(self) -> None:
        while (left := self._cool_until - time.monotonic()) > 0:
            await asyncio.sleep(left * random.uniform(1.0, 1.1))

    def note(self, heard: Heard, asked_at: float) -> None:
        """Take in how an attempt ended that began at `asked_at`."""
        now = time.monotonic()
        self._seen = self._seen or heard.status > 0
        wait_s = heard.retry_after_s or 0.0
        if heard.meaning in ("busy", "unreachable"):
            # Those that were in flight when the first was sent away say nothing new.
            if asked_at >= self._cooled_at:
                self._n_busy += 1
                self._cooled_at = now
            wait_s = wait_s or self._patience.pause_s(self._n_busy)
        elif heard.meaning in ("reply", "refusal"):
            self._n_busy = 0
            self._answered_at = now
        self._cool_until = max(self._cool_until, now + wait_s if wait_s else 0.0)

    def judge(self, heard: Heard, failing_since: float) -> None:
        """Raise _Trouble where this attempt, in a row of failures since then, leaves no use in going on."""
        if heard.meaning == "misconfigured":
            raise _misconfigured(heard, self.server.endpoint)
        if heard.meaning != "busy" and (cause := self.server.endpoint.gone()):
            raise _gone(heard, cause)
        if heard.meaning == "transient":
            return
        patience_s = self._patience.busy_s if self._seen else self._patience.unseen_s
        now = time.monotonic()
        if max(now, self._cool_until) > max(failing_since, self._answered_at) + patience_s:
            gone = heard.meaning == "unreachable"
            words = heard.words
            if self._cool_until > now + patience_s:
                words += f" (asks to wait for {self._cool_until - now:,.0f} s)"
            raise _Trouble("the server can't be reached" if gone else "the server is too busy to answer", words)


def _gone(heard: Heard, cause: BuildError) -> _Trouble:
    return _Trouble(
        cause.problem,
        heard.words,
        hint=cause.hint,
        exit_code=cause.exit_code,
        facts=cause.facts,
        excerpt=cause.excerpt,
    )


def _misconfigured(heard: Heard, endpoint: Endpoint) -> _Trouble:
    if heard.status in (401, 403):
        name = endpoint.key_name or "the API key named under `secrets`"
        hint = f"check {name}: {'it is not the right one' if endpoint.api_key else 'it is not set'}"
    elif heard.status == 404:
        hint = "check the model's name and the endpoint's URL"
    else:
        hint = "check the endpoint's URL, and that it serves the OpenAI chat API"
    return _Trouble("the server takes no requests from here", heard.words, hint=hint, exit_code=USAGE)
