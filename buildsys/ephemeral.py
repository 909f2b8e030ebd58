"""Where ephemeral outputs lie, in all profiles, how much disk they use, and which of them may go.

Joins files with what the manifest says that holds. Knows nothing of how they are made, nor of who waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from buildsys.digest import Digest
from buildsys.errors import LIMIT, BuildError
from buildsys.model import ActionId, Artifact, Made, Result, RuleName
from buildsys.past import Past
from buildsys.plan.key import Given
from buildsys.spec.graph import Graph
from buildsys.spec.sizes import size_text
from buildsys.state.files import Files
from buildsys.state.publish import set_aside

ASKED_FOR: Final = "dropped, and asked for"
"""Why ephemeral outputs are made again though nothing needs them."""


@dataclass(frozen=True)
class Copy:
    """The outputs of one ephemeral action as they lie in the workspace, at the paths of its profile. size: bytes."""

    profile: str
    result: Result

    @property
    def size(self) -> int:
        return sum(made.artifact.size for made in self.result.outputs)


class Ephemeral:
    """The ephemeral outputs of one project."""

    def __init__(self, graph: Graph, files: Files, past: Past) -> None:
        self._graph = graph
        self._files = files
        self._past = past
        self._rules = {rule.name for rule in graph.rules.values() if rule.ephemeral}
        self._placed: dict[ActionId, Result] = {}
        self._placed_as: dict[Digest, Result] = {}

    def placed(self, result: Result) -> None:
        """These outputs were put in place just now."""
        self._placed[result.action] = self._placed_as[result.counted] = result

    def locate(self, given: Given) -> str | None:
        """The path at which the bytes of an input are, as those of any action that counts as it, under any profile.

        None where they are nowhere.
        """
        assert given.artifact is not None
        if self._files.holds(given.artifact):
            return given.path
        for copy in self._copies_of(given.digest):
            for made in copy.result.outputs:
                if _is_same(made, given.lent, given.artifact) and self._files.holds(made.artifact):
                    return made.artifact.path
        return None

    def is_ours(self, path: str) -> Callable[[Digest], bool]:
        """Whether bytes at `path` are what a build put there, and no work of the user's."""
        return lambda digest: digest in self._past.published.get(path, ())

    def makes(self, path: str) -> bool:
        """An ephemeral rule of today makes what is at `path`, or would for another shard."""
        try:
            target = self._graph.target(path)
        except BuildError:
            return False
        return (target.rule if isinstance(target, ActionId) else target) in self._rules

    def copies(self) -> list[Copy]:
        """All that are on disk, the oldest result first, those that profiles share once; not those that were edited."""
        here = self._ours_of(self._past.newest) | self._placed
        found = [*(Copy(self._graph.profile, result) for result in here.values()), *self._elsewhere]
        distinct = {_where(copy): copy for copy in reversed(found)}  # of one that is shared that of this profile
        found = sorted(distinct.values(), key=lambda copy: copy.result.run_id)
        return [copy for copy in found if any(self._files.holds(made.artifact) for made in copy.result.outputs)]

    def drop(self, copy: Copy) -> int:
        """Remove one from the disk; gives the bytes that this frees. Folders stay: another is put there, or will be."""
        freed = 0
        for made in copy.result.outputs:
            if self._files.holds(made.artifact):
                set_aside(self._files, made.artifact.path, ours=made.artifact.digest.__eq__)
                freed += made.artifact.size
        return freed

    def is_known(self, action: ActionId) -> bool:
        """It made its outputs before, so that their size is known."""
        return action in self._past.newest

    def size_of(self, action: ActionId) -> int | None:
        """Bytes that an action's outputs take: as they were last time, else the mean of its rule's, None if unknown."""
        if known := self._past.newest.get(action):
            return Copy("", known).size
        return self.mean_size(action.rule)

    def mean_size(self, rule: RuleName) -> int | None:
        """Bytes that the outputs of a rule's action take, None if unknown."""
        sizes = list(self._sizes(rule))
        return sum(sizes) // len(sizes) if sizes else None

    def largest_size(self, rule: RuleName) -> int | None:
        """Bytes that the outputs of a rule's largest action take, None if unknown."""
        return max(self._sizes(rule), default=None)

    def size_together(self, actions: Iterable[ActionId]) -> int:
        """The same of several: those that count as one are there once, and what is unknown counts as nothing."""
        known = self._past.newest
        return sum({known[one].counted if one in known else one: self.size_of(one) or 0 for one in actions}.values())

    def _sizes(self, rule: RuleName) -> Iterator[int]:
        for action, result in {**self._past.newest, **self._placed}.items():
            if action.rule == rule:
                yield Copy("", result).size

    def _ours_of(self, newest: Mapping[ActionId, Result]) -> dict[ActionId, Result]:
        return {action: result for action, result in newest.items() if action.rule in self._rules}

    def _copies_of(self, counted: Digest) -> Iterator[Copy]:
        """What counts so and holds, or was put in place just now."""
        if result := self._placed_as.get(counted):
            yield Copy(self._graph.profile, result)
        yield from self._counted.get(counted, ())

    @cached_property
    def _counted(self) -> dict[Digest, list[Copy]]:
        """What held in all profiles before this build, by what it counts by."""
        found: dict[Digest, list[Copy]] = {}
        here = [Copy(self._graph.profile, result) for result in self._ours_of(self._past.newest).values()]
        for copy in [*here, *self._elsewhere]:
            found.setdefault(copy.result.counted, []).append(copy)
        return found

    @cached_property
    def _elsewhere(self) -> list[Copy]:
        """What holds in other profiles."""
        return [
            Copy(profile, result)
            for profile, newest in self._past.elsewhere().items()
            for result in self._ours_of(newest).values()
        ]


def _where(copy: Copy) -> tuple[tuple[str, Digest], ...]:
    """The bytes on disk that it is of."""
    return tuple((made.artifact.path, made.artifact.digest) for made in copy.result.outputs)


def _is_same(made: Made, name: str, artifact: Artifact) -> bool:
    return (made.name, made.artifact.digest, made.artifact.tree) == (name, artifact.digest, artifact.tree)


def budget_exceeded(user: str, needed: int, budget: int) -> BuildError:
    """needed, budget: bytes."""
    return BuildError(
        f"{user} needs more room for ephemeral outputs than there may be",
        facts=[("needed at once", size_text(needed)), ("budget", size_text(budget))],
        hint=f'raise ephemeral_budget under [store] to at least "{needed}B"',
        exit_code=LIMIT,
    )
