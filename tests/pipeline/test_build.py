"""The shipped pipeline under the shipped rules, from prompts to a measured acceptance length, made small."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from buildsys.build import Options, build
from buildsys.events import ActionFinished, Event, RequestsAnswered
from buildsys.project import Project
from buildsys.query import sql
from buildsys.request import AS_WRITTEN, Variation

REPOSITORY = Path(__file__).parents[2]
SMALL = {"samples": 160, "steps": 8, "log_every": 4, "prompts": 4, "untrained_prompts": 1, "max_tokens": 48}
SCRIPT = "workspace/scripts/01b_generate_synthetic.py"
CONFIG = "workspace/configs/eagle3.toml"


class Built:
    def __init__(self, events: Sequence[Event], outcome: str) -> None:
        ends = [event for event in events if isinstance(event, ActionFinished)]
        self.outcome = outcome
        self.ran = sorted(str(event.action) for event in ends if event.outcome == "ran")
        self.n_sent = sum(event.usage.requests_sent for event in ends)
        self.errors = [event.error for event in ends if event.error]
        self.progress = [event for event in events if isinstance(event, RequestsAnswered)]


def run(root: Path, *targets: str, variation: Variation = AS_WRITTEN, force: tuple[str, ...] = ()) -> Built:
    events: list[Event] = []
    # The small draft is a bad one, and its checks say so; everything else has to hold.
    done = build(Project(root, variation), Options(targets, force, jobs=2, keep_going=True), events.append)
    return Built(events, done.outcome)


def configure(root: Path, **values: float) -> None:
    text = (root / CONFIG).read_text()
    for key, value in values.items():
        text, n = re.subn(rf"(?m)^{key}( *)= [^#\n]*", rf"{key}\1= {value} ", text)
        assert n, f"no {key} in {CONFIG}"
    (root / CONFIG).write_text(text)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    root = tmp_path_factory.mktemp("pipeline")
    shutil.copytree(REPOSITORY / "rules", root / "rules")
    ignored = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(REPOSITORY / "workspace", root / "workspace", ignore=ignored)
    rules = root / "rules/eagle3.toml"
    # A draft of eight steps is worth nothing yet.
    rules.write_text(re.sub(r"(?m)^(worth_it|loss_fell) .*\n", "", rules.read_text()))
    configure(root, **SMALL)
    return root, run(root)


@pytest.mark.timeout(240)
def test_from_prompts_to_a_measured_acceptance_length(first: tuple[Path, Built]) -> None:
    root, built = first
    assert built.errors == []
    assert built.outcome == "done"
    assert built.n_sent == 160
    assert {"replies[0000]", "samples[0001]", "hidden_states[0001]", "vocab", "draft", "acceptance"} <= set(built.ran)
    report = json.loads((root / "workspace/build/default/acceptance.json").read_text())
    assert report["trained"]["lossless"] == report["trained"]["prompts"] == 4
    assert report["trained"]["tokens_per_step"] >= 1


@pytest.mark.timeout(120)
def test_nothing_to_do_and_touched_files_run_nothing(first: tuple[Path, Built]) -> None:
    root, _ = first
    assert run(root).ran == []
    for path in (root / "workspace").rglob("*"):
        os.utime(path)
    assert run(root).ran == []


@pytest.mark.timeout(120)
def test_a_comment_or_new_layout_in_the_script_runs_nothing(first: tuple[Path, Built]) -> None:
    root, _ = first
    text = (root / SCRIPT).read_text()
    (root / SCRIPT).write_text("# A comment.\n\n" + text.replace("\n\n\n", "\n\n\n\n"))
    assert run(root).ran == []
    (root / SCRIPT).write_text(text)


@pytest.mark.timeout(240)
def test_half_the_cap_sends_nothing_and_touches_no_shard_but_the_cut_one(first: tuple[Path, Built]) -> None:
    root, built = first
    shards = {action for action in built.ran if action.startswith("replies")}
    assert len(shards) >= 2
    configure(root, samples=80)
    fewer = run(root)
    assert fewer.outcome == "done", fewer.errors
    assert fewer.n_sent == 0
    assert len([action for action in fewer.ran if action.startswith("replies")]) <= 1
    assert "draft" in fewer.ran

    configure(root, samples=160)
    again = run(root)
    assert (again.outcome, again.n_sent, again.ran) == ("done", 0, [])


@pytest.mark.timeout(240)
def test_the_second_profile_builds_beside_the_first_and_is_told_apart_from_it(first: tuple[Path, Built]) -> None:
    root, _ = first
    sampled = run(root, "draft", variation=Variation("sampled", (("samples", "40"),)))
    assert (sampled.outcome, sampled.errors) == ("done", [])
    assert 0 < sampled.n_sent <= 40
    assert json.loads((root / "workspace/build/sampled/draft/config.json").read_text())["draft_vocab_size"] == 128
    assert run(root).ran == []
    last = "SELECT max(run_id) FROM runs WHERE profile = '{}'"
    (before,), (after,) = (sql(root, last.format(profile)).rows[0] for profile in ("default", "sampled"))
    compared = f"FROM compare({before}, {after}) WHERE kind IN ('param', 'code') AND rule <> 'acceptance'"
    assert sql(root, f"SELECT rule, name, b {compared}").rows == [
        ("prompts", "samples", "40 (int)"),
        ("replies", "temperature", "1.0 (float)"),
        ("vocab", "draft_vocab_size", "128 (int)"),
    ]


@pytest.mark.timeout(120)
def test_lineage_of_the_draft_reaches_prompts_scripts_and_config_keys(first: tuple[Path, Built]) -> None:
    root, _ = first
    found = sql(root, "SELECT DISTINCT kind, path FROM upstream('workspace/build/default/draft')").rows
    assert {
        ("source", "workspace/data/sample.jsonl"),
        ("artifact", "workspace/build/default/prompts/0000.jsonl"),
        ("code", SCRIPT),
        ("param", "sampling.temperature"),
        ("param", "samples"),
    } <= set(found)
    assert sql(root, "SELECT count(*) FROM samples WHERE reasoning = ''").rows == [(0,)]


@pytest.mark.timeout(240)
def test_a_training_that_was_killed_goes_on_to_what_an_undisturbed_one_makes(first: tuple[Path, Built]) -> None:
    root, _ = first
    configure(root, steps=40, save_every=2)
    with subprocess.Popen([sys.executable, "-m", "buildsys.cli", "-C", str(root), "build", "draft"]) as killed:
        while not list((root / ".buildsys/scratch").glob("*/state.pt")):
            assert killed.poll() is None, "the training ended before it had saved anything"
            time.sleep(0.05)
        killed.kill()
    again = run(root)
    assert (again.outcome, again.ran) == ("done", ["acceptance", "draft"])
    (log,) = max((root / ".buildsys/logs").glob("[0-9]/draft"), key=lambda folder: folder.parent.name).iterdir()
    assert "goes on from step" in log.read_text()
    assert list((root / ".buildsys/scratch").glob("*/state.pt")) == []

    undisturbed = run(root, force=("draft",))
    assert undisturbed.ran == ["draft"]  # the same bytes, so the acceptance length is the same
