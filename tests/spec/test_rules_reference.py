"""The JSON Schema and the reference: made from the declarations, and right."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from buildsys.spec.rulefile import CHAT_ONLY, read_rules
from buildsys.spec.schema import json_schema, rules_reference

DOCS = Path(__file__).parents[2] / "docs" / "rules.md"
CONFIG = """
samples = 1
shards = 1
verifier = { model = "m", path = "models/m" }
sampling = { max_tokens = 1, temperature = 1.0 }
"""
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHERS = """
[rule.prompts]
run = "s.py::f"
outputs = { prompts = "others/{shard}" }
[rule.replies]
run = "s.py::f"
outputs = { replies = "others.replies" }
"""


def examples(section: str) -> list[str]:
    """The TOML examples of one section of the page on disk."""
    return EXAMPLE.findall(dict(SECTION.findall(DOCS.read_text(encoding="utf-8")))[section])


def reads(text: str, config: str = "c.toml") -> None:
    head = f'config = "{config}"\n' if "config =" not in text else ""
    read_rules({"rules/a.toml": head + text}, {config: CONFIG, "workspace/configs/eagle3.toml": CONFIG}.get)


def test_the_page_is_what_the_declarations_say() -> None:
    assert DOCS.read_text(encoding="utf-8") == rules_reference(), (
        "write it anew: python -c 'from buildsys.spec.schema import rules_reference as r; print(r(), end=\"\")'"
        " > docs/rules.md"
    )


def test_the_rule_file_at_the_top_of_the_page_can_be_read() -> None:
    (tour,) = EXAMPLE.findall(DOCS.read_text(encoding="utf-8").partition("\n## ")[0])
    reads(tour)


def test_every_key_of_a_rule_has_an_example_that_can_be_read() -> None:
    found = examples("`[rule.NAME]`")
    assert len(found) == len(json_schema()["$defs"]["RuleTable"]["properties"])
    for example in found:
        reads(_rule_with(example))


def _rule_with(example: str) -> str:
    """A whole rule file around one key of a rule, with what that key needs beside it."""
    key = example.partition(" ")[0]
    given = {
        "run": 'run = "s.py::f"\n',
        "outputs": 'outputs = { samples = "out/{shard}", sorted = "out.sorted/{shard}" }\n',
        "each": 'each = { shard = "@prompts[*]" }\n' if key != "metrics" else "",
        "inputs": 'inputs = { words = "data/words" }\n',
    }
    if key in ("chat", *CHAT_ONLY):
        given |= {"run": 'chat = "s.py::f"\n', "outputs": 'outputs = { replies = "out/{shard}" }\n'}
        given["endpoint"] = 'endpoint = "http://gpu:80"\n'
        given["identity"] = 'identity = "m"\n'
    if key == "metrics":
        given["outputs"] = 'outputs = { report = "out/report.json" }\n'
    given[{"shell": "run", "chat": "run"}.get(key, key)] = example
    service = '[service.verifier]\nshell = "x {port}"\nready = "http://127.0.0.1:{port}"\n'
    return f"[rule.a]\n{''.join(given.values())}{OTHERS}{service}"


def test_every_key_of_a_service_has_an_example_that_can_be_read() -> None:
    found = examples("`[service.NAME]`")
    assert len(found) == len(json_schema()["$defs"]["ServiceTable"]["properties"])
    reads("[service.v]\n" + "".join(found))


def test_every_key_of_a_check_has_an_example_that_can_be_read() -> None:
    found = examples("`[rule.NAME.checks.CHECK]`")
    assert len(found) == len(json_schema()["$defs"]["CheckTable"]["properties"])
    reads(f'[rule.a]\nrun = "s.py::f"\noutputs = {{ samples = "s.jsonl" }}\n[rule.a.checks.c]\n{"".join(found)}')


def test_every_key_of_the_file_has_an_example_that_can_be_read() -> None:
    for example in examples("The file"):
        reads(example)


@pytest.mark.parametrize(("table", "beside"), [("store", ""), ("price", ""), ("limits", "[price]\nrequest = 1\n")])
def test_every_key_of_a_table_for_the_project_has_an_example_that_can_be_read(table: str, beside: str) -> None:
    reads(f"{beside}[{table}]\n" + "".join(examples(f"`[{table}]`")))


@pytest.mark.parametrize("name", ["RuleTable", "CheckTable", "ServiceTable", "StoreTable", "PriceTable", "LimitsTable"])
def test_the_schema_tells_every_key_with_meaning_and_example(name: str) -> None:
    table = json_schema()["$defs"][name]
    assert table["additionalProperties"] is False
    for key, schema in table["properties"].items():
        assert schema["description"].endswith("."), key
        assert schema["examples"], key


def test_the_schema_is_one_that_editors_read() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    file = schema["$defs"]["FileTable"]["properties"]
    assert file["rule"]["additionalProperties"] == {"$ref": "#/$defs/RuleTable"}
    rule = schema["$defs"]["RuleTable"]
    assert rule["oneOf"] == [{"required": ["run"]}, {"required": ["shell"]}, {"required": ["chat"]}]
    assert rule["required"] == ["outputs"]
    check = rule["properties"]["checks"]["additionalProperties"]
    assert check["anyOf"] == [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/CheckTable"}]
    assert schema["$defs"]["CheckTable"]["properties"]["severity"]["enum"] == ["error", "warn"]
    for reference in _references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


@pytest.mark.parametrize("key", ["run", "chat"])
def test_the_schema_knows_a_function_when_it_sees_one(key: str) -> None:
    pattern = json_schema()["$defs"]["RuleTable"]["properties"][key]["pattern"]
    assert re.search(pattern, "workspace/scripts/01_a.py::f_1")
    assert not [text for text in ("a.py", "a.py:f", "a.py::1", "a::f", "a.py::f()") if re.search(pattern, text)]


def _references(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["$ref"]] if "$ref" in schema else []
        return own + [found for part in schema.values() for found in _references(part)]
    return [found for part in schema for found in _references(part)] if isinstance(schema, list) else []


def test_each_example_is_one_key() -> None:
    for section in ("`[rule.NAME]`", "`[service.NAME]`"):
        assert [len(tomllib.loads(example)) for example in examples(section)] == [1] * len(examples(section))
