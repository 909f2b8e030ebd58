"""Which actions can be decided now: those whose needs are all settled.

Knows what needs what and nothing of why; one object holds what changes, and `settle` is the one way to change it. The
shards of a rule are known when its origin is settled; where that failed, one action without a shard stands for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from buildsys.model import NO_SHARD, ActionId, RuleName, Shard
from buildsys.spec.graph import FromRule, Graph, Origin, Wanted


class Frontier:
    """The moving edge of a build. Every wanted action comes out of `ready` once, after all that it needs."""

    def __init__(self, graph: Graph, wanted: Wanted, source_shards: Mapping[str, Sequence[Shard]]) -> None:
        """source_shards: pattern of source paths -> its shards, for every origin that is a pattern."""
        self._graph = graph
        self._wanted = wanted
        self._shards: dict[Origin, tuple[Shard, ...]] = {
            Origin(None, pattern): tuple(shards) for pattern, shards in source_shards.items()
        }
        self._unknown: set[Origin] = set()
        self._drawn: dict[RuleName, list[ActionId]] = {}
        self._open: dict[ActionId, int] = {}
        self._users: dict[ActionId, list[ActionId]] = defaultdict(list)
        self._settled: set[ActionId] = set()
        self._ready: list[ActionId] = []
        self._new: list[RuleName] = []
        self._draw()

    def ready(self) -> list[ActionId]:
        """The actions that became ready since the last call."""
        found, self._ready = self._ready, []
        return found

    def drawn(self) -> list[RuleName]:
        """The rules whose actions became known since the last call."""
        found, self._new = self._new, []
        return found

    @property
    def n_waiting(self) -> int:
        """Actions that are drawn and wait for others."""
        return len(self._open)

    def actions(self, rule: RuleName) -> list[ActionId]:
        """The actions of a rule so far; empty while its shards are not known."""
        return self._drawn.get(rule, [])

    def is_drawn(self, rule: RuleName) -> bool:
        """Its actions are known."""
        return rule in self._drawn

    def shards(self, rule: RuleName) -> tuple[Shard, ...]:
        """The shards of a rule, those that are not wanted too; none where it has none, or they are not known."""
        origin = self._graph.origins[rule]
        return self._shards.get(origin, ()) if origin else ()

    def settle(self, action: ActionId, shards: Sequence[Shard] | None = None) -> None:
        """The action is done with, however it ended. shards: what an origin made, None where it made nothing."""
        self._settled.add(action)
        if self._graph.rules[action.rule].is_origin:
            origin = Origin(action.rule)
            if shards is None:
                self._unknown.add(origin)
            self._shards[origin] = tuple(shards or ())
            self._draw()
        for user in self._users.pop(action, ()):
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]
                self._ready.append(user)

    def needs(self, action: ActionId) -> list[ActionId]:
        """The actions whose outputs, or whose shards, an action needs, in the order of the rule file."""
        graph, rule = self._graph, self._graph.rules[action.rule]
        sources = [*graph.sources(action), *graph.service_sources(*graph.services_of(rule))]
        found: list[ActionId] = []
        origin = graph.origins[action.rule]
        if origin and origin.rule:
            found.append(ActionId(origin.rule))
        if origin in self._unknown:
            return found
        for source in sources:
            if isinstance(source, FromRule):
                found += self._drawn[source.rule] if source.many else [graph.maker(source)]
        return list(dict.fromkeys(found))

    def _draw(self) -> None:
        """Draw the actions of every rule whose shards, and whose needs' shards, are now known."""
        for rule in self._wanted.shards:
            if rule in self._drawn:
                continue
            origin = self._graph.origins[rule]
            if origin and origin not in self._shards:
                continue
            if any(other not in self._drawn for other in self._graph.upstream(rule)):
                continue
            shards = [NO_SHARD] if origin in self._unknown else self._shards[origin] if origin else []
            drawn = [action for action in self._graph.actions(rule, shards) if action in self._wanted]
            self._drawn[rule] = drawn
            self._new.append(rule)
            for action in drawn:
                self._await(action)

    def _await(self, action: ActionId) -> None:
        waits = [need for need in self.needs(action) if need not in self._settled]
        if not waits:
            self._ready.append(action)
            return
        self._open[action] = len(waits)
        for need in waits:
            self._users[need].append(action)
