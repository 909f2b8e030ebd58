"""Everything about a rule that is the same for all its actions: its code, its surroundings, its half of the key.

Joins the project's files with the pure stages. Knows no result, no worker and no manifest.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildsys.code.parse import Broken
from buildsys.code.slice import Slice, merge, slice_of
from buildsys.digest import Digest, Hasher, digest_of
from buildsys.errors import BuildError, Place
from buildsys.model import Part, Rule, RuleName, Service
from buildsys.plan.key import Fact, Given, Surroundings, hasher_of, input_facts, parts_of, rule_facts, service_facts
from buildsys.project import Project, action_environment
from buildsys.spec.graph import Graph
from buildsys.state.packages import Packages

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Prepared:
    """One rule, ready for its actions.

    hasher, context, parts: its half of every key: hashed, its digest, and as people read it.
    warm: digest of all that a warm worker holds, but for the inputs that are shared: code, values, environment.
    service_keys: of the services that its actions need, by name.
    """

    rule: Rule
    code: Slice | None
    env: Mapping[str, str]
    service_keys: Mapping[str, Digest]
    hasher: Hasher
    context: Digest
    parts: tuple[Part, ...]
    warm: Digest


class Preparer:
    """Prepares the rules of one build. Sources and packages are looked at once: a build sees one version of them."""

    def __init__(self, project: Project, graph: Graph, environ: Mapping[str, str] | None = None) -> None:
        self._project = project
        self._graph = graph
        self._environ = os.environ if environ is None else environ
        self._packages = Packages(project.state / "cache" / "packages.json")
        self._code: dict[RuleName, Slice | Broken | None] = {}

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
        facts = tuple(rule_facts(rule, code, self._around(code, rule.env, service_keys)))
        hasher = hasher_of(facts)
        env = action_environment([*rule.env, *(variable for _, variable in rule.secrets)], self._environ)
        settings = [[setting.name, setting.value] for setting in rule.settings]
        texts = sorted(code.sources.items()) if code else []
        return Prepared(
            rule=rule,
            code=code,
            env=env,
            service_keys=service_keys,
            hasher=hasher,
            context=hasher.digest(),
            parts=parts_of(facts),
            warm=digest_of(hasher.digest(), settings, env, texts),
        )

    def service_key(self, service: Service, inputs: Sequence[tuple[str, Sequence[Given]]]) -> Digest:
        """Digest of all that decides how a service answers: its command, code, params and inputs."""
        code = self.service_code(service)
        params = {param.name: param.value for param in service.params}
        facts: list[Fact] = [
            *service_facts(service.command, params, code, self._around(code, service.env, {})),
            *input_facts(inputs),
        ]
        return hasher_of(facts).digest()

    def service_code(self, service: Service) -> Slice | None:
        return self._command_code(service.command, service.place)

    def service_environment(self, service: Service) -> dict[str, str]:
        return action_environment(service.env, self._environ)

    def _around(self, code: Slice | None, env: Sequence[str], services: Mapping[str, Digest]) -> Surroundings:
        return Surroundings(
            python=PYTHON,
            versions=self._packages.versions(code.external) if code else {},
            env={name: self._environ.get(name) for name in env},
            services=services,
        )

    def _slice(self, rule: Rule) -> Slice | None:
        if rule.kind == "shell":
            return self._command_code(rule.command, rule.place)
        if not (self._project.root / rule.script).is_file():
            raise BuildError(f"[rule.{rule.name}] names a script that is missing: {rule.script}", place=rule.place)
        return slice_of(rule.script, rule.function, self._project.tree)

    def _command_code(self, command: str, place: Place) -> Slice | None:
        slices = [slice_of(script, "", self._project.tree) for script in self._scripts(command, place)]
        return merge(slices) if slices else None

    def _scripts(self, command: str, place: Place) -> list[str]:
        """The project's Python files that a command names. Other files of the project must be inputs."""
        words = _words(command, place)
        for flag, module in itertools.pairwise(words):
            if flag == "-m" and self._is_ours(module):
                raise BuildError(
                    f"the command runs a module of the project by its name: -m {module}",
                    place=place,
                    hint="name the script by its path, so that edits of its code are seen",
                )
        named = [word for word in words if "{" not in word and (self._project.root / word).is_file()]
        for word in named:
            if not word.endswith(".py") and not os.path.isabs(word):
                raise BuildError(
                    f"the command reads a file that is no input: {word}",
                    place=place,
                    hint="declare it under `inputs` and write {inputs.NAME}, so that edits of it are seen",
                )
        return list(dict.fromkeys(os.path.normpath(word) for word in named if word.endswith(".py")))

    def _is_ours(self, module: str) -> bool:
        stem = self._project.root / module.replace(".", "/")
        return stem.with_suffix(".py").is_file() or (stem / "__main__.py").is_file()


def freeze(code: Slice, folder: Path) -> Path:
    """Write a slice's sources below `folder`, where they are not there yet, and give the folder that holds them.

    The same texts are always in the same place, and a text never changes there.
    """
    frozen = folder / digest_of(sorted(code.sources.items()))
    if frozen.is_dir():
        return frozen
    temporary = folder / f"{frozen.name}.{os.getpid()}"
    for path, text in code.sources.items():
        file = temporary / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    try:
        temporary.rename(frozen)
    except OSError:
        if not frozen.is_dir():  # another thread was quicker, or else it is a real error
            raise
    return frozen


def fill_command(
    command: str, values: Mapping[str, str | Sequence[str]], code: Slice | None, frozen: Callable[[Slice], Path]
) -> str:
    """A command with its braces filled in and quoted, and its scripts named by their frozen copies.

    values: "inputs.x", "params.y" ... -> text, or a list of texts, which become words of their own.
    """
    text = re.sub(
        r"\{\{|\}\}|\{([^{}]+)\}",
        lambda token: token.group()[0] if token.group(1) is None else _quoted(values[token.group(1)]),
        command,
    )
    if code:
        folder = frozen(code)
        for path in sorted(code.sources, key=len, reverse=True):
            text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w./-])", shlex.quote(str(folder / path)), text)
    return text


def _quoted(value: str | Sequence[str]) -> str:
    return shlex.quote(value) if isinstance(value, str) else " ".join(map(shlex.quote, value))


def _words(command: str, place: Place) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise BuildError(f"the command is not a shell command: {error}", place=place) from None
