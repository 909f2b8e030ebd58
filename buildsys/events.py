"""The closed set of events that a build tells of itself: console, JSON output, log and tests read the same stream.

Knows nothing of who tells them or who listens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from buildsys.model import (
    NO_LIMITS,
    ActionId,
    CheckVerdict,
    Diagnostic,
    Limits,
    Outcome,
    Prices,
    RuleName,
    Usage,
)


@dataclass(frozen=True)
class BuildStarted:
    """rules: all that the targets need, upstream first. prices: None where none are declared. gpus: by rule.

    limits: of the requests of this build, those of its options and the declared ones together.
    """

    command: str
    targets: tuple[str, ...]
    rules: tuple[RuleName, ...] = ()
    prices: Prices | None = None
    gpus: Mapping[RuleName, int] = field(default_factory=dict)
    limits: Limits = NO_LIMITS


@dataclass(frozen=True)
class Diagnosed:
    """What was found in the scripts before anything runs."""

    diagnostic: Diagnostic


@dataclass(frozen=True)
class ShardsKnown:
    """The actions of a rule are known; n of them."""

    rule: RuleName
    n: int


@dataclass(frozen=True)
class ServiceReady:
    name: str
    url: str
    seconds: float


@dataclass(frozen=True)
class ActionStarted:
    action: ActionId
    reason: str


@dataclass(frozen=True)
class RequestCounts:
    """How far the requests of a call are. done, total: sent or not. Tokens are those of the requests that were sent.

    in_flight: now, with those that stand in for another call. retries: attempts that brought no answer. refused: by the
    server, in this build or an earlier one, so that `--retry-failed` asks them again. finish_reasons,
    bad: of the replies so far, how many of each, whoever sent them; `run.quality` says what is bad.
    """

    done: int = 0
    total: int = 0
    sent: int = 0
    output_tokens: int = 0
    input_tokens: int = 0
    in_flight: int = 0
    retries: int = 0
    finish_reasons: Mapping[str, int] = field(default_factory=dict)
    bad: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0


@dataclass(frozen=True)
class RequestsAnswered:
    """Progress of a chat action: totals since it started."""

    action: ActionId
    counts: RequestCounts


@dataclass(frozen=True)
class ActionFinished:
    """An action is settled. error: rendered, "" where it went well. log: path relative to the project, or ""."""

    action: ActionId
    outcome: Outcome
    reason: str
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    log: str = ""
    summary: str = ""


@dataclass(frozen=True)
class CheckFinished:
    """warning: rendered, of a check that failed and holds nothing back."""

    action: ActionId
    verdict: CheckVerdict
    warning: str = ""


@dataclass(frozen=True)
class Notice:
    """Something a user should know; level "info" or "warning"."""

    level: Literal["info", "warning"]
    text: str


@dataclass(frozen=True)
class LimitReached:
    """Requests were held back, since `limit`, a key of [limits], allows no more than `most`.

    requests, output_tokens, cost: of those that were sent; cost is None without prices. kept: replies that came in.
    left: requests that were held back, as far as they are known.
    """

    limit: str
    most: float
    requests: int
    output_tokens: int
    cost: float | None
    currency: str
    kept: int
    left: int


@dataclass(frozen=True)
class BuildFinished:
    """How it ended. counts: actions by outcome. run_id: 0 where nothing was to be done.

    outcome: "done", "failed", "interrupted", or "limit" where nothing failed but for want of room within a limit, and
    a limit held something back.
    """

    run_id: int
    outcome: str
    seconds: float
    counts: Mapping[Outcome, int]


Event = (
    BuildStarted
    | Diagnosed
    | ShardsKnown
    | ServiceReady
    | ActionStarted
    | RequestsAnswered
    | ActionFinished
    | CheckFinished
    | Notice
    | LimitReached
    | BuildFinished
)
