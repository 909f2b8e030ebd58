"""Who feeds whom, whose shards are whose, and what a user means by a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buildsys.errors import NO_SUCH_TARGET, USAGE, BuildError
from buildsys.model import ActionId, RuleName, Shard
from buildsys.request import Variation
from buildsys.spec.graph import FromFile, FromRule, Graph, Origin, path_regex
from buildsys.spec.rulefile import read_rules

RUN = 'run = "s.py::f"\n'
PIPELINE = """
[rule.prompts]
run = "s.py::f"
inputs = { source = "data/all.jsonl" }
outputs = { prompts = "build/{profile}/prompts/{shard}.jsonl", summary = "build/{profile}/summary.json" }
[rule.samples]
each = { shard = "@prompts.prompts[*]" }
run = "s.py::f"
inputs = { prompts = "@prompts.prompts", summary = "@prompts.summary", words = "data/words.txt" }
outputs = { samples = "build/{profile}/samples/{shard}.parquet" }
[rule.tokens]
each = { shard = "@samples[*]" }
run = "s.py::f"
inputs = { samples = "@samples", all = "@samples[*]", vocab = "@vocab", extra = "extra/{shard}.txt" }
outputs = { tokens = "build/{profile}/tokens/{shard}.bin" }
[rule.vocab]
run = "s.py::f"
inputs = { samples = "@samples[*]", lists = "data/lists/*.txt" }
outputs = { vocab = "build/{profile}/vocab" }
[rule.texts]
each = { part = "data/texts/{part}.txt" }
run = "s.py::f"
inputs = { text = "data/texts/{part}.txt" }
outputs = { texts = "build/{profile}/texts/{part}.txt", sizes = "build/{profile}/sizes/{part}.json" }
[rule.score]
each = { shard = "@texts.texts[*]" }
run = "s.py::f"
services = ["verifier"]
inputs = { text = "@texts.texts" }
outputs = { score = "build/{profile}/score/{shard}.json" }
[rule.model]
default = false
run = "s.py::f"
outputs = { model = "build/{profile}/model" }
[service.verifier]
shell = "serve {inputs.model} {port}"
inputs = { model = "@model" }
ready = "http://127.0.0.1:{port}"
"""


def graph(text: str = PIPELINE, profile: str = "default") -> Graph:
    return Graph(replace(read_rules({"rules/a.toml": text}, {}.get), variation=Variation(profile)))


def rules(**tables: str) -> str:
    """Rule files' text: each rule with these lines; with an output of its name unless it says otherwise."""
    return "\n".join(
        f"[rule.{name}]\n{RUN}{lines}\n" + ("" if "outputs" in lines else f'outputs = {{ o = "build/{name}" }}\n')
        for name, lines in tables.items()
    )


def action(rule: str, shard: str = "") -> ActionId:
    return ActionId(RuleName(rule), Shard(shard))


SHARDED = 'outputs = { o = "build/a/{shard}" }'
TEXTS = 'each = { shard = "data/{shard}.txt" }\noutputs = { o = "build/texts/{shard}" }'


# ---------------------------------------------------------------- origins and what feeds what


@pytest.mark.parametrize(
    ("rule", "origin", "told"),
    [
        ("prompts", None, "None"),
        ("samples", Origin(RuleName("prompts")), "@prompts"),
        ("tokens", Origin(RuleName("prompts")), "@prompts"),
        ("vocab", None, "None"),
        ("texts", Origin(None, "data/texts/{shard}.txt"), "data/texts/{shard}.txt"),
        ("score", Origin(None, "data/texts/{shard}.txt"), "data/texts/{shard}.txt"),
    ],
)
def test_a_rule_has_the_shards_of_the_rule_or_pattern_that_they_come_from(
    rule: RuleName, origin: Origin | None, told: str
) -> None:
    assert graph().origins[rule] == origin
    assert str(graph().origins[rule]) == told


@pytest.mark.parametrize(
    ("rule", "upstream"),
    [
        ("prompts", []),
        ("samples", ["prompts"]),
        ("tokens", ["samples", "vocab"]),
        ("vocab", ["samples"]),
        ("score", ["texts", "model"]),
    ],
)
def test_a_rule_needs_those_that_it_names_and_those_of_its_services(rule: RuleName, upstream: list[str]) -> None:
    assert graph().upstream(rule) == upstream


def test_rules_are_ordered_after_what_they_need_and_else_as_they_are_written() -> None:
    assert graph().order == ("prompts", "samples", "vocab", "tokens", "texts", "model", "score")


@pytest.mark.parametrize(
    ("lines", "services"),
    [
        ('services = ["two", "one"]', ["two", "one"]),
        ('services = ["one", "one"]', ["one"]),
        ("", []),
    ],
)
def test_the_services_of_a_rule_are_those_that_it_names(lines: str, services: list[str]) -> None:
    text = rules(a=lines) + "".join(
        f'[service.{name}]\nshell = "x {{port}}"\nready = "http://x:{{port}}"\n' for name in ("one", "two")
    )
    found = graph(text)
    assert [service.name for service in found.services_of(found.rules[RuleName("a")])] == services


def test_the_endpoint_of_a_chat_rule_is_a_service_too() -> None:
    text = (
        '[rule.a]\nchat = "s.py::f"\nendpoint = "service:v"\nservices = ["w", "v"]\ninputs = { i = "x" }\n'
        'outputs = { o = "build/o.jsonl" }\n'
    ) + "".join(f'[service.{name}]\nshell = "x {{port}}"\nready = "http://x:{{port}}"\n' for name in "vw")
    found = graph(text)
    assert [service.name for service in found.services_of(found.rules[RuleName("a")])] == ["w", "v"]


@pytest.mark.parametrize(
    ("rule", "own"),
    [
        ("prompts", set()),
        ("samples", {"prompts"}),
        ("tokens", {"samples", "extra"}),
        ("vocab", set()),
        ("texts", {"text"}),
        ("score", {"text"}),
    ],
)
def test_the_own_inputs_of_an_action_are_those_that_differ_from_shard_to_shard(rule: RuleName, own: set[str]) -> None:
    found = graph()
    assert found.own_inputs(found.rules[rule]) == own


def test_the_inputs_of_an_action_are_files_and_outputs_with_its_shard_filled_in() -> None:
    found = graph(profile="small")
    assert found.sources(action("tokens", "07")) == [
        FromRule("samples", RuleName("samples"), "samples", Shard("07"), many=False),
        FromRule("all", RuleName("samples"), "samples", Shard(""), many=True),
        FromRule("vocab", RuleName("vocab"), "vocab", Shard(""), many=False),
        FromFile("extra", "extra/07.txt", many=False),
    ]
    assert found.sources(action("samples", "07")) == [
        FromRule("prompts", RuleName("prompts"), "prompts", Shard("07"), many=False),
        FromRule("summary", RuleName("prompts"), "summary", Shard(""), many=False),
        FromFile("words", "data/words.txt", many=False),
    ]
    assert found.sources(action("vocab"))[1] == FromFile("lists", "data/lists/*.txt", many=True)
    service = found.services["verifier"]
    assert found.service_sources(service) == [FromRule("model", RuleName("model"), "model", Shard(""), many=False)]


@pytest.mark.parametrize(
    ("of", "n", "maker"),
    [
        (action("tokens", "07"), 0, action("samples", "07")),
        (action("tokens", "07"), 2, action("vocab")),
        (action("samples", "07"), 0, action("prompts")),
        (action("samples", "07"), 1, action("prompts")),
        (action("score", "x"), 0, action("texts", "x")),
    ],
)
def test_an_output_is_made_by_the_action_of_its_shard_or_the_only_one(of: ActionId, n: int, maker: ActionId) -> None:
    found = graph()
    source = found.sources(of)[n]
    assert isinstance(source, FromRule)
    assert found.maker(source) == maker


def test_a_rule_has_one_action_or_one_a_shard() -> None:
    shards = [Shard("1"), Shard("2")]
    assert list(graph().actions(RuleName("vocab"), shards)) == [action("vocab")]
    assert list(graph().actions(RuleName("prompts"), shards)) == [action("prompts")]
    assert list(graph().actions(RuleName("tokens"), shards)) == [action("tokens", "1"), action("tokens", "2")]


# ---------------------------------------------------------------- references that can't be met

REFUSED: dict[str, tuple[str, str, dict[str, str], str]] = {
    # what: (rules, problem, facts, hint)
    "this shard for a rule without shards": (
        rules(a=SHARDED, b='inputs = { i = "@a" }'),
        'input "i" of [rule.b] asks for "this shard" of a, but the two do not share their shards',
        {"rule.b": "no shards", "a": "shards of @a"},
        'write "@a[*]" for the list of all, or each = { shard = "@a[*]" } for one action a shard',
    ),
    "this shard of another origin": (
        rules(
            a=SHARDED,
            texts=TEXTS,
            b='each = { shard = "@texts[*]" }\ninputs = { i = "@a" }\noutputs = { o = "build/b/{shard}" }',
        ),
        'input "i" of [rule.b] asks for "this shard" of a, but the two do not share their shards',
        {"rule.b": "shards of data/{shard}.txt", "a": "shards of @a"},
        'write "@a[*]" for the list of all, or each = { shard = "@a[*]" } for one action a shard',
    ),
    "this shard, by the name of the output": (
        rules(a='outputs = { x = "build/x/{shard}", y = "build/y" }', b='inputs = { i = "@a.x" }'),
        'input "i" of [rule.b] asks for "this shard" of a, but the two do not share their shards',
        {"rule.b": "no shards", "a": "shards of @a"},
        'write "@a.x[*]" for the list of all, or each = { shard = "@a.x[*]" } for one action a shard',
    ),
    "this shard for a service": (
        rules(a=SHARDED)
        + '[service.v]\nshell = "x {port} {inputs.m}"\nready = "http://x:{port}"\ninputs = { m = "@a" }\n',
        'input "m" of [service.v] asks for "this shard" of a, but the two do not share their shards',
        {"service.v": "no shards", "a": "shards of @a"},
        'write "@a[*]" for the list of all',
    ),
    "all shards of a rule that has none": (
        rules(a="", b='inputs = { i = "@a[*]" }'),
        'input "i" of [rule.b] asks for all shards of a, which has none',
        {},
        'write "@a"',
    ),
    "all shards of an origin's output that has none": (
        rules(a='outputs = { x = "build/x/{shard}", y = "build/y" }', b='inputs = { i = "@a.y[*]" }'),
        'input "i" of [rule.b] asks for all shards of a.y, which has none',
        {},
        'write "@a.y"',
    ),
    "the shards of a rule that has none": (
        rules(a="", b='each = { shard = "@a[*]" }\noutputs = { o = "build/b/{shard}" }'),
        "[rule.b] takes the shards of a, which has none",
        {},
        "give [rule.a] an `each`, or {shard} in its outputs",
    ),
    "an output by its path": (
        rules(a="", b='inputs = { i = "build/a/deep/x" }'),
        'input "i" of [rule.b] meets an output of [rule.a]',
        {"input": "build/a/deep/x", "output": "build/a"},
        'write "@a.o", so that it is built first',
    ),
    "outputs by a pattern with a star": (
        rules(a=SHARDED, b='inputs = { i = "build/a/*" }'),
        'input "i" of [rule.b] meets an output of [rule.a]',
        {"input": "build/a/*", "output": "build/a/{shard}"},
        'write "@a.o", so that it is built first',
    ),
    "the folder that outputs are in": (
        rules(a=SHARDED, b='inputs = { i = "build" }'),
        'input "i" of [rule.b] meets an output of [rule.a]',
        {"input": "build", "output": "build/a/{shard}"},
        'write "@a.o", so that it is built first',
    ),
    "an output by its path, for a service": (
        rules(a="")
        + '[service.v]\nshell = "x {port} {inputs.m}"\nready = "http://x:{port}"\ninputs = { m = "build/a" }\n',
        'input "m" of [service.v] meets an output of [rule.a]',
        {"input": "build/a", "output": "build/a"},
        'write "@a.o", so that it is built first',
    ),
    "a rule that needs itself": (
        rules(a='inputs = { i = "@a" }'),
        "rules need each other in a circle",
        {"a": "rules/a.toml:1:7"},
        "a → a",
    ),
    "a circle of three, told whole and without what leads to it": (
        rules(
            z='inputs = { i = "@b" }', a='inputs = { i = "@b" }', b='inputs = { i = "@c" }', c='inputs = { i = "@a" }'
        ),
        "rules need each other in a circle",
        {"b": "rules/a.toml:11:7", "c": "rules/a.toml:16:7", "a": "rules/a.toml:6:7"},
        "b → c → a → b",
    ),
    "a circle through shards": (
        rules(
            a='each = { shard = "@b[*]" }\noutputs = { o = "build/a/{shard}" }',
            b='inputs = { i = "@a[*]" }\noutputs = { o = "build/b/{shard}" }',
        ),
        "rules need each other in a circle",
        {"a": "rules/a.toml:1:7", "b": "rules/a.toml:6:7"},
        "a → b → a",
    ),
    "a circle through a service": (
        rules(a='services = ["v"]')
        + '[service.v]\nshell = "x {port} {inputs.m}"\nready = "http://x:{port}"\ninputs = { m = "@a" }\n',
        "rules need each other in a circle",
        {"a": "rules/a.toml:1:7"},
        "a → a",
    ),
}


@pytest.mark.parametrize(("text", "problem", "facts", "hint"), REFUSED.values(), ids=REFUSED)
def test_what_can_t_be_met_is_refused_and_told_what_to_write(
    text: str, problem: str, facts: dict[str, str], hint: str
) -> None:
    with pytest.raises(BuildError) as caught:
        graph(text)
    error = caught.value
    assert (error.problem, dict(error.facts), error.hint) == (problem, facts, hint)
    assert error.exit_code == USAGE
    assert error.place is not None


def test_an_error_about_an_input_is_at_that_input() -> None:
    with pytest.raises(BuildError) as caught:
        graph(rules(a=SHARDED, b='inputs = { x = "data/x", i = "@a" }'))
    assert str(caught.value.place) == "rules/a.toml:7:26"


@pytest.mark.parametrize(
    "text",
    [
        rules(a='inputs = { i = "data/a" }', b='inputs = { i = "build/ab" }'),
        rules(a=SHARDED, b='inputs = { i = "@a[*]" }', c='inputs = { i = "@a[*]", j = "@b" }'),
        rules(a='outputs = { x = "build/x/{shard}", y = "build/y" }', b='inputs = { i = "@a.y", j = "@a.x[*]" }'),
    ],
    ids=["paths apart", "folds", "the one output of an origin that has no shards"],
)
def test_what_can_be_met_is_taken(text: str) -> None:
    assert graph(text).order[-1] in ("b", "c")


# ---------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("vocab", "vocab"),
        ("tokens", "tokens"),
        ("tokens[*]", "tokens"),
        ("tokens[0003]", action("tokens", "0003")),
        ("tokens[a.b-c_d]", action("tokens", "a.b-c_d")),
        ("build/default/tokens/0003.bin", action("tokens", "0003")),
        ("./build/default/tokens/0003.bin", action("tokens", "0003")),
        ("build/default/texts/x.txt", action("texts", "x")),
        ("build/default/sizes/x.json", action("texts", "x")),
        ("build/default/vocab", "vocab"),
        ("build/default/vocab/", "vocab"),
        ("build/default/prompts/0003.jsonl", "prompts"),
        ("build/default/summary.json", "prompts"),
    ],
)
def test_a_target_is_a_rule_a_shard_of_it_or_the_path_of_an_output(text: str, target: ActionId | str) -> None:
    assert graph().target(text) == target


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("token", 'no rule, action or output is called "token"', 'did you mean "tokens"?'),
        ("token[3]", 'no rule, action or output is called "token[3]"', 'did you mean "tokens"?'),
        ("tokens[]", 'no rule, action or output is called "tokens[]"', 'did you mean "tokens"?'),
        ("tokens[3", 'no rule, action or output is called "tokens[3"', 'did you mean "tokens"?'),
        ("tokens[3]x", 'no rule, action or output is called "tokens[3]x"', 'did you mean "tokens"?'),
        ("vocab[3]", "vocab has no shards, but one action", 'write "vocab"'),
        ("prompts[3]", "prompts has no shards, but one action", 'write "prompts"'),
        ("build/small/vocab", 'no rule, action or output is called "build/small/vocab"', None),
        ("build/default/tokens/x/y.bin", 'no rule, action or output is called "build/default/tokens/x/y.bin"', None),
        ("data/all.jsonl", 'no rule, action or output is called "data/all.jsonl"', None),
        ("", 'no rule, action or output is called ""', None),
    ],
)
def test_a_target_that_is_not_there_is_told_with_the_nearest_name(text: str, problem: str, hint: str | None) -> None:
    with pytest.raises(BuildError) as caught:
        graph().target(text)
    assert (caught.value.problem, caught.value.exit_code) == (problem, NO_SUCH_TARGET)
    if hint:
        assert caught.value.hint == hint


# ---------------------------------------------------------------- wanted


@pytest.mark.parametrize(
    ("targets", "wanted"),
    [
        (["prompts"], {"prompts": None}),
        (["samples"], {"prompts": None, "samples": None}),
        (["samples[1]"], {"prompts": {"1"}, "samples": {"1"}}),
        (["samples[1]", "samples[2]"], {"prompts": {"1", "2"}, "samples": {"1", "2"}}),
        (["samples[1]", "samples"], {"prompts": None, "samples": None}),
        (["vocab"], {"prompts": None, "samples": None, "vocab": None}),
        (["tokens[1]"], {"prompts": None, "samples": None, "vocab": {"1"}, "tokens": {"1"}}),
        (["build/default/texts/x.txt"], {"texts": {"x"}}),
        (["score[x]"], {"texts": {"x"}, "model": None, "score": {"x"}}),
        (["model"], {"model": None}),
        (["texts[x]", "vocab"], {"prompts": None, "samples": None, "vocab": None, "texts": {"x"}}),
    ],
)
def test_what_is_wanted_is_the_targets_with_all_that_they_need(
    targets: list[str], wanted: dict[str, set[str] | None]
) -> None:
    found = graph().wanted(targets).shards
    assert list(found) == [rule for rule in graph().order if rule in wanted]
    assert found == wanted


def test_without_a_target_all_is_wanted_but_what_is_built_only_when_named_or_needed() -> None:
    text = rules(a="default = false", b='inputs = { i = "@a" }', c="default = false", d="")
    assert graph(text).wanted([]).shards == dict.fromkeys("abd")


@pytest.mark.parametrize(
    ("asked", "inside"),
    [
        (action("tokens", "1"), True),
        (action("tokens", "2"), False),
        (action("tokens"), True),
        (action("vocab"), True),
        (action("prompts"), True),
        (action("samples", "2"), True),
        (action("texts", "1"), False),
    ],
)
def test_an_action_is_wanted_by_its_shard_or_where_it_stands_for_all(asked: ActionId, inside: bool) -> None:
    assert (asked in graph().wanted(["tokens[1]"])) is inside


# ---------------------------------------------------------------- paths


def test_an_output_is_a_table_of_its_rule_s_name_or_of_both_names() -> None:
    assert [(place.view, place.rule, place.output) for place in graph().tables()] == [
        ("prompts", "prompts", "prompts"),
        ("prompts_summary", "prompts", "summary"),
        ("samples", "samples", "samples"),
        ("tokens", "tokens", "tokens"),
        ("vocab", "vocab", "vocab"),
        ("texts", "texts", "texts"),
        ("texts_sizes", "texts", "sizes"),
        ("score", "score", "score"),
        ("model", "model", "model"),
    ]
    assert [place.view for place in graph(rules(a="")).tables()] == ["a"]


@pytest.mark.parametrize(
    ("pattern", "path", "shard"),
    [
        ("build/{profile}/a.bin", "build/default/a.bin", ""),
        ("build/{profile}/a.bin", "build/other/a.bin", None),
        ("build/{profile}/a.bin", "build/default/aXbin", None),
        ("build/{profile}/a.bin", "build/default/a.bin/x", None),
        ("build/{shard}.bin", "build/0003.bin", "0003"),
        ("build/{shard}.bin", "build/a.b.bin", "a.b"),
        ("build/{shard}.bin", "build/.hidden.bin", None),
        ("build/{shard}.bin", "build/.bin", None),
        ("build/{shard}.bin", "build/a/b.bin", None),
        ("build/{shard}.bin", "build/ä.bin", None),
        ("build/{shard}/{shard}.bin", "build/a/a.bin", "a"),
        ("build/{shard}/{shard}.bin", "build/a/b.bin", None),
        ("{profile}/x-{shard}-y/z", "default/x-1-2-y/z", "1-2"),
        ("build/{{shard}}.bin", "build/{shard}.bin", ""),
        ("build/{{shard}}.bin", "build/0003.bin", None),
        ("build/(a|b)+/{shard}", "build/(a|b)+/1", "1"),
    ],
)
def test_a_pattern_matches_just_the_paths_that_it_can_name(pattern: str, path: str, shard: str | None) -> None:
    match = path_regex(pattern, "default").fullmatch(path)
    assert (match and match.groupdict().get("shard", "")) == shard


@pytest.mark.parametrize(
    "rules",
    [
        """
        [rule.a]
        run     = "a.py::f"
        outputs = { b = "x/b.csv", c = "x/c.csv" }
        [rule.a_b]
        run     = "a.py::g"
        outputs = { o = "y/o.csv" }
        """,
        """
        [rule.code]
        run     = "a.py::f"
        outputs = { deps = "x/b.csv", c = "x/c.csv" }
        """,
    ],
    ids=["another output", "a public view"],
)
def test_two_outputs_of_one_name_in_sql_are_refused(rules: str) -> None:
    with pytest.raises(BuildError, match="in SQL, as another is"):
        Graph(read_rules({"rules/a.toml": rules}, lambda path: None))
