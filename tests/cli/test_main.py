"""The program as a process: exit codes, signals, streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, environment, run_in


def test_an_unknown_command_is_an_error_with_the_nearest_name(run, tmp_path):
    done = run("buid", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'error: there is no command "buid"\nhint: did you mean "build"?\n'


def test_an_unknown_option_is_an_error_that_names_the_help(run, tmp_path):
    done = run("build", "--jbos", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no such option")
    assert "hint: buildsys build --help shows how it is called" in done.stderr


def test_no_command_is_the_help_and_exit_code_2(run, tmp_path):
    done = run(cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Examples:")


def test_outside_of_a_project_it_says_so(run, tmp_path):
    done = run("status", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: this is no buildsys project")


def test_a_folder_that_is_not_there_is_an_error_also_within_a_project(run):
    done = run("status", "-C", "nowhere")
    assert (done.returncode, done.stderr) == (2, "error: there is no folder nowhere\n")


@pytest.mark.parametrize(
    "arguments", [["-C", "copy", "status"], ["status", "-C", "copy"], ["-C", ".", "status", "-C", "copy/data"]]
)
def test_a_folder_can_be_named_before_and_after_the_command(run, project, arguments):
    assert run(*arguments, cwd=project.parent).stdout.endswith("3 actions up to date\n")


def test_a_target_that_does_not_exist_ends_with_3(run):
    done = run("build", "wrods")
    assert done.returncode == 3
    assert 'did you mean "words"?' in done.stderr


def test_an_error_has_no_colour_without_a_terminal(run):
    assert "\x1b" not in run("build", "wrods").stderr


@pytest.mark.parametrize("n_rows", [1, 1_000_000])
def test_a_pipe_that_is_closed_early_ends_without_a_word(project, n_rows):
    reading, writing = os.pipe()
    query = f"SELECT range FROM range({n_rows})"
    process = subprocess.Popen(
        [*PROGRAM, "sql", "--csv", query], cwd=project, stdout=writing, stderr=subprocess.PIPE, env=environment()
    )
    os.close(writing)
    os.close(reading)
    _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (1, b"")


def slow_build(project: Path) -> subprocess.Popen[str]:
    """A build that is within an action that does not end by itself."""
    with (project / "rules" / "book.toml").open("a") as rules:
        rules.write(
            '[rule.slow]\nshell = "touch begun; sleep 60; touch {outputs.slow}"\noutputs = { slow = "slow.txt" }\n'
        )
    process = subprocess.Popen(
        [*PROGRAM, "build", "--json"], cwd=project, stdout=subprocess.PIPE, text=True, env=environment()
    )
    deadline = time.monotonic() + 30
    while not (project / "begun").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_build_in_order_and_with_130(project, number):
    process = slow_build(project)
    process.send_signal(number)
    told, _ = process.communicate(timeout=30)
    last = json.loads(told.splitlines()[-1])
    assert (last["event"], last["outcome"], last["counts"]["cancelled"]) == ("BuildFinished", "interrupted", 1)
    assert process.returncode == 130


def test_a_lost_terminal_is_ignored_where_whoever_started_it_said_so(project):
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    probe = (
        "import os, signal; from buildsys.cli.signals import heed_signals; heed_signals(); "
        "os.kill(os.getpid(), signal.SIGHUP); print('alive')"
    )
    python = PROGRAM[0]
    done = subprocess.run([python, "-c", ignoring, python, "-c", probe], capture_output=True, text=True, timeout=60)
    assert done.stdout == "alive\n"


def test_events_are_lines_of_json_on_standard_output(project):
    os.utime(project / "data" / "one.txt")
    (project / "data" / "two.txt").write_text("new\n")
    done = run_in(project, "build", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [event["event"] for event in events[:1] + events[-1:]] == ["BuildStarted", "BuildFinished"]
    settled = {event["action"]: event["outcome"] for event in events if event["event"] == "ActionFinished"}
    assert settled == {"words[one]": "reused", "words[two]": "ran", "book": "ran"}
    assert all(abs(event["time"] - time.time()) < 60 for event in events)


def test_a_build_talks_on_standard_error_only(project):
    done = run_in(project, "build")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("3 actions up to date (")


def test_a_failed_build_ends_with_1(project):
    with (project / "rules" / "book.toml").open("a") as rules:
        rules.write('[rule.bad]\nshell = "false"\noutputs = { bad = "bad.txt" }\n')
    done = run_in(project, "build")
    assert done.returncode == 1
    assert "buildsys log bad" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("other", "code"), [("true", 6), ("false", 1)])
def test_a_build_that_a_limit_stops_ends_with_6_unless_something_failed(fresh, other, code):
    rules = fresh / "rules" / "book.toml"
    text = rules.read_text().replace("[rule.words]", "[rule.words]\nephemeral = true")
    more = f'[store]\nephemeral_budget = "5B"\n[rule.o]\nshell = "{other} > {{outputs.o}}"\noutputs = {{ o = "o" }}\n'
    rules.write_text(f"{text}\n{more}")
    done = run_in(fresh, "build", "-k")
    assert done.returncode == code, done.stderr
    assert "words[two] needs more room for ephemeral outputs than there may be" in done.stderr
    assert ("try: buildsys log" in done.stderr) == (code == 1)
