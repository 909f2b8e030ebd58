"""`--force`: what is up to date runs again, and what is made from it only where it comes out different."""

from __future__ import annotations

from pathlib import Path

import pytest

from buildsys.events import ActionStarted
from tests.behaviour.conftest import Space

DICE = """
[rule.roll]
each    = { shard = "data/{shard}.txt" }
shell   = "cat {inputs.text} $HOME/luck.txt > {outputs.rolled}"
inputs  = { text = "data/{shard}.txt" }
outputs = { rolled = "build/{profile}/roll/{shard}.txt" }

[rule.sum]
shell   = "cat {inputs.rolled} > {outputs.sum}"
inputs  = { rolled = "@roll[*]" }
outputs = { sum = "build/{profile}/sum.txt" }

[rule.aside]
default = false
shell   = "echo aside > {outputs.aside}"
outputs = { aside = "build/{profile}/aside.txt" }
"""
"""`luck.txt` lies behind the back of the build, as a clock or a die would."""


@pytest.fixture
def luck(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    (home / "luck.txt").write_text("1")
    return home / "luck.txt"


@pytest.fixture
def dice(space: Space, luck: Path) -> Space:
    space.write("rules/dice.toml", DICE)
    space.write("data/a.txt", "a")
    space.write("data/b.txt", "b")
    built = space.build()
    assert built.outcome == "done", built.error
    return space


def test_a_forced_rule_runs_and_what_needs_it_does_not_where_it_came_out_equal(dice: Space) -> None:
    built = dice.build(force=["roll"])
    assert built.ran == ["roll[a]", "roll[b]"]
    assert built.actions("reused") == ["sum"]
    assert {event.reason for event in built.events if isinstance(event, ActionStarted)} == {"forced"}
    assert dice.build().ran == []


def test_a_forced_action_runs_alone_and_what_it_changes_is_built_upon(dice: Space, luck: Path) -> None:
    luck.write_text("2")
    assert dice.build(force=["roll[b]"]).ran == ["roll[b]", "sum"]
    assert dice.read("build/default/sum.txt") == "a1b2"
    assert dice.build().ran == []


def test_a_forced_action_that_fails_leaves_what_was_there(dice: Space, luck: Path) -> None:
    luck.unlink()
    assert dice.build(force=["roll[b]"]).failed == ["roll[b]"]
    assert dice.read("build/default/roll/b.txt") == "b1"
    assert dice.build().ran == []


@pytest.mark.parametrize(
    ("targets", "force"), [((), "aside"), (("roll[a]",), "roll[b]"), (("aside",), "build/default/sum.txt")]
)
def test_what_is_not_to_be_built_is_not_forced_either(dice: Space, targets: tuple[str, ...], force: str) -> None:
    built = dice.build(*targets, force=[force])
    assert built.error
    assert built.error.exit_code == 2
    assert built.ran == []


def test_a_rule_is_forced_as_far_as_it_is_wanted(dice: Space) -> None:
    assert dice.build("roll[a]", force=["roll"]).ran == ["roll[a]"]
    assert dice.build("aside", force=["aside"]).ran == ["aside"]


def test_an_action_that_does_not_exist_is_no_such_target(dice: Space) -> None:
    error = dice.build(force=["roll[c]"]).error
    assert error
    assert error.exit_code == 3
