"""A setting is passed and recorded, and decides nothing."""

from __future__ import annotations

import pytest

from buildsys.query import sql
from tests.behaviour.conftest import Space

RULES = """
config = "config.toml"

[rule.said]
run      = "say.py::say"
params   = { word = "hello" }
settings = { times = "$times", loud = true }
outputs  = { said = "build/said.txt" }

[rule.shouted]
shell    = "tr a-z A-Z < {inputs.said} > {outputs.shouted}; echo {settings.sign} >> {outputs.shouted}"
inputs   = { said = "@said" }
settings = { sign = "END" }
outputs  = { shouted = "build/shouted.txt" }
"""


@pytest.fixture
def said(space: Space) -> Space:
    space.write("rules/r.toml", RULES)
    space.write("config.toml", "times = 2\n")
    space.write("say.py", "def say(word, times, loud, said):\n    said.write_text(word * times + str(loud))\n")
    assert space.build().errors == ""
    return space


def settings(space: Space) -> list[tuple[object, ...]]:
    return sql(space.root, "SELECT rule, name, value, config_key, n_actions FROM settings ORDER BY ALL").rows


def test_a_changed_setting_runs_nothing(said: Space) -> None:
    assert said.read("build/said.txt") == "hellohelloTrue"
    said.write("config.toml", "times = 3\n")
    said.replace("rules/r.toml", '"END"', '"OVER"')
    assert said.build().ran == []


def test_those_of_what_holds_are_shown_with_their_types_and_keys(said: Space) -> None:
    before = settings(said)
    assert before == [
        ("said", "loud", "True (bool)", "", 1),
        ("said", "times", "2 (int)", "times", 1),
        ("shouted", "sign", "'END' (str)", "", 1),
    ]
    said.write("config.toml", "times = 3\n")
    said.build()
    assert settings(said) == before
    said.replace("rules/r.toml", '"hello"', '"good day"')
    said.build()
    assert ("said", "times", "3 (int)", "times", 1) in settings(said)


def test_two_runs_are_compared_by_settings_too(said: Space) -> None:
    said.write("config.toml", "times = 3\n")
    said.replace("rules/r.toml", '"hello"', '"good day"')
    said.build()
    found = sql(said.root, "SELECT rule, kind, name, a, b FROM compare(1, 2) WHERE kind IN ('param', 'setting')").rows
    assert found == [
        ("said", "param", "word", "'hello' (str)", "'good day' (str)"),
        ("said", "setting", "times", "2 (int)", "3 (int)"),
    ]


def test_lineage_tells_the_settings_of_all_that_led_there(said: Space) -> None:
    query = "SELECT rule, name, value FROM upstream('build/shouted.txt') WHERE kind = 'setting' ORDER BY ALL"
    assert [row[1] for row in sql(said.root, query).rows] == ["loud", "times", "sign"]
    edges = sql(said.root, "SELECT rule, name FROM edges WHERE role = 'setting' ORDER BY ALL").rows
    assert edges == [("said", "loud"), ("said", "times"), ("shouted", "sign")]
