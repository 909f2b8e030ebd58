"""What a change makes run, and what it leaves alone."""

from __future__ import annotations

import os
import time

import pytest

from buildsys.state.files import Files
from tests.behaviour.conftest import Space

RULES = """
config = "config.toml"

[rule.split]
run     = "scripts/pipe.py::split"
inputs  = { source = "data/source.txt" }
params  = { shards = "$shards" }
outputs = { parts = "build/{profile}/parts/{shard}.txt" }

[rule.upper]
each    = { shard = "@split[*]" }
run     = "scripts/pipe.py::upper"
inputs  = { part = "@split" }
params  = { mark = "$mark" }
outputs = { text = "build/{profile}/upper/{shard}.txt" }

[rule.count]
each    = { shard = "@upper[*]" }
run     = "scripts/count.py::count"
inputs  = { text = "@upper" }
outputs = { n = "build/{profile}/count/{shard}.txt" }

[rule.total]
run     = "scripts/count.py::total"
inputs  = { counts = "@count[*]" }
outputs = { total = "build/{profile}/total.txt" }
"""

PIPE = '''
import marks

def split(source, parts, *, shards):
    """Lines go round robin into the shards."""
    lines = source.read_text().splitlines()
    for n in range(shards):
        mine = lines[n::shards]
        if mine:
            (parts / f"{n}.txt").write_text("\\n".join(mine) + "\\n")

def upper(part, text, *, mark):
    text.write_text(part.read_text().upper() + marks.mark(mark))
'''

COUNT = """
def count(text, n):
    n.write_text(str(len(text.read_text())))

def total(counts, total):
    total.write_text(str(sum(int(path.read_text()) for path in counts)))
"""


@pytest.fixture
def pipe(space: Space) -> Space:
    space.write("rules/pipe.toml", RULES)
    space.write("config.toml", 'shards = 3\nmark = "!"\nunused = 1\n')
    space.write("data/source.txt", "".join(f"line {n}\n" for n in range(9)))
    space.write("scripts/pipe.py", PIPE)
    space.write("scripts/marks.py", "def mark(text):\n    return text\n")
    space.write("scripts/count.py", COUNT)
    assert len(space.build().ran) == 8
    return space


def test_a_second_build_runs_nothing(pipe: Space) -> None:
    built = pipe.build()
    assert built.outcome == "done"
    assert len(built.actions("reused")) == 8


def test_touching_every_file_runs_nothing(pipe: Space) -> None:
    for path in [*pipe.root.glob("scripts/*"), *pipe.root.glob("data/*"), *pipe.root.glob("build/**/*.txt")]:
        os.utime(path)
    assert len(pipe.build().actions("reused")) == 8


def test_a_comment_or_new_layout_in_a_script_runs_nothing(pipe: Space) -> None:
    pipe.write("scripts/pipe.py", "# a comment\n" + PIPE.replace("shards):", "shards):  # and one here\n"))
    assert len(pipe.build().actions("reused")) == 8


def test_a_changed_line_runs_its_own_chain_and_the_folds(pipe: Space) -> None:
    pipe.replace("data/source.txt", "line 4\n", "line four\n")
    assert pipe.build().ran == ["count[1]", "split", "total", "upper[1]"]


def test_a_changed_param_runs_only_the_rules_that_read_it(pipe: Space) -> None:
    pipe.write("config.toml", 'shards = 3\nmark = "?"\nunused = 2\n')
    built = pipe.build()
    assert {action.partition("[")[0] for action in built.ran} == {"upper", "count"}
    assert pipe.read("build/default/upper/0.txt").endswith("?")


def test_an_output_equal_to_the_old_one_stops_there(pipe: Space) -> None:
    pipe.write("config.toml", 'shards = 3\nmark = "?"\n')
    ran = pipe.build().ran
    assert [action for action in ran if action.startswith("upper")] == ["upper[0]", "upper[1]", "upper[2]"]
    assert "total" not in ran, "the counts are as they were: one character more or less is none"


def test_a_changed_helper_function_runs_who_can_call_it(pipe: Space) -> None:
    pipe.write("scripts/marks.py", "def mark(text):\n    return text + text\n")
    assert pipe.build().ran == [
        "count[0]",
        "count[1]",
        "count[2]",
        "total",
        "upper[0]",
        "upper[1]",
        "upper[2]",
    ]


def test_reverting_an_edit_runs_nothing_and_restores_the_bytes(pipe: Space) -> None:
    before = pipe.read("build/default/upper/1.txt")
    pipe.replace("data/source.txt", "line 4\n", "line four\n")
    pipe.build()
    pipe.replace("data/source.txt", "line four\n", "line 4\n")
    built = pipe.build()
    assert built.ran == []
    assert "upper[1]" in built.restored
    assert pipe.read("build/default/upper/1.txt") == before


def test_a_deleted_output_is_restored(pipe: Space) -> None:
    pipe.remove("build/default/upper/1.txt")
    built = pipe.build()
    assert (built.ran, built.restored) == ([], ["upper[1]"])
    assert pipe.read("build/default/upper/1.txt").startswith("LINE 1")


def test_fewer_shards_remove_the_outputs_of_those_that_went(pipe: Space) -> None:
    pipe.replace("data/source.txt", "".join(f"line {n}\n" for n in range(2, 9)), "")
    built = pipe.build()
    assert "upper[2]" not in [str(a) for a in built.ran]
    assert not (pipe.root / "build/default/upper/2.txt").exists()
    assert not (pipe.root / "build/default/parts/2.txt").exists()


def test_an_output_edited_by_hand_is_put_aside_and_restored(pipe: Space) -> None:
    pipe.write("build/default/upper/1.txt", "mine\n")
    built = pipe.build()
    assert (built.ran, built.restored) == ([], ["upper[1]"])
    assert pipe.read("build/default/upper/1.txt.mine-1") == "mine\n"


def test_only_what_a_target_needs_is_built(pipe: Space) -> None:
    pipe.replace("data/source.txt", "line 4\n", "line four\n")
    pipe.replace("data/source.txt", "line 5\n", "line five\n")
    assert pipe.build("upper[1]").ran == ["split", "upper[1]"]
    assert pipe.build("build/default/count/2.txt").ran == ["count[2]", "upper[2]"]


def test_what_a_build_of_some_targets_made_obsolete_goes_with_the_next_of_everything(pipe: Space) -> None:
    pipe.replace("rules/pipe.toml", "build/{profile}/total.txt", "build/{profile}/sum.txt")
    assert pipe.build("total").restored == []
    assert (pipe.root / "build/default/total.txt").exists()
    built = pipe.build()
    assert (built.outcome, built.ran, built.restored) == ("done", [], [])
    assert not (pipe.root / "build/default/total.txt").exists()
    assert (pipe.root / "build/default/sum.txt").exists()


@pytest.mark.parametrize("ephemeral", ["true", "false"])
def test_an_output_that_is_a_folder_is_read_once(space: Space, ephemeral: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = 'shell = "mkdir {outputs.d} && seq 9 > {outputs.d}/a && seq 8 > {outputs.d}/b"\noutputs = { d = "d" }\n'
    use = '[rule.use]\nshell = "cat {inputs.d}/* > {outputs.u}"\ninputs = { d = "@make" }\noutputs = { u = "u" }\n'
    space.write("rules/a.toml", f"[rule.make]\nephemeral = {ephemeral}\n{make}{use}")
    read: list[str] = []
    whole = Files._read
    monkeypatch.setattr(Files, "_read", lambda files, path, *rest: read.append(path) or whole(files, path, *rest))
    assert sorted(space.build().ran) == ["make", "use"]
    time.sleep(0.05)  # a tick of the file system's clock
    assert space.build().ran == []
    assert [path for path in read if path.startswith("d/")] == []
