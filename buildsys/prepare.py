"""Everything about a rule that is the same for all its actions: its code, its surroundings, its half of the key.

Joins the project's files with the pure stages. Knows no result, no worker and no manifest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from buildsys.code.parse import Broken
from buildsys.code.slice import Slice, merge
from buildsys.commands import command_values, scripts_of
from buildsys.digest import NO_DIGEST, Digest, Hasher, digest_of
from buildsys.errors import BuildError, Place
from buildsys.model import Part, Rule, RuleName, Service, Trace
from buildsys.plan.key import (
    Fact,
    Given,
    Surroundings,
    fed,
    hasher_of,
    input_facts,
    parts_of,
    rest_of,
    rule_facts,
    service_facts,
)
from buildsys.project import Project, action_environment
from buildsys.sources import Installed
from buildsys.spec.graph import Graph
from buildsys.state.editable import Home
from buildsys.state.interpreters import Interpreter, Interpreters
from buildsys.state.rows import SymbolText

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Prepared:
    """One rule, ready for its actions.

    hasher, context, parts: its half of every key: hashed, its digest, and as people read it. rest: hashed without the
    code. sources: digest of the texts that it runs.
    settings: as people read them; they are in no key. versions: those of distributions that are in it.
    python: path of the interpreter that runs it. homes: where code lies that is installed as editable.
    installed: for that interpreter.
    warm: digest of all that a warm worker holds, but for the inputs that are shared: code, values, environment.
    service_keys: of the services that its actions need, by name.
    """

    rule: Rule
    code: Slice | None
    python: str
    env: Mapping[str, str]
    service_keys: Mapping[str, Digest]
    hasher: Hasher
    rest: Hasher
    sources: Digest
    context: Digest
    parts: tuple[Part, ...]
    settings: tuple[Part, ...]
    versions: Mapping[str, str]
    installed: Installed
    homes: tuple[Home, ...]
    warm: Digest

    @cached_property
    def texts(self) -> tuple[SymbolText, ...]:
        """Of its code, as it is frozen."""
        return texts_of(self.code, self.parts) if self.code else ()


@dataclass(frozen=True)
class ServiceHalf:
    """What decides how a service answers but its inputs: hashed, and as people read it, with its code."""

    hasher: Hasher
    parts: tuple[Part, ...]
    code: Slice | None

    @cached_property
    def texts(self) -> tuple[SymbolText, ...]:
        return texts_of(self.code, self.parts) if self.code else ()


def texts_of(code: Slice, parts: Sequence[Part]) -> tuple[SymbolText, ...]:
    """The symbols of a slice that have one. parts: of the key that holds the slice."""
    named = zip(code.symbols, (part for part in parts if part.group == "code"), strict=True)
    return tuple(
        SymbolText(part.name, part.value, "\n".join(line for _, line in code.text(symbol)))
        for symbol, part in named
        if symbol.lines
    )


def service_key(half: ServiceHalf, inputs: Sequence[tuple[str, Sequence[Given]]]) -> Digest:
    """The key of a service with these inputs."""
    return fed(half.hasher.copy(), input_facts(inputs)).digest()


class Preparer:
    """Prepares the rules of one build. Sources and packages are looked at once: a build sees one version of them.

    environ: the variables of whoever builds. looks: what was asked of the file system.
    """

    def __init__(self, project: Project, graph: Graph, environ: Mapping[str, str] | None = None) -> None:
        self._project = project
        self._graph = graph
        self.looks = project.looks
        self.environ = os.environ if environ is None else environ
        self._interpreters = Interpreters(project.looks, project.state / "cache", action_environment((), self.environ))
        self._code: dict[RuleName, Slice | Broken | None] = {}
        self._versions: dict[RuleName, dict[str, str]] = {}
        self._installed: dict[str, Installed] = {}
        self._used: dict[tuple[str, str, str, Digest], Digest] = {}

    def code(self, rule: Rule) -> Slice | Broken | None:
        """The rule's slice; None where it runs no Python of ours; Broken where that does not parse: it is blocked.

        Raises BuildError for a script that is missing or that a command names in a way that can't be followed.
        """
        if rule.name not in self._code:
            try:
                self._code[rule.name] = self._slice(rule)
            except Broken as broken:
                if broken.place:
                    path = self.installed(rule.python).locate(broken.place.path)
                    broken.place = replace(broken.place, path=path)
                self._code[rule.name] = broken
        return self._code[rule.name]

    def used(self, rule: Rule, trace: Trace) -> Digest:
        """Fingerprint of what of the code a traced run of the rule has used, as it is now.

        "" where that can't be said: the trace does not tell of all that ran, or it ran what does not parse any more.
        """
        if trace.unseen or rule.kind == "shell":
            return NO_DIGEST
        which = rule.script, rule.function, rule.python, trace.digest
        if which not in self._used:
            try:
                slicer = self.installed(rule.python).slicer
                self._used[which] = slicer.used_slice(rule.script, rule.function, trace).fingerprint
            except Broken:
                self._used[which] = NO_DIGEST
        return self._used[which]

    def prepare(self, rule: Rule, service_keys: Mapping[str, Digest]) -> Prepared:
        """The rule's half of its keys. Its code must not be Broken."""
        code = self.code(rule)
        assert not isinstance(code, Broken)
        interpreter = self.interpreter(rule)
        installed = self.installed(rule.python)
        versions = self.versions(rule)
        counted = versions | (installed.compiled(code) if code else {})
        facts = tuple(rule_facts(rule, code, self._around(rule.env, counted, service_keys, interpreter)))
        hasher = hasher_of(facts)
        env = action_environment([*rule.env, *(variable for _, variable in rule.secrets)], self.environ)
        settings = [Fact("setting", setting.name, setting.value, setting.config_key) for setting in rule.settings]
        texts = sorted(code.sources.items()) if code else []
        homes = installed.homes(code) if code else ()
        return Prepared(
            rule=rule,
            code=code,
            python=interpreter.python if interpreter else sys.executable,
            env=env,
            service_keys=service_keys,
            hasher=hasher,
            rest=hasher_of(rest_of(facts)),
            sources=digest_of(texts),
            context=hasher.digest(),
            parts=parts_of(facts),
            settings=parts_of(settings),
            versions=versions,
            installed=installed,
            homes=homes,
            warm=digest_of(hasher.digest(), [[one.name, one.value] for one in settings], env, texts, homes),
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

    def versions(self, rule: Rule) -> dict[str, str]:
        """See `Installed.versions`. Its code must not be Broken."""
        if rule.name not in self._versions:
            code = self.code(rule)
            assert not isinstance(code, Broken)
            self._versions[rule.name] = self.installed(rule.python).versions(rule, code)
        return self._versions[rule.name]

    def provided(self, name: str, python: str) -> dict[str, str]:
        """Distribution -> version of those that provide a top-level name, for a Python as a rule names it."""
        return self.installed(python).provided([name])

    def installed(self, python: str = "") -> Installed:
        """What an interpreter finds, as a rule names it; "" is that which runs buildsys. Raises as `interpreter`."""
        if python not in self._installed:
            interpreter = self._interpreters.get(python) if python else None
            self._installed[python] = Installed(self._project, self._graph, interpreter)
        return self._installed[python]

    def service_key(self, service: Service, inputs: Sequence[tuple[str, Sequence[Given]]]) -> Digest:
        """Digest of all that decides how a service answers: its command, code, params and inputs."""
        return service_key(self.service_half(service), inputs)

    def service_half(self, service: Service) -> ServiceHalf:
        """All but its inputs that decides how a service answers."""
        code = self.service_code(service)
        params = {param.name: param.value for param in service.params}
        installed = self.installed()
        versions = installed.imported(code) | installed.compiled(code) if code else {}
        facts = tuple(service_facts(service.command, params, code, self._around(service.env, versions, {})))
        return ServiceHalf(hasher_of(facts), parts_of(facts), code)

    def scripts(self, rule: Rule) -> list[str]:
        """The project's scripts that a rule runs; none where it runs no Python of ours. Raises BuildError as `code`."""
        if rule.kind != "shell":
            return [rule.script]
        return self._scripts(rule.command, command_values(rule.params, rule.settings), rule.place, rule.python)

    def service_code(self, service: Service) -> Slice | None:
        """The slice of a service's scripts. Raises Broken, and BuildError as `code` does."""
        return self._command_code(service.command, command_values(service.params), service.place)

    def service_scripts(self, service: Service) -> list[str]:
        """As `scripts`."""
        return self._scripts(service.command, command_values(service.params), service.place)

    def service_environment(self, service: Service) -> dict[str, str]:
        return action_environment(service.env, self.environ)

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

    def _variable(self, name: str) -> str | None:
        value = self.environ.get(name)
        self._project.looks.variable(name, value)
        return value

    def _slice(self, rule: Rule) -> Slice | None:
        self.interpreter(rule)
        if rule.kind == "shell":
            return self._command_code(rule.command, command_values(rule.params, rule.settings), rule.place, rule.python)
        if not self._project.looks.is_file(rule.script):
            raise BuildError(f"[rule.{rule.name}] names a script that is missing: {rule.script}", place=rule.place)
        installed = self.installed(rule.python)
        return installed.slicer.slice(rule.script, rule.function)

    def _scripts(
        self, command: str, values: Mapping[str, str | Sequence[str]], place: Place, python: str = ""
    ) -> list[str]:
        return scripts_of(command, values, self._project.looks, place, self.installed(python).sources.elsewhere)

    def _command_code(
        self, command: str, values: Mapping[str, str | Sequence[str]], place: Place, python: str = ""
    ) -> Slice | None:
        installed = self.installed(python)
        slices = [installed.slicer.slice(script, "") for script in self._scripts(command, values, place, python)]
        return merge(slices) if slices else None
