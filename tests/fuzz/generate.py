"""Random worlds, and the parts of them that edits add: a seed in, a value out.

Knows which references the engine allows, and nothing of how anything is built.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tests.fuzz.model import origin_of
from tests.fuzz.world import SCRIPTS, Helper, Output, Peek, PeekKind, Rule, Source, Value, World

SHARDED = ("data/g0", "data/g1")
"""Folders of which each file is a shard."""
MANY = "data/many"
FOLDER = "data/folder"
PLAIN = ("data/p0.txt", "data/p1.txt")
EXTRA = "data/extra"
"""What scripts look at, and no rule declares."""
EXTRAS = tuple(f"{EXTRA}/e{n}.txt" for n in range(3))
_PEEKED: Mapping[PeekKind, Sequence[str]] = {
    "file": (*EXTRAS, PLAIN[0]),
    "folder": (EXTRA, EXTRA, MANY),
    "exists": (*EXTRAS, EXTRA),
}
_WORDS = ("red", "sea", "tin", "oak", "sun")
_WAYS = ("all", "names", "first", "count", "set")
_N_MARKS = 6


def random_world(seed: int) -> World:
    """The same world for the same seed."""
    rng = random.Random(seed)
    config = {f"c{n}": value(rng) for n in range(4)}
    overlay = {key: other_value(rng, config[key]) for key in config if rng.random() < 0.5}
    world = World({}, _data(rng), config, _helpers(rng), overlay=overlay)
    for _ in range(rng.randint(2, 6)):
        world = with_rule(rng, world)
    return world


def text(rng: random.Random) -> str:
    """A few lines; now and then one with a mark that makes an action fail, or its check."""
    return "".join(f"{line(rng)}\n" for _ in range(rng.randint(1, 3)))


def line(rng: random.Random) -> str:
    mark = f" {rng.choice(('FAIL', 'BAD'))}{rng.randrange(_N_MARKS)};" if rng.random() < 0.05 else ""
    return f"k{rng.choice((1, 2, 10))} {rng.choice(_WORDS)}{mark}"


def value(rng: random.Random) -> Value:
    """Some differ in their type alone."""
    return rng.choice([0, 1, 2, "1", "word 1", "word 2", True, False, "True", 1.0, "1.0", 1e-5, [1, 2], [2, 1]])


def other_value(rng: random.Random, before: Value) -> Value:
    """Of the same type, and mostly another."""
    if isinstance(before, bool):
        return not before
    if isinstance(before, list):
        return rng.choice([[1, 2], [2, 1], [3]])
    return rng.choice({int: [0, 1, 2, 3], str: ["1", "word 1", "word 2"], float: [1.0, 1e-5, 2.5]}[type(before)])


def shard_name(rng: random.Random) -> str:
    return f"k{rng.choice((1, 2, 9, 10, 11))}"


def without_rules(world: World, names: set[str]) -> World:
    """Without these rules, and without those that need them."""
    left: dict[str, Rule] = {}
    for rule in world.rules.values():
        if rule.name not in names and rule.needs <= left.keys():
            left[rule.name] = rule
    return replace(world, rules=left)


# ---------------------------------------------------------------- rules


def with_rule(rng: random.Random, world: World) -> World:
    """One rule more, of a name that was not there."""
    number = 1 + max((int(name[1:]) for name in world.rules), default=0)
    rule = _rule(rng, world, f"r{number}")
    return replace(world, rules={**world.rules, rule.name: rule})


def _rule(rng: random.Random, world: World, name: str) -> Rule:
    kind = rng.choice(("run", "run", "run", "script", "cat"))
    each = rng.choice([None, *_shard_sources(world)]) if rng.random() < 0.7 else None
    is_origin = each is None and kind != "cat" and rng.random() < 0.3
    outputs = tuple(_outputs(rng, name, kind, is_origin, each is not None))
    script = {"run": f"{SCRIPTS}/s{rng.randrange(2)}.py", "script": f"{SCRIPTS}/t_{name}.py", "cat": ""}[kind]
    helpers = rng.sample(sorted(world.helpers), rng.randint(0, 2)) if kind != "cat" else []
    names = [] if kind == "cat" else [f"p{n}" for n in range(rng.randint(0, 2))]
    rule = Rule(
        name=name,
        kind=kind,
        function=f"make_{name}",
        script=script,
        way=rng.choice(_WAYS),
        fail=f"FAIL{rng.randrange(_N_MARKS)};",
        inputs={},
        outputs=outputs,
        shown=rng.random() < 0.6,
        helpers=tuple(helpers),
        each=each,
        params={name: given_value(rng, world, kind) for name in names},
        settings={"s0": given_value(rng, world, kind)} if kind != "cat" and rng.random() < 0.4 else {},
        check=f"BAD{rng.randrange(_N_MARKS)};" if outputs[0].form == "table" and rng.random() < 0.5 else "",
        file=rng.randrange(2),
        default=rng.random() < 0.9,
        ephemeral=not is_origin and rng.random() < 0.2,
    )
    rule = replace(rule, ephemeral=rule.ephemeral and not rule.check)
    if kind == "run":
        rule = replace(rule, word=rng.choice(("", *_WORDS)) if rng.random() < 0.7 else "")
        rule = replace(rule, peeks=peeks(rng, rule))
    return replace(rule, inputs={f"i{n}": source_for(rng, world, rule) for n in range(rng.randint(1, 3))})


def peeks(rng: random.Random, rule: Rule) -> tuple[Peek, ...]:
    """None mostly."""
    found = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        kind = rng.choice(tuple(_PEEKED))
        found.append(Peek(kind, rng.choice(_PEEKED[kind]), bool(rule.word) and rng.random() < 0.6))
    return tuple(found)


def given_value(rng: random.Random, world: World, kind: str) -> Value:
    """A value, or a key of the config; a command has no floats, which have several spellings."""
    keys = [key for key, one in world.config.items() if kind == "run" or isinstance(one, (int, str, list))]
    if keys and rng.random() < 0.5:
        return f"${rng.choice(keys)}"
    return value(rng) if kind == "run" else rng.choice([1, "1", "a b", "it's", [1, 2]])


def _outputs(rng: random.Random, rule: str, kind: str, is_origin: bool, has_each: bool) -> Iterator[Output]:
    for n in range(1 if kind == "cat" else rng.randint(1, 2)):
        sharded = has_each or (is_origin and n == 0)
        form = "text" if kind == "cat" or (is_origin and n == 0) else rng.choice(("text", "table", "table", "folder"))
        yield Output(f"o{n}", rule, f"a{n}", form, sharded)


def source_for(rng: random.Random, world: World, rule: Rule) -> Source:
    """An input that the rule may have, of what is there before it."""
    found = [Source("file", path) for path in PLAIN if path in world.data]
    found += [Source("glob", MANY)]
    found += [] if rule.kind == "cat" else [Source("folder", FOLDER)]
    if rule.each and rule.each.kind == "shard":
        found += [rule.each] * 2
    for other in _before(world, rule):
        for output in other.outputs:
            if rule.kind != "cat" or output.form != "folder":
                found += [_reference(rng, world, rule, other, output)] * 2
    return rng.choice(found)


def _before(world: World, rule: Rule) -> list[Rule]:
    names = list(world.rules)
    return [world.rules[name] for name in (names[: names.index(rule.name)] if rule.name in names else names)]


def _reference(rng: random.Random, world: World, rule: Rule, other: Rule, output: Output) -> Source:
    own = _origin_of_output(world, other, output)
    if own is None:
        return Source("one", other.name, output.role)
    same = own == _origin_name(world, rule)
    return Source("one" if same and rng.random() < 0.7 else "every", other.name, output.role)


def _shard_sources(world: World) -> list[Source]:
    made = [
        Source("every", rule.name, output.role)
        for rule in world.rules.values()
        for output in rule.outputs
        if _origin_of_output(world, rule, output) is not None
    ]
    return [*(Source("shard", folder) for folder in SHARDED), *made, *made]


def _origin_name(world: World, rule: Rule) -> str | None:
    origin = origin_of(world, rule)
    return origin.name if isinstance(origin, Rule) else origin


def _origin_of_output(world: World, rule: Rule, output: Output) -> str | None:
    if rule.is_origin:
        return rule.name if output.sharded else None
    return _origin_name(world, rule)


# ---------------------------------------------------------------- what is there from the start


def _data(rng: random.Random) -> dict[str, str]:
    data = {path: text(rng) for path in PLAIN}
    for folder in SHARDED:
        data |= {f"{folder}/{shard_name(rng)}.txt": text(rng) for _ in range(rng.randint(1, 3))}
    data |= {f"{MANY}/m{n}.txt": text(rng) for n in rng.sample((1, 2, 10), 2)}
    data |= {f"{FOLDER}/f{n}.txt": text(rng) for n in range(2)}
    data |= {path: text(rng) for path in rng.sample(EXTRAS, 2)}
    return data


def _helpers(rng: random.Random) -> Mapping[str, Helper]:
    names = [f"{SCRIPTS}/h{n}.py" for n in range(3)]
    return {
        name: Helper(1, tuple(other for other in names[n + 1 :] if rng.random() < 0.4)) for n, name in enumerate(names)
    }
