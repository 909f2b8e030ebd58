"""What is wrong with stored bytes, links and names never becomes an input, and never stops a build without a word."""

from __future__ import annotations

import os
import shutil

import pytest

from buildsys.events import Notice

RULES = """
[rule.a]
run = "scripts/a.py::f"
inputs = {src = "data/x.txt"}
outputs = {o = "build/a.txt"}

[rule.b]
run = "scripts/b.py::g"
inputs = {a = "@a"}
outputs = {o = "build/b.txt"}
"""


@pytest.fixture
def pair(space):
    """A file that is copied, and what is made of the copy."""
    space.write("rules/r.toml", RULES)
    space.write("data/x.txt", "hello\n")
    space.write("scripts/a.py", "def f(src, o):\n    o.write_text(src.read_text())\n")
    space.write("scripts/b.py", "def g(a, o):\n    o.write_text(a.read_text().upper())\n")
    return space


def spoil(space, text: str, other: str) -> None:
    (stored,) = [path for path in (space.root / ".buildsys/store").glob("??/*") if path.read_text() == text]
    stored.chmod(0o644)
    stored.write_text(other)


def test_a_stored_object_that_was_changed_is_never_an_input(pair):
    pair.build()
    spoil(pair, "hello\n", "jello\n")
    pair.replace("scripts/b.py", "upper", "title")
    pair.build()
    assert pair.read("build/b.txt") in ("HELLO\n", "Hello\n")


def test_an_action_that_makes_the_bytes_again_heals_the_store(pair):
    pair.build()
    spoil(pair, "hello\n", "jello\n")
    pair.replace("scripts/a.py", "src.read_text()", "src.read_text() + ''")
    pair.replace("scripts/b.py", "upper", "title")
    assert pair.build().ran == ["a", "b"]
    assert pair.read("build/b.txt") == "Hello\n"


FOLDER_RULES = """
[rule.model]
run = "scripts/a.py::model"
outputs = {o = "build/model"}

[rule.use]
each = {shard = "data/{shard}.txt"}
run = "scripts/a.py::use"
inputs = {m = "@model", x = "data/{shard}.txt"}
outputs = {o = "build/use/{shard}.txt"}

[rule.export]
shell = "cp -r {inputs.m} {outputs.o} && touch {outputs.o}/extra"
inputs = {m = "@model"}
outputs = {o = "build/export"}
"""
FOLDER_SCRIPT = """
import os

def model(o):
    (o / "empty").mkdir(parents=True)
    (o / "w.bin").write_text("weights")

def use(m, x, o):
    o.write_text(" ".join(sorted(os.listdir(m))))
    (m / f"lock-{x.name}").write_text("")
"""


def test_what_an_action_leaves_in_a_folder_that_it_reads_is_not_there_for_the_next(space):
    space.write("rules/r.toml", FOLDER_RULES)
    space.write("scripts/a.py", FOLDER_SCRIPT)
    for shard in "12":
        space.write(f"data/{shard}.txt", shard)
    assert space.build(jobs=1).outcome == "done"
    assert {space.read(f"build/use/{shard}.txt") for shard in "12"} == {"empty w.bin"}


def test_a_copy_of_a_folder_artifact_holds_its_bytes(space):
    space.write("rules/r.toml", FOLDER_RULES)
    space.write("scripts/a.py", FOLDER_SCRIPT)
    assert space.build("export").outcome == "done"
    exported = space.root / "build/export"
    assert sorted(path.name for path in exported.iterdir()) == ["empty", "extra", "w.bin"]
    assert not (exported / "w.bin").is_symlink()
    assert (exported / "w.bin").read_text() == "weights"


@pytest.mark.parametrize("call", ["os.symlink", "os.link"])
def test_an_output_that_leads_to_an_artifact_is_published_as_a_file_of_its_own(pair, call):
    pair.write("scripts/b.py", f"import os\ndef g(a, o):\n    {call}(os.path.realpath(a), o)\n")
    pair.build()
    out = pair.root / "build/b.txt"
    assert (out.is_symlink(), out.stat().st_nlink) == (False, 1)
    out.chmod(0o644)
    out.write_text("edited")
    pair.remove("build/a.txt")
    assert "a" in pair.build().restored
    assert pair.read("build/a.txt") == "hello\n"


@pytest.mark.parametrize("target", ["l", "nowhere"])
def test_a_link_without_content_in_an_output_fails_the_action_by_name(pair, target):
    pair.write("scripts/a.py", f"def f(src, o):\n    o.mkdir()\n    (o / 'l').symlink_to('{target}')\n")
    built = pair.build()
    assert built.failed == ["a"]
    assert "a.txt/l is a link" in built.errors


def test_a_lost_manifest_is_taken_from_its_snapshot_and_told(pair):
    pair.build()
    shutil.rmtree(pair.root / ".buildsys/live")
    built = pair.build()
    assert built.ran == []
    assert any("manifest is missing" in event.text for event in built.events if isinstance(event, Notice))


def test_an_input_whose_name_is_no_utf8_is_built_and_known(pair):
    pair.replace("rules/r.toml", "data/x.txt", "data/*.txt")
    pair.write("scripts/a.py", "def f(src, o):\n    o.write_text(''.join(path.read_text() for path in src))\n")
    with open(os.fsencode(pair.root) + b"/data/y\xff.txt", "w") as file:
        file.write("there\n")
    assert pair.build().ran == ["a", "b"]
    assert pair.build().ran == []
    assert pair.read("build/b.txt") == "HELLO\nTHERE\n"


TWO_RULES = """
[rule.a]
run = "scripts/a.py::two"
inputs = {src = "data/x.txt"}
outputs = {o = "build/a.txt", p = "build/b.txt"}
"""


def test_an_output_that_is_in_place_and_one_that_is_stored_are_enough(space):
    space.write("rules/r.toml", TWO_RULES)
    space.write("data/x.txt", "hello\n")
    space.write("scripts/a.py", "def two(src, o, p):\n    o.write_text('one\\n')\n    p.write_text('two\\n')\n")
    space.build()
    (stored,) = [path for path in (space.root / ".buildsys/store").glob("??/*") if path.read_text() == "one\n"]
    stored.unlink()
    space.remove("build/b.txt")
    assert space.build().restored == ["a"]
    assert space.read("build/b.txt") == "two\n"


def test_a_large_output_that_is_edited_in_place_is_put_aside_and_made_again(space):
    """It shares its bytes with the store, so the store has lost them too."""
    make = 'shell = "cat {inputs.x} {inputs.x} > {outputs.y}"\ninputs = { x = "x.txt" }\noutputs = { y = "y.txt" }\n'
    space.write("rules/a.toml", f'[store]\nlink_above = "1kB"\n[rule.a]\n{make}')
    space.write("x.txt", "x" * 1000)
    space.build()
    made = space.root / "y.txt"
    made.chmod(0o644)
    made.write_text("mine")
    built = space.build()
    assert (built.ran, built.outcome) == (["a"], "done")
    assert space.read("y.txt") == "x" * 2000
    assert space.read("y.txt.mine-1") == "mine"
    assert space.build().ran == []
