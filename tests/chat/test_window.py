"""How many requests a server is sent, against servers that are simulated to the event: what they can do is known."""

from __future__ import annotations

import heapq
import random
from collections import deque

import pytest

from buildsys.run.window import RAMP_S, START, Window

ANSWER_S = 2.0


class Simulated:
    """A server of `slots`: more requests wait in its queue. sends_away: so many in flight, and it takes no more.

    slower: each request in work makes all slower, by this share.
    """

    def __init__(self, window: Window, *, slots: int, sends_away: int = 10**9, slower: float = 0.0) -> None:
        self.window = window
        self.slots = slots
        self.sends_away = sends_away
        self.slower = slower
        self.now = 0.0
        self.n_in_flight = self.most_in_flight = self.n_sent_away = 0
        self._random = random.Random(1)
        self._ends: list[float] = []
        self._queue: deque[float] = deque()
        self._cool_until = 0.0
        self._area = 0.0

    def answer(self, n: int) -> None:
        """Go on until n more have been answered; there is always one more to ask."""
        while n:
            self._send()
            waits = [self._ends[0]] if self._ends else []
            if (grows_in_s := self.window.grows_in_s(self.now)) is not None:
                waits.append(self.now + max(grows_in_s, 0.001))
            if self._cool_until > self.now:
                waits.append(self._cool_until)
            then = min(waits)
            self._area += self.window.limit * (then - self.now)
            self.now = then
            if self._ends and self._ends[0] <= then:
                heapq.heappop(self._ends)
                self.window.answered(1.0, self.n_in_flight, self.now)
                self.n_in_flight -= 1
                n -= 1
                if self._queue:
                    self._queue.popleft()
                    self._work()

    def mean_limit(self, n: int) -> float:
        """While n more are answered."""
        self._area, began = 0.0, self.now
        self.answer(n)
        return self._area / (self.now - began)

    def _send(self) -> None:
        while self.now >= self._cool_until and self.window.has_room(self.n_in_flight, self.now):
            if self.n_in_flight >= self.sends_away:
                self.n_sent_away += 1
                self.window.sent_away(self.now, self.n_in_flight, self.now, wait_s=1.0)
                self._cool_until = self.now + 1.0
                return
            self.n_in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.n_in_flight)
            if len(self._ends) < self.slots:
                self._work()
            else:
                self._queue.append(self.now)

    def _work(self) -> None:
        took_s = self._random.expovariate(1 / ANSWER_S) * (1 + self.slower * len(self._ends))
        heapq.heappush(self._ends, self.now + took_s)


def test_connections_are_made_a_few_at_a_time_and_all_are_there_in_seconds() -> None:
    window = Window(1024)
    sizes = []
    n = 0
    for tick in range(200):
        while window.has_room(n, tick / 100):
            n += 1
        sizes.append(n)
    assert sizes[0] == START
    assert sizes[int(RAMP_S * 100) - 1] == START
    assert sorted(set(sizes)) == [32, 64, 128, 256]
    assert Window(5).limit == 5


@pytest.mark.parametrize(("most", "slots"), [(256, 1000), (64, 64), (256, 256)])
def test_a_server_that_makes_use_of_all_gets_about_all(most: int, slots: int) -> None:
    server = Simulated(Window(most), slots=slots)
    server.answer(20 * most)
    assert server.mean_limit(50 * most) > 0.85 * most


@pytest.mark.parametrize(("most", "slots"), [(1024, 256), (256, 32), (512, 64)])
def test_a_server_that_lets_most_of_them_wait_is_sent_fewer_and_does_as_much(most: int, slots: int) -> None:
    server = Simulated(Window(most), slots=slots)
    server.answer(30 * most)
    began = server.now
    mean = server.mean_limit(40 * most)
    assert 0.8 * slots < mean < 0.6 * most
    ideal_s = 40 * most * ANSWER_S / slots
    assert server.now - began < 1.15 * ideal_s


def test_a_server_whose_answers_take_longer_the_more_it_has_still_gets_many() -> None:
    """Batches: each answer is slower, and more is done."""
    server = Simulated(Window(512), slots=256, slower=0.01)
    server.answer(5000)
    assert server.mean_limit(20000) > 100


def test_a_server_that_sends_requests_away_is_soon_sent_hardly_more_than_it_takes() -> None:
    server = Simulated(Window(1024), slots=2000, sends_away=100)
    server.answer(5000)
    sent_away = server.n_sent_away
    mean = server.mean_limit(20000)
    assert 50 < mean < 110
    assert server.n_sent_away - sent_away < 20000 / 100


def test_one_wave_that_is_sent_away_cuts_once() -> None:
    window = Window(32)
    for n in range(32):
        window.sent_away(asked_at=9.5, n_in_flight=31 - n, now=10.0 + n / 1000)
    once = window.limit
    assert 15 < once < 25
    window.sent_away(asked_at=10.2, n_in_flight=once, now=10.3, wait_s=1.0)
    assert window.limit < once


def test_one_in_many_that_is_sent_away_is_an_accident_unless_much_time_goes_by_it() -> None:
    window = Window(32)
    for n in range(1000):
        if n % 20 == 0:
            window.sent_away(asked_at=float(n), n_in_flight=31, now=float(n))
        else:
            window.answered(0.0 if n % 2 else 1.0, 10, float(n))
    assert window.limit == 32
    window.sent_away(asked_at=1000.0, n_in_flight=31, now=1000.0, wait_s=1.0)
    assert window.limit == 22


def test_one_is_always_sent() -> None:
    window = Window(4)
    for n in range(20):
        window.sent_away(asked_at=float(n), n_in_flight=0, now=float(n), wait_s=1.0)
    assert window.limit == 1
    assert window.has_room(0, 100.0)
