"""What is known of a build while it runs, from its events alone, and what there is to say about each rule.

Knows no terminal and no clock: whoever hands in an event says when it was. Every event costs the same however many
actions there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from buildsys.model import ActionId, Outcome, Prices, RuleName
from buildsys.phrases import counted, duration
from buildsys.plan import price
from buildsys.run.quality import TRUNCATED, bad_among

ORDER: Final[tuple[Outcome, ...]] = ("failed", "blocked", "reused", "restored", "ran", "skipped", "cancelled")
"""How outcomes are told: what is wrong first."""

_WORTH_TELLING_S: Final = 0.05
_NOTHING: Final = RequestCounts()
_REQUESTS: Final = ("done", "total", "sent", "output_tokens", "input_tokens", "refused")
_WELL: Final = frozenset({"stop", "tool_calls"})
"""Reasons to end that are not worth a word while there are no others."""


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
    summaries: dict[str, None] = field(default_factory=dict)
    told: bool = False

    @property
    def n_done(self) -> int:
        return self.counts.total()

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

    def answer(self, event: RequestsAnswered) -> None:
        """Events hold totals of their action; the rule's totals grow by what is new in them."""
        now, before = event.counts, self.asked.get(event.action, _NOTHING)
        for name in _REQUESTS:
            self.requests[name] += getattr(now, name) - getattr(before, name)
        for totals, new, old in (
            (self.finish_reasons, now.finish_reasons, before.finish_reasons),
            (self.bad, now.bad, before.bad),
        ):
            totals.update(new)
            totals.subtract(old)
        self.asked[event.action] = now

    def finish(self, event: ActionFinished, now: float) -> None:
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
        """How far it is, for a rule in progress: requests and their rate where it asks, and the time left."""
        found = []
        n_total, n_done = self.requests["total"], self.requests["done"]
        if n_done < n_total and self.started is not None:
            rate = n_done / max(now - self.started, 0.1)
            found.append(f"{n_done:,} of {counted(n_total, 'request')}, {rate:,.{0 if rate >= 10 else 1}f}/s")
        left = self.left_s(now)
        if left is not None:
            found.append(f"{duration(left)} left")
        return found

    def left_s(self, now: float) -> float | None:
        """Seconds that its other actions will take, from the requests that were answered, or from those that ran.

        None where that is not known: before anything is done, and where all that is left takes longer than others did.
        """
        n_left = (self.n or 0) - self.n_done
        if self.started is None or n_left <= 0:
            return None
        if self.asked:
            n_done = self.requests["done"]
            n_total = self.requests["total"] * (self.n or 1) / len(self.asked)
            left_s = (n_total - n_done) * (now - self.started) / n_done if n_done else 0.0
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
        self._gpus: Mapping[RuleName, int] = {}
        self._up_since: list[float] = []

    def take(self, event: Event, now: float) -> RuleTally | None:
        """Note an event; gives the rule that it is about."""
        match event:
            case BuildStarted():
                self.prices, self._gpus = event.prices, event.gpus
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
                rule.answer(event)
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

    def in_progress(self) -> list[RuleTally]:
        return [rule for rule in self.rules.values() if rule.running]

    def with_outcome(self, outcome: Outcome) -> Mapping[RuleName, int]:
        return {rule.name: rule.counts[outcome] for rule in self.rules.values() if rule.counts[outcome]}
