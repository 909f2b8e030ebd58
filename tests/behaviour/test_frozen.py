"""An edit while an action runs is never recorded under the wrong key, and voids nothing that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from buildsys.events import ActionFinished, ActionStarted, Event, Notice
from tests.behaviour.conftest import Space

RULES = """
[rule.copy]
run     = "scripts/copy_it.py::copy"
inputs  = { source = "data/source.txt" }
outputs = { copy = "build/{profile}/copy.txt" }

[rule.train]
run     = "scripts/train.py::train"
inputs  = { data = "@copy" }
outputs = { model = "build/{profile}/model.txt" }
"""
# Each waits for its gate, so that a test can edit while it runs. It is beside the project, in a temporary folder, so
# that it is no input.
SCRIPT = """
import os
import time
from pathlib import Path

def wait():
    Path(os.getcwd() + ".{name}.waits").touch()
    for _ in range(3000):
        if Path(os.getcwd() + ".{name}.go").exists():
            return
        time.sleep(0.01)

"""
COPY = (
    SCRIPT.format(name="copy")
    + "def copy(source, copy):\n    wait()\n    copy.write_text('one ' + source.read_text())\n"
)
TRAIN = (
    SCRIPT.format(name="train")
    + "def train(data, model):\n    wait()\n    model.write_text('one ' + data.read_text())\n"
)


class Gated:
    """Edits while an action waits, then lets it go on."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.starts: list[str] = []

    def open(self, *names: str) -> None:
        for name in names:
            self._beside(f"{name}.go").touch()

    def build(self, during: dict[str, list[tuple[str, str]]]) -> list[str]:
        """Build; while an action of a rule waits, write these (path, text); gives what ran and what was noticed."""
        pending = dict(during)
        notices: list[str] = []

        def on_event(event: Event) -> None:
            if isinstance(event, Notice):
                notices.append(event.text)
            if isinstance(event, ActionStarted):
                self.starts.append(event.action.rule)

        import threading
        import time

        def edit() -> None:
            for rule, writes in pending.items():
                waits = self._beside(f"{rule}.waits")
                for _ in range(3000):
                    if waits.exists():
                        break
                    time.sleep(0.01)
                for path, text in writes:
                    self.space.write(path, text)
                self.open(rule)

        thread = threading.Thread(target=edit)
        thread.start()
        built = self.space.build(on_event=on_event)
        thread.join()
        assert built.outcome == "done", built.errors
        return notices

    def close(self) -> None:
        root = self.space.root
        for path in [*root.parent.glob(f"{root.name}.*.go"), *root.parent.glob(f"{root.name}.*.waits")]:
            path.unlink()

    def _beside(self, name: str) -> Path:
        return self.space.root.with_name(f"{self.space.root.name}.{name}")


@pytest.fixture
def gated(space: Space) -> Gated:
    space.write("rules/r.toml", RULES)
    space.write("data/source.txt", "data")
    space.write("scripts/copy_it.py", COPY)
    space.write("scripts/train.py", TRAIN)
    return Gated(space)


def test_a_script_edited_while_it_runs_is_run_as_it_was_and_recorded_so(gated: Gated) -> None:
    space = gated.space
    gated.open("train")
    gated.build({"copy": [("scripts/copy_it.py", COPY.replace("'one '", "'two '"))]})
    assert space.read("build/default/copy.txt") == "one data"

    gated.open("copy")
    assert space.build().ran == ["copy", "train"], "the new code has never run"
    assert space.read("build/default/copy.txt") == "two data"

    space.write("scripts/copy_it.py", COPY)
    assert space.build().ran == [], "the old code has"
    assert space.read("build/default/copy.txt") == "one data"


def test_a_script_edited_and_reverted_while_it_runs_is_up_to_date(gated: Gated) -> None:
    gated.open("train")
    gated.build({"copy": [("scripts/copy_it.py", "def copy(:"), ("scripts/copy_it.py", COPY)]})
    assert gated.space.build().ran == []


def test_an_input_edited_while_it_is_read_makes_the_action_run_again(gated: Gated) -> None:
    space = gated.space
    gated.open("train")
    notices = gated.build({"copy": [("data/source.txt", "other")]})
    assert gated.starts == ["copy", "copy", "train"]
    assert notices == ["data/source.txt changed while copy ran: it runs again"]
    assert space.read("build/default/model.txt") == "one one other"
    assert space.build().ran == []

    space.write("data/source.txt", "data")
    assert space.build().ran == ["copy", "train"], "nothing was recorded for the content that was there at the start"


def test_an_input_edited_and_reverted_while_it_is_read_is_not_trusted(gated: Gated) -> None:
    gated.open("train")
    gated.build({"copy": [("data/source.txt", "other"), ("data/source.txt", "data")]})
    assert gated.starts == ["copy", "copy", "train"]
    assert gated.space.read("build/default/copy.txt") == "one data"


def test_an_input_that_never_stands_still_is_an_error_that_names_it(space: Space) -> None:
    space.write("rules/r.toml", RULES)
    space.write("data/source.txt", "0")
    space.write(
        "scripts/copy_it.py",
        "def copy(source, copy):\n    source.write_text(source.read_text() + '1')\n    copy.write_text('')\n",
    )
    space.write("scripts/train.py", "def train(data, model):\n    model.write_text('')\n")
    built = space.build()
    assert built.failed == ["copy"]
    assert "data/source.txt changed while the action ran, twice" in built.errors


def test_a_training_that_runs_is_not_voided_by_edits_of_what_it_was_made_from(gated: Gated) -> None:
    space = gated.space
    gated.open("copy")
    gated.build(
        {
            "train": [
                ("data/source.txt", "other"),
                ("scripts/copy_it.py", COPY.replace("'one '", "'two '")),
                ("build/default/copy.txt", "edited by hand"),
            ]
        }
    )
    assert space.read("build/default/model.txt") == "one one data"

    space.write("data/source.txt", "data")
    space.write("scripts/copy_it.py", COPY)
    built = space.build()
    assert built.ran == [], "the training is kept under the key it started with"
    assert space.read("build/default/copy.txt") == "one data"
    assert Path(space.root / "build/default/copy.txt.mine-1").read_text() == "edited by hand"


def test_a_shell_command_runs_the_script_that_was_fingerprinted(space: Space) -> None:
    space.write(
        "rules/r.toml",
        """
        [rule.first]
        run     = "scripts/first.py::first"
        outputs = { first = "build/{profile}/first.txt" }
        [rule.second]
        shell   = "{python} scripts/second.py {inputs.first} {outputs.second} --word {params.word}"
        inputs  = { first = "@first" }
        params  = { word = "it's" }
        outputs = { second = "build/{profile}/second.txt" }
        """,
    )
    space.write("scripts/first.py", "def first(first):\n    first.write_text('1')\n")
    space.write("scripts/words.py", "WORD = 'old'\n")
    second = """
        import sys
        import words
        source, target, _, word = sys.argv[1:]
        open(target, "w").write(open(source).read() + words.WORD + word)
        """
    space.write("scripts/second.py", second)

    def edit(event: Event) -> None:
        if isinstance(event, ActionFinished) and event.action.rule == "first":
            space.write("scripts/words.py", "WORD = 'new'\n")

    assert space.build(on_event=edit).ran == ["first", "second"]
    assert space.read("build/default/second.txt") == "1oldit's"
    assert space.build().ran == ["second"]
    assert space.read("build/default/second.txt") == "1newit's"
