"""Random edits of the sources: a world in, another world out. An edit that finds nothing to change gives the same.

Knows nothing of disks. What is done to outputs and to the store is no edit of sources; see `case`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from tests.fuzz import generate
from tests.fuzz.world import Output, Rule, Value, World

Edit = Callable[[random.Random, World], World]


def edit_data(rng: random.Random, world: World) -> World:
    path = rng.choice(sorted(world.data))
    return replace(world, data={**world.data, path: generate.text(rng)})


def edit_one_word(rng: random.Random, world: World) -> World:
    """In a file of the same size and with the same number of lines."""
    path = rng.choice(sorted(world.data))
    words = {"red": "tin", "sea": "oak", "tin": "sun", "oak": "red", "sun": "sea"}
    old = rng.choice(sorted(words))
    return replace(world, data={**world.data, path: world.data[path].replace(old, words[old])})


def mark_data(rng: random.Random, world: World) -> World:
    """Make those fail, or their checks, that have this mark and read it."""
    path = rng.choice(sorted(world.data))
    rule = _any(rng, world.rules.values())
    mark = (rule.check or rule.fail) if rule else "FAIL0;"
    return replace(world, data={**world.data, path: f"k1 {mark}\n{world.data[path]}"})


def add_shard(rng: random.Random, world: World) -> World:
    path = f"{rng.choice(generate.SHARDED)}/{generate.shard_name(rng)}.txt"
    return replace(world, data={path: generate.text(rng), **world.data})


def add_file(rng: random.Random, world: World) -> World:
    names = [f"{generate.MANY}/m{rng.randrange(12)}.txt", f"{generate.FOLDER}/f{rng.randrange(4)}.txt"]
    path = rng.choice([*names, *generate.PLAIN])
    return replace(world, data={path: generate.text(rng), **world.data})


def remove_file(rng: random.Random, world: World) -> World:
    """A shard mostly; now and then something that a rule can't do without."""
    data = dict(world.data)
    del data[rng.choice(sorted(data))]
    return replace(world, data=data)


def rename_file(rng: random.Random, world: World) -> World:
    """Another name, the same content."""
    folder = rng.choice([*generate.SHARDED, generate.MANY, generate.MANY, generate.FOLDER])
    names = sorted(world.files_in(folder))
    if not names:
        return world
    name = rng.choice(names)
    data = dict(world.data)
    content = data.pop(f"{folder}/{name}")
    return replace(world, data={**data, f"{folder}/{name[0]}{rng.randrange(12)}.txt": content})


def edit_extra(rng: random.Random, world: World) -> World:
    """What only scripts know of: written, added, or gone."""
    path = rng.choice(generate.EXTRAS)
    if path in world.data and rng.random() < 0.4:
        return replace(world, data={other: text for other, text in world.data.items() if other != path})
    return replace(world, data={**world.data, path: generate.text(rng)})


def edit_config(rng: random.Random, world: World) -> World:
    key = rng.choice(sorted(world.config))
    return replace(world, config={**world.config, key: generate.other_value(rng, world.config[key])})


def edit_overlay(rng: random.Random, world: World) -> World:
    key = rng.choice(sorted(world.config))
    if key in world.overlay and rng.random() < 0.5:
        return replace(world, overlay={other: value for other, value in world.overlay.items() if other != key})
    return replace(world, overlay={**world.overlay, key: generate.other_value(rng, world.config[key])})


def reorder_config(rng: random.Random, world: World) -> World:
    keys = sorted(world.config)
    rng.shuffle(keys)
    return replace(world, config={key: world.config[key] for key in keys})


# ---------------------------------------------------------------- code


def comment(rng: random.Random, world: World) -> World:
    path = rng.choice(_modules(world))
    return replace(world, comments={**world.comments, path: rng.randrange(3)})


def edit_helper(rng: random.Random, world: World) -> World:
    path = rng.choice(sorted(world.helpers))
    helper = replace(world.helpers[path], version=rng.randint(1, 3))
    return replace(world, helpers={**world.helpers, path: helper})


def edit_code(rng: random.Random, world: World) -> World:
    return _with_other(rng, world, lambda rule: replace(rule, version=rng.randint(1, 3)))


def edit_rare(rng: random.Random, world: World) -> World:
    """What only some actions run, if any do."""
    rule = _any(rng, (rule for rule in world.rules.values() if rule.word))
    return _with(world, replace(rule, rare=rng.randint(1, 3))) if rule else world


def edit_rare_helper(rng: random.Random, world: World) -> World:
    path = rng.choice(sorted(world.helpers))
    helper = replace(world.helpers[path], rare=rng.randint(1, 3))
    return replace(world, helpers={**world.helpers, path: helper})


def edit_peeks(rng: random.Random, world: World) -> World:
    rule = _any(rng, (rule for rule in world.rules.values() if rule.kind == "run"))
    return _with(world, replace(rule, peeks=generate.peeks(rng, rule))) if rule else world


def edit_way(rng: random.Random, world: World) -> World:
    return _with_other(rng, world, lambda rule: replace(rule, way=rng.choice(("all", "names", "first", "set"))))


def break_script(rng: random.Random, world: World) -> World:
    scripts = sorted({rule.script for rule in world.rules.values() if rule.script})
    return replace(world, broken=world.broken ^ {rng.choice(scripts)}) if scripts else world


def mend_scripts(rng: random.Random, world: World) -> World:
    return replace(world, broken=frozenset())


# ---------------------------------------------------------------- rule files


def add_rule(rng: random.Random, world: World) -> World:
    return generate.with_rule(rng, world) if len(world.rules) < 8 else world


def remove_rule(rng: random.Random, world: World) -> World:
    left = generate.without_rules(world, {rng.choice(sorted(world.rules))})
    return left if left.rules else world


def rename_rule(rng: random.Random, world: World) -> World:
    """The function and the outputs keep their names."""
    rule = _any(rng, world.rules.values())
    if rule is None or any(rule.name in other.needs for other in world.rules.values()):
        return world
    number = 1 + max(int(name[1:]) for name in world.rules)
    rules = [replace(one, name=f"r{number}") if one is rule else one for one in world.rules.values()]
    return replace(world, rules={one.name: one for one in rules})


def edit_param(rng: random.Random, world: World) -> World:
    def change(rule: Rule) -> Rule:
        if not rule.params:
            return rule
        name = rng.choice(sorted(rule.params))
        return replace(rule, params={**rule.params, name: generate.given_value(rng, world, rule.kind)})

    return _with_other(rng, world, change)


def retype_param(rng: random.Random, world: World) -> World:
    """The same text, and another type."""

    def change(rule: Rule) -> Rule:
        if not rule.params or rule.kind != "run":
            return rule
        name = rng.choice(sorted(rule.params))
        before = world.value(rule.params[name])
        typed: dict[str, Value] = {"1": 1, "True": True, "1.0": 1.0}
        other = typed.get(before, 1) if isinstance(before, str) else str(before)
        return replace(rule, params={**rule.params, name: other})

    return _with_other(rng, world, change)


def edit_setting(rng: random.Random, world: World) -> World:
    def change(rule: Rule) -> Rule:
        return replace(rule, settings={"s0": generate.given_value(rng, world, rule.kind)}) if rule.settings else rule

    return _with_other(rng, world, change)


def edit_input(rng: random.Random, world: World) -> World:
    def change(rule: Rule) -> Rule:
        role = rng.choice(sorted(rule.inputs))
        return replace(rule, inputs={**rule.inputs, role: generate.source_for(rng, world, rule)})

    return _with_other(rng, world, change)


def reorder_inputs(rng: random.Random, world: World) -> World:
    """Of a command these are its words, for a function it makes no difference but in its text."""

    def change(rule: Rule) -> Rule:
        return replace(rule, inputs=dict(rng.sample(list(rule.inputs.items()), len(rule.inputs))))

    return _with_other(rng, world, change)


def rename_output(rng: random.Random, world: World) -> World:
    return _with_output(rng, world, lambda output: replace(output, stem=f"{output.stem[0]}{rng.randrange(3)}"))


def move_output(rng: random.Random, world: World) -> World:
    """To another folder, under the same name."""
    return _with_output(rng, world, lambda output: replace(output, folder=f"{output.folder}x"[:4]))


def edit_check(rng: random.Random, world: World) -> World:
    def change(rule: Rule) -> Rule:
        is_table = rule.outputs[0].form == "table" and not rule.ephemeral
        return replace(rule, check="" if rule.check else f"BAD{rng.randrange(6)};") if is_table else rule

    return _with_other(rng, world, change)


def flip_ephemeral(rng: random.Random, world: World) -> World:
    def change(rule: Rule) -> Rule:
        return rule if rule.is_origin or rule.check else replace(rule, ephemeral=not rule.ephemeral)

    return _with_other(rng, world, change)


def move_rule(rng: random.Random, world: World) -> World:
    """To the other rule file."""
    return _with_other(rng, world, lambda rule: replace(rule, file=1 - rule.file))


SOURCE_EDITS: dict[str, tuple[int, Edit]] = {
    "edit_data": (6, edit_data),
    "edit_one_word": (4, edit_one_word),
    "mark_data": (2, mark_data),
    "add_shard": (3, add_shard),
    "add_file": (2, add_file),
    "remove_file": (2, remove_file),
    "rename_file": (3, rename_file),
    "edit_extra": (4, edit_extra),
    "edit_config": (3, edit_config),
    "edit_overlay": (1, edit_overlay),
    "reorder_config": (1, reorder_config),
    "comment": (2, comment),
    "edit_helper": (3, edit_helper),
    "edit_code": (4, edit_code),
    "edit_rare": (5, edit_rare),
    "edit_rare_helper": (3, edit_rare_helper),
    "edit_peeks": (1, edit_peeks),
    "edit_way": (2, edit_way),
    "break_script": (1, break_script),
    "mend_scripts": (2, mend_scripts),
    "add_rule": (2, add_rule),
    "remove_rule": (2, remove_rule),
    "rename_rule": (1, rename_rule),
    "edit_param": (4, edit_param),
    "retype_param": (2, retype_param),
    "edit_setting": (2, edit_setting),
    "reorder_inputs": (2, reorder_inputs),
    "edit_input": (2, edit_input),
    "rename_output": (2, rename_output),
    "move_output": (2, move_output),
    "edit_check": (2, edit_check),
    "flip_ephemeral": (1, flip_ephemeral),
    "move_rule": (1, move_rule),
}
"""Name -> how often, and the edit."""


def _any(rng: random.Random, rules: Iterable[Rule]) -> Rule | None:
    found = list(rules)
    return rng.choice(found) if found else None


def _with_other(rng: random.Random, world: World, change: Callable[[Rule], Rule]) -> World:
    rule = _any(rng, world.rules.values())
    return replace(world, rules={**world.rules, rule.name: change(rule)}) if rule else world


def _with(world: World, rule: Rule) -> World:
    return replace(world, rules={**world.rules, rule.name: rule})


def _with_output(rng: random.Random, world: World, change: Callable[[Output], Output]) -> World:
    def changed(rule: Rule) -> Rule:
        n = rng.randrange(len(rule.outputs))
        outputs = [change(output) if i == n else output for i, output in enumerate(rule.outputs)]
        is_apart = len({output.pattern for output in outputs}) == len(outputs)
        return replace(rule, outputs=tuple(outputs)) if is_apart else rule

    return _with_other(rng, world, changed)


def _modules(world: World) -> list[str]:
    return sorted({rule.script for rule in world.rules.values() if rule.script} | world.helpers.keys())
