"""What the manifest says of earlier builds, as the assessment of an action asks it.

Knows who may be asked (the recorder of a running build, or a snapshot), and nothing of how the answers are used.
"""

from __future__ import annotations

import datetime
import gc
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property
from typing import Protocol, TypeVar

from buildsys.digest import Digest
from buildsys.model import (
    ActionId,
    ActionKey,
    Discovered,
    Evidence,
    Made,
    Part,
    Result,
    Rule,
    RuleName,
    Shard,
    Trace,
)
from buildsys.state.files import Row
from buildsys.state.manifest import Manifest, short_key
from buildsys.state.recording import Measured
from buildsys.state.rows import LastVerdict

T = TypeVar("T")


class Ask(Protocol):
    """Puts a question to the manifest, in whichever thread owns it."""

    def __call__(self, question: Callable[[Manifest], T], /) -> T: ...


class Past:
    """Earlier builds of one profile.

    profile: which. newest: the result that holds now, by action; its artifacts have their paths in the workspace.
    files: the stats and digests of files that were recorded.
    """

    def __init__(self, ask: Ask, profile: str) -> None:
        self._ask = ask
        self.profile = profile
        # Half of the loading would be the collector's, looking for garbage among records that live as long as this.
        gc.disable()
        self.newest: Mapping[ActionId, Result] = ask(lambda manifest: manifest.newest(profile))
        self._made: set[int] | None = None
        self._measured: Set[Measured] | None = None
        self.files: Mapping[str, Row] = ask(lambda manifest: manifest.known_files())
        gc.enable()
        gc.freeze()

    def under(self, profile: str) -> Mapping[ActionId, Result]:
        """What holds now under another profile, as `newest` has it for this one."""
        return self._ask(lambda manifest: manifest.newest(profile))

    def find(self, keys: Sequence[ActionKey]) -> Mapping[ActionKey, Sequence[Result]]:
        """The results of each key that was made before, newest first; their artifacts have their file names only.

        Nearly every key that is not the newest was never made, and a look-up costs milliseconds: so keys are learned
        at the first question, and the manifest is asked only for those that it is likely to have.
        """
        likely = [key for key in keys if short_key(key) in self._known_keys]
        return self._ask(lambda manifest: manifest.find(likely)) if likely else {}

    def akin(self, rests: Sequence[Digest]) -> Mapping[Digest, Sequence[Result]]:
        """The same of results whose keys differ in code alone, by the digest of the rest; only those with a trace."""
        likely = [rest for rest in rests if short_key(ActionKey(rest)) in self._known_keys]
        return self._ask(lambda manifest: manifest.akin(likely)) if likely else {}

    def learn(self, *keys: str) -> None:
        """A result of this key, or with this rest of one, is recorded from now on."""
        if self._made is not None:
            self._made.update(short_key(ActionKey(key)) for key in keys)

    def evidence(self, digests: Sequence[Digest]) -> Mapping[Digest, Evidence]:
        """What results rest on beside their keys."""
        return self._ask(lambda manifest: manifest.evidence(digests)) if digests else {}

    def traces(self, digests: Sequence[Digest]) -> Mapping[Digest, Trace]:
        return self._ask(lambda manifest: manifest.traces(digests)) if digests else {}

    def discovered(self, digests: Sequence[Digest]) -> Mapping[Digest, Sequence[Discovered]]:
        """The discovered inputs of each set."""
        return self._ask(lambda manifest: manifest.discovered(digests)) if digests else {}

    def evidence_of(self, script: str) -> list[tuple[Digest, Evidence]]:
        """Context and evidence of all results whose runs used a script and tell of all that ran; the newest first."""
        return self._ask(lambda manifest: manifest.evidence_of(script))

    @property
    def _known_keys(self) -> set[int]:
        if self._made is None:
            self._made = self._ask(lambda manifest: manifest.short_keys())
        return self._made

    @cached_property
    def places(self) -> Mapping[str, set[Digest]]:
        """Every path at which earlier builds published an output, and the digests that it had there."""
        return self._ask(lambda manifest: manifest.places(self.profile))

    @cached_property
    def published(self) -> Mapping[str, set[Digest]]:
        """The same of all profiles, and of every path."""
        return self._ask(lambda manifest: manifest.published())

    def elsewhere(self) -> dict[str, Mapping[ActionId, Result]]:
        """What holds in all other profiles."""
        profiles = self._ask(lambda manifest: manifest.profiles())
        others = [profile for profile in profiles if profile != self.profile]
        return {profile: self.under(profile) for profile in others}

    def verdicts(self, keys: Sequence[Digest]) -> Mapping[Digest, LastVerdict]:
        """The last verdict of each of these keys of checks that has one."""
        return self._ask(lambda manifest: manifest.verdicts(keys)) if keys else {}

    def sql_flaws(self, texts: Sequence[str]) -> list[str]:
        """See `Manifest.sql_flaw`; nothing of earlier builds, but whoever is asked has DuckDB at hand."""
        return self._ask(lambda manifest: [manifest.sql_flaw(text) for text in texts]) if texts else []

    def unmeasured(self, rule: Rule, outputs: Sequence[Made]) -> tuple[Made, ...]:
        """Those outputs that the rule has declared as metrics since they were made: their numbers were never read."""
        declared = [made for made in outputs if made.name in rule.metrics and not rule.ephemeral]
        if not declared:
            return ()
        if self._measured is None:
            self._measured = self._ask(lambda manifest: manifest.measured())
        known = self._measured
        return tuple(made for made in declared if (rule.name, made.name, made.artifact.digest) not in known)

    def context(self, context: Digest) -> tuple[Part, ...]:
        """The parts that the keys of a rule's actions shared."""
        return self._ask(lambda manifest: manifest.context(context))

    def texts(self, digests: Sequence[str]) -> Mapping[tuple[str, str], str]:
        """The texts of symbols that keys held, by name and digest."""
        return self._ask(lambda manifest: manifest.texts(digests)) if digests else {}

    def started(self, run_id: int) -> datetime.datetime | None:
        """When a run began, in UTC."""
        return self._ask(lambda manifest: manifest.started(run_id))

    def shards_made(self, context: Digest) -> set[Shard]:
        """The shards of which something was ever made under a context, by whichever rule and profile."""
        return self._ask(lambda manifest: manifest.shards_made(context))

    def last_usages(self) -> list[tuple[RuleName, Shard, float, int]]:
        """Rule, shard, seconds and requests (sent or not) of the last result of each action, of whichever profile."""
        return self._ask(lambda manifest: manifest.last_usages())

    def request_means(self) -> list[tuple[RuleName, float | None, float | None, float | None]]:
        """Rule, an action's seconds for each request that it sent, and the tokens of a request and of its reply."""
        return self._ask(lambda manifest: manifest.request_means())

    def asked_before(
        self, rule: RuleName, context: Digest, keys: Sequence[ActionKey], *, but_refused: bool = False
    ) -> Mapping[str, int]:
        """Record -> its requests that were answered, by actions with this context or one of these keys.

        but_refused: a refusal is no answer.
        """
        return self._ask(lambda manifest: manifest.asked_before(rule, context, keys, but_refused))

    def refused(self, keys: Sequence[ActionKey]) -> Set[tuple[ActionKey, int]]:
        """Key and run of each result with one of these keys that rests on requests which were refused."""
        return self._ask(lambda manifest: manifest.refused(keys)) if keys else frozenset()

    def inputs(self, keys: Sequence[ActionKey]) -> Mapping[ActionKey, tuple[Part, ...]]:
        """The inputs that each key held, one part a file."""
        return self._ask(lambda manifest: manifest.inputs(keys)) if keys else {}
