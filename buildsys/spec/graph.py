"""Rules x shards -> actions: what feeds what, and which rules share their shards.

Knows no file system and no result. How many shards a rule has may be known only after its origin ran, so the graph is
one of rules; actions are drawn from it, shard by shard, once their origin's shards are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from buildsys.errors import NO_SUCH_TARGET, BuildError, nearest
from buildsys.model import NO_SHARD, SHARD_NAME, ActionId, Input, Ref, Rule, RuleName, Service, Shard
from buildsys.spec.declared import Declared
from buildsys.spec.names import PUBLIC_VIEWS
from buildsys.spec.pattern import fill, may_meet

_TARGET = re.compile(r"(?P<rule>\w+)(?:\[(?P<shard>[^\[\]]+)\])?")


@dataclass(frozen=True)
class Origin:
    """Where shards come from: a rule that makes them, or a pattern of source paths."""

    rule: RuleName | None
    pattern: str = ""

    def __str__(self) -> str:
        return f"@{self.rule}" if self.rule else self.pattern


@dataclass(frozen=True)
class FromFile:
    """An input read in place. path: relative to the project, shard filled in; with `many` it holds `*`."""

    name: str
    path: str
    many: bool


@dataclass(frozen=True)
class FromRule:
    """An input made by another rule: output `output` of one action, or with `many` of all its actions.

    action: the one that makes it (`many`: the rule's one action where it is an origin or has no shards, else unused).
    shard: which of an origin's files; "" where the whole output of the action is meant.
    """

    name: str
    rule: RuleName
    output: str
    shard: Shard
    many: bool


Source = FromFile | FromRule


@dataclass(frozen=True)
class Wanted:
    """What a build is asked for: for each rule, the shards, None meaning all of them."""

    shards: Mapping[RuleName, frozenset[Shard] | None]

    def __contains__(self, action: ActionId) -> bool:
        if action.rule not in self.shards:
            return False
        only = self.shards[action.rule]
        return only is None or action.shard in only or not action.shard


class OutputPlace(NamedTuple):
    """One output of a rule, by the name that it has in SQL. pattern: with `{profile}` and `{shard}`."""

    view: str
    rule: RuleName
    output: str
    pattern: str


class Graph:
    """The rules, checked against one another. Raises BuildError for a cycle or a reference that can't be met."""

    def __init__(self, declared: Declared) -> None:
        self.profile = declared.variation.profile
        self.rules = declared.rules
        self.services = declared.services
        self.keeping = declared.keeping
        self.prices = declared.prices
        self.limits = declared.limits
        self.pools = declared.pools
        self.order: tuple[RuleName, ...] = tuple(_ordered(self))
        self.origins: dict[RuleName, Origin | None] = {}
        for name in self.order:
            self.origins[name] = self._origin(self.rules[name])
        for rule in self.rules.values():
            for given in rule.inputs:
                self._check_input(f"rule.{rule.name}", self.origins[rule.name], given)
        for service in self.services.values():
            for given in service.inputs:
                self._check_input(f"service.{service.name}", None, given)

        self._check_views()

    # ------------------------------------------------------------ rules

    def upstream(self, name: RuleName) -> list[RuleName]:
        """The rules that this one names: for shards, as inputs, and through its services."""
        rule = self.rules[name]
        refs = [rule.each.source] if rule.each else []
        refs += [given.source for given in rule.inputs]
        refs += [given.source for service in self.services_of(rule) for given in service.inputs]
        return list(dict.fromkeys(ref.rule for ref in refs if isinstance(ref, Ref)))

    def services_of(self, rule: Rule) -> list[Service]:
        """The services that must be up while an action of the rule runs."""
        names = list(rule.services)
        if rule.endpoint.startswith("service:"):
            names.append(rule.endpoint.removeprefix("service:"))
        return [self.services[name] for name in dict.fromkeys(names)]

    def own_inputs(self, rule: Rule) -> frozenset[str]:
        """The inputs that differ from shard to shard; the others are shared by all actions of the rule."""
        if rule.each is None:
            return frozenset()
        return frozenset(
            given.name
            for given in rule.inputs
            if ("{shard}" in given.source if isinstance(given.source, str) else self._is_per_shard(given.source))
        )

    def _is_per_shard(self, ref: Ref) -> bool:
        return not ref.every and self._origin_of_output(self.rules[ref.rule], ref.output) is not None

    def _origin(self, rule: Rule) -> Origin | None:
        """None where the rule has one action. Upstream rules are settled first."""
        if rule.each is None:
            return None
        if isinstance(rule.each.source, str):
            return Origin(None, rule.each.source)
        source = self.rules[rule.each.source.rule]
        if source.is_origin:
            return Origin(source.name)
        origin = self.origins[source.name]
        if origin is None:
            raise BuildError(
                f"[rule.{rule.name}] takes the shards of {source.name}, which has none",
                place=rule.place,
                hint=f"give [rule.{source.name}] an `each`, or {{shard}} in its outputs",
            )
        return origin

    def _check_input(self, table: str, origin: Origin | None, given: Input) -> None:
        """table: who declares it. origin: where the shards of that come from; None for a service, which has none."""
        if isinstance(given.source, str):
            self._refuse_output_by_path(table, given, given.source)
            return
        ref, source = given.source, self.rules[given.source.rule]
        own = self._origin_of_output(source, ref.output)
        plain, fold = str(Ref(ref.rule, ref.output)), str(Ref(ref.rule, ref.output, every=True))
        if ref.every and own is None:
            raise BuildError(
                f'input "{given.name}" of [{table}] asks for all shards of {plain.removeprefix("@")}, which has none',
                place=given.place,
                hint=f'write "{plain}"',
            )
        if not ref.every and own is not None and own != origin:
            each = "" if table.startswith("service.") else f', or each = {{ shard = "{fold}" }} for one action a shard'
            raise BuildError(
                f'input "{given.name}" of [{table}] asks for "this shard" of {source.name}, '
                "but the two do not share their shards",
                facts=[(table, f"shards of {origin}" if origin else "no shards"), (source.name, f"shards of {own}")],
                place=given.place,
                hint=f'write "{fold}" for the list of all{each}',
            )

    def _origin_of_output(self, source: Rule, output: str) -> Origin | None:
        """The origin of one output: an origin's outputs without {shard} have none."""
        if source.is_origin:
            pattern = next(o.pattern for o in source.outputs if o.name == output or not output)
            return Origin(source.name) if "{shard}" in pattern else None
        return self.origins[source.name]

    def _refuse_output_by_path(self, table: str, given: Input, path: str) -> None:
        """There would be no edge, so the order of the two would be luck."""
        for other in self.rules.values():
            for output in other.outputs:
                if may_meet(path.replace("*", "{any}"), output.pattern):
                    raise BuildError(
                        f'input "{given.name}" of [{table}] meets an output of [rule.{other.name}]',
                        facts=[("input", path), ("output", output.pattern)],
                        place=given.place,
                        hint=f'write "{Ref(other.name, output.name)}", so that it is built first',
                    )

    # ------------------------------------------------------------ actions

    def actions(self, name: RuleName, shards: Iterable[Shard]) -> Iterator[ActionId]:
        """The actions of a rule, given the shards of its origin (ignored where it has none)."""
        if self.origins[name] is None:
            yield ActionId(name)
        else:
            for shard in shards:
                yield ActionId(name, shard)

    def sources(self, action: ActionId) -> list[Source]:
        """The action's inputs in the order of the rule file, its shard filled in."""
        return [self._source(given, action.shard) for given in self.rules[action.rule].inputs]

    def service_sources(self, *services: Service) -> list[Source]:
        """The inputs of services, which have no shards."""
        return [self._source(given, NO_SHARD) for service in services for given in service.inputs]

    def _source(self, given: Input, shard: Shard) -> Source:
        if isinstance(given.source, str):
            path = fill(given.source, {"profile": self.profile, "shard": shard})
            return FromFile(given.name, path, "*" in given.source)
        ref = given.source
        source = self.rules[ref.rule]
        output = ref.output or source.outputs[0].name
        own = self.origins[ref.rule] is not None or self._origin_of_output(source, output) is not None
        return FromRule(given.name, ref.rule, output, shard if own and not ref.every else NO_SHARD, ref.every)

    def maker(self, source: FromRule) -> ActionId:
        """The action that makes an input that is not a fold over shards."""
        return ActionId(source.rule, source.shard if self.origins[source.rule] is not None else NO_SHARD)

    # ------------------------------------------------------------ paths and targets

    def _check_views(self) -> None:
        """Every output has a name of its own in SQL."""
        taken: dict[str, OutputPlace] = {}
        for place in self.tables():
            first = taken.setdefault(place.view, place)
            if first is not place or place.view in PUBLIC_VIEWS:
                raise BuildError(
                    f'output "{place.output}" of [rule.{place.rule}] is {place.view} in SQL, as another is',
                    facts=[("the other", f"[rule.{first.rule}]" if first is not place else "a view of the manifest")],
                    place=self.rules[place.rule].place,
                    hint="call the rule or the output otherwise",
                )

    def tables(self) -> Iterator[OutputPlace]:
        """The outputs of all rules, each with the name that it has in SQL: the rule's, or `rule_output` of several."""
        for rule in self.rules.values():
            for output in rule.outputs:
                view = rule.name if len(rule.outputs) == 1 or output.name == rule.name else f"{rule.name}_{output.name}"
                yield OutputPlace(view, rule.name, output.name, output.pattern)

    @cached_property
    def _output_patterns(self) -> list[tuple[RuleName, str, re.Pattern[str]]]:
        return [
            (rule.name, output.name, path_regex(output.pattern, self.profile))
            for rule in self.rules.values()
            for output in rule.outputs
        ]

    @cached_property
    def _made_or_in_it(self) -> list[re.Pattern[str]]:
        return [re.compile(f"{_anywhere(pattern)}(/.*)?") for pattern in self._patterns]

    @cached_property
    def _leads(self) -> list[re.Pattern[str]]:
        parts = [pattern.split("/") for pattern in self._patterns]
        folders = {"/".join(some[:n]) for some in parts for n in range(1, len(some))}
        return [re.compile(_anywhere(folder)) for folder in sorted(folders)]

    @property
    def _patterns(self) -> list[str]:
        return sorted({output.pattern for rule in self.rules.values() for output in rule.outputs})

    def is_made(self, path: str) -> bool:
        """Some rule makes it, under whichever profile, or the folder that it is in."""
        return any(made.fullmatch(path) for made in self._made_or_in_it)

    def leads_to_outputs(self, path: str) -> bool:
        """It is a folder that some rule's outputs lie in, under whichever profile; "" is the project."""
        return not path or any(leads.fullmatch(path) for leads in self._leads)

    def target(self, text: str) -> ActionId | RuleName:
        """What a user means by a rule name, `rule[shard]`, or the path of an output. Raises BuildError, exit 3."""
        if (match := _TARGET.fullmatch(text)) and match["rule"] in self.rules:
            return self._named(RuleName(match["rule"]), match["shard"])
        path = text.removeprefix("./").rstrip("/")
        if (target := self._maker_of(path)) is not None:
            return target
        raise BuildError(
            f'no rule, action or output is called "{text}"',
            hint=nearest(text.partition("[")[0], list(self.rules)),
            exit_code=NO_SUCH_TARGET,
        )

    def _named(self, rule: RuleName, shard: str | None) -> ActionId | RuleName:
        """The target `rule` or `rule[shard]`; without a shard, and with `*`, all actions of the rule."""
        if shard in (None, "*"):
            return rule
        if self.origins[rule] is None:
            hint = f'write "{rule}"'
            raise BuildError(f"{rule} has no shards, but one action", hint=hint, exit_code=NO_SUCH_TARGET)
        return ActionId(rule, Shard(shard))

    def _maker_of(self, path: str) -> ActionId | RuleName | None:
        """What makes the output at a path, or the one that it lies in, or all that lie below it."""
        parts = path.split("/")
        for above in ("/".join(parts[:n]) for n in range(len(parts), 0, -1)):
            for rule, _, regex in self._output_patterns:
                if match := regex.fullmatch(above):
                    shard = match.groupdict().get("shard") or ""
                    return ActionId(rule, Shard(shard)) if self.origins[rule] is not None else RuleName(rule)
        below = {
            rule.name
            for rule in self.rules.values()
            for output in rule.outputs
            if fill(output.pattern, {"profile": self.profile, "shard": "{shard}"}).startswith(f"{path}/")
        }
        return below.pop() if len(below) == 1 else None

    def wanted(self, targets: Iterable[str]) -> Wanted:
        """The targets and all that they need; without targets every rule that is built by default."""
        shards: dict[RuleName, frozenset[Shard] | None] = {}
        asked = [self.target(text) for text in targets]
        if not asked:
            asked = [rule.name for rule in self.rules.values() if rule.default]
        for target in asked:
            rule = target.rule if isinstance(target, ActionId) else target
            _widen(shards, rule, frozenset([target.shard]) if isinstance(target, ActionId) and target.shard else None)
        for name in reversed(self.order):
            if name in shards:
                self._want_upstream(name, shards)
        return Wanted({name: shards[name] for name in self.order if name in shards})

    def _want_upstream(self, name: RuleName, shards: dict[RuleName, frozenset[Shard] | None]) -> None:
        rule = self.rules[name]
        if rule.each and isinstance(rule.each.source, Ref):
            _widen(shards, rule.each.source.rule, shards[name])
        for given in rule.inputs:
            if isinstance(given.source, Ref):
                _widen(shards, given.source.rule, None if given.source.every else shards[name])
        for service in self.services_of(rule):
            for given in service.inputs:
                if isinstance(given.source, Ref):
                    _widen(shards, given.source.rule, None)


def _widen(shards: dict[RuleName, frozenset[Shard] | None], rule: RuleName, more: frozenset[Shard] | None) -> None:
    have = shards.get(rule, frozenset())
    shards[rule] = None if have is None or more is None else have | more


def path_regex(pattern: str, profile: str) -> re.Pattern[str]:
    """Matches the paths that a pattern can name under a profile; group "shard" is the shard, where it has one."""
    mark = "\0"  # in no path
    first, *rest = map(re.escape, fill(pattern, {"profile": profile, "shard": mark}).split(mark))
    if not rest:
        return re.compile(first)
    return re.compile(first + f"(?P<shard>{SHARD_NAME})" + "(?P=shard)".join(rest))


def _anywhere(pattern: str) -> str:
    """A regular expression of the paths that a pattern can name, under any profile."""
    mark = "\0"
    return "[^/]+".join(map(re.escape, fill(pattern, {"profile": mark, "shard": mark}).split(mark)))


def _ordered(graph: Graph) -> Iterator[RuleName]:
    """Rules after those that they name. Raises BuildError with the whole path of a cycle."""
    done: set[RuleName] = set()
    path: list[RuleName] = []

    def visit(name: RuleName) -> Iterator[RuleName]:
        if name in done:
            return
        if name in path:
            circle = [*path[path.index(name) :], name]
            raise BuildError(
                "rules need each other in a circle",
                facts=[(rule, str(graph.rules[rule].place)) for rule in dict.fromkeys(circle)],
                place=graph.rules[name].place,
                hint=" → ".join(circle),
            )
        path.append(name)
        for other in graph.upstream(name):
            yield from visit(other)
        path.pop()
        done.add(name)
        yield name

    for name in graph.rules:
        yield from visit(name)
