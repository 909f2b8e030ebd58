"""The reference, part one: what a clean build of a world makes, and the key of each action, in plain Python.

Knows the functions of the rules (`kit`) and nothing of files, stores, manifests or of what was built before. It shares
no code with the engine, and tries to be obvious instead of fast.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tests.fuzz import kit
from tests.fuzz.world import (
    Output,
    Rule,
    Source,
    World,
    command_of,
    flavour,
    forms,
    helpers_of,
    module_text,
    modules_of,
    rare_line,
)

Tree = tuple[tuple[str, str], ...]
Content = str | Tree
"""The text of a file, or the sorted names and texts of the files of a folder."""
Fate = Literal["good", "fails", "unchecked", "skipped", "blocked"]
"""unchecked: it makes outputs that fail its check."""


class Who(NamedTuple):
    rule: str
    shard: str

    def __str__(self) -> str:
        return f"{self.rule}[{self.shard}]" if self.shard else self.rule


@dataclass(frozen=True)
class Made:
    role: str
    shard: str
    path: str
    content: Content

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Given:
    """What is in one input role: (file name, content) in order.

    makers: of each file, where an action makes it. lent: of each file, where an ephemeral rule makes it, what it counts
    by: the key of its action, and its role there.
    """

    many: bool
    files: tuple[tuple[str, Content], ...]
    makers: tuple[Who, ...] = ()
    lent: tuple[tuple[str, str], ...] = ()

    @property
    def is_stored(self) -> bool:
        """It is read from the store."""
        return bool(self.makers) and not self.lent

    @property
    def counted(self) -> object:
        """What of it is in a wide key."""
        names = tuple(name for name, _ in self.files)
        return (self.many, names, self.lent) if self.lent else (self.many, self.files)


@dataclass(frozen=True)
class Key:
    """wide: over all modules that the script reaches, with ephemeral inputs by their keys; narrow: over the functions
    that the action calls, and what it reads. Both are over what it looks at undeclared, and neither over rare functions
    that it does not call.

    A build must run what has a narrow key that was never done, and may run what has a wide one.
    """

    wide: str
    narrow: str


@dataclass(frozen=True)
class Action:
    """One action of a clean build. key, given, made: of those that are tried."""

    who: Who
    fate: Fate
    key: Key | None = None
    given: tuple[Given, ...] = ()
    made: tuple[Made, ...] = ()


def natural(name: str) -> tuple[list[str | int], str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)], name


def wanted(world: World, targets: Sequence[str]) -> list[str]:
    """The rules that are asked for, with all that they need, upstream first."""
    found: set[str] = set()
    waiting = list(targets) or [rule.name for rule in world.rules.values() if rule.default]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += world.rules[name].needs
    return [name for name in world.rules if name in found]


def is_refused(world: World, rules: Iterable[str]) -> bool:
    """A source is missing, so nothing is built at all."""
    for rule in (world.rules[name] for name in rules):
        for source in [*rule.inputs.values(), *([rule.each] if rule.each else [])]:
            if source.kind == "file" and source.name not in world.data:
                return True
            if source.kind in ("folder", "glob", "shard") and not world.files_in(source.name):
                return True
    return False


class Clean:
    """A clean build of the wanted rules.

    is_mixed: what ran for one action may count for others of its rule, since one process ran them all.
    """

    def __init__(self, world: World, rules: Iterable[str], profile: str = "default", *, is_mixed: bool = False) -> None:
        self._world = world
        self._profile = profile
        self._is_mixed = is_mixed
        self.actions: dict[Who, Action] = {}
        self._of_rule: dict[str, list[Who]] = {}
        for name in rules:
            rule = world.rules[name]
            for who in self._drawn(rule):
                self.actions[who] = self._action(rule, who)
                self._of_rule.setdefault(name, []).append(who)

    def _drawn(self, rule: Rule) -> list[Who]:
        if rule.each is None:
            return [Who(rule.name, "")]
        shards = self._shards(rule)
        return [Who(rule.name, "")] if shards is None else [Who(rule.name, shard) for shard in shards]

    def _shards(self, rule: Rule) -> list[str] | None:
        """None where they are not known, since what makes them failed."""
        origin = origin_of(self._world, rule)
        if isinstance(origin, str):
            return sorted((name.removesuffix(".txt") for name in self._world.files_in(origin)), key=natural)
        assert origin is not None
        action = self.actions[Who(origin.name, "")]
        if action.fate != "good":
            return None
        return sorted({made.shard for made in action.made if made.shard}, key=natural)

    def _action(self, rule: Rule, who: Who) -> Action:
        if rule.script in self._world.broken:
            return Action(who, "blocked")
        if any(self.actions[need].fate != "good" for need in self._needs(rule, who)):
            return Action(who, "skipped")
        given = {role: self._given(source, who) for role, source in rule.inputs.items()}
        key = self._key(rule, who, given)
        try:
            made = tuple(self._made(rule, who, given))
        except kit.Marked:
            return Action(who, "fails", key, tuple(given.values()))
        if not any(one.shard for one in made) and rule.is_origin:
            return Action(who, "fails", key, tuple(given.values()))
        fate: Fate = "unchecked" if rule.check and rule.check in str(made[0].content) else "good"
        return Action(who, fate, key, tuple(given.values()), made)

    def _needs(self, rule: Rule, who: Who) -> Iterator[Who]:
        origin = origin_of(self._world, rule)
        if isinstance(origin, Rule):
            yield Who(origin.name, "")
            if self.actions[Who(origin.name, "")].fate != "good":
                return
        for source in rule.inputs.values():
            if source.kind == "every":
                yield from self._of_rule[source.name]
            elif source.kind == "one":
                yield self._maker(source, who)

    def _maker(self, source: Source, who: Who) -> Who:
        maker = self._world.rules[source.name]
        return Who(maker.name, who.shard if maker.each else "")

    def _given(self, source: Source, who: Who) -> Given:
        world = self._world
        if source.kind == "file":
            return Given(False, ((source.name.rpartition("/")[2], world.data[source.name]),))
        if source.kind == "folder":
            tree = tuple(sorted(world.files_in(source.name).items()))
            return Given(False, ((source.name.rpartition("/")[2], tree),))
        if source.kind == "glob":
            files = world.files_in(source.name)
            return Given(True, tuple((name, files[name]) for name in sorted(files, key=natural)))
        if source.kind == "shard":
            name = f"{who.shard}.txt"
            return Given(False, ((name, world.files_in(source.name)[name]),))
        makers = self._of_rule[source.name] if source.kind == "every" else [self._maker(source, who)]
        made = [
            (maker, one)
            for maker in makers
            for one in self.actions[maker].made
            if one.role == source.output and (source.kind == "every" or one.shard in ("", who.shard))
        ]
        return Given(
            source.kind == "every",
            tuple((one.name, one.content) for _, one in made),
            tuple(maker for maker, _ in made),
            tuple((self._wide(maker), one.role) for maker, one in made) if world.rules[source.name].ephemeral else (),
        )

    def _wide(self, who: Who) -> str:
        key = self.actions[who].key
        assert key
        return key.wide

    # ------------------------------------------------------------ what it makes

    def _made(self, rule: Rule, who: Who, given: Mapping[str, Given]) -> Iterator[Made]:
        texts = _texts_of(given)
        if rule.kind == "cat":
            whole = "".join(text for role in rule.inputs for _, text in texts[role])
            yield Made(rule.outputs[0].role, "", self._path(rule.outputs[0], who.shard), whole)
            return
        lines = kit.lines_of(rule.way, rule.fail, texts, self._facts(rule, is_rare=_is_rare(rule, given)))
        for role, form in forms(rule).items():
            output = rule.output(role)
            if "*" in form:
                shards = kit.scattered(lines)
                for shard in sorted(shards, key=natural):
                    path = self._path(output, shard)
                    yield Made(role, shard, path, kit.file_text("text", shards[shard], role, _name(path)))
            else:
                path = self._path(output, who.shard)
                if form == "folder":
                    yield Made(role, "", path, tuple(sorted(kit.folder_files(lines, role, _name(path)).items())))
                else:
                    yield Made(role, "", path, kit.file_text(form, lines, role, _name(path)))

    def _facts(self, rule: Rule, *, is_rare: bool) -> list[str]:
        shown = [f"version {rule.version}", *(flavour(self._world, helper) for helper in rule.helpers)]
        params = {name: self._world.value(value) for name, value in rule.params.items()}
        facts = shown if rule.shown else []
        if rule.kind == "run":
            facts += [f"{name}={params[name]!r}" for name in sorted(params)]
            facts += [kit.peek_line(*one) for one in self._peeked(rule, {False})]
            if is_rare:
                facts += [f"rare {rule.rare}", *(rare_line(self._world, helper) for helper in rule.helpers)]
                facts += [kit.peek_line(*one) for one in self._peeked(rule, {True})]
            return facts
        return [*facts, *(f"{name}={_words(value)}" for name, value in params.items())]

    def _peeked(self, rule: Rule, rare: set[bool]) -> list[tuple[str, str, object]]:
        """Kind, path and answer of what is looked at undeclared, by functions that are rare or not."""
        return [
            (peek.kind, peek.path, self._answer(peek.kind, peek.path)) for peek in rule.peeks if peek.is_rare in rare
        ]

    def _answer(self, kind: str, path: str) -> object:
        names = {name.partition("/")[0] for name in self._world.files_in(path)}
        if kind == "exists":
            return path in self._world.data or bool(names)
        return self._world.data.get(path) if kind == "file" else sorted(names) or None

    def _path(self, output: Output, shard: str) -> str:
        return output.pattern.replace("{profile}", self._profile).replace("{shard}", shard)

    # ------------------------------------------------------------ what decides it

    def _key(self, rule: Rule, who: Who, given: Mapping[str, Given]) -> Key:
        plain = [output for output in rule.outputs if not (rule.is_origin and output.sharded)]
        facts = [
            (_name(rule.script), rule.function) if rule.kind == "run" else command_of(rule),
            sorted((name, repr(self._world.value(value))) for name, value in rule.params.items()),
            sorted((output.role, output.file) for output in rule.outputs),
            sorted((output.role, _name(self._path(output, who.shard))) for output in plain),
        ]
        counted = sorted((role, one.counted) for role, one in given.items())
        read = sorted((role, one.many, one.files) for role, one in given.items())
        is_rare = _is_rare(rule, given)
        called = _as_called(self._world, rule, is_rare=is_rare)
        wide = self._world if self._is_mixed and rule.word else called
        looked = self._peeked(rule, {False, is_rare}), self._peeked(rule, {False, is_rare or self._is_mixed})
        return Key(
            _digest(facts, counted, _modules(wide, rule), looked[1]),
            _digest(facts, read, _functions(called, rule), looked[0]),
        )


def _is_rare(rule: Rule, given: Mapping[str, Given]) -> bool:
    """It calls its rare function."""
    texts = [text for pairs in _texts_of(given).values() for _, text in pairs]
    return bool(rule.word) and any(rule.word in text for text in texts)


def _as_called(world: World, rule: Rule, *, is_rare: bool) -> World:
    """The same, with nothing in those rare functions that an action of the rule does not call."""
    called = rule.helpers if is_rare else ()
    helpers = {path: one if path in called else replace(one, rare=0) for path, one in world.helpers.items()}
    own = rule if is_rare else replace(rule, rare=0, peeks=tuple(peek for peek in rule.peeks if not peek.is_rare))
    return replace(world, rules={**world.rules, rule.name: own}, helpers=helpers)


def _modules(world: World, rule: Rule) -> list[tuple[str, str]]:
    paths = set(modules_of(world, rule.script)) if rule.script else set()
    return [(path, module_text(world, path)) for path in sorted(paths)]


def _functions(world: World, rule: Rule) -> list[tuple[str, str]]:
    """Of the script only the function that is called."""
    alone = World({rule.name: world.rules[rule.name]}, {}, {}, world.helpers)
    helpers = {path for helper in rule.helpers for path in helpers_of(world, helper)}
    return [(path, module_text(alone, path)) for path in sorted({rule.script, *helpers} - {""})]


def origin_of(world: World, rule: Rule) -> Rule | str | None:
    """Where the rule's shards come from: another rule, a folder, or nowhere."""
    if rule.each is None:
        return None
    if rule.each.kind == "shard":
        return rule.each.name
    source = world.rules[rule.each.name]
    return source if source.is_origin else origin_of(world, source)


def objects_of(content: Content) -> list[str]:
    """The texts that the store keeps for it; of a folder the listing stands for itself."""
    return [content] if isinstance(content, str) else [f"listing {content!r}", *(text for _, text in content)]


def _texts_of(given: Mapping[str, Given]) -> dict[str, list[tuple[str, str]]]:
    return {role: [pair for file in one.files for pair in _texts(*file)] for role, one in given.items()}


def _texts(name: str, content: Content) -> list[tuple[str, str]]:
    return [(name, content)] if isinstance(content, str) else [(f"{name}/{below}", text) for below, text in content]


def _words(value: object) -> list[str]:
    """A value as the words of a command."""
    if isinstance(value, list):
        return [str(one) for one in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _digest(*values: object) -> str:
    return hashlib.sha1(repr(values).encode()).hexdigest()
