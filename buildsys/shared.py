"""Outputs that profiles share: another profile may make one only where `default` would make the same.

Joins two graphs of one project, the build's and the one of its configs as they are written. An output whose path does
not tell profiles apart is one file for all of them; so its action has to have one key in both. What its rule says is
known before anything runs; what its inputs are, once they are made. Knows nothing of how an action is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from buildsys.assess import Assessment, Assessor
from buildsys.code.parse import Broken
from buildsys.errors import BuildError
from buildsys.model import ActionId, Output, Rule, RuleName, Service
from buildsys.past import Past
from buildsys.plan.decide import differences
from buildsys.prepare import Preparer
from buildsys.project import Project
from buildsys.request import AS_WRITTEN, DEFAULT_PROFILE
from buildsys.spec.graph import FromFile, FromRule, Graph, Source, Wanted
from buildsys.spec.pattern import fields, fill
from buildsys.spec.rule_text import PROFILE


class Shared:
    """Refuses what one profile would make otherwise than `default`. Every action passes `screen`."""

    def __init__(self, project: Project, assessor: Assessor, wanted: Wanted, past: Past) -> None:
        """Raises BuildError for a rule that is declared otherwise under `default`."""
        self._assessor = assessor
        self._graph = assessor.graph
        self._shared: dict[RuleName, Output] = {}
        if self._graph.profile != DEFAULT_PROFILE:
            shared = {name: _shared_output(self._graph.rules[name]) for name in wanted.shards}
            self._shared = {name: output for name, output in shared.items() if output}
        if not self._shared:
            return
        plain = project.under(AS_WRITTEN)
        self._default: Graph = plain.graph()
        self._preparer = Preparer(plain, self._default)
        self._held = cache(lambda: past.under(DEFAULT_PROFILE))
        self._of_rule = cache(self._rule_differences)
        self._declared = cache(self._declared_differences)
        for name in self._shared:
            if lines := self._declared(name):
                raise self._refusal(ActionId(name), lines)

    def screen(self, assessed: Sequence[Assessment | BuildError]) -> list[Assessment | BuildError]:
        """The same, with an error for each action that would put its own bytes where those of `default` belong."""
        return [one if isinstance(one, BuildError) else self._screened(one) for one in assessed]

    def _screened(self, one: Assessment) -> Assessment | BuildError:
        if one.action.rule not in self._shared:
            return one
        rule = self._graph.rules[one.action.rule]
        lines = [*self._declared(rule.name), *self._service_differences(rule)]
        for mine, theirs in zip(self._graph.sources(one.action), self._default.sources(one.action), strict=True):
            if not self._same_input(mine, theirs):
                lines.append(f"input {mine.name} is another{self._because(mine)}")
        return self._refusal(one.action, lines) if lines else one

    # ------------------------------------------------------------ rules

    def _rule_differences(self, name: RuleName) -> list[str]:
        """How the rule's keys differ under `default`, as far as the rule says, and those that it is fed by."""
        rule, other = self._graph.rules[name], self._default.rules[name]
        lines = [*self._declared(name), *self._service_differences(rule)]
        pairs = [(one.name, one.source, twin.source) for one, twin in zip(rule.inputs, other.inputs, strict=True)]
        if rule.each and other.each:
            pairs.append(("each", rule.each.source, other.each.source))
        for role, mine, theirs in pairs:
            if isinstance(mine, str):
                same = mine == theirs and PROFILE not in fields(mine)
            else:
                same = not self._of_rule(mine.rule)
            if not same:
                lines.append(f"input {role} of {name} is another")
        return lines

    def _declared_differences(self, name: RuleName) -> list[str]:
        """How the half of the key that a rule's actions share differs, but for services. What is blocked has no key."""
        mine, theirs = self._graph.rules[name], self._default.rules[name]
        if isinstance(self._assessor.preparer.code(mine), Broken):
            return []
        if isinstance(broken := self._preparer.code(theirs), Broken):
            return [broken.problem]
        parts = self._assessor.preparer.prepare(mine, {}).parts
        return differences(self._preparer.prepare(theirs, {}).parts, parts)

    def _service_differences(self, rule: Rule) -> list[str]:
        mine = {service.name: service for service in self._graph.services_of(rule)}
        theirs = {service.name: service for service in self._default.services_of(self._default.rules[rule.name])}
        return [
            f"service {name} is another"
            for name in mine.keys() | theirs.keys()
            if name not in mine or name not in theirs or not self._same_service(mine[name], theirs[name])
        ]

    def _same_service(self, mine: Service, theirs: Service) -> bool:
        """Services have no shards, so what feeds them is the same, or is not."""
        sources = self._default.service_sources(theirs)
        if any(isinstance(source, FromRule) and self._of_rule(source.rule) for source in sources):
            return False
        inputs = [(source.name, self._assessor.bind(source).given) for source in sources]
        return self._preparer.service_key(theirs, inputs) == self._assessor.served(mine).key

    # ------------------------------------------------------------ inputs

    def _same_input(self, mine: Source, theirs: Source) -> bool:
        """What the action reads is, byte for byte, what it would read under `default`."""
        if isinstance(mine, FromRule):
            return not self._of_rule(mine.rule) or self._content(mine) == self._held_content(mine)
        return mine == theirs or self._content(mine) == self._content(theirs)

    def _content(self, source: Source) -> list[tuple[str, str]]:
        """File names and digests, sorted; none where there is no such file."""
        try:
            return sorted((given.file, given.digest) for given in self._assessor.bind(source).given)
        except BuildError:
            return []

    def _held_content(self, source: FromRule) -> list[tuple[str, str]]:
        """The same of what holds under `default`."""
        maker = None if source.many else self._graph.maker(source)
        return sorted(
            (made.artifact.file, made.artifact.digest)
            for action, result in self._held().items()
            if action == maker or (maker is None and action.rule == source.rule)
            for made in result.outputs
            if made.name == source.output and (source.many or made.shard in ("", source.shard))
        )

    def _because(self, source: Source) -> str:
        if isinstance(source, FromFile):
            return f": {source.path}"
        return "".join(f"; {line}" for line in self._of_rule(source.rule)[:1])

    def _refusal(self, action: ActionId, lines: Collection[str]) -> BuildError:
        output = self._shared[action.rule]
        profile = self._graph.profile
        path = fill(output.pattern, {"shard": action.shard or "{shard}"})
        return BuildError(
            f"{action} can't share its output with the profile {DEFAULT_PROFILE}: it would make another",
            facts=[
                (DEFAULT_PROFILE, path),
                (profile, path),
                *(("differs", line) for line in lines),
            ],
            place=output.place,
            hint=f'write "{_apart(output.pattern)}", which gives each profile one of its own',
        )


def _shared_output(rule: Rule) -> Output | None:
    """The first output whose path is the same under all profiles."""
    return next((output for output in rule.outputs if PROFILE not in fields(output.pattern)), None)


def _apart(pattern: str) -> str:
    """The pattern with `{profile}` as a folder of its own, above the part that names the shard, or the last."""
    parts = pattern.split("/")
    first = next((n for n, part in enumerate(parts) if "{" in part), len(parts) - 1)
    return "/".join([*parts[:first], f"{{{PROFILE}}}", *parts[first:]])
