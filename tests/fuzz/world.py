"""The sources of a random project as one value: rules, scripts, configs and data; and the texts that they are on disk.

Knows nothing of how such a value comes to be (`generate`), is changed (`edits`) or is built (`model`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

PeekKind = Literal["file", "folder", "exists"]
Value = str | int | float | bool | list[int]
SCRIPTS = "scripts"
CONFIG = "config.toml"
PROFILE = "small"
KIT = (Path(__file__).parent / "kit.py").read_text()


@dataclass(frozen=True)
class Source:
    """Where an input or shards come from. name: of a rule, a file or a folder. output: of the rule."""

    kind: Literal["file", "folder", "glob", "shard", "one", "every"]
    name: str
    output: str = ""

    def __str__(self) -> str:
        return {
            "file": self.name,
            "folder": self.name,
            "glob": f"{self.name}/*.txt",
            "shard": f"{self.name}/{{shard}}.txt",
            "one": f"@{self.name}.{self.output}",
            "every": f"@{self.name}.{self.output}[*]",
        }[self.kind]

    @property
    def is_made(self) -> bool:
        return self.kind in ("one", "every")


@dataclass(frozen=True)
class Output:
    """An output by role; see `kit.write` for its form."""

    role: str
    folder: str
    stem: str
    form: Literal["text", "table", "folder"]
    sharded: bool

    @property
    def file(self) -> str:
        suffix = {"text": ".txt", "table": ".jsonl", "folder": ""}[self.form]
        return f"{'{shard}-' if self.sharded else ''}{self.stem}{suffix}"

    @property
    def pattern(self) -> str:
        return f"build/{{profile}}/{self.folder}/{self.file}"


@dataclass(frozen=True)
class Peek:
    """A look at a path that need not be declared; see `kit.peeked`. is_rare: only the rare function has it."""

    kind: PeekKind
    path: str
    is_rare: bool


@dataclass(frozen=True)
class Rule:
    """One rule and its function.

    kind: "run" a function, "script" a command that runs a script of ours, "cat" a command without one.
    function: names the function, or the script of a command. shown: the code's version is in what it makes.
    way, fail: see `kit.lines_of`. check: the mark that no line of its tables may hold, "" for no check.
    params, settings: a text "$key" is a value of the config. file: which rule file it is in.
    word: the one that calls the rare function, and those of its helpers, where an input holds it; "" for no such
    function. rare: its version. peeks: what the functions look at undeclared. Only functions have either.
    """

    name: str
    kind: Literal["run", "script", "cat"]
    function: str
    script: str
    way: str
    fail: str
    inputs: Mapping[str, Source]
    outputs: tuple[Output, ...]
    version: int = 1
    shown: bool = True
    helpers: tuple[str, ...] = ()
    each: Source | None = None
    params: Mapping[str, Value] = field(default_factory=dict)
    settings: Mapping[str, Value] = field(default_factory=dict)
    check: str = ""
    file: int = 0
    default: bool = True
    ephemeral: bool = False
    word: str = ""
    rare: int = 1
    peeks: tuple[Peek, ...] = ()

    @property
    def is_origin(self) -> bool:
        return self.each is None and any(output.sharded for output in self.outputs)

    @property
    def needs(self) -> set[str]:
        sources = [*self.inputs.values(), *([self.each] if self.each else [])]
        return {source.name for source in sources if source.is_made}

    def output(self, role: str) -> Output:
        return next(output for output in self.outputs if output.role == role)


@dataclass(frozen=True)
class Helper:
    """A module that scripts share. version: of what all call. rare: of what only rare functions call."""

    version: int = 1
    uses: tuple[str, ...] = ()
    rare: int = 1


@dataclass(frozen=True)
class World:
    """All sources. Rules stand after those that they need.

    data: path -> text. helpers, comments, broken: by the path of a script or helper. overlay: of the one profile that
    there is beside `default`.
    """

    rules: Mapping[str, Rule]
    data: Mapping[str, str]
    config: Mapping[str, Value]
    helpers: Mapping[str, Helper]
    comments: Mapping[str, int] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    overlay: Mapping[str, Value] = field(default_factory=dict)

    def varied(self, profile: str, overrides: Mapping[str, Value]) -> World:
        """The world as one build has it."""
        overlay = self.overlay if profile == PROFILE else {}
        return replace(self, config={**self.config, **overlay, **overrides})

    def value(self, given: Value) -> Value:
        return self.config[given[1:]] if isinstance(given, str) and given.startswith("$") else given

    def files_in(self, folder: str) -> dict[str, str]:
        """Name -> text of the files below a folder."""
        return {
            path.removeprefix(f"{folder}/"): text for path, text in self.data.items() if path.startswith(f"{folder}/")
        }


# ---------------------------------------------------------------- texts


def sources(world: World) -> dict[str, str]:
    """Path -> text of everything that is written by hand."""
    texts = dict(world.data)
    for path, values in ((CONFIG, world.config), (f"config.{PROFILE}.toml", world.overlay)):
        texts[path] = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    for number in range(2):
        rules = [rule for rule in world.rules.values() if rule.file == number]
        texts[f"rules/{number}.toml"] = "\n".join([f'config = "{CONFIG}"\n', *map(_rule_text, rules)])
    texts[f"{SCRIPTS}/kit.py"] = KIT
    for path in {rule.script for rule in world.rules.values() if rule.script} | world.helpers.keys():
        comments = "".join(f"# remark {n}\n\n" for n in range(world.comments.get(path, 0)))
        texts[path] = comments + module_text(world, path) + ("def broken(:\n" if path in world.broken else "")
    return texts


def module_text(world: World, path: str) -> str:
    """A script or helper without its comments."""
    if path in world.helpers:
        return _helper_text(world.helpers[path])
    rules = [rule for rule in world.rules.values() if rule.script == path]
    imports = sorted({helper for rule in rules for helper in rule.helpers})
    head = "".join(f"import {_module(name)}\n" for name in ["kit", *imports])
    if rules[0].kind == "script":
        return f"import sys\n\n{head}\n{_command_text(rules[0])}"
    return head + "".join(map(_function_text, sorted(rules, key=lambda rule: rule.function)))


def modules_of(world: World, script: str) -> Iterator[str]:
    """The helpers that a script reaches, itself first; each may come more than once."""
    yield script
    for rule in world.rules.values():
        if rule.script == script:
            for helper in rule.helpers:
                yield from helpers_of(world, helper)


def helpers_of(world: World, helper: str) -> Iterator[str]:
    yield helper
    for other in world.helpers[helper].uses:
        yield from helpers_of(world, other)


def flavour(world: World, helper: str) -> str:
    """What `flavour()` of a helper gives."""
    one = world.helpers[helper]
    return "+".join([f"{_module(helper)} {one.version}", *(flavour(world, other) for other in one.uses)])


def rare_line(world: World, helper: str) -> str:
    """What `rare()` of a helper gives."""
    return f"{_module(helper)} rare {world.helpers[helper].rare}"


def forms(rule: Rule) -> dict[str, str]:
    """What a rule's function is told of its outputs; see `kit.write`."""
    return {
        output.role: output.file.replace("{shard}", "*") if rule.is_origin and output.sharded else output.form
        for output in rule.outputs
    }


def command_of(rule: Rule) -> str:
    """The shell command of a rule, braces not filled in."""
    if rule.kind == "cat":
        return f"cat {' '.join(f'{{inputs.{role}}}' for role in rule.inputs)} > {{outputs.{rule.outputs[0].role}}}"
    groups = {"inputs": rule.inputs, "outputs": forms(rule), "params": rule.params, "settings": rule.settings}
    words = [f"--{name} {{{group}.{name}}}" for group, names in groups.items() for name in names]
    return " ".join(["{python}", rule.script, *words])


@cache
def _module(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".py")


def _helper_text(helper: Helper) -> str:
    head = "".join(f"import {_module(other)}\n" for other in helper.uses)
    parts = ['f"{__name__} {VERSION}"', *(f"{_module(other)}.flavour()" for other in helper.uses)]
    return (
        f"{head}\nVERSION = {helper.version}\nRARE = {helper.rare}\n"
        f"\n\ndef flavour():\n    return '+'.join([{', '.join(parts)}])\n"
        '\n\ndef rare():\n    return f"{__name__} rare {RARE}"\n'
    )


def _facts_text(rule: Rule) -> str:
    """The facts that are in the code, as an expression; the version that is not shown is there all the same."""
    helpers = [f"{_module(helper)}.flavour()" for helper in rule.helpers]
    parts = [f'"version {rule.version}"', *helpers]
    return f"[{', '.join(parts)}]" if rule.shown else f"[{', '.join(parts)}][:0]"


def _function_text(rule: Rule) -> str:
    names = [*rule.inputs, *forms(rule), *rule.params, *rule.settings]
    pairs = [", ".join(f'"{role}": {role}' for role in roles) for roles in (rule.inputs, forms(rule))]
    params = [f'f"{name}={{{name}!r}}"' for name in sorted(rule.params)]
    told = ", ".join([*params, *_peeks_text(rule, is_rare=False)])
    rarely = f'    if kit.holds("{rule.word}", {{{pairs[0]}}}):\n        facts += rare_{rule.function}()\n'
    return (
        f"\n\ndef {rule.function}(*, {', '.join(names)}):\n"
        f"    facts = [*{_facts_text(rule)}, {told}]\n"
        f"{rarely if rule.word else ''}"
        f'    kit.make("{rule.way}", "{rule.fail}", {forms(rule)!r}, {{{pairs[0]}}}, {{{pairs[1]}}}, facts)\n'
        f"{_rare_text(rule) if rule.word else ''}"
    )


def _rare_text(rule: Rule) -> str:
    helpers = [f"{_module(helper)}.rare()" for helper in rule.helpers]
    parts = [f'"rare {rule.rare}"', *helpers, *_peeks_text(rule, is_rare=True)]
    return f"\n\ndef rare_{rule.function}():\n    return [{', '.join(parts)}]\n"


def _peeks_text(rule: Rule, *, is_rare: bool) -> list[str]:
    return [f'kit.peeked("{peek.kind}", "{peek.path}")' for peek in rule.peeks if peek.is_rare == is_rare]


def _command_text(rule: Rule) -> str:
    told = f'"{rule.way}", "{rule.fail}", {forms(rule)!r}, {list(rule.inputs)!r}, {_facts_text(rule)}'
    return f"kit.command(sys.argv[1:], {told})\n"


def _rule_text(rule: Rule) -> str:
    lines = [f"[rule.{rule.name}]"]
    lines.append(
        f'run = "{rule.script}::{rule.function}"' if rule.kind == "run" else f"shell = {json.dumps(command_of(rule))}"
    )
    if rule.each:
        lines.append(f'each = {{ shard = "{rule.each}" }}')
    lines.append(_table("inputs", {role: str(source) for role, source in rule.inputs.items()}))
    lines += [_table(name, values) for name, values in (("params", rule.params), ("settings", rule.settings)) if values]
    lines.append(_table("outputs", {output.role: output.pattern for output in rule.outputs}))
    if not rule.default:
        lines.append("default = false")
    if rule.ephemeral:
        lines.append("ephemeral = true")
    if rule.check:
        lines.append(f"[rule.{rule.name}.checks]\nclean = {json.dumps(check_sql(rule))}")
    return "\n".join(lines) + "\n"


def check_sql(rule: Rule) -> str:
    """Gives the lines that hold the mark."""
    return f"SELECT line FROM {rule.outputs[0].role} WHERE contains(line, '{rule.check}')"


def _table(name: str, values: Mapping[str, object]) -> str:
    return f"{name} = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in values.items())} }}"
