"""What a rule file declares, read into records."""

from __future__ import annotations

import datetime
import subprocess
import sys

import pytest

from buildsys.errors import BuildError, Place
from buildsys.model import Check, Each, Input, Output, Param, Ref, Rule, RuleName, Service, Versions
from buildsys.spec.declared import Declared
from buildsys.spec.rulefile import read_rules
from buildsys.spec.schema import EXAMPLE

CONFIG = """
samples = 100
shards = 8
day = 1979-05-27
[verifier]
model = "tiny"
path = "models/tiny"
endpoint = "http://gpu:8000/v1"
identity = "tiny@1"
[sampling]
max_tokens = 64
temperature = 1e-5
"""


def read(text: str, config: str = CONFIG) -> Declared:
    head = 'config = "c.toml"\n' if "config =" not in text else ""
    return read_rules({"rules/a.toml": head + text}, {"c.toml": config, "workspace/configs/eagle3.toml": config}.get)


def rule(text: str) -> Rule:
    """The rule "a": one that runs and has an output, unless the text says otherwise."""
    lines = ["[rule.a]", text]
    if not any(f"{kind} =" in text for kind in ("run", "shell", "chat")):
        lines.append('run = "s.py::f"')
    if "outputs =" not in text:
        lines.append('outputs = { o = "b/o" }')
    return read("\n".join(lines)).rules[RuleName("a")]


def test_a_check_is_a_text_or_a_table() -> None:
    more = 'severity = "warn", canary = false'
    text = f'checks = {{ a = "SELECT true", b = {{ sql = "FROM o" }}, c = {{ sql = "FROM o", {more} }} }}'
    a, b, c = rule(text).checks
    assert (a.name, a.sql, a.severity, a.canary) == ("a", "SELECT true", "error", True)
    assert (b.name, b.sql, b.severity, b.canary) == ("b", "FROM o", "error", True)
    assert (c.name, c.sql, c.severity, c.canary) == ("c", "FROM o", "warn", False)
    assert [check.place.column for check in (a, b, c)] == [text.index(f"{name} =") + 1 for name in "abc"]


def test_the_example_of_the_reference_is_read_whole() -> None:
    declared = read(EXAMPLE)
    assert list(declared.rules) == ["prompts", "replies", "samples", "sizes"]
    prompts, replies, samples, sizes = declared.rules.values()

    def place(line: int, column: int) -> Place:
        return Place("rules/a.toml", line, column)

    assert prompts == Rule(
        name=RuleName("prompts"),
        kind="run",
        place=place(3, 7),
        about="The source conversations, cleaned, capped and cut into prompt shards.",
        script="workspace/scripts/01_prepare_prompts.py",
        function="prepare",
        inputs=(Input("source", "workspace/data/sample.jsonl", place(6, 13)),),
        params=(Param("samples", 100, "samples"), Param("shards", 8, "shards")),
        outputs=(Output("prompts", "workspace/build/{profile}/prompts/{shard}.jsonl", place(8, 13)),),
    )
    assert prompts.is_origin
    assert (replies.kind, replies.endpoint, replies.identity) == ("chat", "service:verifier", "")
    assert replies.each == Each("shard", Ref(RuleName("prompts"), every=True))
    assert samples.inputs == (Input("replies", Ref(RuleName("replies")), place(28, 13)),)
    assert samples.checks == (
        Check("reasoning_captured", "SELECT avg((reasoning <> '')::INT) >= 0.95 FROM samples", place(32, 1)),
    )
    assert sizes.command == "cat {inputs.samples} | wc --bytes > {outputs.sizes}"
    assert sizes.inputs[0].source == Ref(RuleName("samples"), every=True)
    assert declared.services == {
        "verifier": Service(
            name="verifier",
            command="{python} workspace/scripts/serve_verifier.py --model {inputs.model} --port {port}",
            ready="http://127.0.0.1:{port}/health",
            place=place(10, 10),
            inputs=(Input("model", "workspace/verifier", place(12, 12)),),
        )
    }


@pytest.mark.parametrize(
    ("written", "value", "config_key"),
    [
        ("1", 1, ""),
        ("1.0", 1.0, ""),
        ('"1"', "1", ""),
        ("true", True, ""),
        ("1979-05-27", datetime.date(1979, 5, 27), ""),
        ('"$sampling.max_tokens"', 64, "sampling.max_tokens"),
        ('"$sampling.temperature"', 1e-5, "sampling.temperature"),
        ('"$day"', datetime.date(1979, 5, 27), "day"),
        ('"$sampling"', {"max_tokens": 64, "temperature": 1e-5}, "sampling"),
        ('["$samples", { a = "$$samples", b = "@@x" }]', [100, {"a": "$samples", "b": "@x"}], ""),
        ('"$$samples"', "$samples", ""),
        ('"@@x"', "@x", ""),
        ('"a$b@c{d}{{e}}"', "a$b@c{d}{{e}}", ""),
    ],
)
@pytest.mark.parametrize("group", ["params", "settings"])
def test_a_value_keeps_its_type(group: str, written: str, value: object, config_key: str) -> None:
    (param,) = getattr(rule(f"{group} = {{ x = {written} }}"), group)
    assert param == Param("x", value, config_key)
    assert type(param.value) is type(value)


@pytest.mark.parametrize(
    ("written", "source"),
    [
        ("data/x.jsonl", "data/x.jsonl"),
        ("./data//x/", "data/x"),
        ("/models/kimi", "/models/kimi"),
        ("data/*.jsonl", "data/*.jsonl"),
        ("b/{profile}/x", "b/{profile}/x"),
        ("data/{{x}}", "data/{{x}}"),
        ("@@x", "@x"),
        ("$$x", "$x"),
        ("$verifier.path", "models/tiny"),
        ("@p", Ref(RuleName("p"))),
        ("@p.q", Ref(RuleName("p"), "q")),
        ("@p[*]", Ref(RuleName("p"), every=True)),
        ("@p.q[*]", Ref(RuleName("p"), "q", every=True)),
    ],
)
def test_an_input_is_a_path_or_a_reference(written: str, source: Ref | str) -> None:
    origin = '[rule.p]\nrun = "s.py::f"\noutputs = { q = "p/{shard}" }\n'
    text = f'{origin}[rule.a]\nrun = "s.py::f"\ninputs = {{ x = "{written}" }}\noutputs = {{ o = "b/o" }}\n'
    assert read(text).rules[RuleName("a")].inputs[0].source == source


def test_the_variable_is_called_shard_from_here_on() -> None:
    found = rule(
        'each = { part = "data/{part}.jsonl" }\n'
        'inputs = { x = "data/{part}.jsonl", y = "{{part}}" }\n'
        'outputs = { o = "b/{profile}/{part}/{{part}}" }'
    )
    assert found.each == Each("part", "data/{shard}.jsonl")
    assert [given.source for given in found.inputs] == ["data/{shard}.jsonl", "{{part}}"]
    assert found.outputs[0].pattern == "b/{profile}/{shard}/{{part}}"


def test_who_answers_at_a_url_is_read_from_the_config() -> None:
    found = rule(
        'chat = "s.py::f"\ninputs = { x = "data/x" }\nsamples = 3\n'
        'endpoint = "$verifier.endpoint"\nidentity = "$verifier.identity"\nsecrets = { api_key = "KEY" }'
    )
    assert (found.endpoint, found.identity, found.samples) == ("http://gpu:8000/v1", "tiny@1", 3)
    assert found.secrets == (("api_key", "KEY"),)


def test_the_rest_is_as_written() -> None:
    found = rule('env = ["A", "B"]\ndefault = false\nabout = "x"')
    assert (found.env, found.default, found.about) == (("A", "B"), False, "x")


def test_each_rule_file_reads_its_own_config() -> None:
    text = '[rule.{name}]\nrun = "s.py::f"\nparams = {{ n = "$n" }}\noutputs = {{ o = "b/{name}" }}\n'
    texts = {
        "rules/b.toml": 'config = "two.json"\n' + text.format(name="b"),
        "rules/a.toml": 'config = "one.yaml"\n' + text.format(name="a"),
    }
    declared = read_rules(texts, {"one.yaml": "n: 1", "two.json": '{"n": 2}'}.get)
    assert [(name, found.params[0].value) for name, found in declared.rules.items()] == [("a", 1), ("b", 2)]


def test_a_reference_may_lead_to_another_rule_file() -> None:
    texts = {
        "rules/a.toml": '[rule.a]\nrun = "s.py::f"\ninputs = { x = "@b" }\noutputs = { o = "b/a" }\nservices = ["v"]\n',
        "rules/b.toml": '[rule.b]\nrun = "s.py::f"\noutputs = { o = "b/b" }\n[service.v]\nshell = "x {port}"\n'
        'ready = "http://127.0.0.1:{port}"\n',
    }
    assert read_rules(texts, {}.get).rules[RuleName("a")].inputs[0].source == Ref(RuleName("b"))


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("", "imported"),
        ('versions = "closure"', "closure"),
        ('versions = ["torch", "Tokenizers"]', ("torch", "Tokenizers")),
        ("versions = []", ()),
    ],
)
def test_which_versions_count_is_said_by_a_word_or_by_names(text: str, versions: Versions) -> None:
    assert rule(text).versions == versions


def test_no_rule_file_is_no_rule() -> None:
    assert read_rules({}, {}.get) == Declared({}, {})


def test_a_config_that_is_broken_says_where_it_is_broken() -> None:
    with pytest.raises(BuildError) as caught:
        read('config = "c.toml"\n', config="a = 1\nb\n")
    assert caught.value.place == Place("c.toml", 2, 2)


def test_reading_rules_loads_nothing_that_is_slow_to_load() -> None:
    code = (
        "import sys, buildsys.spec.rulefile, buildsys.spec.schema;"
        "print({'duckdb', 'ruamel.yaml', 'torch', 'openai', 'rich', 'pyarrow'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "set()"
