"""What the manifest is told, and of runs and checks what it tells: frozen records, each of them one row or a few.

Knows nothing of SQL. Paths are relative to the project; times are seconds since the epoch, durations seconds.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from buildsys.digest import NO_DIGEST, Digest
from buildsys.model import (
    ActionId,
    ActionKey,
    CheckVerdict,
    Evidence,
    Made,
    Observed,
    Outcome,
    Part,
    Prices,
    RuleName,
    SaidBy,
    Severity,
    Shard,
    Usage,
)
from buildsys.state.stats import Stat


class InputRow(NamedTuple):
    """One file or folder that a result was made from, as it is declared.

    digest: what counted in the key (of an ephemeral output what it counts by). maker: the action whose output it is;
    None for a source.
    """

    role: Literal["input"]
    name: str
    path: str
    digest: str
    maker: ActionId | None = None


class SymbolText(NamedTuple):
    """What a symbol of the code looked like. name, digest: its name and value as a part of the key."""

    name: str
    digest: str
    text: str


@dataclass(frozen=True)
class Context:
    """The parts of a key that the actions of a rule share, stored once by their digest; inputs are not among them.

    Also all parts of a service's key, by that. texts: of its code; each is stored once.
    """

    context: Digest
    parts: tuple[Part, ...]
    texts: tuple[SymbolText, ...] = ()


@dataclass(frozen=True)
class ResultRow:
    """One key's outputs. In `outputs`, artifact.path is the file name as made, not the place in the workspace.

    rest: digest of the key without its code, "" where that is not known. observed: what was seen of the run, None
    where nothing was. counts_as: what its outputs count by where they are ephemeral, "" for its key.
    """

    key: ActionKey
    action: ActionId
    run_id: int
    context: Digest
    outputs: tuple[Made, ...]
    inputs: tuple[InputRow, ...] = ()
    usage: Usage = field(default_factory=Usage)
    log: str = ""
    rest: Digest = NO_DIGEST
    observed: Observed | None = None
    counts_as: Digest = NO_DIGEST

    @property
    def evidence(self) -> Digest:
        return self.observed.evidence.digest if self.observed else NO_DIGEST


@dataclass(frozen=True)
class ActionRow:
    """How one action ended in one run. key: None where it had none (skipped, blocked). gpus: it occupied."""

    run_id: int
    profile: str
    action: ActionId
    outcome: Outcome
    key: ActionKey | None
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    log: str = ""
    error: str = ""
    started: float = 0.0
    gpus: int = 0


@dataclass(frozen=True)
class Hold:
    """From now on a result holds for this action under this profile, published at the outputs' paths.

    key, evidence: of the result; the last one with both.
    """

    profile: str
    action: ActionId
    key: ActionKey
    outputs: tuple[Made, ...]
    run_id: int
    evidence: Digest = NO_DIGEST


@dataclass(frozen=True)
class AliasRow:
    """From now on an action has a result under `key`, which is not that result's own; see `Alias`.

    result, made_with: key and evidence of the result; no key where it is undone. evidence: that of the alias: the trace
    and the discovered inputs are the result's. run_id: 0 where nothing else was to be done.
    """

    profile: str
    action: ActionId
    key: ActionKey
    said_by: SaidBy
    reason: str
    result: ActionKey | None = None
    made_with: Digest = NO_DIGEST
    evidence: Evidence | None = None
    run_id: int = 0


@dataclass(frozen=True)
class CheckRow:
    run_id: int
    profile: str
    action: ActionId
    verdict: CheckVerdict


class Number(NamedTuple):
    """One number of an output. step: where on a curve it is, None where it is no point of one."""

    name: str
    step: int | None
    value: float


@dataclass(frozen=True)
class PricesRow:
    """What things cost in one run."""

    run_id: int
    prices: Prices


class ServiceRow(NamedTuple):
    """A server that a run had, from then to then."""

    run_id: int
    name: str
    started: float
    ended: float


@dataclass(frozen=True)
class MetricsRow:
    """The numbers in an output's bytes, once for each digest; none where they hold none or can't be read."""

    rule: RuleName
    output: str
    digest: Digest
    numbers: tuple[Number, ...]


class SettingRow(NamedTuple):
    """A setting that the actions of a rule had in a run. value: text for people; path: its config key, or ""."""

    run_id: int
    rule: RuleName
    name: str
    value: str
    path: str


class VersionRow(NamedTuple):
    """The version of a distribution that the actions of a rule may have run in a run, though it is in no key."""

    run_id: int
    rule: RuleName
    name: str
    version: str


class FileRow(NamedTuple):
    """A source file's digest and the stat that it had then: what `Files.learned` gives."""

    path: str
    stat: Stat
    digest: Digest


@dataclass(frozen=True)
class RequestRow:
    """One request of a chat action, answered or not. key: the request's; record_id: of the record it was made for.

    status: of HTTP, 0 where no answer came. error: "" where it went well. reused: answered from the log of replies.
    bad: the kinds of what is wrong with the reply, by commas; "" where nothing is.
    """

    key: str
    rule: RuleName
    shard: Shard
    run_id: int
    profile: str
    record_id: str
    sample: int = 0
    model: str = ""
    identity: str = ""
    endpoint: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    wall_s: float = 0.0
    status: int = 0
    error: str = ""
    reused: bool = False
    bad: str = ""


class RejectionRow(NamedTuple):
    """The reply to a request counts no more, nor what rests on it. key: the request's. run_id: the last run by then."""

    key: str
    run_id: int


Row = (
    Context
    | ResultRow
    | MetricsRow
    | ActionRow
    | Hold
    | AliasRow
    | CheckRow
    | FileRow
    | RequestRow
    | RejectionRow
    | PricesRow
    | ServiceRow
    | SettingRow
    | VersionRow
)


class LastVerdict(NamedTuple):
    """What is recorded of a check and the outputs that it saw. severity: that it had then."""

    passed: bool
    severity: Severity

    def settles(self, severity: Severity) -> bool:
        """Nothing is left to ask or to tell: it passed, or was warned of, and would be again."""
        return self.passed or self.severity == severity == "warn"


@dataclass(frozen=True)
class LastRun:
    """A profile's last run. started: UTC. outcome: "" while it runs. n_actions: of the profile, that hold now."""

    run_id: int
    started: datetime.datetime
    outcome: str
    n_actions: int


@dataclass(frozen=True)
class OutputTable:
    """A view over one table-like output of a rule. pattern: its path as declared, with `{profile}` and `{shard}`."""

    view: str
    rule: RuleName
    output: str
    pattern: str
