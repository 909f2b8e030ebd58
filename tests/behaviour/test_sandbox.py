"""Rules in a sandbox: what they declare is enough, and what they don't is refused with the line to add."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from buildsys.errors import USAGE
from buildsys.run import landlock
from tests.behaviour.conftest import Space
from tests.behaviour.installing import install, install_editable

pytestmark = pytest.mark.timeout(60)
needs_landlock = pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock")

RULE = """
[rule.made]
run     = "scripts/work.py::make"
sandbox = true
inputs  = { data = "data/in.txt" }
outputs = { made = "build/made.txt" }
"""
COMMAND = RULE.replace('run     = "scripts/work.py::make"', 'shell   = "COMMAND"')


def project(space: Space, body: str, rule: str = RULE) -> Space:
    space.write("rules/r.toml", rule)
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    space.write("scripts/work.py", f"import os, subprocess\n\ndef make(data, made):\n{lines}    made.touch()\n")
    space.write("data/in.txt", "declared\n")
    space.write("data/other.txt", "other\n")
    space.write("data/folder/a.txt", "a\n")
    return space


@needs_landlock
@pytest.mark.parametrize(
    "body",
    [
        "made.write_text(data.read_text())",
        "made.write_bytes(subprocess.run(['cat', str(data)], stdout=subprocess.PIPE, check=True).stdout)",
        "import tempfile, shutil\nwith tempfile.NamedTemporaryFile() as file:\n    shutil.copy(data, file.name)",
        "assert os.path.exists('data/other.txt')",
        "import helper\nassert helper.TEXT == open(helper.__file__).read()",
        "import xxhash, pyarrow.parquet as p\np.write_table(__import__('pyarrow').table({'a': [1]}), made)",
        "import multiprocessing as m\nwith m.get_context('fork').Pool(1) as pool:\n    pool.map(abs, [1])",
    ],
)
def test_what_is_declared_is_enough(space: Space, body: str) -> None:
    project(space, body)
    space.write("scripts/helper.py", "TEXT = open(__file__).read()\n")
    built = space.build()
    assert (built.ran, built.errors) == (["made"], "")
    assert not list(space.root.glob(".buildsys/staging/*/.temporary")), "temporary files go with the action"


@needs_landlock
@pytest.mark.parametrize(
    ("body", "refused", "hint"),
    [
        ("open('data/other.txt')", "data/other.txt", 'add other = "data/other.txt" to the inputs of [rule.made]'),
        ("os.listdir('data/folder')", "data/folder", 'add folder = "data/folder" to the inputs of [rule.made]'),
        ("open('new.txt', 'w')", "new.txt", "only the paths of outputs"),
        ("data.write_text('x')", "data/in.txt", "only outputs, scratch and temporary files can be written"),
        ("import pyarrow.csv as c; c.read_csv('data/other.txt')", "data/other.txt", "add other ="),
    ],
)
def test_what_is_not_declared_is_refused_with_the_line_to_add(space: Space, body: str, refused: str, hint: str) -> None:
    built = project(space, body).build()
    assert built.failed == ["made"]
    assert f"made failed: its sandbox refused {refused}" in built.errors
    assert hint in built.errors


@needs_landlock
def test_what_is_outside_the_project_is_refused_too(space: Space, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "9 model.bin"
    outside.write_text("weights")
    built = project(space, f"open({str(outside)!r})").build()
    assert f"its sandbox refused {outside}" in built.errors
    assert f'add _9_model = "{outside}" to the inputs' in built.errors


@needs_landlock
def test_an_output_of_another_rule_is_refused_with_its_name(space: Space) -> None:
    other = '[rule.other]\nshell = "echo x > {outputs.o}"\noutputs = { o = "build/other.txt" }\n'
    project(space, "open('build/other.txt')", other)
    space.build()
    space.write("rules/r.toml", other + RULE)
    built = space.build("made")
    assert "its sandbox refused build/other.txt" in built.errors
    assert 'other makes it: add other = "@other" to the inputs of [rule.made]' in built.errors


@needs_landlock
def test_outputs_of_rules_are_read_by_their_links_and_folders_as_well(space: Space) -> None:
    rules = """
    [rule.folder]
    shell   = "mkdir -p {outputs.f}/deep; echo x > {outputs.f}/deep/x; echo y > {outputs.f}/y"
    sandbox = true
    outputs = { f = "build/f" }
    [rule.parts]
    shell   = "for n in 1 2; do echo $n > {outputs.p}/$n.txt; done"
    sandbox = true
    outputs = { p = "build/p/{shard}.txt" }
    [rule.dropped]
    shell     = "echo e > {outputs.e}"
    ephemeral = true
    outputs   = { e = "build/e.txt" }
    [rule.made]
    shell   = "(cat {inputs.f}/deep/x {inputs.f}/y {inputs.p} {inputs.e}; ls {inputs.f}) > {outputs.made}"
    sandbox = true
    inputs  = { f = "@folder", p = "@parts[*]", e = "@dropped" }
    outputs = { made = "build/made.txt" }
    """
    space.write("rules/r.toml", rules)
    built = space.build()
    assert (built.failed, built.errors) == ([], "")
    assert space.read("build/made.txt").split() == ["x", "y", "1", "2", "e", "deep", "y"]


@needs_landlock
@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("cat {inputs.data} > {outputs.made}", ""),
        ("sort {inputs.data} | uniq > {outputs.made}", ""),
        ("cat $(dirname {inputs.data})/other.txt > {outputs.made}", "data/other.txt"),
        ("cat {inputs.data} > {outputs.made} && echo x > loose.txt", "loose.txt"),
    ],
)
def test_commands_are_limited_as_well(space: Space, command: str, refused: str) -> None:
    project(space, "", COMMAND.replace("COMMAND", command))
    built = space.build()
    assert built.ran == ([] if refused else ["made"])
    assert (f"its sandbox refused {refused}" in built.errors) is bool(refused)


@needs_landlock
def test_the_script_of_a_command_runs_in_its_sandbox(space: Space) -> None:
    project(space, "", COMMAND.replace("COMMAND", "{python} scripts/say.py {inputs.data} > {outputs.made}"))
    space.write("scripts/say.py", "import sys, word\nprint(word.WORD + open(sys.argv[1]).read())\n")
    space.write("scripts/word.py", "WORD = 'said '\n")
    built = space.build()
    assert (built.ran, built.errors) == (["made"], "")
    assert space.read("build/made.txt") == "said declared\n\n"
    space.write("scripts/say.py", "import json, word\nprint(json.load(open('data/other.txt')))\n")
    assert "its sandbox refused data/other.txt" in space.build().errors


@needs_landlock
def test_each_action_has_a_process_of_its_own(space: Space) -> None:
    rule = RULE.replace("[rule.made]", '[rule.made]\neach = { shard = "data/{shard}.txt" }')
    rule = rule.replace("data/in.txt", "data/{shard}.txt").replace("made.txt", "{shard}.txt")
    project(space, "made.write_text(str(os.getpid()))", rule.replace('made = "', 'made = "made/'))
    assert space.build(jobs=1).ran == ["made[in]", "made[other]"]
    pids = [file.read_text() for file in (space.root / "made/build").glob("*.txt")]
    assert len(set(pids)) == 2


@needs_landlock
def test_another_interpreter_and_editable_code_are_within(space: Space, bare: Path, tmp_path_factory) -> None:
    shutil.copytree(bare, space.root / ".venv", symlinks=True)
    lib = tmp_path_factory.mktemp("lib")
    (lib / "pack").mkdir()
    text = "from pathlib import Path\nWORD = (Path(__file__).parent / 'word.txt').read_text()\n"
    (lib / "pack/__init__.py").write_text(text)
    (lib / "pack/word.txt").write_text("editable")
    install(space.root / ".venv", "plain", "1.0", "WORD = 'plain'")
    install_editable(space.root / ".venv", "pack", lib)
    rule = RULE.replace("sandbox", 'python = ".venv/bin/python"\nsandbox')
    project(space, "import plain, pack\nmade.write_text(f'{plain.WORD} {pack.WORD}')", rule)
    built = space.build()
    assert (built.ran, built.errors) == (["made"], "")
    assert space.read("build/made.txt") == "plain editable"


@needs_landlock
def test_what_another_action_has_imported_was_not_imported_for_it(space: Space, bare: Path) -> None:
    shutil.copytree(bare, space.root / ".venv", symlinks=True)
    install(space.root / ".venv", "reader", "1.0", f"TEXT = open({str(space.root / 'data/other.txt')!r}).read()")
    rule = RULE.replace("sandbox", 'python = ".venv/bin/python"\nsandbox')
    free = rule.replace("sandbox = true", "").replace("rule.made", "rule.first").replace("made.txt", "first.txt")
    project(space, "import reader\nmade.write_text(reader.TEXT)", free + rule)
    space.replace("scripts/work.py", "import os", "import reader, os")
    built = space.build(jobs=1, keep_going=True)
    assert (built.ran, built.failed) == (["first"], ["made"])
    assert "its sandbox refused data/other.txt" in built.errors


@needs_landlock
def test_a_scratch_can_be_written(space: Space) -> None:
    body = "(scratch / 'state').write_text('x')\nmade.write_text('y')"
    project(space, body, RULE.replace("sandbox", "scratch = true\nsandbox"))
    space.replace("scripts/work.py", "(data, made)", "(data, made, scratch)")
    assert space.build().errors == ""


@needs_landlock
def test_it_is_part_of_no_key(space: Space) -> None:
    project(space, "made.write_text('x')")
    space.build()
    space.write("rules/r.toml", RULE.replace("sandbox = true", "sandbox = false"))
    assert space.build().ran == []


def test_a_machine_without_one_says_so_before_anything_runs(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    other = '[rule.other]\nshell = "echo x > {outputs.o}"\noutputs = { o = "build/other.txt" }\n'
    built = project(space, "", other + RULE).build()
    assert (built.outcome, built.ran) == ("refused", [])
    assert built.error is not None
    assert built.error.exit_code == USAGE
    assert "its kernel has no Landlock" in built.error.problem
    assert "rules/r.toml:5" in built.error.render()


def test_what_is_up_to_date_needs_none(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    project(space, "made.write_text('x')", RULE.replace("sandbox = true", ""))
    space.build()
    space.write("rules/r.toml", RULE)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert space.build().outcome == "done"
