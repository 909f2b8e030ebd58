"""How long a plan takes and what it costs, from how long it took and what it cost before: values in, values out.

What was never done is not guessed at: its rule is named instead. Knows no file, clock or database.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from buildsys.model import ActionId, Prices, RuleName
from buildsys.plan import price

CHAT_SLOTS = 64
"""Actions that wait for replies at a time; they take none of the jobs."""


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
    runs; answered: those of them that the log of replies is known to hold. services: that it needs.
    """

    action: ActionId
    certain: bool = True
    needs: Collection[ActionId] = ()
    is_chat: bool = False
    requests: int | None = 0
    answered: int = 0
    gpus: int = 0
    services: Collection[str] = ()


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
    loads: Sequence[Load], spent: Mapping[RuleName, Spent], jobs: int, prices: Prices | None = None
) -> Estimate:
    """loads: upstream first. spent: by rule. jobs: actions at a time."""
    if not loads:
        return Estimate(0.0, 0.0, cost=None if prices is None else 0.0, currency=prices.currency if prices else "")
    seconds = {load.action: _seconds(load, spent.get(load.action.rule, Spent())) for load in loads}
    known = {action: one for action, one in seconds.items() if one is not None}
    certain = [load for load in loads if load.certain]
    sent = _sent(loads)
    input_tokens = sum(n * (spent.get(rule, Spent()).input_tokens or 0.0) for rule, n in sent.items())
    output_tokens = sum(n * (spent.get(rule, Spent()).output_tokens or 0.0) for rule, n in sent.items())
    whole_s = _makespan(loads, known, jobs)
    return Estimate(
        seconds=whole_s if known else None,
        certain_s=_makespan(certain, known, jobs) if known or not certain else None,
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


def _makespan(loads: Sequence[Load], seconds: Mapping[ActionId, float], jobs: int) -> float:
    """When the last one ends, where each starts as soon as what it needs has ended and a job is free."""
    mine = {load.action for load in loads}
    needs = {load.action: mine.intersection(load.needs) for load in loads}
    users: dict[ActionId, list[Load]] = {}
    for load in loads:
        for need in needs[load.action]:
            users.setdefault(need, []).append(load)
    n_missing = {load.action: len(needs[load.action]) for load in loads}
    ready_at = dict.fromkeys(mine, 0.0)
    order = {load.action: n for n, load in enumerate(loads)}
    ready = [(0.0, order[load.action], load) for load in loads if not n_missing[load.action]]
    free = {False: [0.0] * max(jobs, 1), True: [0.0] * CHAT_SLOTS}
    ended = 0.0
    while ready:
        at, _, load = heapq.heappop(ready)
        end = max(at, free[load.is_chat][0]) + seconds.get(load.action, 0.0)
        heapq.heapreplace(free[load.is_chat], end)
        ended = max(ended, end)
        for user in users.get(load.action, ()):
            ready_at[user.action] = max(ready_at[user.action], end)
            n_missing[user.action] -= 1
            if not n_missing[user.action]:
                heapq.heappush(ready, (ready_at[user.action], order[user.action], user))
    return ended


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
