"""`buildsys.open`: what a notebook gets returned, and what it gets raised."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import buildsys
from buildsys.errors import BuildError
from buildsys.events import ActionFinished, Event
from buildsys.template import start


@pytest.fixture
def demo(tmp_path: Path) -> buildsys.OpenProject:
    start(tmp_path / "demo", "first")
    return buildsys.open(tmp_path / "demo" / "workspace")


def test_a_project_is_built_explained_and_asked(demo: buildsys.OpenProject) -> None:
    events: list[Event] = []
    assert demo.build(on_event=events.append).counts == {"ran": 3}
    assert [str(event.action) for event in events if isinstance(event, ActionFinished)][-1] == "lengths"
    assert demo.sql("SELECT sum(size) > 0 AS some FROM artifacts").to_pylist() == [{"some": True}]
    assert demo.sql("SET VARIABLE x = 1").num_rows == 0
    assert "texts" in {link.rule for link in demo.lineage("workspace/build/default/lengths.json")}

    script = demo.root / "workspace/scripts/texts.py"
    script.write_text(script.read_text().replace("<system>", "<s>"))
    assert not demo.plan("texts").up_to_date
    assert "code" in demo.why("texts[0001]")[0].planned.reason
    assert demo.build().counts["ran"] >= 2
    assert demo.build(force=["texts[0000]"]).counts == {"ran": 1, "reused": 2}


def test_a_profile_and_values_are_those_of_the_opened_project(demo: buildsys.OpenProject) -> None:
    short = buildsys.open(demo.root, overrides={"max_words": "1"})
    assert short.build("texts").outcome == "done"
    assert all("Why<" in row or "What<" in row for row in texts(short)[:2])
    assert not demo.plan("texts").up_to_date


def texts(project: buildsys.OpenProject) -> list[str]:
    return project.sql("SELECT text FROM texts ORDER BY shard, record_id").column("text").to_pylist()


def test_what_fails_is_raised_with_its_place(demo: buildsys.OpenProject) -> None:
    script = demo.root / "workspace/scripts/texts.py"
    script.write_text(script.read_text().replace('prompt["question"]', 'prompt["answer"]'))
    with pytest.raises(BuildError, match="KeyError: 'answer'") as raised:
        demo.build()
    assert raised.value.exit_code == 1
    with pytest.raises(BuildError, match="fro"):
        demo.sql("SELECT fro artifacts")
    with pytest.raises(BuildError, match="no buildsys project"):
        buildsys.open(demo.root.parent)


def test_the_interface_costs_nothing_until_it_is_asked_for() -> None:
    code = "import sys, buildsys; print([m for m in sys.modules if m.startswith('buildsys.')], hasattr(buildsys, 'x'))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "[] False\n"
