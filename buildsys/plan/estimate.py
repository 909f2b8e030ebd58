"""How long a plan takes and what it costs, from how long it took and what it cost before: values in, values out.

What was never done is not guessed at: its rule is named instead. Knows no file, clock or database.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from buildsys.model import GPU, ActionId, Prices, RuleName
from buildsys.plan import price

CHAT_SLOTS: Final = 64
"""Actions that wait for replies at a time; they take none of the jobs."""
_JOB: Final = " job"
_CHAT: Final = " chat"
_Takes = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Spent:
    """What actions of one rule took before.

    seconds, requests: by action, of its last result; requests are those that it needed, sent or not. The rest are
    means: request_s: seconds of an action for each request that it sent; tokens of a request. None: never seen.
    """

    seconds: Mapping[ActionId, float] = field(default_factory=dict)
    requests: Mapping[ActionId, int] = field(default_factory=dict)
    request_s: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None


@dataclass(frozen=True)
class Load:
    """One action that is to run. certain: whatever comes before, else only if that comes out different.

    needs: other actions, whether they run or not. requests: that it needs, None where that can't be known before it
    runs; answered: those of them that the log of replies is known to hold. takes: resources, by name. services: that it
    needs.
    """

    action: ActionId
    certain: bool = True
    needs: Collection[ActionId] = ()
    is_chat: bool = False
    requests: int | None = 0
    answered: int = 0
    takes: Mapping[str, int] = field(default_factory=dict)
    services: Collection[str] = ()

    @property
    def gpus(self) -> int:
        return self.takes.get(GPU, 0)


@dataclass(frozen=True)
class Estimate:
    """What all loads take together, if all of them run. certain_s: those that run for sure.

    seconds: from start to end, None where nothing is known; action_s, gpu_s: of all actions added up. requests: to be
    sent. cost: None without prices. unknown_time, unknown_requests, unknown_tokens: rules that the numbers leave out.
    """

    seconds: float | None = None
    certain_s: float | None = None
    action_s: float = 0.0
    gpu_s: float = 0.0
    requests: int = 0
    answered: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost: float | None = None
    currency: str = ""
    unknown_time: tuple[RuleName, ...] = ()
    unknown_requests: tuple[RuleName, ...] = ()
    unknown_tokens: tuple[RuleName, ...] = ()


def estimate(
    loads: Sequence[Load],
    spent: Mapping[RuleName, Spent],
    jobs: int,
    prices: Prices | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Estimate:
    """loads: upstream first. spent: by rule. jobs: actions at a time. sizes: of resources that are given in units."""
    if not loads:
        return Estimate(0.0, 0.0, cost=None if prices is None else 0.0, currency=prices.currency if prices else "")
    seconds = {load.action: _seconds(load, spent.get(load.action.rule, Spent())) for load in loads}
    known = {action: one for action, one in seconds.items() if one is not None}
    certain = [load for load in loads if load.certain]
    sent = _sent(loads)
    input_tokens = sum(n * (spent.get(rule, Spent()).input_tokens or 0.0) for rule, n in sent.items())
    output_tokens = sum(n * (spent.get(rule, Spent()).output_tokens or 0.0) for rule, n in sent.items())
    sizes = sizes or {}
    whole_s = _Play(loads, known, jobs, sizes).end_s()
    return Estimate(
        seconds=whole_s if known else None,
        certain_s=_Play(certain, known, jobs, sizes).end_s() if known or not certain else None,
        action_s=sum(known.values()),
        gpu_s=sum(load.gpus * known.get(load.action, 0.0) for load in loads),
        requests=sent.total(),
        answered=sum(load.answered for load in loads),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost=_cost(prices, loads, known, whole_s, (sent.total(), input_tokens, output_tokens)) if prices else None,
        currency=prices.currency if prices else "",
        unknown_time=_rules(load for load in loads if seconds[load.action] is None),
        unknown_requests=_rules(load for load in loads if load.requests is None),
        unknown_tokens=tuple(rule for rule in sent if spent.get(rule, Spent()).output_tokens is None),
    )


def _seconds(load: Load, spent: Spent) -> float | None:
    """Of its last result, else the mean of its rule; where it asks, of the requests that are not answered."""
    if load.is_chat:
        if load.requests is None:
            return None
        n_sent = load.requests - load.answered
        return n_sent * spent.request_s if spent.request_s is not None else 0.0 if not n_sent else None
    if load.action in spent.seconds:
        return spent.seconds[load.action]
    return sum(spent.seconds.values()) / len(spent.seconds) if spent.seconds else None


def _sent(loads: Sequence[Load]) -> Counter[RuleName]:
    """Requests that will be sent, by rule."""
    sent = Counter[RuleName]()
    for load in loads:
        if n := (load.requests or 0) - load.answered:
            sent[load.action.rule] += n
    return sent


class _Play:
    """A plan played through: each action starts as soon as what it needs has ended and what it takes is free."""

    def __init__(
        self, loads: Sequence[Load], seconds: Mapping[ActionId, float], jobs: int, sizes: Mapping[str, int]
    ) -> None:
        mine = {load.action for load in loads}
        self._seconds = seconds
        self._sizes = sizes
        self._n_missing = {load.action: len(mine.intersection(load.needs)) for load in loads}
        self._users: dict[ActionId, list[Load]] = {}
        self._free = {_JOB: max(jobs, 1), _CHAT: CHAT_SLOTS, **sizes}
        # Those that take the same wait in one line.
        self._lines: dict[_Takes, deque[Load]] = {}
        # When each will end; the number keeps those apart that end together.
        self._running: list[tuple[float, int, Load, _Takes]] = []
        self._n_started = 0
        for load in loads:
            for need in mine.intersection(load.needs):
                self._users.setdefault(need, []).append(load)
            if not self._n_missing[load.action]:
                self._line_up(load)

    def end_s(self) -> float:
        """When the last one ends. May be asked once."""
        now = 0.0
        while True:
            self._start(now)
            if not self._running:
                return now
            now = self._end_next()

    def _line_up(self, load: Load) -> None:
        takes = {name: min(n, self._sizes[name]) for name, n in load.takes.items() if n and name in self._sizes}
        takes[_CHAT if load.is_chat else _JOB] = 1
        self._lines.setdefault(tuple(takes.items()), deque()).append(load)

    def _start(self, now: float) -> None:
        for takes, line in self._lines.items():
            while line and all(self._free[name] >= n for name, n in takes):
                load = line.popleft()
                self._n_started += 1
                end = now + self._seconds.get(load.action, 0.0)
                heapq.heappush(self._running, (end, self._n_started, load, takes))
                self._occupy(takes, 1)

    def _end_next(self) -> float:
        now, _, load, takes = heapq.heappop(self._running)
        self._occupy(takes, -1)
        for user in self._users.get(load.action, ()):
            self._n_missing[user.action] -= 1
            if not self._n_missing[user.action]:
                self._line_up(user)
        return now

    def _occupy(self, takes: _Takes, sign: int) -> None:
        for name, n in takes:
            self._free[name] -= sign * n


def _cost(
    prices: Prices,
    loads: Sequence[Load],
    seconds: Mapping[ActionId, float],
    whole_s: float,
    requests: tuple[float, float, float],
) -> float:
    """Servers are taken to be up all the time."""
    n_services = len({name for load in loads for name in load.services})
    actions = sum(price.of_action(prices, seconds.get(load.action, 0.0), load.gpus) for load in loads)
    return actions + price.of_requests(prices, *requests) + price.of_service(prices, n_services * whole_s)


def _rules(loads: Iterable[Load]) -> tuple[RuleName, ...]:
    return tuple(dict.fromkeys(load.action.rule for load in loads))
