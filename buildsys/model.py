"""The frozen records that the stages hand to one another, in the words of `docs/glossary.md`.

Knows nothing of TOML, files, processes or databases. A record holds facts, never a handle; who gets one may keep it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NewType

from buildsys.digest import NO_DIGEST, Digest, digest_of
from buildsys.errors import Place, render

RuleName = NewType("RuleName", str)
Shard = NewType("Shard", str)
"""One value of a rule's `each` variable; "" for the one action of a rule without `each`."""
ActionKey = NewType("ActionKey", str)
"""Digest of all that decides an action's outputs."""

Value = object
"""A typed config value: str, int, float, bool, date, time, datetime, or a list or dict of these."""

Versions = Literal["imported", "closure"] | tuple[str, ...]
"""Of which distributions the versions are in a key: those that the code imports, these with all that they require, or
those that are named."""

SECRET_FILE = "file:"
"""What a secret's name begins with where it is the path of a file."""

NO_SHARD = Shard("")
SHARD_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
"""What a shard may be called, as a regular expression."""


GPU = "gpu"
MEMORY = "memory"
"""The resources that a machine has some of; others are pools."""


class ActionId(NamedTuple):
    """A rule applied to one shard; printed as users type it: `tokens[0003]`, or `vocab` where there are no shards."""

    rule: RuleName
    shard: Shard = NO_SHARD

    def __str__(self) -> str:
        return f"{self.rule}[{self.shard}]" if self.shard else self.rule


def natural_key(name: str) -> tuple[tuple[str | int, ...], str]:
    """Sorts shards as people count: 9 before 10, and 09 beside 9."""
    pieces = _DIGITS.split(name)
    return tuple(int(piece) if i % 2 else piece for i, piece in enumerate(pieces)), name


_DIGITS = re.compile(r"([0-9]+)")


# ---------------------------------------------------------------- declared: what a rule file says


@dataclass(frozen=True)
class Ref:
    """`@rule`, `@rule.output`, and with `every` their folds `@rule[*]`, `@rule.output[*]`.

    output: "" where the rule file does not name one (right only where the rule has one output).
    """

    rule: RuleName
    output: str = ""
    every: bool = False

    def __str__(self) -> str:
        return f"@{self.rule}{'.' + self.output if self.output else ''}{'[*]' if self.every else ''}"


@dataclass(frozen=True)
class Each:
    """The variable that makes a rule's shards, and where its values come from: a pattern of paths, or another rule."""

    variable: str
    source: Ref | str


@dataclass(frozen=True)
class Input:
    """One input by role. source: a reference, or a path text relative to the project (file, folder, `{shard}`, `*`)."""

    name: str
    source: Ref | str
    place: Place


@dataclass(frozen=True)
class Param:
    """One typed value passed to the code. config_key: the dotted key it was read from, "" for a literal."""

    name: str
    value: Value
    config_key: str = ""


@dataclass(frozen=True)
class Output:
    """One output by role. pattern: a path relative to the project, may hold `{shard}` and `{profile}`."""

    name: str
    pattern: str
    place: Place


Cell = str | int | float | bool | None
"""A value of a row, as JSON has it."""
Severity = Literal["error", "warn"]
"""What a check that fails comes to: outputs that are held back, or a word about them."""


@dataclass(frozen=True)
class Check:
    """A SQL assertion over a rule's outputs, each a table of its name.

    canary: whether it is asked of the first few replies before the rest is sent.
    """

    name: str
    sql: str
    place: Place
    severity: Severity = "error"
    canary: bool = True


@dataclass(frozen=True)
class Asking:
    """How a `chat` rule asks; nothing of it is in a key.

    others: URLs of servers that answer just as its endpoint does. in_flight: requests at a time at each. canary:
    records that are asked and checked before all others. stream, reuse_shorter: see `docs/rules.md`.
    """

    others: tuple[str, ...] = ()
    in_flight: int = 256
    canary: int = 0
    stream: bool = False
    reuse_shorter: bool = False


@dataclass(frozen=True)
class Rule:
    """A declared way to make outputs from inputs. Params and settings hold values, already read from the config.

    script, function: for `run` and `chat`. command: for `shell`, braces not yet filled in.
    endpoint: for `chat`, "service:NAME" or a URL. env: names of variables that are passed and keyed.
    secrets: (name of the secret, name of the environment variable, or "file:" and a path).
    python: path of another interpreter, "" for buildsys' own. resources: (name, how much), `memory` in bytes.
    metrics: names of the outputs whose numbers are metrics.
    """

    name: RuleName
    kind: Literal["run", "shell", "chat"]
    place: Place
    about: str = ""
    script: str = ""
    function: str = ""
    command: str = ""
    each: Each | None = None
    inputs: tuple[Input, ...] = ()
    params: tuple[Param, ...] = ()
    settings: tuple[Param, ...] = ()
    outputs: tuple[Output, ...] = ()
    checks: tuple[Check, ...] = ()
    env: tuple[str, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    services: tuple[str, ...] = ()
    endpoint: str = ""
    identity: str = ""
    samples: int = 1
    asking: Asking = Asking()
    default: bool = True
    python: str = ""
    resources: tuple[tuple[str, int], ...] = ()
    scratch: bool = False
    ephemeral: bool = False
    metrics: tuple[str, ...] = ()
    versions: Versions = "imported"
    sandbox: bool = False
    strict: bool = False

    @property
    def gpus(self) -> int:
        """How many GPUs an action of it occupies."""
        return dict(self.resources).get(GPU, 0)

    @property
    def memory(self) -> int:
        """Bytes of memory that an action of it occupies."""
        return dict(self.resources).get(MEMORY, 0)

    @property
    def is_origin(self) -> bool:
        """Makes shards: `{shard}` in its outputs, and no `each`."""
        return self.each is None and any("{shard}" in output.pattern for output in self.outputs)


@dataclass(frozen=True)
class Service:
    """A server that actions need. command: a shell text with `{port}`; ready: a URL that answers 200 once it is up.

    keep: it is left running after a build.
    """

    name: str
    command: str
    ready: str
    place: Place
    inputs: tuple[Input, ...] = ()
    params: tuple[Param, ...] = ()
    env: tuple[str, ...] = ()
    ready_timeout_s: float = 120.0
    keep: bool = False


@dataclass(frozen=True)
class Keeping:
    """What is kept of what was made. link_above, ephemeral_budget: bytes, None for no limit; keep_logs: runs."""

    link_above: int = 64_000_000
    ephemeral_budget: int | None = None
    keep_logs: int = 30


@dataclass(frozen=True)
class Prices:
    """What things cost, all in one currency, "" where it has no name."""

    request: float = 0.0
    input_token: float = 0.0
    output_token: float = 0.0
    action_hour: float = 0.0
    service_hour: float = 0.0
    gpu_hour: float = 0.0
    currency: str = ""


@dataclass(frozen=True)
class Limits:
    """What the requests that one build sends may come to, None for no limit. max_cost: at the prices of the project."""

    max_requests: int | None = None
    max_cost: float | None = None
    max_output_tokens: int | None = None


NO_LIMITS = Limits()


# ---------------------------------------------------------------- made: bytes, results, decisions


@dataclass(frozen=True)
class Artifact:
    """The bytes made for an output, known by their digest.

    path: relative to the project, with `/`. size: bytes. executable: the x bits of its mode.
    tree: a folder; its digest is that of its listing (names, modes and digests of all files below).
    """

    path: str
    digest: Digest
    size: int
    executable: bool = False
    tree: bool = False

    @property
    def file(self) -> str:
        """Its own name, without the folders."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Made:
    """One artifact in its role: output `name`, and for an origin the shard that it is."""

    name: str
    shard: Shard
    artifact: Artifact


def shards_of(outputs: Iterable[Made]) -> list[Shard]:
    """The shards that an origin made, in natural order."""
    return sorted({made.shard for made in outputs if made.shard}, key=natural_key)


@dataclass(frozen=True)
class Part:
    """One thing that an action key holds, as `why` shows it.

    group: "code", "param", "input", "env", "version", "identity", "service", "output", "python", "rule", "format".
    value: text for people, with its type where it matters. path: where it is (a file, a config key), else "".
    line: of code as it is now; it is not recorded.
    """

    group: str
    name: str
    value: str
    path: str = ""
    line: int = field(default=0, compare=False)


SaidBy = Literal["narrowed", "accepted", "undone"]
"""Why a result holds under a key that is not its own: nothing that it used differs, or a user says so (or no more)."""


class Alias(NamedTuple):
    """Another key under which a result holds. evidence: its own, for the sources that it was said of; see `Evidence`.

    reason: for people, one line.
    """

    key: ActionKey
    evidence: Digest
    said_by: SaidBy
    reason: str


@dataclass(frozen=True)
class Result:
    """What one action key made: the manifest's answer to "has this been done?".

    context: digest of the half of the key that all actions of the rule share. evidence: of its `Evidence`, "" where
    that was not kept. alias: the key that it was found under, where that is not its own. counts_as: see `counted`.
    rejected: it rests on a reply that was rejected since, so it counts no more.
    """

    key: ActionKey
    action: ActionId
    run_id: int
    outputs: tuple[Made, ...]
    context: Digest
    evidence: Digest = NO_DIGEST
    counts_as: Digest = NO_DIGEST
    alias: Alias | None = None
    rejected: bool = False

    @property
    def counted(self) -> Digest:
        """What its outputs count by where they are ephemeral: its key, together with its discovered inputs."""
        return self.counts_as or Digest(self.key)


@dataclass(frozen=True)
class Usage:
    """What an action cost. Seconds; max_rss in bytes. Requests: sent, and answered from the log."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    max_rss: int = 0
    requests_sent: int = 0
    requests_reused: int = 0


@dataclass(frozen=True)
class Trace:
    """The code that a run used, in names that edits elsewhere don't change; all of it since the fork of its worker.

    modules: first-party files that were imported, or run as scripts; paths as in the slice. functions: those whose
    bodies began to run, as "path:qualified.name", with "#2" ... for the second of that name in its file.
    unseen: why code may have run that is not told of here, for people; empty where none did: only then can it narrow.
    """

    modules: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    unseen: tuple[str, ...] = ()

    @property
    def digest(self) -> Digest:
        return digest_of(sorted(self.modules), sorted(self.functions), self.unseen)


class Discovered(NamedTuple):
    """One thing that a run asked of the machine and that no rule declares: an input that was found out.

    kind: "file" (opened), "folder" (listed), "exists" (asked for, or looked at), "variable", "package" (imported).
    name: project-relative path with `/`, else absolute; the variable's name, "=names" for those of all variables, or
    "=values" for all with what they hold; the package's top-level name, with " of " and the rule's Python if it has
    one. value: what the answer was, as a digest or words; "" for what is not there. It is compared, never read.
    """

    kind: Literal["file", "folder", "exists", "variable", "package"]
    name: str
    value: str


class Evidence(NamedTuple):
    """What a result rests on beside its key, in digests.

    sources: of the texts that ran. used: of the slice that its trace narrows them to, "" where the trace can't tell.
    trace: of the `Trace`. discovered: of the discovered inputs together, "" where there are none.
    """

    sources: Digest
    used: Digest
    trace: Digest
    discovered: Digest

    @property
    def digest(self) -> Digest:
        return digest_of(*self)


@dataclass(frozen=True)
class Observed:
    """What was seen of a run; see `Evidence`, which is all of it in digests."""

    sources: Digest
    used: Digest
    trace: Trace
    discovered: tuple[Discovered, ...] = ()

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.sources, self.used, self.trace.digest, digest_of_discovered(self.discovered))


def digest_of_discovered(discovered: Iterable[Discovered]) -> Digest:
    """Of all of them together, whatever their order; "" for none."""
    found = sorted(set(discovered))
    return digest_of(found) if found else NO_DIGEST


Outcome = Literal["ran", "reused", "restored", "failed", "skipped", "blocked", "cancelled"]
OUTCOMES: tuple[Outcome, ...] = ("ran", "reused", "restored", "failed", "skipped", "blocked", "cancelled")


@dataclass(frozen=True)
class Decision:
    """What is to be done for one action, and why in one line ("its code changed", "up to date")."""

    do: Literal["run", "reuse", "restore"]
    reason: str


@dataclass(frozen=True)
class CheckVerdict:
    """How one check ended for one action. key: digest of its SQL and the outputs' digests. detail: what people read.

    answered: its SQL gave rows to judge by; false also where an output can't be read as the table that it asks.
    severity: that the check had. n_rows: that offend; rows: the first of them, their texts cut.
    """

    check: str
    key: Digest
    passed: bool
    detail: str = ""
    wall_s: float = 0.0
    answered: bool = True
    severity: Severity = "error"
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    n_rows: int = 0

    @property
    def holds_back(self) -> bool:
        return not self.passed and self.severity == "error"


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong with a script, or seems to be, found without running it.

    level: an "error" blocks `rules`, a "warning" nothing; a "note" is of this machine, which lacks what they need.
    problem, place, excerpt, facts, hint: as in `BuildError`.
    """

    level: Literal["error", "warning", "note"]
    problem: str
    place: Place | None = None
    excerpt: str = ""
    hint: str = ""
    rules: tuple[RuleName, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    def render(self) -> str:
        """As people read it, without colour."""
        return render(self.level, self.problem, self.place, self.excerpt, self.facts, self.hint)
