"""How many requests one server is sent at a time: as many as it makes use of, found by trying.

Pure: whoever uses it says what happened and when. A server that sends requests away is sent fewer. One that takes all
of them and lets them wait, as vLLM does, is found out by its work: where fewer in flight get as much done, fewer it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

START: Final = 32
RAMP_S: Final = 0.5
"""In flight at first, and seconds until it may be twice as many: connections are made a few at a time."""
CUT: Final = 0.7
UP: Final = 1.25
DOWN: Final = 0.8
_PAYS: Final = 0.35
_COSTS: Final = 0.4
"""The share of what more in flight could bring, or fewer could cost, by which it is judged to do so. Too many only wait
at the server, too few leave it idle: what is in doubt is more.
"""
_FEWEST: Final = 8
"""In flight: fewer is not tried of our own accord."""
_MEASURED: Final = 96
_MEASURED_S: Final = 1.0
"""Answers, fewer where few are in flight, and seconds that it takes to judge how much gets done."""
_LATELY: Final = 32
_TOO_MANY: Final = 0.15
"""Over so many requests lately, the share that is sent away which says that there are too many."""
_LATELY_S: Final = 10.0
_TOO_LONG: Final = 0.1
"""The same of the time, for what the server asks to be left alone."""
_REST: Final = 4
"""Measurements that a size holds for after another one was no better."""


@dataclass
class _Measurement:
    """since: seconds. skip: answers that belong to the size before."""

    since: float
    skip: int
    n: int = 0
    work: float = 0.0
    full: bool = True


class Window:
    """limit: how many may be in flight, at most `most`. Times in seconds, from any start."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.limit = min(most, START)
        self._ramping = self.limit < most
        self._grown_at = 0.0
        self._cut_at = 0.0
        self._away = 0.0
        self._waited = self._waited_at = 0.0
        self._best: tuple[int, float] | None = None
        self._rest = 0
        self._way: Literal["up", "down"] = "down"
        self._measured: _Measurement | None = None

    @property
    def most(self) -> int:
        return self._most

    def allow(self, most: int) -> None:
        """Have it be at least `most` at most."""
        if most > self._most:
            self._ramping = self._ramping or self.limit == self._most
            self._most = most

    def has_room(self, n_in_flight: int, now: float) -> bool:
        """Whether one more may be sent."""
        if n_in_flight < self.limit:
            return True
        if not self._ramping:
            return False
        self._grown_at = self._grown_at or now
        if now < self._grown_at + RAMP_S:
            return False
        self._grown_at = now
        self._resize(min(self._most, 2 * self.limit), now)
        self._ramping = self.limit < self._most
        return True

    def grows_in_s(self, now: float) -> float | None:
        """When there may be room though nothing is answered; None where there won't be."""
        return max(0.0, self._grown_at + RAMP_S - now) if self._ramping else None

    def sent_away(self, asked_at: float, n_in_flight: int, now: float, wait_s: float = 0.0) -> None:
        """The server takes no more for now. Those asked before the last cut say nothing new.

        wait_s: how long it said to wait. One in many may be an accident, unless the waiting comes to much of the time.
        """
        if asked_at < self._cut_at:
            return
        self._away += (1.0 - self._away) / _LATELY
        self._waited = self._waited * math.exp((self._waited_at - now) / _LATELY_S) + wait_s / _LATELY_S
        self._waited_at = now
        if self._away < _TOO_MANY and self._waited < _TOO_LONG:
            return
        self._cut_at = now
        self._away = self._waited = 0.0
        self._ramping = False
        self._way = "up"
        self._best = None
        self._rest = 0
        self._resize(max(1, int(CUT * min(self.limit, n_in_flight + 1))), now)

    def answered(self, work: float, n_in_flight: int, now: float) -> None:
        """work: what came, in tokens or any other unit. n_in_flight: with the one that came."""
        self._away -= self._away / _LATELY
        one = self._measured
        if one is None:
            one = self._measured = _Measurement(now, 0)
        if one.skip:
            one.skip -= 1
            one.since = now
            return
        one.n += 1
        one.work += work
        one.full = one.full and n_in_flight >= 0.9 * self.limit
        if one.n >= max(self.limit, min(_MEASURED, 4 * self.limit + 8)) and now >= one.since + _MEASURED_S:
            self._measured = _Measurement(now, 0)
            if one.full and not self._ramping:
                self._judge(one.work / (now - one.since), now)

    def _judge(self, rate: float, now: float) -> None:
        """rate: work a second at the size that is in force."""
        if self._rest:
            self._rest -= 1
            return
        if self._best is None:
            self._try_other(rate, now)
            return
        before, rate_before = self._best
        could_change = self.limit / before - 1.0
        if self.limit > before:
            is_better = rate >= rate_before * (1.0 + _PAYS * could_change)
        else:
            is_better = rate >= rate_before * (1.0 + _COSTS * could_change)
        if is_better:
            self._try_other(rate, now)
        else:
            self._way = "down" if self.limit > before else "up"
            self._best = None
            self._rest = _REST
            self._resize(before, now)

    def _try_other(self, rate: float, now: float) -> None:
        """Go on in the same way from here; at an end, turn."""
        size = self._next(self._way)
        if size == self.limit:
            self._way = "down" if self._way == "up" else "up"
            self._best = None
            self._rest = _REST
            return
        self._best = self.limit, rate
        self._resize(size, now)

    def _next(self, way: Literal["up", "down"]) -> int:
        if way == "up":
            return min(self._most, max(self.limit + 1, int(UP * self.limit)))
        return min(self.limit, max(_FEWEST, int(DOWN * self.limit)))

    def _resize(self, limit: int, now: float) -> None:
        self._measured = _Measurement(now, skip=self.limit)
        self.limit = limit
