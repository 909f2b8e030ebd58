"""What is known of a build while it runs, from its events alone, and what there is to say about each rule.

Knows no terminal and no clock: whoever hands in an event says when it was. Every event costs the same however many
actions there are.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from buildsys.events import (
    ActionFinished,
    ActionStarted,
    BuildStarted,
    CheckFinished,
    Event,
    RequestCounts,
    RequestsAnswered,
    ServiceReady,
    ShardsKnown,
)
from buildsys.model import NO_LIMITS, ActionId, Outcome, Prices, RuleName
from buildsys.phrases import counted, duration, percentage, rate
from buildsys.plan import price
from buildsys.plan.limits import Amount, Limit, against
from buildsys.run.quality import TRUNCATED, bad_among

ORDER: Final[tuple[Outcome, ...]] = ("failed", "blocked", "reused", "restored", "ran", "skipped", "cancelled")
"""How outcomes are told: what is wrong first."""

_WORTH_TELLING_S: Final = 0.05
_RECENT_S: Final = 30.0
_SAMPLE_S: Final = 1.0
_NOTHING: Final = RequestCounts()
_REQUESTS: Final = ("done", "total", "sent", "output_tokens", "input_tokens", "in_flight", "retries", "refused")
_WELL: Final = frozenset({"stop", "tool_calls"})
"""Reasons to end that are not worth a word while there are no others."""


class Pace:
    """How fast something was done of late, from totals and when they were told."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Sequence[int]]] = deque()

    def note(self, totals: Sequence[int], now: float) -> None:
        """As often as one likes: what is kept is one total a second, of the last half minute."""
        if not self._seen or now - self._seen[-1][0] >= _SAMPLE_S:
            self._seen.append((now, totals))
        while len(self._seen) > 1 and self._seen[1][0] <= now - _RECENT_S:
            self._seen.popleft()

    def per_second(self, totals: Sequence[int], now: float) -> list[float]:
        """Of each of the totals as they are now."""
        if not self._seen:
            return [0.0] * len(totals)
        since, before = self._seen[0]
        return [max(0, n - n_before) / max(now - since, 0.1) for n, n_before in zip(totals, before, strict=True)]


@dataclass
class RuleTally:
    """One rule. n: its actions, None while they are not known."""

    name: RuleName
    n: int | None = None
    counts: Counter[Outcome] = field(default_factory=Counter)
    running: dict[ActionId, float] = field(default_factory=dict)
    reason: str = ""
    started: float | None = None
    ended: float = 0.0
    work_s: float = 0.0
    busy_s: float = 0.0
    most_running: int = 0
    checks: dict[str, list[bool]] = field(default_factory=dict)
    asked: dict[ActionId, RequestCounts] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    pace: Pace = field(default_factory=Pace)
    summaries: dict[str, None] = field(default_factory=dict)
    told: bool = False

    @property
    def n_done(self) -> int:
        return self.counts.total()

    @property
    def expected(self) -> float:
        """Requests of all its actions, if those that have not begun make as many as the others. Needs `asked`."""
        n_at_it = sum(action in self.asked for action in self.running)
        n_to_come = max(0, (self.n or 0) - self.n_done - n_at_it)
        return self.requests["total"] * (1 + n_to_come / len(self.asked))

    @property
    def _sent(self) -> tuple[int, int]:
        """Requests that were sent, and the tokens of their replies."""
        return self.requests["sent"], self.requests["output_tokens"]

    def _speed(self, now: float) -> list[float]:
        """The same a second, of late."""
        return self.pace.per_second(self._sent, now)

    @property
    def settled(self) -> bool:
        return self.n is not None and self.n_done >= self.n

    @property
    def quiet(self) -> bool:
        """Nothing but reuse."""
        return self.n_done == self.counts["reused"] and not self.running

    # ------------------------------------------------------------ transitions

    def start(self, event: ActionStarted, now: float) -> None:
        self.running[event.action] = now
        self.most_running = max(self.most_running, len(self.running))
        self.reason = event.reason
        self.started = now if self.started is None else self.started

    def answer(self, action: ActionId, counts: RequestCounts, now: float) -> None:
        """Counts are totals of their action; the rule's totals grow by what is new in them."""
        before = self.asked.get(action, _NOTHING)
        for name in _REQUESTS:
            self.requests[name] += getattr(counts, name) - getattr(before, name)
        for totals, new, old in (
            (self.finish_reasons, counts.finish_reasons, before.finish_reasons),
            (self.bad, counts.bad, before.bad),
        ):
            totals.update(new)
            totals.subtract(old)
        self.asked[action] = counts
        self.pace.note(self._sent, now)

    def finish(self, event: ActionFinished, now: float) -> None:
        if counts := self.asked.get(event.action):
            self.answer(event.action, replace(counts, in_flight=0), now)
        began = self.running.pop(event.action, None)
        self.counts[event.outcome] += 1
        self.ended = now
        self.busy_s += event.usage.wall_s
        if event.outcome == "ran":
            self.work_s += now - began if began is not None else event.usage.wall_s
        if event.summary:
            self.summaries[event.summary] = None

    # ------------------------------------------------------------ what there is to say

    def outcomes(self) -> list[tuple[Outcome, int]]:
        return [(outcome, self.counts[outcome]) for outcome in ORDER if self.counts[outcome]]

    def elapsed(self) -> str:
        """The time from its first start to its last end, "" where there is none worth telling."""
        seconds = self.ended - self.started if self.started is not None else 0.0
        return duration(seconds) if seconds >= _WORTH_TELLING_S else ""

    def facts(self) -> list[str]:
        """What an action says of itself, requests, tokens, checks."""
        return [*(self.summaries if len(self.summaries) == 1 else ()), *self._request_facts(), *self._check_facts()]

    def _request_facts(self) -> list[str]:
        if not self.asked:
            return []
        n_done, n_sent, n_tokens = (self.requests[name] for name in ("done", "sent", "output_tokens"))
        found = [counted(n_sent, "request")]
        if n_done > n_sent:
            found.append(f"{n_done - n_sent:,} answered before")
        if n_tokens:
            found.append(counted(n_tokens, "token"))
        return found

    def ends(self) -> list[str]:
        """Why replies ended, the most frequent first; nothing where all ended well."""
        found = {reason: n for reason, n in self.finish_reasons.most_common() if n}
        return [] if _WELL.issuperset(found) else [f"{reason} {n:,}" for reason, n in found.items()]

    def flaws(self) -> list[tuple[str, int]]:
        """Kinds of bad replies that `ends` does not tell already, and how many there are of each."""
        bad = bad_among(self.bad, self.requests["done"])
        return [(kind, n) for kind, n in Counter(bad).most_common() if kind != TRUNCATED]

    def _check_facts(self) -> list[str]:
        """Each check with the share of actions that it holds for; several that all hold are only counted."""
        if len(self.checks) > 2 and all(all(verdicts) for verdicts in self.checks.values()):
            return [f"{len(self.checks)} checks 100 %"]
        return [f"{name} {100 * sum(verdicts) // len(verdicts)} %" for name, verdicts in self.checks.items()]

    def progress(self, now: float) -> list[str]:
        """How far the requests are of those actions that have begun, while they are not all answered.

        How fast is told once one was sent: what was answered before says nothing of it.
        """
        n_total, n_done = self.requests["total"], self.requests["done"]
        if n_done >= n_total:
            return []
        found = [f"{n_done:,} of {counted(n_total, 'request')}"]
        return [*found, rate(self._speed(now)[0])] if self.requests["sent"] else found

    def left(self, now: float) -> list[str]:
        """The time that is left, where that is known."""
        left_s = self.left_s(now)
        return [] if left_s is None else [f"{duration(left_s)} left"]

    def tokens(self, now: float) -> list[str]:
        """How fast tokens come in, where replies tell of them."""
        return [rate(self._speed(now)[1], "tokens")] if self.requests["output_tokens"] else []

    def traffic(self) -> list[str]:
        """What is on its way, and what had to be sent again."""
        n_in_flight, n_retries = self.requests["in_flight"], self.requests["retries"]
        return [
            *([f"{n_in_flight:,} in flight"] if n_in_flight else []),
            *([counted(n_retries, "retry")] if n_retries else []),
        ]

    def bad_shares(self) -> list[str]:
        """The share of bad replies by kind, the most frequent first."""
        n_done = self.requests["done"] or 1
        bad = Counter(bad_among(self.bad, n_done))
        return [f"{kind} {percentage(n, n_done)}" for kind, n in bad.most_common()]

    def left_s(self, now: float) -> float | None:
        """Seconds that its other actions will take, from the requests that were answered, or from those that ran.

        None where that is not known: before anything is done, and where all that is left takes longer than others did.
        """
        n_left = (self.n or 0) - self.n_done
        if self.started is None or n_left <= 0:
            return None
        if self.requests["sent"]:
            n_a_second, _ = self._speed(now)
            left_s = (self.expected - self.requests["done"]) / n_a_second if n_a_second else 0.0
        else:
            mean_s = self.work_s / max(self.counts["ran"], 1)
            done_s = sum(min(now - began, mean_s) for began in self.running.values())
            left_s = (mean_s * n_left - done_s) / max(self.most_running, 1)
        return left_s if left_s >= _WORTH_TELLING_S else None


class Tally:
    """All rules of one build, in the order in which they became known."""

    def __init__(self) -> None:
        self.rules: dict[RuleName, RuleTally] = {}
        self.prices: Prices | None = None
        self._limits = NO_LIMITS
        self._gpus: Mapping[RuleName, int] = {}
        self._up_since: list[float] = []

    def take(self, event: Event, now: float) -> RuleTally | None:
        """Note an event; gives the rule that it is about."""
        match event:
            case BuildStarted():
                self.prices, self._gpus, self._limits = event.prices, event.gpus, event.limits
                for name in event.rules:
                    self._rule(name)
                return None
            case ServiceReady():
                self._up_since.append(now - event.seconds)
                return None
            case ShardsKnown():
                rule = self._rule(event.rule)
                rule.n = event.n
            case ActionStarted():
                rule = self._rule(event.action.rule)
                rule.start(event, now)
            case RequestsAnswered():
                rule = self._rule(event.action.rule)
                rule.answer(event.action, event.counts, now)
            case CheckFinished():
                rule = self._rule(event.action.rule)
                rule.checks.setdefault(event.verdict.check, []).append(event.verdict.passed)
            case ActionFinished():
                rule = self._rule(event.action.rule)
                rule.finish(event, now)
            case _:
                return None
        return rule

    def _rule(self, name: RuleName) -> RuleTally:
        return self.rules.setdefault(name, RuleTally(name))

    # ------------------------------------------------------------ all rules together

    @property
    def n_done(self) -> int:
        return sum(rule.n_done for rule in self.rules.values())

    @property
    def n_known(self) -> int:
        """Actions that are known by now."""
        return sum(max(rule.n or 0, rule.n_done) for rule in self.rules.values())

    @property
    def complete(self) -> bool:
        """All actions of all rules are known."""
        return all(rule.n is not None for rule in self.rules.values())

    def cost(self, now: float) -> float | None:
        """What has been spent by now, None without prices: time of actions and servers, and requests that were sent.

        The manifest says the same when the build is over, but for requests of actions that are still at it.
        """
        if (prices := self.prices) is None:
            return None
        total = sum(price.of_service(prices, now - since) for since in self._up_since)
        for rule in self.rules.values():
            seconds = rule.busy_s + sum(now - began for began in rule.running.values())
            total += price.of_action(prices, seconds, self._gpus.get(rule.name, 0))
            sent = (rule.requests[name] for name in ("sent", "input_tokens", "output_tokens"))
            total += price.of_requests(prices, *sent)
        return total

    def spent(self) -> list[Limit]:
        """What all requests come to against each limit, the nearest to its end first; none while no rule asks.

        Attempts whose answer was lost count for a limit, and are not in here.
        """
        asking = [rule.requests for rule in self.rules.values() if rule.asked]
        names = ("sent", "input_tokens", "output_tokens")
        amount = Amount(*(sum(requests[name] for requests in asking) for name in names))
        found = against(self._limits, self.prices, amount) if asking else ()
        return sorted(found, key=lambda limit: limit.amount / (limit.most or 1), reverse=True)

    def in_progress(self) -> list[RuleTally]:
        return [rule for rule in self.rules.values() if rule.running]

    def with_outcome(self, outcome: Outcome) -> Mapping[RuleName, int]:
        return {rule.name: rule.counts[outcome] for rule in self.rules.values() if rule.counts[outcome]}
