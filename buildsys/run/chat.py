"""The request engine: puts the records of a `chat` action to a server, and gives the replies in the records' order.

Knows nothing of rules, files or actions, and runs no user code: `build` is a call into a worker process. Whatever is in
the log of replies is not asked; what is asked counts once the log has it on the disk. There is one thread with one
event loop and one budget of requests in flight at each server, whatever number of threads call `answer`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from buildsys.events import RequestCounts
from buildsys.run.brake import Brake
from buildsys.run.call import Build, Call, Cancelled, Found, Listener, Progress, Settled, Told, Turn, told_of
from buildsys.run.conversation import Ask, Asked, Conversation, Record, Row, text_of, tokens_of
from buildsys.run.endpoint import Endpoint, Heard, Server
from buildsys.run.hosts import Fleet, Host, Patience, Trouble
from buildsys.run.replies import Reply, ReplyLog
from buildsys.run.shorter import Shorter
from buildsys.run.spending import HeldBack, Spending

IN_FLIGHT: Final = 256
PROGRESS_S: Final = 0.2
_COLLECTED: Final = (50_000, 20, 100)
"""Rarer collections of garbage while requests are made: what a request leaves goes by reference counts, and to look
through all that is in flight for cycles was a tenth of the CPU time.
"""


@dataclass(frozen=True)
class Answered:
    """rows: in the order of the records, and of the samples within each. n_sent + n_reused is all requests."""

    rows: tuple[Row, ...]
    n_sent: int
    n_reused: int
    requests: tuple[Asked, ...]


class ChatEngine:
    """Asks what the log does not hold. `answer` may be called from many threads at once.

    in_flight: at most so many at each server, where its endpoint does not say. retry_refused: ask again what was
    refused in an earlier build (once in the life of this engine). spending: counts what is sent, and holds back what
    its limits don't allow.
    """

    def __init__(
        self,
        replies: ReplyLog,
        *,
        in_flight: int = IN_FLIGHT,
        patience: Patience | None = None,
        retry_refused: bool = False,
        spending: Spending | None = None,
    ) -> None:
        self._replies = replies
        self._shorter = Shorter(replies)
        self._in_flight = in_flight
        self._patience = patience or Patience()
        self._retry_refused = retry_refused
        self.spending = spending or Spending()
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        self._hosts: dict[tuple[str, str | None, bool], Host] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._cancelled = False
        self._collected = gc.get_threshold()
        # Touched by the loop's thread alone.
        self._flights: dict[str, _Flight] = {}
        self._refused_now: set[str] = set()

    def answer(
        self,
        records: Sequence[Record],
        build: Build,
        endpoint: Endpoint,
        samples: int = 1,
        *,
        first: int = 0,
        reuse_shorter: bool = False,
        listener: Listener | None = None,
        brake: Brake | None = None,
    ) -> Answered:
        """Every record's conversation, held `samples` times. Blocks.

        first: so many records are answered before all others. reuse_shorter: what ended of itself under a smaller cap
        of tokens answers a request. brake: of this call and others.

        Raises BuildError where a request can't be made or stays without an answer, or for which the brake was pulled,
        HeldBack where a limit allows no more of them, Cancelled after `cancel`. Replies that came are in the log in any
        case, so the same call goes on where this one ended.
        """
        conversations = [Conversation(record, sample) for record in records for sample in range(samples)]
        counts = RequestCounts(total=len(conversations))
        call = Call(endpoint, build, listener or Listener(), brake or Brake(), self._patience, reuse_shorter, counts)
        with self._lock:
            if self._cancelled:
                raise Cancelled
            self._calls.add(call)
        try:
            self._converse(call, conversations[: first * samples])
            call.first = tuple(c.row() for c in conversations[: first * samples])
            if call.is_sending:
                call.listener.after_first(call.first)
            self._converse(call, conversations[first * samples :])
        finally:
            with self._lock:
                self._calls.discard(call)
            requests = tuple(asked for c in conversations for asked in c.asked)
            call.listener.ended(requests)
        n_sent = call.counts.sent
        return Answered(tuple(c.row() for c in conversations), n_sent, len(requests) - n_sent, requests)

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
            gc.set_threshold(*self._collected)

    # ------------------------------------------------------------ the caller's thread

    def _converse(self, call: Call, conversations: list[Conversation]) -> None:
        live, first = conversations, True
        while live and not call.cancelled:
            bodies = call.build([(c.record, c.heard) for c in live])
            asks = [(c, c.ask(body, call.endpoint.identity)) for c, body in zip(live, bodies, strict=True)]
            going_on = [(c, ask) for c, ask in asks if ask]
            call.add(total=len(going_on) - (len(live) if first else 0))
            settled = Settled()
            call.turn = Turn([c for c, _ in going_on])
            try:
                self._settle_all(call, [ask for _, ask in going_on], settled)
            finally:
                heard = [(c, settled[n]) for n, (c, _) in enumerate(going_on) if n in settled]
                live = [c for c, told in heard if c.take(told.key, told.reply, told.content, told.sent, told.bad)]
                for n, words in call.unanswered.items():
                    going_on[n][0].miss(call.endpoint.url, words)
            first = False
        if call.cancelled:
            raise Cancelled
        if call.is_held_back:
            raise HeldBack

    def _settle_all(self, call: Call, asks: list[Ask], settled: Settled) -> None:
        """A reply for each request, and whether this call sent it; the log first, then the server."""
        for n, ask in enumerate(asks):
            if known := self._known(call, ask):
                call.note_known(known)
                settled[n] = known
                call.turn.told.append((n, known))
        call.report()
        missing = [(n, ask) for n, ask in enumerate(asks) if n not in settled]
        if missing:
            call.before_sending()
            self._wait(call, self._fleet(call.endpoint), missing, settled)
            call.report()
        if call.failures:
            raise call.error(call.failures[-1])
        if missing:
            call.brake.check()

    def _known(self, call: Call, ask: Ask) -> Told | None:
        reply = self._replies.get(ask.key)
        if reply and not (reply.kind == "refusal" and self._retry_refused and ask.key not in self._refused_now):
            return told_of(ask.model, ask.key, reply, sent=False)
        if call.reuse_shorter:
            with self._lock:
                found = self._shorter.find(ask.body, ask.identity, ask.sample)
            if found:
                return told_of(ask.model, *found, sent=False)
        return None

    def _fleet(self, endpoint: Endpoint) -> Fleet:
        limits = self._patience
        hosts = []
        with self._lock:
            for one in endpoint.each():
                place = one.url, one.api_key, one.stream
                most = one.in_flight or self._in_flight
                if place not in self._hosts:
                    server = Server(one, connect_timeout_s=limits.connect_timeout_s)
                    self._hosts[place] = Host(server, limits, most)
                self._hosts[place].window.allow(most)
                hosts.append(self._hosts[place])
        return Fleet(hosts)

    def _wait(self, call: Call, fleet: Fleet, missing: list[tuple[int, Ask]], settled: Settled) -> None:
        with self._lock:
            if call.cancelled:
                raise Cancelled
            if self._loop is None:
                self._collected = gc.get_threshold()
                gc.set_threshold(*_COLLECTED)
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="chat engine", daemon=True)
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(self._ask_all(call, fleet, missing, settled), self._loop)
            call.future = future
        try:
            while not concurrent.futures.wait([future], timeout=PROGRESS_S).done:
                call.report()
                call.look()
                if call.is_stopped:
                    self._loop.call_soon_threadsafe(call.cut)
            future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled from None
        except Trouble as trouble:
            error = call.error(trouble)
            if trouble.cause != "request":
                call.brake.pull(error)
            raise error from None
        finally:
            # Where it is not done, this thread was interrupted: nobody waits for the replies any more.
            future.cancel()
            call.report()  # What was sent was sent, though the call fails.

    # ------------------------------------------------------------ the loop's thread

    async def _ask_all(self, call: Call, fleet: Fleet, missing: list[tuple[int, Ask]], settled: Settled) -> None:
        todo = iter(missing)

        async def work() -> None:
            for n, ask in todo:
                try:
                    settled[n] = await self._settle(call, fleet, ask)
                    call.turn.told.append((n, settled[n]))
                except HeldBack:
                    # What is in flight comes in: it is paid for.
                    call.is_held_back = True
                except _Braked:
                    return
                except asyncio.CancelledError:
                    if call.is_stopped:
                        return
                    raise
                except Trouble as trouble:
                    call.unanswered[n] = trouble.words
                    call.note_failed(trouble)

        # No more tasks than can be in flight: a task a request would be gigabytes where there are millions.
        n_tasks = sum(host.window.most for host in fleet.hosts)
        call.workers = [asyncio.create_task(work()) for _ in range(min(n_tasks, len(missing)))]
        await _all_or_none(call.workers)
        if call.stopped:
            raise call.stopped
        if not call.is_stopped:
            self.spending.hold_back(ask.key for n, ask in missing if n not in settled and n not in call.unanswered)

    async def _settle(self, call: Call, fleet: Fleet, ask: Ask) -> Told:
        """The reply from the log, from anybody's request that is in flight, or from one of our own."""
        if known := self._known(call, ask):
            call.note_known(known)
            return known
        flight = self._flights.get(ask.key)
        mine = False
        if flight is None or flight.task.done():
            mine = True
            if call.is_stopped:
                raise _Braked
            self.spending.go_on()
            progress = Progress()
            flight = _Flight(asyncio.create_task(self._fly(call, fleet, ask, progress)), progress)
            self._flights[ask.key] = flight
        flight.n_waiting += 1
        worker = asyncio.current_task()
        assert worker
        call.awaits[worker] = flight.progress
        found = None
        try:
            # Another call may wait for it too, so it ends with the last that waits, not with the one that began it.
            found = await asyncio.shield(flight.task)
        except _Braked:
            if call.is_stopped:
                raise
        finally:
            del call.awaits[worker]
            flight.n_waiting -= 1
            if not flight.n_waiting:
                flight.task.cancel()
            if not flight.n_waiting and self._flights.get(ask.key) is flight:
                del self._flights[ask.key]
        if found is None:
            return await self._settle(call, fleet, ask)  # It was another rule's, whose brake is none of ours.
        told = told_of(ask.model, ask.key, *found, sent=mine)
        call.note(told)
        return told

    async def _fly(self, call: Call, fleet: Fleet, ask: Ask, progress: Progress) -> Found:
        """Ask until there is an answer and the log has it. Raises Trouble when patience is at its end."""
        n_failures, n_busy, failing_since = 0, 0, 0.0
        while True:
            host, began, heard = await self._attempt(call, fleet, ask, n_failures, progress)
            if heard.meaning in ("reply", "refusal"):
                return await self._keep(host, ask, heard, began)
            progress.is_paid_for = False
            call.add(retries=1)
            failing_since = failing_since or time.monotonic()
            try:
                host.judge(heard, failing_since if len(fleet.hosts) == 1 else None)
            except Trouble as trouble:
                if heard.meaning == "misconfigured" or len(fleet.hosts) == 1:
                    raise
                if not host.lost:
                    call.left_out.append((host.server.endpoint.url, trouble.words))
                fleet.give_up(host, trouble)
            if call.is_stopped:
                raise _Braked
            if heard.meaning == "transient":
                n_failures += 1
                if n_failures >= self._patience.attempts:
                    raise Trouble("requests stayed without an answer", heard.words, fatal=False)
                await asyncio.sleep(self._patience.pause_s(n_failures))
            else:
                n_busy += 1
                if n_busy >= len(fleet.hosts):  # Else another one is asked at once.
                    await asyncio.sleep(self._patience.pause_s(n_busy))

    async def _attempt(
        self, call: Call, fleet: Fleet, ask: Ask, n_failures: int, progress: Progress
    ) -> tuple[Host, float, Heard]:
        """One request within the budget, once a server wants to be asked; and when it began."""
        while True:
            host = await fleet.enter()
            try:
                if call.is_stopped:
                    raise _Braked
                if self.spending.begin(ask.most_tokens):
                    # Whoever took too long may take as long again: it is not asked for ever in vain.
                    timeout_s = host.pace.deadline_s(ask.most_tokens, self._patience) * 2**n_failures
                    progress.is_paid_for = True
                    began, heard = await self._send(call, host, ask, timeout_s)
                    return host, began, heard
            finally:
                host.leave()
            await self.spending.settled()

    async def _send(self, call: Call, host: Host, ask: Ask, timeout_s: float) -> tuple[float, Heard]:
        began, asked_at = time.time(), time.monotonic()
        heard = None
        call.add(in_flight=1)
        try:
            heard = await host.server.ask(ask.body, timeout_s, self._patience.idle_s)
        finally:
            call.add(in_flight=-1)
            self.spending.end(heard, ask.most_tokens)
        host.note(heard, asked_at, tokens_of(heard.content, "completion_tokens"))
        return began, heard

    async def _keep(self, host: Host, ask: Ask, heard: Heard, began: float) -> Found:
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
        kept = self._replies.get(ask.key) or reply
        return kept, heard.content if kept.body == reply.body else None

    async def _shut_down(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for host in self._hosts.values():
            await host.server.close()


async def _all_or_none(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Await all of them; the first error, or a cancellation, ends the rest before it is raised."""
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class _Flight:
    task: asyncio.Task[Found]
    progress: Progress
    n_waiting: int = 0


class _Braked(Exception):
    """It is not sent, since the brake was pulled."""
