"""What the actions of a plan are expected to take: how much they ask, and what those before them took.

Joins the manifest's history and the records that are to be asked with the estimate. Requests that were answered are
counted without running any user code: a rule as it is now makes the same request of the same record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from buildsys.assess import Keyed
from buildsys.errors import BuildError
from buildsys.model import ActionId, Rule, RuleName
from buildsys.past import Past
from buildsys.plan.estimate import Load, Spent
from buildsys.run.conversation import Conversation, read_records
from buildsys.spec.graph import Graph


def spent(past: Past) -> dict[RuleName, Spent]:
    """What the actions of each rule took before."""
    took: dict[RuleName, tuple[dict[ActionId, float], dict[ActionId, int]]] = {}
    for rule, shard, wall_s, n_requests in past.last_usages():
        seconds, requests = took.setdefault(rule, ({}, {}))
        seconds[ActionId(rule, shard)] = wall_s
        requests[ActionId(rule, shard)] = n_requests
    means = {rule: rest for rule, *rest in past.request_means()}
    return {rule: Spent(*both, *means.get(rule, (None, None, None))) for rule, both in took.items()}


class Workload:
    """The loads of one plan. keyed: those actions whose inputs are known; what others will ask is not.

    retry_refused: what was refused is asked again.
    """

    def __init__(
        self, graph: Graph, past: Past, root: Path, keyed: Mapping[ActionId, Keyed], *, retry_refused: bool = False
    ) -> None:
        self._graph = graph
        self._past = past
        self._root = root
        self._keyed = keyed
        self._retry_refused = retry_refused
        self._known: dict[RuleName, Mapping[str, int]] = {}

    def load(self, action: ActionId, *, certain: bool, needs: Iterable[ActionId]) -> Load:
        """What an action that runs will take."""
        rule = self._graph.rules[action.rule]
        services = [service.name for service in self._graph.services_of(rule)]
        is_chat = rule.kind == "chat"
        n_requests, n_answered = self._asked(rule, action) if is_chat else (0, 0)
        return Load(action, certain, tuple(needs), is_chat, n_requests, n_answered, dict(rule.resources), services)

    def _asked(self, rule: Rule, action: ActionId) -> tuple[int | None, int]:
        """Requests of an action, and how many of them the log of replies holds; as many for each record as before."""
        if action not in self._keyed:
            return None, 0
        try:
            records = [
                record
                for given in self._keyed[action].inputs[0].given
                for record in read_records((self._root / given.path).read_bytes(), given.path)
            ]
        except (BuildError, OSError):
            return None, 0
        known = self._answered(rule.name)
        n_each = max(known.values(), default=rule.samples)
        ids = [Conversation(record, 0).record_id for record in records]
        return len(ids) * n_each, sum(known.get(one, 0) for one in ids)

    def _answered(self, rule: RuleName) -> Mapping[str, int]:
        """Record -> how many requests were answered that the rule makes of it as it is now."""
        if rule not in self._known:
            mine = [keyed for action, keyed in self._keyed.items() if action.rule == rule]
            keys = [keyed.key for keyed in mine]
            context, but_refused = mine[0].prepared.context, self._retry_refused
            self._known[rule] = self._past.asked_before(rule, context, keys, but_refused=but_refused)
        return self._known[rule]
