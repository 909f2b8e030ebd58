"""Every wanted action comes out once, after all that it needs, whatever is known when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildsys.model import ActionId, RuleName, Shard
from buildsys.plan.frontier import Frontier
from buildsys.spec.graph import Graph
from buildsys.spec.rulefile import read_rules

PIPELINE = """
[rule.prompts]
run = "s.py::f"
outputs = { prompts = "build/prompts/{shard}" }
[rule.samples]
each = { shard = "@prompts[*]" }
run = "s.py::f"
inputs = { prompts = "@prompts" }
outputs = { samples = "build/samples/{shard}" }
[rule.tokens]
each = { shard = "@samples[*]" }
run = "s.py::f"
inputs = { samples = "@samples", vocab = "@vocab" }
outputs = { tokens = "build/tokens/{shard}" }
[rule.vocab]
run = "s.py::f"
inputs = { samples = "@samples[*]" }
outputs = { vocab = "build/vocab" }
[rule.texts]
each = { shard = "data/{shard}.txt" }
run = "s.py::f"
inputs = { text = "data/{shard}.txt" }
outputs = { texts = "build/texts/{shard}" }
"""
SERVICE = """
[rule.model]
run = "s.py::f"
outputs = { model = "build/model" }
[rule.ask]
run = "s.py::f"
services = ["verifier"]
inputs = { i = "data/x" }
outputs = { ask = "build/ask" }
[service.verifier]
shell = "serve {inputs.model} {port}"
inputs = { model = "@model" }
ready = "http://127.0.0.1:{port}"
"""
PATTERN = "data/{shard}.txt"


def frontier_of(text: str, *targets: str, shards: Mapping[str, Sequence[str]] | None = None) -> Frontier:
    graph = Graph(read_rules({"rules/a.toml": text}, {}.get))
    sources = {pattern: [Shard(shard) for shard in found] for pattern, found in (shards or {PATTERN: []}).items()}
    return Frontier(graph, graph.wanted(targets), sources)


def action(text: str) -> ActionId:
    rule, _, shard = text.partition("[")
    return ActionId(RuleName(rule), Shard(shard.removesuffix("]")))


def told(actions: Sequence[ActionId]) -> str:
    return " ".join(map(str, actions))


def settle(frontier: Frontier, text: str, *made: str) -> str:
    """What is ready after these actions are settled. made: the shards, where one is an origin that made some."""
    for one in text.split():
        frontier.settle(action(one), [Shard(shard) for shard in made] or None)
    return told(frontier.ready())


# ---------------------------------------------------------------- what is ready when


def test_an_action_is_ready_once_its_needs_are_settled() -> None:
    frontier = frontier_of(PIPELINE, "tokens")
    assert told(frontier.ready()) == "prompts"
    assert settle(frontier, "prompts", "2", "10") == "samples[2] samples[10]"
    assert settle(frontier, "samples[10]") == ""
    assert settle(frontier, "samples[2]") == "vocab"
    assert settle(frontier, "vocab") == "tokens[2] tokens[10]"
    assert settle(frontier, "tokens[10] tokens[2]") == ""


def test_an_action_comes_out_of_ready_once() -> None:
    frontier = frontier_of(PIPELINE, "prompts")
    assert (told(frontier.ready()), told(frontier.ready())) == ("prompts", "")


def test_a_shard_waits_for_its_own_needs_alone() -> None:
    text = PIPELINE.replace(', vocab = "@vocab"', "")
    frontier = frontier_of(text, "tokens", "vocab")
    frontier.ready()
    settle(frontier, "prompts", "1", "2")
    assert settle(frontier, "samples[2]") == "tokens[2]"
    assert settle(frontier, "samples[1]") == "tokens[1] vocab"


def test_what_needs_nothing_is_ready_at_once_in_the_order_of_the_shards() -> None:
    frontier = frontier_of(PIPELINE, shards={PATTERN: ["b", "a"]})
    assert told(frontier.ready()) == "prompts texts[b] texts[a]"


@pytest.mark.parametrize(
    ("target", "all_ready"),
    [
        ("tokens[2]", "prompts samples[2] samples[1] samples[3] vocab tokens[2]"),
        ("samples[2]", "prompts samples[2]"),
        ("vocab", "prompts samples[1] samples[2] samples[3] vocab"),
        ("samples[9]", "prompts"),
        ("prompts", "prompts"),
        ("texts[b]", "texts[b]"),
        ("texts[x]", ""),
    ],
)
def test_a_target_brings_all_that_it_needs_and_no_shard_more(target: str, all_ready: str) -> None:
    frontier = frontier_of(PIPELINE, target, shards={PATTERN: ["a", "b"]})
    out: list[ActionId] = []
    while ready := frontier.ready():
        out += ready
        for one in ready:
            frontier.settle(one, [Shard(shard) for shard in "123"] if one.rule == "prompts" else None)
    assert sorted(map(str, out)) == sorted(all_ready.split())


def test_a_rule_waits_for_what_its_service_takes() -> None:
    frontier = frontier_of(SERVICE, "ask")
    assert told(frontier.ready()) == "model"
    assert told(frontier.needs(action("ask"))) == "model"
    assert settle(frontier, "model") == "ask"


# ---------------------------------------------------------------- shards that become known late


def test_the_actions_of_a_rule_are_known_once_its_origin_is_settled() -> None:
    frontier = frontier_of(PIPELINE, "tokens")
    assert frontier.drawn() == ["prompts"]
    assert frontier.actions(RuleName("tokens")) == []
    settle(frontier, "prompts", "1", "2")
    assert frontier.drawn() == ["samples", "vocab", "tokens"]
    assert told(frontier.actions(RuleName("tokens"))) == "tokens[1] tokens[2]"
    assert frontier.drawn() == []


def test_the_shards_of_a_rule_are_all_that_there_are_once_they_are_known() -> None:
    frontier = frontier_of(PIPELINE, "samples[1]", shards={PATTERN: ["a"]})
    assert frontier.shards(RuleName("samples")) == ()
    settle(frontier, "prompts", "1", "2")
    assert {rule: frontier.shards(RuleName(rule)) for rule in ("prompts", "samples", "tokens", "texts")} == {
        "prompts": (),
        "samples": ("1", "2"),
        "tokens": ("1", "2"),
        "texts": ("a",),
    }


def test_what_is_drawn_and_not_ready_is_waiting() -> None:
    frontier = frontier_of(PIPELINE, "tokens")
    waiting = [frontier.n_waiting]
    for one, made in (("prompts", "12"), ("samples[1]", ""), ("samples[2]", ""), ("vocab", "")):
        settle(frontier, one, *made)
        waiting.append(frontier.n_waiting)
    assert waiting == [0, 3, 3, 2, 0]


def test_what_was_settled_before_a_rule_became_known_is_not_waited_for() -> None:
    text = PIPELINE.replace('prompts = "@prompts"', 'prompts = "@prompts", texts = "@texts[*]"')
    frontier = frontier_of(text, "samples", shards={PATTERN: ["a"]})
    assert told(frontier.ready()) == "prompts texts[a]"
    assert settle(frontier, "texts[a]") == ""
    assert settle(frontier, "prompts", "1") == "samples[1]"


def test_an_origin_that_failed_leaves_one_action_a_rule_that_stands_for_all() -> None:
    frontier = frontier_of(PIPELINE, "tokens")
    frontier.ready()
    assert settle(frontier, "prompts") == "samples tokens"
    assert told(frontier.needs(action("tokens"))) == "prompts"
    assert told(frontier.needs(action("vocab"))) == "samples"
    assert settle(frontier, "samples") == "vocab"


def test_of_an_origin_that_failed_one_action_stands_for_the_one_shard_that_is_wanted() -> None:
    frontier = frontier_of(PIPELINE, "samples[7]")
    frontier.ready()
    assert settle(frontier, "prompts") == "samples"


def test_an_origin_without_shards_leaves_nothing_to_wait_for() -> None:
    frontier = frontier_of(PIPELINE, "tokens")
    frontier.ready()
    frontier.settle(action("prompts"), [])
    assert told(frontier.ready()) == "vocab"
    assert frontier.drawn() == ["prompts", "samples", "vocab", "tokens"]


@pytest.mark.parametrize(
    ("of", "needs"),
    [
        ("prompts", ""),
        ("samples[1]", "prompts"),
        ("tokens[2]", "prompts samples[2] vocab"),
        ("vocab", "samples[1] samples[2]"),
        ("texts[a]", ""),
    ],
)
def test_needs_are_the_origin_and_the_makers_of_inputs_in_the_order_of_the_rule_file(of: str, needs: str) -> None:
    frontier = frontier_of(PIPELINE, shards={PATTERN: ["a"]})
    settle(frontier, "prompts", "1", "2")
    assert told(frontier.needs(action(of))) == needs


# ---------------------------------------------------------------- any graph


@dataclass(frozen=True)
class Drawn:
    """One rule of a random graph. root: the rule or pattern that its shards come from, "" where it has none."""

    name: str
    root: str
    each: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def text(self) -> str:
        inputs = ", ".join(f'i{n} = "{source}"' for n, source in enumerate(self.inputs))
        outputs = ", ".join(f'{name} = "build/{name}_{self.name}{self._tail(name)}"' for name in self.outputs)
        each = f'each = {{ shard = "{self.each}" }}\n' if self.each else ""
        return f'[rule.{self.name}]\n{each}run = "s.py::f"\ninputs = {{ {inputs} }}\noutputs = {{ {outputs} }}\n'

    def _tail(self, output: str) -> str:
        return "/{shard}" if output == "o" and (self.each or self.is_origin) else ""

    @property
    def is_origin(self) -> bool:
        return len(self.outputs) == 2


@st.composite
def random_graphs(draw: st.DrawFn) -> list[Drawn]:
    """Rules that name earlier ones; an origin has its shards in `o` and one output `sum` without."""
    rules: list[Drawn] = []
    for n in range(draw(st.integers(2, 6))):
        name = f"r{n}"
        with_shards = {rule.name: rule.name if rule.is_origin else rule.root for rule in rules if rule._tail("o")}
        sources = {f"@{other}.o[*]": root for other, root in with_shards.items()}
        sources |= {pattern: pattern for pattern in ("one/{shard}", "two/{shard}")}
        kind = draw(st.sampled_from(["one", "origin", "each", "each"]))
        each = draw(st.sampled_from(sorted(sources))) if kind == "each" else ""
        root = sources.get(each, "")
        known = [
            *(f"@{other}.o[*]" for other in with_shards),
            *(f"@{other}.o" for other, origin in with_shards.items() if root == origin),
            *(f"@{rule.name}.o" for rule in rules if rule.name not in with_shards),
            *(f"@{rule.name}.sum" for rule in rules if rule.is_origin),
        ]
        inputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True)) if known else []
        rules.append(Drawn(name, root, each, tuple(inputs), ("o", "sum") if kind == "origin" else ("o",)))
    return rules


Shards = Mapping[str, Sequence[str] | None]
"""Root -> its shards; None for a rule that fails to make any."""


def all_actions(rule: Drawn, shards: Shards) -> set[ActionId]:
    """All actions that a rule can have."""
    found = shards[rule.root] if rule.root else None
    return {action(rule.name)} if found is None else {action(f"{rule.name}[{shard}]") for shard in found}


def needs(rule: Drawn, shard: str, rules: Mapping[str, Drawn], shards: Shards) -> set[ActionId]:
    """What one action needs, straight from what its rule says."""
    found = {action(rule.root)} if rule.root in rules else set()
    if rule.root in rules and shards[rule.root] is None:
        return found
    for source in rule.inputs:
        other = rules[source[1:].partition(".")[0]]
        if source.endswith("[*]"):
            found |= all_actions(other, shards)
        else:
            found.add(action(f"{other.name}[{shard}]" if other.root else other.name))
    return found


def closure(asked: Sequence[ActionId], rules: Mapping[str, Drawn], shards: Shards) -> set[ActionId]:
    """The actions asked for, and all that they need."""
    found: set[ActionId] = set()
    waiting = list(asked)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += needs(rules[one.rule], one.shard, rules, shards)
    return found


SHARDS = st.sampled_from(["", "a", "ba", "abc"]).map(list)


@settings(deadline=None, database=None, max_examples=60)
@given(st.data(), st.randoms(use_true_random=False))
def test_in_any_graph_every_wanted_action_comes_out_once_and_after_its_needs(data: st.DataObject, rng: Random) -> None:
    drawn = data.draw(random_graphs())
    rules = {rule.name: rule for rule in drawn}
    patterns = {pattern: data.draw(SHARDS) for pattern in ("one/{shard}", "two/{shard}")}
    shards: dict[str, Sequence[str] | None] = {**patterns}
    shards |= {rule.name: data.draw(SHARDS | st.none()) for rule in drawn if rule.is_origin}
    names = [rule.name for rule in drawn] + [f"{rule.name}[a]" for rule in drawn if rule.each]
    targets = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))

    frontier = frontier_of("".join(rule.text() for rule in drawn), *targets, shards=patterns)
    out: list[ActionId] = []
    running: list[ActionId] = []
    settled: set[ActionId] = set()
    while True:
        for one in (ready := frontier.ready()):
            assert settled >= needs(rules[one.rule], one.shard, rules, shards) == {*frontier.needs(one)}
        out += ready
        running += ready
        if not running:
            break
        one = running.pop(rng.randrange(len(running)))
        made = shards[one.rule] if rules[one.rule].is_origin else None
        frontier.settle(one, None if made is None else [Shard(shard) for shard in made])
        settled.add(one)

    assert len(out) == len({*out})
    asked = [
        one
        for target in map(action, targets)
        for one in all_actions(rules[target.rule], shards)
        if not target.shard or one.shard in ("", target.shard)
    ]
    assert {*out} >= closure(asked, rules, shards)
    assert {*out} == {one for rule in frontier.drawn() for one in frontier.actions(rule)}
