"""What an action key holds: one traversal gives the facts, and two sinks take them: the key, and its explanation.

Knows no file and no database. The facts of a rule are the same for all its shards and are hashed once; the inputs of an
action come after them. A fact's group, name and value are hashed; its path only tells people where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from buildsys.code.slice import Slice
from buildsys.digest import Digest, Hasher
from buildsys.model import ActionId, ActionKey, Artifact, Output, Part, Rule, Value
from buildsys.spec.pattern import shard_part

CODE = "code"
FORMAT = 1
"""Raised whenever the same facts would mean other outputs."""


@dataclass(frozen=True)
class Fact:
    """One thing that decides outputs. path, line: where it is (a file, a config key), not hashed."""

    group: str
    name: str
    value: Value
    path: str = ""
    line: int = 0


@dataclass(frozen=True)
class Surroundings:
    """What a rule's actions run in, beside their inputs.

    python: minor version ("3.11"). versions: of those distributions that count.
    env: declared variables, None for unset. services: service name -> its key.
    """

    python: str
    versions: Mapping[str, str]
    env: Mapping[str, str | None]
    services: Mapping[str, Digest]


@dataclass(frozen=True)
class Given:
    """One input file or folder as an action gets it.

    name: the role. file: its own name, which the code can see. digest: of an ephemeral output the key of the action
    that makes it, with `lent` its name there. many: the code gets it in a list. Not hashed: its path, and for what an
    action made, that action and the artifact.
    """

    name: str
    file: str
    digest: Digest
    path: str
    maker: ActionId | None = None
    artifact: Artifact | None = None
    many: bool = False
    lent: str = ""


def rule_facts(rule: Rule, code: Slice | None, around: Surroundings) -> Iterator[Fact]:
    """All that decides the outputs of every action of a rule, in a fixed order."""
    yield Fact("format", "buildsys", FORMAT)
    yield Fact("rule", "kind", rule.kind)
    if rule.kind == "shell":
        yield Fact("rule", "command", rule.command)
    else:
        yield Fact("rule", "script", _name(rule.script))  # two scripts that reach each other are of one code
        yield Fact("rule", "function", rule.function)
    if rule.kind == "chat":
        yield Fact("rule", "samples", rule.samples)
        if not rule.endpoint.startswith("service:"):
            yield Fact("identity", "identity", rule.identity)
    if code:
        folder = _folder(rule.script)
        for one in code.symbols:
            yield Fact(CODE, f"{one.path.removeprefix(folder)}:{one.name}", one.digest, one.path, one.line)
    for param in sorted(rule.params, key=lambda p: p.name):
        yield Fact("param", param.name, param.value, param.config_key)
    for output in sorted(rule.outputs, key=lambda o: o.name):
        yield Fact("output", output.name, _seen_as(rule, output))
    yield Fact("python", "python", around.python)
    for group, values in (("version", around.versions), ("env", around.env), ("service", around.services)):
        for name in sorted(values):
            yield Fact(group, name, values[name])


def service_facts(
    command: str, params: Mapping[str, Value], code: Slice | None, around: Surroundings
) -> Iterator[Fact]:
    """All but its inputs that decides how a service answers."""
    yield Fact("format", "buildsys", FORMAT)
    yield Fact("rule", "command", command)
    if code:
        for one in code.symbols:
            yield Fact(CODE, f"{one.path}:{one.name}", one.digest, one.path, one.line)
    for name in sorted(params):
        yield Fact("param", name, params[name])
    yield Fact("python", "python", around.python)
    for group, values in (("version", around.versions), ("env", around.env)):
        for name in sorted(values):
            yield Fact(group, name, values[name])


def input_facts(inputs: Iterable[tuple[str, Sequence[Given]]]) -> Iterator[Fact]:
    """The inputs by role: names and digests, those of one role in the order in which the code gets them."""
    for role, given in sorted(inputs, key=lambda pair: pair[0]):
        yield Fact("input", role, [_as_hashed(one) for one in given])


def _as_hashed(given: Given) -> list[Value]:
    """Two ephemeral outputs of one action differ by their names, since both count by its key."""
    return [given.file, given.digest, given.many, *([given.lent] if given.lent else [])]


def hasher_of(facts: Iterable[Fact]) -> Hasher:
    """The first sink: a hasher that has seen the facts, to be copied for each action of the rule."""
    return fed(Hasher(), facts)


def fed(hasher: Hasher, facts: Iterable[Fact]) -> Hasher:
    """The hasher, once it has seen the facts too."""
    for fact in facts:
        hasher.field(fact.group, fact.name, fact.value)
    return hasher


def action_key(
    rule_hasher: Hasher, inputs: Iterable[tuple[str, Sequence[Given]]], names: Sequence[str] = ()
) -> ActionKey:
    """The key of one action: its rule's facts, its inputs, and the file names of its outputs, which code can see."""
    hasher = rule_hasher.copy()
    hasher.field("output", "names", list(names))
    return ActionKey(fed(hasher, input_facts(inputs)).digest())


def rest_of(facts: Iterable[Fact]) -> Iterator[Fact]:
    """All but the code: keys of which nothing else differs may be of the same outputs."""
    return (fact for fact in facts if fact.group != CODE)


def parts_of(facts: Iterable[Fact]) -> tuple[Part, ...]:
    """The second sink: the same facts as people read them, values with their types."""
    return tuple(Part(fact.group, fact.name, _text(fact), fact.path, fact.line) for fact in facts)


def _text(fact: Fact) -> str:
    if fact.group in ("param", "setting"):
        return f"{_in_order(fact.value)!r} ({type(fact.value).__name__})"
    if fact.group == "env":
        return "unset" if fact.value is None else repr(fact.value)
    return str(fact.value)


def _in_order(value: Value) -> Value:
    """The value with the keys of its mappings sorted, since their order is not in the key."""
    if isinstance(value, Mapping):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(part) for part in value] if isinstance(value, list) else value


def _seen_as(rule: Rule, output: Output) -> str:
    """What an output is to the code: a file of this name, or for an origin the folder that such files go into."""
    if rule.is_origin and "{shard}" in output.pattern:
        return f"folder of {shard_part(output.pattern)}"
    return _name(output.pattern)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(script: str) -> str:
    folder = script.rpartition("/")[0]
    return f"{folder}/" if folder else ""
