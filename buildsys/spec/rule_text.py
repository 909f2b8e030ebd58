"""What the texts in a rule file mean: `$key`, `@rule`, braces and paths.

Knows one file and its config, not what a rule is. `$` and `@` count at the start of a text and are doubled there to be
themselves; braces count in paths and commands and stay doubled until they are filled in (see `pattern`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from buildsys.errors import BuildError, nearest
from buildsys.model import Input, Param, Ref, RuleName, Value
from buildsys.spec.config import Config
from buildsys.spec.pattern import names_in, rename
from buildsys.spec.toml_places import Keys
from buildsys.spec.toml_text import TomlText, header

SHARD = "shard"
"""What the variable of every rule is called from here on, whatever its rule file calls it."""
PROFILE = "profile"

_REF = re.compile(r"@(?P<rule>\w+)(?:\.(?P<output>\w+))?(?P<every>\[\*\])?")


@dataclass(frozen=True)
class RuleText:
    """A rule file with the config that it names."""

    toml: TomlText
    config: Config | None

    def refuse(self, keys: Keys, what: str, *, facts: Iterable[tuple[str, str]] = (), hint: str = "") -> NoReturn:
        """Raises the error about a rule or service, or a key in it; `what` goes on after its name."""
        name = ".".join(map(str, keys[2:]))
        subject = f"{name} in {header(keys[:2])}" if name else header(keys)
        raise self.toml.error(keys, f"{subject} {what}", facts=facts, hint=hint)

    def value(self, keys: Keys, value: Value) -> Value:
        """A value in which every `$key`, at any depth, is what the config has there, with its type."""
        if isinstance(value, dict):
            return {key: self.value((*keys, key), part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.value((*keys, index), part) for index, part in enumerate(value)]
        if not isinstance(value, str):
            return value
        if is_marked(value, "@"):
            hint = f'an output of a rule goes into inputs; for the text itself write "@{value}"'
            self.refuse(keys, f'is "{value}", which refers to a rule', hint=hint)
        return self._from_config(keys, value[1:]) if is_marked(value, "$") else literal(value)

    def _from_config(self, keys: Keys, key: str) -> Value:
        if self.config is None:
            hint = f'add config = "workspace/configs/..." above all tables; for the text itself write "$${key}"'
            self.refuse(keys, f'is "${key}", but this file names no config', hint=hint)
        try:
            return self.config.get(key)
        except BuildError as error:
            facts = [("config", self.config.path)]
            hint = error.hint if "did you mean" in error.hint else f'{error.hint}; for the text itself "$${key}"'
            self.refuse(keys, f'is "${key}", which the config does not have', facts=facts, hint=hint)

    def text(self, keys: Keys, text: str) -> str:
        """A text, which may be a `$key`. Refuses a config value that is no text, or empty."""
        value = self.value(keys, text)
        if not isinstance(value, str) or not value:
            hint = f"{text[1:]} in {self.config.path} has to be a text" if self.config else ""
            self.refuse(keys, f'is "{text}", which is {value!r} and no text', hint=hint)
        return value

    def source(self, keys: Keys, text: str) -> Ref | str:
        """A reference to outputs of a rule, or a path."""
        if not is_marked(text, "@"):
            return posixpath.normpath(self.text(keys, text))
        match = _REF.fullmatch(text)
        if match is None:
            hint = f'write @rule, @rule.output, @rule[*] or @rule.output[*]; for a path of this name "@{text}"'
            self.refuse(keys, f'is "{text}", which is no reference', hint=hint)
        return Ref(RuleName(match["rule"]), match["output"] or "", bool(match["every"]))

    def path_within(self, keys: Keys, path: str) -> str:
        """A path without detours. Refuses one that does not lie in the project."""
        plain = posixpath.normpath(path)
        if plain.startswith("/") or plain.partition("/")[0] in ("..", "."):
            self.refuse(
                keys, f'is "{path}", which is not in the project', hint="write the path from the project's folder"
            )
        return plain

    def names_in(self, keys: Keys, text: str, allowed: Iterable[str]) -> list[str]:
        """The names in braces, as often as they are there. Refuses one that is not allowed, and a brace on its own."""
        try:
            names = names_in(text)
        except ValueError as error:
            self.refuse(keys, f"has {error}", hint="write {{ and }} for the braces themselves")
        valid = sorted(allowed)
        for name in (name for name in names if name not in valid):
            hint = nearest(name, [f"{{{known}}}" for known in valid])
            if "did you mean" not in hint:
                hint = "; ".join(filter(None, [hint, "the braces themselves are {{ and }}"]))
            self.refuse(keys, f"has {{{name}}}, which stands for nothing", hint=hint)
        return names

    def inputs(self, keys: Keys, inputs: Mapping[str, str], variable: str = "") -> tuple[Input, ...]:
        """Inputs by role; `variable` may stand in their paths, as `{shard}` from here on."""
        found = []
        for name, text in inputs.items():
            source = self.source((*keys, name), text)
            if isinstance(source, str):
                self.names_in((*keys, name), source, filter(None, (variable, PROFILE)))
                source = rename(source, variable, SHARD)
            found.append(Input(name, source, self.toml.place(*keys, name)))
        return tuple(found)

    def params(self, keys: Keys, params: Mapping[str, Value]) -> tuple[Param, ...]:
        """Params or settings, read from the config where they say so."""
        return tuple(
            Param(name, self.value((*keys, name), value), _config_key(value)) for name, value in params.items()
        )


def is_marked(text: str, mark: str) -> bool:
    """Starts with a mark that is not doubled."""
    return text.startswith(mark) and not text.startswith(mark * 2)


def literal(text: str) -> str:
    """The text without the doubling of its mark."""
    return text[1:] if text.startswith(("$$", "@@")) else text


def _config_key(value: Value) -> str:
    return value[1:] if isinstance(value, str) and is_marked(value, "$") else ""
