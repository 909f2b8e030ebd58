"""What is part of an action's key and what is not: one row a change."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildsys.code.slice import Reached, Slice, slice_of
from buildsys.digest import Digest, digest_of
from buildsys.errors import Place
from buildsys.model import ActionId, ActionKey, Artifact, Check, Each, Input, Output, Param, Ref, Rule, RuleName, Shard
from buildsys.plan.decide import differences
from buildsys.plan.key import (
    Fact,
    Given,
    Surroundings,
    action_key,
    hasher_of,
    input_facts,
    parts_of,
    rule_facts,
    service_facts,
)

PLACE = Place("rules/a.toml", 1, 1)
ELSEWHERE = Place("rules/b.toml", 9, 9)
ONE, TWO = Digest("1" * 32), Digest("2" * 32)

RULE = Rule(
    name=RuleName("tokens"),
    kind="run",
    place=PLACE,
    script="scripts/one.py",
    function="tokenize",
    each=Each("shard", "data/{shard}.jsonl"),
    inputs=(Input("prompts", "data/p.jsonl", PLACE), Input("vocab", "data/v.json", PLACE)),
    params=(Param("length", 64), Param("rates", {"a": 1, "b": [2.0, "x"]})),
    outputs=(Output("tokens", "build/{shard}.parquet", PLACE), Output("counts", "build/counts.json", PLACE)),
    env=("HOME_OF_MODELS", "OTHER"),
    services=("scorer", "verifier"),
)
CHAT = replace(RULE, kind="chat", endpoint="http://gpu:8000/v1", identity="tiny@1")
LOCAL = replace(CHAT, endpoint="service:verifier", identity="")
SHELL = replace(RULE, kind="shell", script="", function="", command="{python} scripts/one.py {inputs.prompts}")


def code(*symbols: tuple[str, str, Digest], **more: Any) -> Slice:
    reached = tuple(Reached(*symbol[:3]) for symbol in symbols)
    return Slice(digest_of(*symbols), more.get("sources", {}), reached, frozenset(), more.get("preload", frozenset()))


CODE = code(("scripts/a.py", "*", ONE), ("scripts/one.py", "*", TWO))
AROUND = Surroundings(
    python="3.11",
    versions={"torch": "2.9", "numpy": "2.0"},
    env={"HOME_OF_MODELS": "m", "OTHER": ""},
    services={"verifier": ONE, "scorer": TWO},
)
PROMPTS = Given("prompts", "p.jsonl", ONE, "data/p.jsonl")
VOCAB = Given("vocab", "v.json", TWO, "data/v.json")


@dataclass(frozen=True)
class Facts:
    """All that a key is made from."""

    rule: Rule = RULE
    code: Slice | None = CODE
    around: Surroundings = AROUND
    inputs: tuple[tuple[str, Sequence[Given]], ...] = (("prompts", (PROMPTS,)), ("vocab", (VOCAB,)))

    def key(self) -> ActionKey:
        return action_key(hasher_of(rule_facts(self.rule, self.code, self.around)), self.inputs)

    def differences(self, other: Facts) -> list[str]:
        """How the half of the key that a rule's actions share differs, as people read it."""
        one, two = (parts_of(rule_facts(facts.rule, facts.code, facts.around)) for facts in (self, other))
        return differences(one, two)


BASE = Facts()


def rule(**fields: Any) -> Facts:
    return Facts(rule=replace(RULE, **fields))


def chat(**fields: Any) -> Facts:
    return Facts(rule=replace(CHAT, **fields))


def around(**fields: Any) -> Facts:
    return Facts(around=replace(AROUND, **fields))


def inputs(**roles: Sequence[Given]) -> Facts:
    return Facts(inputs=tuple(roles.items()))


def params(*items: tuple[str, object]) -> Facts:
    return rule(params=tuple(Param(name, value) for name, value in items))


def outputs(*items: tuple[str, str]) -> Facts:
    return rule(outputs=tuple(Output(name, pattern, PLACE) for name, pattern in items))


def length(value: object) -> Facts:
    return params(("length", value), ("rates", {"a": 1, "b": [2.0, "x"]}))


def rates(value: object) -> Facts:
    return params(("length", 64), ("rates", value))


# ---------------------------------------------------------------- in the key

RULE_CHANGES: dict[str, Facts] = {
    "the kind": rule(kind="chat"),
    "the script": rule(script="scripts/a.py"),
    "the function": rule(function="extract"),
    "a symbol's digest": Facts(code=code(("scripts/a.py", "*", TWO), ("scripts/one.py", "*", TWO))),
    "a symbol's name": Facts(code=code(("scripts/a.py", "g", ONE), ("scripts/one.py", "*", TWO))),
    "a symbol's file": Facts(code=code(("scripts/b.py", "*", ONE), ("scripts/one.py", "*", TWO))),
    "a symbol less": Facts(code=code(("scripts/one.py", "*", TWO))),
    "no code": Facts(code=None),
    "a param's value": length(65),
    "a param's type: float": length(64.0),
    "a param's type: text": length("64"),
    "a param's type: true": length(True),
    "a param's type: date": length(datetime.date(2026, 1, 1)),
    "a param's type: text like a date": length("2026-01-01"),
    "a param's type: list": length([64]),
    "a param's type: none": length(None),
    "a type within a param": rates({"a": 1.0, "b": [2.0, "x"]}),
    "a key within a param": rates({"A": 1, "b": [2.0, "x"]}),
    "the order of a list within a param": rates({"a": 1, "b": ["x", 2.0]}),
    "a param's name": params(("size", 64), ("rates", {"a": 1, "b": [2.0, "x"]})),
    "a param more": params(("length", 64), ("rates", {"a": 1, "b": [2.0, "x"]}), ("more", None)),
    "a param less": params(("length", 64)),
    "an output's role": outputs(("rows", "build/{shard}.parquet"), ("counts", "build/counts.json")),
    "an output's own name": outputs(("tokens", "build/{shard}.arrow"), ("counts", "build/counts.json")),
    "an output less": outputs(("tokens", "build/{shard}.parquet")),
    "an origin in place of a rule with shards": rule(each=None),
    "outputs that change places": outputs(("counts", "build/{shard}.parquet"), ("tokens", "build/counts.json")),
    "the version of Python": around(python="3.12"),
    "a version": around(versions={"torch": "2.10", "numpy": "2.0"}),
    "a distribution more": around(versions={**AROUND.versions, "gguf": "0.19"}),
    "a distribution less": around(versions={"torch": "2.9"}),
    "a variable's value": around(env={"HOME_OF_MODELS": "n", "OTHER": ""}),
    "a variable's name": around(env={"HOME_OF_MODEL": "m", "OTHER": ""}),
    "a variable that is unset": around(env={"HOME_OF_MODELS": "m", "OTHER": None}),
    "a variable that says None": around(env={"HOME_OF_MODELS": "m", "OTHER": "None"}),
    "a variable more": around(env={**AROUND.env, "MORE": ""}),
    "a service's key": around(services={"verifier": TWO, "scorer": TWO}),
    "services that change places": around(services={"verifier": TWO, "scorer": ONE}),
    "a service more": around(services={**AROUND.services, "more": ONE}),
    "a version that becomes a variable": around(versions={"numpy": "2.0"}, env={**AROUND.env, "torch": "2.9"}),
}
CHAT_CHANGES = {
    "how often it is asked": chat(samples=2),
    "who answers": chat(identity="tiny@2"),
    "a service in place of a URL": Facts(rule=LOCAL),
}
INPUT_CHANGES = {
    "an input's digest": inputs(prompts=[replace(PROMPTS, digest=TWO)], vocab=[VOCAB]),
    "an input's own name": inputs(prompts=[replace(PROMPTS, file="q.jsonl")], vocab=[VOCAB]),
    "an input's role": inputs(questions=[PROMPTS], vocab=[VOCAB]),
    "an input less": inputs(prompts=[PROMPTS]),
    "an input without files": inputs(prompts=[PROMPTS], vocab=[]),
    "a file more": inputs(prompts=[PROMPTS, VOCAB], vocab=[VOCAB]),
    "a list of one in place of a path": inputs(prompts=[replace(PROMPTS, many=True)], vocab=[VOCAB]),
    "the order of files": inputs(prompts=[VOCAB, PROMPTS], vocab=[VOCAB]),
    "a file twice": inputs(prompts=[PROMPTS, PROMPTS], vocab=[VOCAB]),
    "a file in another role": inputs(prompts=[], vocab=[PROMPTS, VOCAB]),
    "inputs that change places": inputs(prompts=[VOCAB], vocab=[PROMPTS]),
}


@pytest.mark.parametrize("change", (RULE_CHANGES | INPUT_CHANGES).values(), ids=RULE_CHANGES | INPUT_CHANGES)
def test_a_change_of_what_decides_the_outputs_changes_the_key(change: Facts) -> None:
    assert change.key() != BASE.key()


@pytest.mark.parametrize("change", CHAT_CHANGES.values(), ids=CHAT_CHANGES)
def test_a_change_of_who_is_asked_or_how_often_changes_the_key(change: Facts) -> None:
    assert change.key() != Facts(rule=CHAT).key()


def test_no_two_changes_give_one_key() -> None:
    changes = {"nothing": BASE, **RULE_CHANGES, **CHAT_CHANGES, **INPUT_CHANGES, "chat": Facts(rule=CHAT)}
    assert len({change.key() for change in changes.values()}) == len(changes)


@pytest.mark.parametrize("change", RULE_CHANGES.values(), ids=RULE_CHANGES)
def test_what_changes_the_key_is_told(change: Facts) -> None:
    assert BASE.differences(change) != []


def test_the_names_of_its_outputs_are_in_the_key_of_an_action() -> None:
    hasher = hasher_of(rule_facts(RULE, CODE, AROUND))
    names = [(), ("1.parquet",), ("2.parquet",), ("1.parquet", "counts.json"), ("counts.json", "1.parquet")]
    assert len({action_key(hasher, BASE.inputs, outputs) for outputs in names}) == len(names)


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        ("out/{profile}/{shard}/x.jsonl", True),
        ("build/{shard}/y.jsonl", False),
        ("build/{shard}.jsonl", False),
        ("build/part-{shard}/x.jsonl", False),
        ("build/x.jsonl", False),
    ],
)
def test_an_origin_sees_what_its_shards_are_called_within_its_folder(pattern: str, same: bool) -> None:
    def key(pattern: str) -> ActionKey:
        return rule(each=None, outputs=(Output("o", pattern, PLACE),)).key()

    assert (key(pattern) == key("build/{shard}/x.jsonl")) is same


def test_the_command_of_a_shell_rule_is_in_its_key() -> None:
    commands = [SHELL, replace(SHELL, command=f"{SHELL.command} --fast"), replace(SHELL, command="scripts/one.py")]
    assert len({Facts(rule=one).key() for one in commands}) == 3


# ---------------------------------------------------------------- not in it

MOVED = code(("lib/deep/a.py", "*", ONE), ("lib/deep/one.py", "*", TWO))
NOT_IN_THE_KEY: dict[str, Facts] = {
    "the rule's name": rule(name=RuleName("other")),
    "what the rule is about": rule(about="Tokens."),
    "where the rule stands": rule(place=ELSEWHERE),
    "settings": rule(settings=(Param("log_every", 50),)),
    "checks": rule(checks=(Check("some", "SELECT true", PLACE),)),
    "secrets": rule(secrets=(("api_key", "KEY"),)),
    "whether it is built by default": rule(default=False),
    "where its shards come from": rule(each=Each("shard", Ref(RuleName("prompts"), "", True))),
    "the folder of the script": Facts(rule=replace(RULE, script="lib/deep/one.py"), code=MOVED),
    "sources and preloads that the symbols cover": Facts(
        code=code(*CODE.symbols, sources={"scripts/one.py": "# only a comment"}, preload=frozenset({"torch"}))
    ),
    "the key of the config": rule(params=tuple(replace(param, config_key="a.b") for param in RULE.params)),
    "the order of params": rule(params=RULE.params[::-1]),
    "the order within a param": rates({"b": [2.0, "x"], "a": 1}),
    "the order of outputs": rule(outputs=RULE.outputs[::-1]),
    "the folder of an output": outputs(("tokens", "out/{profile}/{shard}.parquet"), ("counts", "counts.json")),
    "the order of versions": around(versions=dict(reversed(AROUND.versions.items()))),
    "the order of variables": around(env=dict(reversed(AROUND.env.items()))),
    "the order of services": around(services=dict(reversed(AROUND.services.items()))),
    "the order of inputs": inputs(vocab=[VOCAB], prompts=[PROMPTS]),
    "the folder of an input": inputs(prompts=[replace(PROMPTS, path="/mnt/else/p.jsonl")], vocab=[VOCAB]),
    "who made an input": inputs(
        prompts=[
            replace(
                PROMPTS,
                maker=ActionId(RuleName("prompts"), Shard("1")),
                artifact=Artifact("build/p.jsonl", ONE, 9),
            )
        ],
        vocab=[VOCAB],
    ),
}


@pytest.mark.parametrize("change", NOT_IN_THE_KEY.values(), ids=NOT_IN_THE_KEY)
def test_what_does_not_decide_the_outputs_is_not_in_the_key_and_not_told(change: Facts) -> None:
    assert change.key() == BASE.key()
    assert BASE.differences(change) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CHAT, replace(CHAT, endpoint="http://other:9000/v1")),
        (LOCAL, replace(LOCAL, endpoint="service:other")),
        (LOCAL, replace(LOCAL, identity="tiny@1")),
    ],
    ids=["a URL", "a service, which is there by its key", "an identity beside a service"],
)
def test_where_a_server_is_reached_is_not_in_the_key(one: Rule, other: Rule) -> None:
    assert Facts(rule=one).key() == Facts(rule=other).key()


@pytest.mark.parametrize(("text", "same"), [("def f(): return 1  # one", True), ("def f(): return 2", False)])
def test_comments_are_not_in_the_key_and_code_is(text: str, same: bool) -> None:
    def key(text: str) -> ActionKey:
        return Facts(code=slice_of("scripts/one.py", "f", OneText(text))).key()

    assert (key(text) == key("def f():\n    return 1")) is same


@dataclass(frozen=True)
class OneText:
    text: str

    def read(self, path: str) -> str | None:
        return self.text if path == "scripts/one.py" else None

    def sources(self, folder: str) -> Sequence[str]:
        return ["scripts/one.py"]

    def elsewhere(self, name: str) -> Sequence[str]:
        return ()

    def behind(self, name: str) -> Sequence[str]:
        return ()


# ---------------------------------------------------------------- services

COMMAND = "serve --port {port}"


def service_key(
    command: str = COMMAND,
    params: Mapping[str, object] = {"n": 1, "m": 2},
    code: Slice | None = CODE,
    around: Surroundings = AROUND,
    model: Sequence[Given] = (PROMPTS,),
) -> Digest:
    return hasher_of([*service_facts(command, params, code, around), *input_facts([("model", model)])]).digest()


@pytest.mark.parametrize(
    "change",
    [
        {"command": f"{COMMAND} --fast"},
        {"params": {"n": 1.0, "m": 2}},
        {"code": None},
        {"code": code(("scripts/a.py", "*", TWO), ("scripts/one.py", "*", TWO))},
        {"around": replace(AROUND, python="3.12")},
        {"around": replace(AROUND, versions={})},
        {"around": replace(AROUND, env={})},
        {"model": [VOCAB]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_decides_how_a_service_answers_changes_its_key(change: Mapping[str, Any]) -> None:
    assert service_key(**change) != service_key()


def test_the_order_of_a_service_s_params_is_not_in_its_key() -> None:
    assert service_key(params={"m": 2, "n": 1}) == service_key()


# ---------------------------------------------------------------- the two sinks

CONFIG_VALUES = st.recursive(
    st.sampled_from([0, 1, True, False, None, 0.0, -0.0, 1.0, "", "1", "True", datetime.date(2026, 1, 1)]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def test_the_hasher_of_a_rule_serves_all_its_actions() -> None:
    hasher = hasher_of(rule_facts(RULE, CODE, AROUND))
    before = hasher.digest()
    keys = [action_key(hasher, inputs(prompts=[one]).inputs) for one in (PROMPTS, VOCAB, PROMPTS)]
    assert keys[0] == keys[2] != keys[1]
    assert hasher.digest() == before


@settings(deadline=None, database=None)
@given(CONFIG_VALUES, CONFIG_VALUES)
def test_two_params_read_alike_just_where_they_are_keyed_alike(one: object, other: object) -> None:
    facts = [Fact("param", "p", value) for value in (one, other)]
    keys, parts = [hasher_of([fact]).digest() for fact in facts], [parts_of([fact]) for fact in facts]
    assert (keys[0] == keys[1]) == (parts[0] == parts[1])


def test_people_read_variables_in_quotes_and_whether_they_are_set() -> None:
    env = {"A": "a b", "B": "", "C": None}
    parts = [part for part in parts_of(rule_facts(RULE, CODE, replace(AROUND, env=env))) if part.group == "env"]
    assert [(part.name, part.value) for part in parts] == [("A", "'a b'"), ("B", "''"), ("C", "unset")]


def test_people_read_params_with_their_types_and_places() -> None:
    params = (Param("rate", 1.0), Param("name", "64"), Param("length", 64, "sampling.length"))
    parts = [part for part in parts_of(rule_facts(replace(RULE, params=params), CODE, AROUND)) if part.group == "param"]
    assert [(part.name, part.value, part.path) for part in parts] == [
        ("length", "64 (int)", "sampling.length"),
        ("name", "'64' (str)", ""),
        ("rate", "1.0 (float)", ""),
    ]
