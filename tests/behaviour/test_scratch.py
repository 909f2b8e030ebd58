"""A scratch folder outlives the action that works in it, until that has succeeded; each action key has its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from tests.behaviour.conftest import Space
from tests.cli.conftest import PROGRAM, environment
from tests.run.conftest import within

pytestmark = pytest.mark.timeout(60)

RULES = """
[rule.train]
run     = "scripts/train.py::train"
inputs  = { data = "data.txt" }
params  = { lr = 1 }
outputs = { model = "build/{profile}/model.txt" }
scratch = true
"""
# Each attempt leaves a line; the fourth is enough. What "stop" says ends the attempt before.
TRAIN = """
import os, time
from pathlib import Path

def train(data, lr, model, scratch):
    assert not scratch.is_absolute() and scratch.parent == Path(".buildsys/scratch")
    steps = scratch / "steps"
    with steps.open("a") as file:
        file.write(f"{data.read_text().strip()} {lr}\\n")
    stop = Path("stop").read_text() if Path("stop").exists() else ""
    if stop == "fail":
        raise RuntimeError("out of luck")
    if stop == "wait":
        Path("waiting").touch()
        time.sleep(1000)
    model.write_text(steps.read_text())
"""


@pytest.fixture
def training(space: Space) -> Space:
    space.write("rules/train.toml", RULES)
    space.write("scripts/train.py", TRAIN)
    space.write("data.txt", "a")
    return space


def scratches(space: Space) -> list[str]:
    """All that is in the folder of scratch folders, notes included."""
    folder = space.root / ".buildsys" / "scratch"
    return sorted(os.listdir(folder)) if folder.exists() else []


def start(space: Space) -> subprocess.Popen[str]:
    """A build in a process of its own, whose action is in the middle."""
    space.write("stop", "wait")
    build = subprocess.Popen(
        [*PROGRAM, "build"],
        cwd=space.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    assert within(20, (space.root / "waiting").exists)
    space.remove("waiting")
    return build


def killed(space: Space, number: signal.Signals) -> None:
    with start(space) as build:
        build.send_signal(number)
        build.communicate(timeout=20)
    space.remove("stop")


def test_an_action_that_failed_finds_what_it_left(training: Space) -> None:
    training.write("stop", "fail")
    assert training.build().failed == ["train"]
    assert training.build().failed == ["train"]
    training.remove("stop")
    assert training.build().ran == ["train"]
    assert training.read("build/default/model.txt") == "a 1\n" * 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_a_build_that_was_ended_leaves_it_to_the_next(training: Space, number: signal.Signals) -> None:
    killed(training, number)
    assert training.build().ran == ["train"]
    assert training.read("build/default/model.txt") == "a 1\n" * 2


def test_it_is_gone_after_success_and_not_before(training: Space) -> None:
    training.write("stop", "fail")
    training.build()
    (name, note) = scratches(training)
    assert note == f"{name}.json"
    said = json.loads(training.read(f".buildsys/scratch/{note}"))
    assert (said["rule"], said["shard"], said["profile"], said["in_use"]) == ("train", "", "default", False)
    training.remove("stop")
    training.build()
    assert scratches(training) == []


def test_another_param_has_another_scratch_and_finds_its_own_again(training: Space) -> None:
    training.write("stop", "fail")
    training.build()
    training.replace("rules/train.toml", "lr = 1", "lr = 2")
    training.build()
    assert len(scratches(training)) == 4
    training.remove("stop")
    training.build()
    assert training.read("build/default/model.txt") == "a 2\n" * 2
    training.replace("rules/train.toml", "lr = 2", "lr = 1")
    training.build()
    assert training.read("build/default/model.txt") == "a 1\n" * 2
    assert scratches(training) == []


def test_what_is_in_it_decides_nothing(training: Space) -> None:
    training.write("stop", "fail")
    training.build()
    folder = training.root / ".buildsys" / "scratch" / scratches(training)[0]
    (folder / "steps").write_text("a note\n")
    training.remove("stop")
    assert training.build().ran == ["train"]
    assert training.read("build/default/model.txt") == "a note\na 1\n"
    assert training.build().ran == []


def test_what_was_left_of_a_source_that_was_written_to_meanwhile_is_dropped(training: Space) -> None:
    with start(training) as build:
        training.write("data.txt", "b")
        build.send_signal(signal.SIGINT)
        build.communicate(timeout=20)
    training.remove("stop")
    training.write("data.txt", "a")
    training.build()
    assert training.read("build/default/model.txt") == "a 1\n"


def test_after_a_kill_sources_that_were_written_to_are_not_trusted(training: Space) -> None:
    killed(training, signal.SIGKILL)
    training.write("data.txt", "b")
    training.write("data.txt", "a")
    training.build()
    assert training.read("build/default/model.txt") == "a 1\n"


def test_after_a_failure_the_same_bytes_written_again_are(training: Space) -> None:
    training.write("stop", "fail")
    training.build()
    training.remove("stop")
    training.write("data.txt", "a")
    training.build()
    assert training.read("build/default/model.txt") == "a 1\n" * 2


def test_a_command_gets_it_too(space: Space) -> None:
    space.write(
        "rules/train.toml",
        """
        [rule.train]
        shell   = "echo step >> {scratch}/steps; test -e {scratch}/go && cp {scratch}/steps {outputs.model}"
        outputs = { model = "model.txt" }
        scratch = true
        """,
    )
    assert space.build().failed == ["train"]
    space.write(f".buildsys/scratch/{scratches(space)[0]}/go", "")
    assert space.build().ran == ["train"]
    assert space.read("model.txt") == "step\nstep\n"
    assert scratches(space) == []


def test_a_result_that_fails_its_check_needs_no_scratch(training: Space) -> None:
    training.write("rules/train.toml", RULES + '[rule.train.checks]\nnever = "SELECT false"\n')
    assert training.build().failed == ["train"]
    assert scratches(training) == []


def test_actions_of_one_key_are_one_action_and_never_run_at_once(space: Space) -> None:
    space.write(
        "rules/same.toml",
        """
        [rule.same]
        each    = { shard = "data/{shard}/text" }
        shell   = "mkdir {scratch}/alone; echo ran >> ran; sleep 0.2; rmdir {scratch}/alone; cp {inputs.i} {outputs.o}"
        inputs  = { i = "data/{shard}/text" }
        outputs = { o = "build/{shard}/text" }
        scratch = true
        """,
    )
    for shard in "abc":
        space.write(f"data/{shard}/text", "equal")
    built = space.build(jobs=3)
    assert built.errors == ""
    assert (len(built.ran), len(built.restored)) == (1, 2)
    assert space.read("ran") == "ran\n"
    assert [space.read(f"build/{shard}/text") for shard in "abc"] == ["equal"] * 3
    assert scratches(space) == []


def test_one_that_waited_for_its_equal_runs_where_that_failed(space: Space) -> None:
    space.write(
        "rules/same.toml",
        """
        [rule.same]
        each    = { shard = "data/{shard}/text" }
        shell   = "echo ran >> ran; test $(wc -l < ran) = 2 && cp {inputs.i} {outputs.o}"
        inputs  = { i = "data/{shard}/text" }
        outputs = { o = "build/{shard}/text" }
        """,
    )
    for shard in "abc":
        space.write(f"data/{shard}/text", "equal")
    built = space.build(keep_going=True, jobs=3)
    assert (len(built.failed), len(built.ran), len(built.restored)) == (1, 1, 1)
