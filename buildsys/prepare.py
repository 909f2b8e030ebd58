"""Everything about a rule that is the same for all its actions: its code, its surroundings, its half of the key.

Joins the project's files with the pure stages. Knows no result, no worker and no manifest.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from buildsys.code.parse import Broken
from buildsys.code.resolve import Tree
from buildsys.code.slice import Slice, merge, slice_of
from buildsys.commands import command_values, scripts_of
from buildsys.digest import Digest, Hasher, digest_of
from buildsys.errors import BuildError, Place, nearest
from buildsys.model import Part, Rule, RuleName, Service
from buildsys.plan.key import Fact, Given, Surroundings, hasher_of, input_facts, parts_of, rule_facts, service_facts
from buildsys.project import Project, action_environment
from buildsys.spec.graph import Graph
from buildsys.state.distributions import ABSENT, Distributions
from buildsys.state.interpreters import Interpreter, Interpreters
from buildsys.state.packages import own_distributions

_FIELD = re.compile(r"\\\{[^{}]*\\\}")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Prepared:
    """One rule, ready for its actions.

    hasher, context, parts: its half of every key: hashed, its digest, and as people read it.
    settings: as people read them; they are in no key. versions: of distributions, which are in no key either.
    python: path of the interpreter that runs it.
    warm: digest of all that a warm worker holds, but for the inputs that are shared: code, values, environment.
    service_keys: of the services that its actions need, by name.
    """

    rule: Rule
    code: Slice | None
    python: str
    env: Mapping[str, str]
    service_keys: Mapping[str, Digest]
    hasher: Hasher
    context: Digest
    parts: tuple[Part, ...]
    settings: tuple[Part, ...]
    versions: Mapping[str, str]
    warm: Digest


class Preparer:
    """Prepares the rules of one build. Sources and packages are looked at once: a build sees one version of them."""

    def __init__(self, project: Project, graph: Graph, environ: Mapping[str, str] | None = None) -> None:
        self._project = project
        self._graph = graph
        self._environ = os.environ if environ is None else environ
        self._interpreters = Interpreters(project.looks, project.state / "cache", action_environment((), self._environ))
        self._code: dict[RuleName, Slice | Broken | None] = {}
        self._versions: dict[RuleName, tuple[Mapping[str, str], Mapping[str, str]]] = {}
        self._tree = _Sources(project.tree, graph)

    def code(self, rule: Rule) -> Slice | Broken | None:
        """The rule's slice; None where it runs no Python of ours; Broken where that does not parse: it is blocked.

        Raises BuildError for a script that is missing or that a command names in a way that can't be followed.
        """
        if rule.name not in self._code:
            try:
                self._code[rule.name] = self._slice(rule)
            except Broken as broken:
                self._code[rule.name] = broken
        return self._code[rule.name]

    def prepare(self, rule: Rule, service_keys: Mapping[str, Digest]) -> Prepared:
        """The rule's half of its keys. Its code must not be Broken."""
        code = self.code(rule)
        assert not isinstance(code, Broken)
        interpreter = self.interpreter(rule)
        keyed, others = self.versions(rule)
        facts = tuple(rule_facts(rule, code, self._around(rule.env, keyed, service_keys, interpreter)))
        hasher = hasher_of(facts)
        env = action_environment([*rule.env, *(variable for _, variable in rule.secrets)], self._environ)
        settings = [Fact("setting", setting.name, setting.value, setting.config_key) for setting in rule.settings]
        texts = sorted(code.sources.items()) if code else []
        return Prepared(
            rule=rule,
            code=code,
            python=interpreter.python if interpreter else sys.executable,
            env=env,
            service_keys=service_keys,
            hasher=hasher,
            context=hasher.digest(),
            parts=parts_of(facts),
            settings=parts_of(settings),
            versions=others,
            warm=digest_of(hasher.digest(), [[one.name, one.value] for one in settings], env, texts),
        )

    def interpreter(self, rule: Rule) -> Interpreter | None:
        """The interpreter that a rule names; None where buildsys' own runs it. Raises BuildError where it can't."""
        if not rule.python:
            return None
        try:
            return self._interpreters.get(rule.python)
        except BuildError as error:
            error.place = rule.place
            raise

    def versions(self, rule: Rule) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Distribution -> version of those that are in a rule's keys, and of the others that its code may run.

        Its code must not be Broken. Raises BuildError for a name in the rule that is nothing known.
        """
        if rule.name not in self._versions:
            self._versions[rule.name] = self._found_versions(rule)
        return self._versions[rule.name]

    def _found_versions(self, rule: Rule) -> tuple[Mapping[str, str], Mapping[str, str]]:
        code = self.code(rule)
        assert not isinstance(code, Broken)
        imported = code.external if code else frozenset[str]()
        if not imported and not isinstance(rule.versions, tuple):
            return {}, {}
        interpreter = self.interpreter(rule)
        installed = interpreter.distributions if interpreter else self._own
        closure = installed.closure(imported)
        if rule.versions == "closure":
            keyed = closure
        elif rule.versions == "imported":
            keyed = installed.versions(imported)
        else:
            keyed = {}
            for name in rule.versions:
                found = installed.named(name) or ({name: ABSENT} if name in imported else {})
                if not found:
                    problem = f'versions of [rule.{rule.name}] name "{name}", which is neither installed nor imported'
                    raise BuildError(problem, place=rule.place, hint=nearest(name, [*imported, *installed.names]))
                keyed |= found
        return keyed, {name: version for name, version in closure.items() if name not in keyed}

    def service_key(self, service: Service, inputs: Sequence[tuple[str, Sequence[Given]]]) -> Digest:
        """Digest of all that decides how a service answers: its command, code, params and inputs."""
        code = self.service_code(service)
        params = {param.name: param.value for param in service.params}
        versions = self._own.versions(code.external) if code else {}
        facts: list[Fact] = [
            *service_facts(service.command, params, code, self._around(service.env, versions, {})),
            *input_facts(inputs),
        ]
        return hasher_of(facts).digest()

    def service_code(self, service: Service) -> Slice | None:
        return self._command_code(service.command, command_values(service.params), service.place)

    def service_environment(self, service: Service) -> dict[str, str]:
        return action_environment(service.env, self._environ)

    def _around(
        self,
        env: Sequence[str],
        versions: Mapping[str, str],
        services: Mapping[str, Digest],
        interpreter: Interpreter | None = None,
    ) -> Surroundings:
        return Surroundings(
            python=interpreter.version if interpreter else PYTHON,
            versions=versions,
            env={name: self._variable(name) for name in env},
            services=services,
        )

    @cached_property
    def _own(self) -> Distributions:
        """What is installed for the interpreter that runs buildsys."""
        return own_distributions(self._project.state / "cache" / "packages.json")

    def _variable(self, name: str) -> str | None:
        value = self._environ.get(name)
        self._project.looks.variable(name, value)
        return value

    def _slice(self, rule: Rule) -> Slice | None:
        interpreter = self.interpreter(rule)
        stdlib = (interpreter and interpreter.stdlib) or sys.stdlib_module_names
        if rule.kind == "shell":
            values = command_values(rule.params, rule.settings)
            return self._command_code(rule.command, values, rule.place, stdlib)
        if not self._project.looks.is_file(rule.script):
            raise BuildError(f"[rule.{rule.name}] names a script that is missing: {rule.script}", place=rule.place)
        return slice_of(rule.script, rule.function, self._tree, stdlib)

    def _command_code(
        self,
        command: str,
        values: Mapping[str, str | Sequence[str]],
        place: Place,
        stdlib: frozenset[str] = sys.stdlib_module_names,
    ) -> Slice | None:
        scripts = scripts_of(command, values, self._project.looks, place)
        return merge([slice_of(script, "", self._tree, stdlib) for script in scripts]) if scripts else None


class _Sources:
    """The project's sources, without those that rules make: they are no code until they are inputs."""

    def __init__(self, tree: Tree, graph: Graph) -> None:
        self._tree = tree
        patterns = {output.pattern for rule in graph.rules.values() for output in rule.outputs}
        self._made = [re.compile(_FIELD.sub("[^/]+", re.escape(pattern)) + "(/.*)?") for pattern in patterns]

    def read(self, path: str) -> str | None:
        return self._tree.read(path)

    def sources(self, folder: str) -> Sequence[str]:
        return [path for path in self._tree.sources(folder) if not any(made.fullmatch(path) for made in self._made)]

    def elsewhere(self, name: str) -> Sequence[str]:
        return self._tree.elsewhere(name)

    def behind(self, name: str) -> Sequence[str]:
        return self._tree.behind(name)
