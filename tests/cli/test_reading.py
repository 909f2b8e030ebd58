"""plan, status, why, lineage, log, schema, completion: on a project that was really built."""

from __future__ import annotations

import json
import re

import pytest

from buildsys.digest import digest_bytes
from tests.cli.conftest import run_in

ONE, ANOTHER = digest_bytes(b"one\n"), digest_bytes(b"another\n")


def edit_one(project):
    (project / "data" / "one.txt").write_text("another\n")


def test_plan_says_what_would_run_and_why(run, project):
    edit_one(project)
    first, words, book, takes = run("plan").stdout.splitlines()
    assert first == "3 actions: 1 to run; 1 to run, unless equal; 1 up to date"
    assert words.split(maxsplit=4) == ["words", "1", "to", "run", "input text changed (data/one.txt)"]
    assert book.endswith("unless equal")
    assert re.match(r"about \d", takes)


def test_plan_tells_the_shards_that_are_skipped_in_one_line(run, project):
    (project / "up.py").write_text("def up(text, words:\n")
    (project / "rules/more.toml").write_text(
        '[rule.up]\neach = { shard = "@words[*]" }\nrun = "up.py::up"\ninputs = { words = "@words" }\n'
        'outputs = { up = "made/up/{shard}.txt" }\n'
        '[rule.down]\neach = { shard = "@up[*]" }\nshell = "cp {inputs.up} {outputs.down}"\n'
        'inputs = { up = "@up" }\noutputs = { down = "made/down/{shard}.txt" }\n'
    )
    told = run("plan").stdout.splitlines()
    assert [line.split(maxsplit=4) for line in told if "down" in line] == [
        ["down", "2", "to", "skip", "needs up, which is blocked"]
    ]


def test_plan_of_what_is_up_to_date_is_one_line(run):
    assert run("plan").stdout == "3 actions up to date\n"


def test_plan_as_json_names_every_action_and_its_fate(run, project):
    edit_one(project)
    found = json.loads(run("plan", "--json").stdout)
    assert {each["action"]: each["fate"] for each in found["actions"]} == {
        "words[one]": "run",
        "words[two]": "reuse",
        "book": "maybe",
    }
    assert found["up_to_date"] is False


def test_status_is_a_line_a_rule(run, project):
    edit_one(project)
    assert run("status").stdout.splitlines() == [
        "  words           1 to run; 1 up to date",
        "  book            1 to run, unless equal",
        "2 of 3 actions not up to date",
    ]


def test_status_ends_with_4_only_where_it_is_asked_to_and_something_is_not_up_to_date(run, project):
    assert run("status", "--exit-code").returncode == 0
    edit_one(project)
    assert run("status").returncode == 0
    assert run("status", "--exit-code").returncode == 4
    assert run("status", "--exit-code", "words[two]").returncode == 0


def test_status_as_json_counts_by_rule_and_fate(run, project):
    edit_one(project)
    assert json.loads(run("status", "--json").stdout) == {
        "up_to_date": False,
        "rules": {"words": {"run": 1, "reuse": 1}, "book": {"maybe": 1}},
    }


def test_why_tells_actions_with_one_reason_together(run, project):
    assert run("why", "words").stdout == "words (2 actions) are up to date\n"
    edit_one(project)
    assert run("why", "words").stdout.splitlines() == [
        "words[one] will run: input text changed (data/one.txt)",
        f"    {ONE[:12]} → {ANOTHER[:12]}",
        "words[two] is up to date",
    ]


def test_why_of_one_action_that_is_up_to_date_says_what_its_result_rests_on(run):
    head, *parts = run("why", "words[one]").stdout.splitlines()
    assert head == "words[one] is up to date"
    assert {"rule", "input", "python"} <= {part.split()[0] for part in parts}


def test_a_path_may_be_relative_to_where_the_user_stands_or_absolute(run, project):
    named = str(project / "build/default/book.txt")
    assert run("why", named).stdout.startswith("book is up to date")
    assert run("why", "book.txt", cwd=project / "build" / "default").stdout.startswith("book is up to date")


def test_lineage_goes_up_to_the_sources_a_block_a_rule(run):
    told = run("lineage", "build/default/book.txt").stdout
    assert [line.split()[0] for line in told.splitlines() if not line.startswith(" ")] == ["book", "words"]
    assert "data/one.txt, data/two.txt" in told


def test_lineage_goes_down_to_what_was_made(run):
    found = json.loads(run("lineage", "--down", "--json", "data/one.txt").stdout)
    assert [link["path"] for link in found] == ["build/default/words/one.txt", "build/default/book.txt"]


def test_log_prints_what_an_action_said(run):
    assert run("log", "words[one]").stdout == "shouting\n"


def test_log_of_an_action_that_said_nothing_says_so_where_it_is_in_nobodys_way(run):
    done = run("log", "book")
    assert (done.stdout, done.stderr) == ("", "book printed nothing\n")


def test_log_of_several_actions_lists_where_they_are(run):
    assert run("log", "words").stdout.splitlines() == [
        "words[one]  .buildsys/logs/1/words/one.log",
        "words[two]  .buildsys/logs/1/words/two.log",
    ]


def test_log_is_that_of_the_last_run_in_which_the_action_ran(run, project):
    edit_one(project)
    assert run_in(project, "build").returncode == 0
    assert json.loads(run("log", "--json", "words").stdout) == {
        "words[one]": ".buildsys/logs/2/words/one.log",
        "words[two]": ".buildsys/logs/1/words/two.log",
    }
    assert run("log", "--path", "words[one]").stdout == ".buildsys/logs/2/words/one.log\n"


def test_log_of_what_never_ran_ends_with_3(run, fresh):
    done = run("log", "words", cwd=fresh)
    assert (done.returncode, done.stderr.splitlines()[0]) == (3, "error: there is no log of words")


def test_schema_is_a_json_schema_and_needs_no_project(run, tmp_path):
    assert json.loads(run("schema", cwd=tmp_path).stdout)["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_code_for_a_shell(run, shell):
    done = run("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_BUILDSYS_COMPLETE=" + shell in done.stdout


def test_completion_for_an_unknown_shell_names_those_that_there_are(run, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = run("completion")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "hint: name one of bash, zsh, fish")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("build ", ["words", "book"]),
        ("build wo", ["words"]),
        ("why words[", ["words[one]", "words[two]"]),
        ("plan words[t", ["words[two]"]),
        ("build ./bu", ["./bu"]),
    ],
)
def test_targets_complete_to_rules_actions_and_paths(run, monkeypatch, typed, offered):
    words = f"buildsys {typed}".split(" ")
    monkeypatch.setenv("_BUILDSYS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert [line.partition(",")[2] for line in run().stdout.splitlines()] == offered
