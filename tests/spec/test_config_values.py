"""Configs: the three formats give the same typed values, and say where they are broken."""

from __future__ import annotations

import datetime
import subprocess
import sys

import pytest

from buildsys.errors import BuildError, Place
from buildsys.spec.config import key_line, parse_config

TOML = """
name = "x"
[sampling]
temperature = 1e-5
max_tokens = 12
stop = ["a", "b"]
greedy = true
"""
YAML = """
name: x
sampling:
  temperature: 1e-5
  max_tokens: 012
  stop: [a, b]
  greedy: true
"""
JSON = '{"name": "x", "sampling": {"temperature": 1e-5, "max_tokens": 12, "stop": ["a", "b"], "greedy": true}}'


@pytest.mark.parametrize(("path", "text"), [("c.toml", TOML), ("c.yaml", YAML), ("c.yml", YAML), ("c.json", JSON)])
def test_the_formats_give_the_same_values_of_the_same_types(path: str, text: str) -> None:
    config = parse_config(path, text)
    sampling = config.get("sampling")
    assert sampling == {"temperature": 1e-5, "max_tokens": 12, "stop": ["a", "b"], "greedy": True}
    assert [type(value) for value in sampling.values()] == [float, int, list, bool]  # type: ignore[attr-defined]
    assert config.get("sampling.greedy") is True


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("NO", "NO"),
        ("on", "on"),
        ("012", 12),
        ("0o17", 15),
        ("12:30:45", "12:30:45"),
        ("1e-5", 1e-5),
        ("~", None),
        ("2001-12-14", datetime.date(2001, 12, 14)),
    ],
)
def test_yaml_is_read_as_1_2(written: str, value: object) -> None:
    found = parse_config("c.yaml", f"a: {written}").get("a")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("path", "text", "place", "problem"),
    [
        ("c.toml", "a = 1\nb =\n", Place("c.toml", 2, 4), "not TOML: no value here"),
        ("c.yaml", "a: [1\nb: 2\n", Place("c.yaml", 2, 2), "not YAML: expected ',' or ']', but got ':'"),
        ("c.yaml", "a: 1\na: 2\n", Place("c.yaml", 2, 1), "not YAML: found duplicate key"),
        ("c.yaml", "a: 1\nb: !lambda x\n", Place("c.yaml", 2, 4), "not YAML: could not determine a constructor"),
        ("c.yaml", "a: \x01\n", Place("c.yaml"), "not YAML: unacceptable character"),
        ("c.yaml", "a:\n  1: x\n", Place("c.yaml"), "a key that is no text: 1 in a"),
        ("c.yaml", "a: !!set {b}\n", Place("c.yaml"), "a is a set"),
        ("c.json", '{"a": 1,\n"b" 2}', Place("c.json", 2, 1), "not JSON: "),
        ("c.json", '{"a": 1, "a": 2}', Place("c.json"), 'not JSON: the key "a" is given twice'),
        ("c.json", "[1]", Place("c.json", 1), "a config without keys"),
        ("c.ini", "[a]", Place("c.ini"), "not a config"),
    ],
)
def test_a_broken_config_says_where(path: str, text: str, place: Place, problem: str) -> None:
    with pytest.raises(BuildError) as caught:
        parse_config(path, text)
    assert caught.value.problem.startswith(problem)
    assert caught.value.place is not None
    assert (caught.value.place.path, caught.value.place.line) == (place.path, place.line)
    assert f"→ {place.line} │ {text.splitlines()[place.line - 1]}" in caught.value.excerpt or not place.column


def test_an_empty_yaml_file_is_an_empty_config() -> None:
    assert parse_config("c.yaml", "# nothing yet\n").tree == {}


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("sampling.max_token", 'did you mean "sampling.max_tokens"?'),
        ("samplng", 'did you mean "sampling"?'),
        ("zzz", "valid here: name, sampling"),
    ],
)
def test_a_missing_key_tells_the_nearest(key: str, hint: str) -> None:
    with pytest.raises(BuildError, match="no key") as caught:
        parse_config("c.toml", TOML).get(key)
    assert caught.value.hint == hint


@pytest.mark.parametrize(("path", "loaded"), [("c.toml", "False"), ("c.json", "False"), ("c.yaml", "True")])
def test_the_yaml_reader_is_loaded_for_yaml_alone(path: str, loaded: str) -> None:
    code = (
        "import sys; from buildsys.spec.config import key_line, parse_config;"
        f"parse_config({path!r}, {'{}' if path != 'c.toml' else ''!r});"
        "print('ruamel.yaml' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == loaded


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("c.toml", "a = 1\n\n[b]\nc = 2\nd.e = 3\n", {"a": 1, "b": 3, "b.c": 4, "b.d.e": 5, "b.x": 0, "x": 0}),
        (
            "c.yaml",
            "# first\na: 1\nb:\n  c: 2\n  d: {e: 3}\n",
            {"a": 2, "b": 3, "b.c": 4, "b.d.e": 5, "a.x": 0, "x": 0},
        ),
        ("c.json", '{\n "a": 1,\n "b": {\n  "c": 2}}\n', {"a": 2, "b": 3, "b.c": 4, "b.x": 0}),
        ("c.yaml", "", {"a": 0}),
    ],
    ids=["TOML", "YAML", "JSON", "nothing"],
)
def test_the_line_of_a_key_is_known_in_every_format(path: str, text: str, lines: dict[str, int]) -> None:
    assert {key: key_line(path, text, key) for key in lines} == lines
