"""`buildsys check`: every diagnostic in full, one line when all is well, and an exit code that says which."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from buildsys import diagnostics
from tests.cli.conftest import Run, run_in

RULE = """
[rule.counted]
run     = "scripts/count.py::count"
inputs  = { book = "@book" }
outputs = { counted = "build/{profile}/counted.txt" }
"""
SCRIPT = """
from texts import words

def count(book, counted):
    counted.write_text(str(len(words(book.read_text()))))
"""


@pytest.fixture
def scripted(project: Path) -> Path:
    (project / "rules/count.toml").write_text(RULE)
    (project / "scripts").mkdir()
    (project / "scripts/count.py").write_text(SCRIPT)
    (project / "scripts/texts.py").write_text("def words(text):\n    return text.split()\n")
    return project


def test_when_all_is_well_one_line_says_so(scripted: Path, run: Run) -> None:
    done = run("check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 script, 1 module: nothing found\n", "")


def test_what_is_wrong_is_told_in_full_and_ends_with_1(scripted: Path, run: Run) -> None:
    (scripted / "scripts/count.py").write_text(SCRIPT.replace("len(words", "len(word"))
    (scripted / "scripts/texts.py").write_text("import nowhere_9\ndef words(text):\n    return text.split()\n")
    done = run("check")
    assert done.returncode == 1
    assert done.stdout == (
        "error: `word` is not defined\n"
        "  scripts/count.py:5:32\n"
        "      3 │\n"
        "      4 │ def count(book, counted):\n"
        "    → 5 │     counted.write_text(str(len(word(book.read_text()))))\n"
        "        │                                ^^^^\n"
        'hint: did you mean "words"?\n'
        "note: nowhere_9 is not installed here; counted needs it to run\n"
        "hint: pip install nowhere_9\n"
        "blocked: counted\n"
        "1 script, 1 module: 1 error, 1 note\n"
    )
    assert "counted         1 blocked     `word` is not defined\n" in run("plan").stdout
    assert "counted         1 blocked" in run("status").stdout
    assert "counted is blocked: `word` is not defined" in run("why", "counted").stdout


def test_what_blocks_nothing_ends_with_0(scripted: Path, run: Run) -> None:
    (scripted / "scripts/count.py").write_text(SCRIPT + "\ndef unused():\n    return word\n")
    done = run("check")
    assert done.returncode == 0
    assert done.stdout.startswith("warning: `word` is not defined\n")
    assert done.stdout.endswith("1 script, 1 module: 1 warning\n")


def test_programs_get_places_and_rules(scripted: Path, run: Run) -> None:
    (scripted / "scripts/texts.py").write_text("def words(text:\n    return text.split()\n")
    done = run("check", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert (told["scripts"], told["modules"]) == (1, 1)
    (found,) = told["diagnostics"]
    assert (found["level"], found["rules"]) == ("error", ["counted"])
    assert found["place"]["path"] == "scripts/texts.py"
    assert found["place"]["line"] == 1


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("run     =", "runn    =", 2, 'did you mean "run"?'),
        ("count.py::", "cuont.py::", 1, "[rule.counted] names a script that is missing: scripts/cuont.py"),
        ("::count", "::conut", 1, 'scripts/count.py defines no "conut"'),
    ],
)
def test_rule_files_are_checked_too(scripted: Path, run: Run, old: str, new: str, code: int, said: str) -> None:
    (scripted / "rules/count.toml").write_text(RULE.replace(old, new))
    done = run("check")
    assert done.returncode == code
    assert said in done.stdout + done.stderr


def test_it_changes_nothing(scripted: Path, run: Run) -> None:
    def seen() -> set[tuple[str, int]]:
        files = [path for path in scripted.rglob("*") if path.is_file() and path.name != "clock"]
        return {(str(path), path.stat().st_mtime_ns) for path in files}

    run("plan")  # it looks at what is installed, too, which is then known
    before = seen()
    run("check")
    assert seen() == before


def test_a_build_shows_a_diagnostic_once_before_anything_runs(scripted: Path) -> None:
    (scripted / "scripts/count.py").write_text(SCRIPT.replace("len(words", "len(word"))
    (scripted / "data/one.txt").write_text("changed\n")
    done = run_in(scripted, "build")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "error: `word` is not defined"
    assert sum("is not defined" in line for line in lines) == 1
    assert "blocked: counted (their last good outputs stay)" in lines
    assert lines[-1].startswith("4 actions: 1 blocked, 1 reused, 2 ran in ")
    events = [json.loads(line) for line in run_in(scripted, "build", "--json").stdout.splitlines()]
    assert [event["diagnostic"]["problem"] for event in events if event["event"] == "Diagnosed"] == [
        "`word` is not defined"
    ]


def test_shards_that_are_not_known_are_no_reason_to_hide_that_a_rule_is_blocked(fresh: Path) -> None:
    (fresh / "rules/book.toml").write_text(
        '[rule.split]\nrun = "s.py::split"\noutputs = { part = "build/{profile}/{shard}.txt" }\n'
        '[rule.each]\neach = { shard = "@split[*]" }\nrun = "t.py::one"\ninputs = { part = "@split" }\n'
        'outputs = { one = "build/{profile}/one/{shard}.txt" }\n'
    )
    (fresh / "s.py").write_text("def split(part):\n    pass\n")
    (fresh / "t.py").write_text("def one(part, one):\n    return parts\n")
    assert "each            1 blocked" in run_in(fresh, "plan").stdout
    assert "each            1 blocked" in run_in(fresh, "status").stdout


# ---------------------------------------------------------------- what is installed


def test_the_extra_of_buildsys_that_brings_all_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["click>=8", 'torch>=2.9; extra == "pipeline"', 'numpy>=2; extra == "pipeline"', 'openai; extra == "chat"']
    monkeypatch.setattr("buildsys.diagnostics.metadata.requires", lambda name: lines)
    assert diagnostics.pip_line("", ["click", "numpy", "torch"]) == "pip install 'buildsys[pipeline]'"
    assert diagnostics.pip_line("", ["openai"]) == "pip install 'buildsys[chat]'"
    assert diagnostics.pip_line("", ["torch", "yaml"]) == "pip install torch yaml"
    assert diagnostics.pip_line("env/bin/python", ["torch"]) == "env/bin/python -m pip install torch"


def test_doctor_and_init_say_what_the_scripts_lack(
    scripted: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(diagnostics, "is_found_here", lambda name: False)
    monkeypatch.setattr(diagnostics, "names_in_folders", lambda folders: set())
    made = run("init", "--template", "eagle3", str(tmp_path / "draft"))
    assert "are not installed here; the rules that import them need them to run" in made.stderr
    assert "  datasets:     prompts\n" in made.stderr
    assert "hint: pip install 'buildsys[pipeline]'\n" in made.stderr
    assert not (tmp_path / "draft/.buildsys").exists()
    (scripted / "scripts/count.py").write_text("import numpy\n" + SCRIPT)
    done = run("doctor")
    assert done.returncode == 0
    assert "note  packages     numpy is not installed here; counted needs it to run" in done.stdout


def test_init_says_nothing_where_all_is_there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(diagnostics, "is_found_here", lambda name: True)
    assert "pip install" not in run("init", "--template", "eagle3", str(tmp_path / "draft")).stderr
    assert sys.modules.get("torch") is None, "to look for a package is not to import it"
