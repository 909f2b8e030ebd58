"""--profile, --set and `buildsys profiles`, as they are typed."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import run_in, write_project

CONFIG = """
[style]
mark = "!"
width = 40
"""
NOTE = """
config = "config.toml"

[rule.note]
shell   = "echo marking; echo {params.mark} {params.width} > {outputs.note}"
params  = { mark = "$style.mark", width = "$style.width" }
outputs = { note = "build/{profile}/note.txt" }
"""


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """The small project with a rule that reads a config, built under `default` and under `quiet`."""
    root = write_project(tmp_path_factory.mktemp("marked") / "project")
    (root / "rules" / "note.toml").write_text(NOTE)
    (root / "config.toml").write_text(CONFIG)
    (root / "config.quiet.toml").write_text('style.mark = "."\n')
    (root / "config.wide.toml").write_text("style.width = 80\n")
    for options in ([], ["--profile", "quiet", "--set", "style.width=60"]):
        done = run_in(root, "build", *options)
        assert done.returncode == 0, done.stderr
    return root


def test_each_profile_is_listed_with_its_last_build_and_what_it_changes(run, marked):
    lines = run("profiles", cwd=marked).stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["default", "quiet", "", "wide", ""]
    assert lines[0].startswith("default  4 actions · run 1, ")
    assert lines[1].startswith("quiet    4 actions · run 2, ")
    assert lines[1].endswith(": done")
    assert lines[2] == '  style.mark  "!" → "."'
    assert lines[3:] == ["wide     never built", "  style.width  40 → 80"]


def test_profiles_as_json_tells_the_overlays(run, marked):
    default, quiet, wide = json.loads(run("profiles", "--json", cwd=marked).stdout)
    assert (default["overlays"], quiet["overlays"], wide["last"]) == ([], ["config.quiet.toml"], None)
    assert (quiet["last"]["run_id"], quiet["last"]["outcome"], quiet["last"]["n_actions"]) == (2, "done", 4)
    assert wide["changes"] == [{"config": "config.toml", "key": "style.width", "before": "40", "after": "80"}]


def test_an_overlay_that_is_wrong_or_gone_is_told_and_the_others_are_listed(run, marked, tmp_path):
    overlay, other = marked / "config.quiet.toml", marked / "config.wide.toml"
    text = overlay.read_text()
    try:
        overlay.unlink()
        other.write_text("style.widht = 80\n")
        told = run("profiles", cwd=marked).stdout
    finally:
        overlay.write_text(text)
        other.write_text("style.width = 80\n")
    assert 'error: "style.widht" is no key of config.toml' in told
    assert 'hint: did you mean "style.width"?' in told
    assert told.splitlines()[-1].endswith("done · its overlay is gone")


def test_status_and_why_look_at_the_profile_and_the_keys_that_are_set(run, marked):
    assert "1 to run" in run("status", "--profile", "quiet", "note", cwd=marked).stdout
    held = run("status", "--profile", "quiet", "--set", "style.width=60", cwd=marked)
    assert held.stdout.splitlines()[-1] == "4 actions up to date"
    assert run("status", cwd=marked).stdout.splitlines()[-1] == "4 actions up to date"
    why = run("why", "note", "--profile", "quiet", "--set", "style.width=60", "--set", "style.mark=?", cwd=marked)
    assert why.stdout.startswith("note will run: param mark changed: '.' (str) → '?' (str) (style.mark)")


def test_the_log_is_that_of_the_profile(run, marked):
    assert run("log", "--path", "note", cwd=marked).stdout == ".buildsys/logs/1/note/note.log\n"
    quiet = run("log", "note", "--path", "--profile", "quiet", cwd=marked)
    assert quiet.stdout == ".buildsys/logs/2.quiet/note/note.log\n"
    restored = run("log", "book", "--profile", "quiet", cwd=marked)
    assert (restored.returncode, "only under another profile" in restored.stderr) == (3, True)


def test_lineage_can_be_asked_for_one_profile(run, marked):
    def made(*options):
        links = json.loads(run("lineage", "--down", "style", "--json", *options, cwd=marked).stdout)
        return [link["path"] for link in links]

    assert made() == ["build/default/note.txt", "build/quiet/note.txt"]
    assert made("--profile", "quiet") == ["build/quiet/note.txt"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--set", "width"], '--set "width" sets nothing'),
        (["--set", "=4"], '--set "=4" sets nothing'),
        (["--set", "style.widht=4"], "--set style.widht: no config has this key"),
        (["--set", "style.width=wide"], "--set: style.width has to be an integer, not a text"),
        (["--profile", "quite"], 'there is no profile "quite"'),
    ],
)
def test_what_can_not_be_is_a_mistake_of_usage(run, marked, options, problem):
    for command in ("build", "plan", "status"):
        done = run(command, *options, cwd=marked)
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"error: {problem}")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("build --profile ", ["default", "quiet", "wide"]),
        ("plan --profile q", ["quiet"]),
        ("build --profile quiet words[o", ["words[one]"]),
    ],
)
def test_profiles_complete(run, marked, monkeypatch, typed, offered):
    words = f"buildsys {typed}".split(" ")
    monkeypatch.setenv("_BUILDSYS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert [line.partition(",")[2] for line in run(cwd=marked).stdout.splitlines()] == offered
