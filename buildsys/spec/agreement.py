"""Whether rules and services go together: names that are met once, references that lead somewhere, outputs apart.

Knows what the tables say, each of them right by itself. Which rules share their shards is `graph`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from buildsys.errors import BuildError, Place, nearest
from buildsys.model import Input, Output, Ref, Rule, RuleName, Service
from buildsys.spec.pattern import may_meet
from buildsys.spec.toml_places import Keys
from buildsys.spec.toml_text import TomlText, header

Texts = Mapping[str, TomlText]
"""Path of a rule file -> its text."""


def check_agreement(texts: Texts, rules: Sequence[Rule], services: Sequence[Service], configs: Sequence[str]) -> None:
    """Raises BuildError for the first two things that don't go together. configs: paths that no rule may write to."""
    _check_names_once("rule", rules)
    _check_names_once("service", services)
    _References(texts, {rule.name: rule for rule in rules}, [service.name for service in services]).check(services)
    _check_outputs_apart(rules)
    _check_ephemeral(texts, rules)
    _check_sources_safe(texts, rules, configs)


def _check_names_once(what: str, declared: Iterable[Rule] | Iterable[Service]) -> None:
    """SQL knows no upper and lower case, so names that differ in nothing else are one."""
    seen: dict[str, Rule | Service] = {}
    for one in declared:
        if first := seen.get(one.name.lower()):
            same = first.name == one.name
            raise BuildError(
                f'two {what}s are called "{one.name}"' if same else f"two {what}s differ in upper and lower case alone",
                facts=[("first", _told(first.place, what, first.name)), ("second", _told(one.place, what, one.name))],
                hint="give one of them another name",
            )
        seen[one.name.lower()] = one


def _check_ephemeral(texts: Texts, rules: Iterable[Rule]) -> None:
    """Shards have to be known without their bytes, so what makes them can't be dropped."""
    for rule in rules:
        if rule.ephemeral and rule.is_origin:
            raise texts[rule.place.path].error(
                ("rule", rule.name, "ephemeral"),
                f"[rule.{rule.name}] makes shards, so it can't be ephemeral",
                hint="take `ephemeral` out, or give the rule an `each`",
            )


def _told(place: Place, *keys: str) -> str:
    """A place without its column, and the table there."""
    return f"{place.path}:{place.line} {header(keys)}"


# ---------------------------------------------------------------- references


class _References:
    """What may be referred to."""

    def __init__(self, texts: Texts, rules: Mapping[RuleName, Rule], services: Sequence[str]) -> None:
        self.texts = texts
        self.rules = rules
        self.services = services

    def check(self, services: Iterable[Service]) -> None:
        for rule in self.rules.values():
            toml, keys = self.texts[rule.place.path], ("rule", rule.name)
            if rule.each and isinstance(rule.each.source, Ref):
                self._check_ref(toml, (*keys, "each", rule.each.variable), rule.each.source)
            self._check_inputs(toml, keys, rule.inputs)
            for index, name in enumerate(rule.services):
                self._check_service(toml, (*keys, "services", index), name)
            if rule.endpoint.startswith("service:"):
                self._check_service(toml, (*keys, "endpoint"), rule.endpoint.removeprefix("service:"))
        for service in services:
            self._check_inputs(self.texts[service.place.path], ("service", service.name), service.inputs)

    def _check_inputs(self, toml: TomlText, keys: Keys, inputs: Iterable[Input]) -> None:
        for given in inputs:
            if isinstance(given.source, Ref):
                self._check_ref(toml, (*keys, "inputs", given.name), given.source)

    def _check_ref(self, toml: TomlText, keys: Keys, ref: Ref) -> None:
        if ref.rule not in self.rules:
            hint = nearest(ref.rule, list(self.rules))
            raise toml.error(keys, f"{ref} refers to no rule: there is no [rule.{ref.rule}]", hint=hint)
        outputs = [output.name for output in self.rules[ref.rule].outputs]
        told = [str(Ref(ref.rule, output, ref.every)) for output in outputs]
        if ref.output and ref.output not in outputs:
            hint = nearest(str(ref), told)
            raise toml.error(keys, f'{ref} refers to no output: [rule.{ref.rule}] has no "{ref.output}"', hint=hint)
        if not ref.output and len(outputs) > 1:
            hint = f"write {' or '.join(told)}"
            raise toml.error(keys, f"{ref} may be any of {len(outputs)} outputs", hint=hint)

    def _check_service(self, toml: TomlText, keys: Keys, name: str) -> None:
        if name not in self.services:
            hint = nearest(name, self.services) or f"declare it: [service.{name}] with shell and ready"
            raise toml.error(keys, f"there is no [service.{name}]", hint=hint)


# ---------------------------------------------------------------- outputs


def _check_outputs_apart(rules: Iterable[Rule]) -> None:
    for first, second in combinations([(rule, output) for rule in rules for output in rule.outputs], 2):
        if may_meet(first[1].pattern, second[1].pattern):
            raise _clash(*first, *second)


def _clash(one: Rule, first: Output, other: Rule, second: Output) -> BuildError:
    """The error for two outputs that are, can be, or lie in one another."""
    told = [_told(output.place, "rule", rule.name) for rule, output in ((one, first), (other, second))]
    if first.pattern == second.pattern:
        problem, hint = "make one output", "give one of them another pattern"
        facts = [("output", first.pattern), ("first", told[0]), ("second", told[1])]
    else:
        facts = [("first", f"{first.pattern}  {told[0]}"), ("second", f"{second.pattern}  {told[1]}")]
        if first.pattern.count("/") == second.pattern.count("/"):
            problem, hint = "can make one output", "a shard or a profile may have that name: give one another pattern"
        else:
            problem, hint = "make one output inside another", "give one of them a folder of its own"
    who = f"two rules {problem}" if one is not other else f"two outputs of [rule.{one.name}] clash"
    return BuildError(who, facts=facts, hint=hint)


def _check_sources_safe(texts: Texts, rules: Sequence[Rule], configs: Iterable[str]) -> None:
    """No output lies where a rule file, a config or a script is."""
    sources = dict.fromkeys(texts, "rule file") | dict.fromkeys(configs, "config")
    sources |= {rule.script: "script" for rule in rules if rule.script}
    for rule in rules:
        for output in rule.outputs:
            for path, what in sources.items():
                if may_meet(output.pattern, path.replace("{", "{{").replace("}", "}}")):
                    raise texts[rule.place.path].error(
                        ("rule", rule.name, "outputs", output.name),
                        f"outputs.{output.name} in [rule.{rule.name}] would overwrite the {what} {path}",
                        hint="give it another path; workspace/build/{profile}/... is the usual place",
                    )
