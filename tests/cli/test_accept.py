"""accept: what it prints, and what `why` and `lineage` say after it."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_why import built_texts, edit, texts

__all__ = ["built_texts", "texts"]


@pytest.fixture
def edited(texts):
    edit(texts, "scripts/signs.py", 'f"({mark})"', '"(" + mark + ")"')
    return texts


def test_it_tells_the_actions_what_changed_and_how_to_take_it_back(run, edited):
    done = run("accept", "marked", "--reason", "the same  text", cwd=edited)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "accepted: 2 actions (marked[one], marked[two]), whatever came of this:",
        "  its code changed: sign (scripts/signs.py:1)",
        "undone by: buildsys accept marked --undo",
    ]
    assert run("plan", cwd=edited).stdout == "3 actions up to date\n"
    told = run("why", "marked[one]", cwd=edited).stdout.splitlines()
    assert told[:3] == [
        "marked[one] is up to date",
        "  changed since, and its result holds all the same:",
        "  its code changed: sign (scripts/signs.py:1)",
    ]
    assert told[4].startswith("  accepted by a user: the same text, key ")
    assert told[5:7] == [
        "  undone by: buildsys accept marked --undo",
        "  compared with what there is now, all else is equal:",
    ]
    lineage = run("lineage", "build/default/book.txt", cwd=edited).stdout
    assert [line.split() for line in lineage.splitlines() if "held" in line] == [
        ["held", "accepted:", "the", "same", "text"]
    ]
    undone = run("accept", "marked", "--undo", cwd=edited)
    assert undone.stdout == "no more accepted: 2 actions (marked[one], marked[two])\n"
    assert run("why", "marked", cwd=edited).stdout.startswith("marked (2 actions) will run: its code changed: sign")


def test_as_json_it_names_them(run, edited):
    done = run("accept", "marked[one]", "--json", cwd=edited)
    assert json.loads(done.stdout) == [
        {"action": "marked[one]", "changes": ["its code changed: sign (scripts/signs.py:1)"]}
    ]


def test_where_nothing_changed_it_says_so(run, texts):
    assert run("accept", "marked", cwd=texts).stdout == "nothing to accept: marked is up to date\n"


def test_where_more_has_changed_it_ends_with_4_and_says_what(run, edited):
    edit(edited, "configs/texts.yaml", "mark: '!'", "mark: '?'")
    done = run("accept", "marked", cwd=edited)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.splitlines() == [
        "error: marked can't be accepted: more than its code has changed",
        "  marked[one]: param mark changed: '!' (str) → '?' (str) (style.mark)",
        "  marked[two]: param mark changed: '!' (str) → '?' (str) (style.mark)",
        "hint: build what it needs first, or build it",
    ]


def test_what_there_is_not_ends_with_3(run, texts):
    done = run("accept", "marked", "--undo", cwd=texts)
    assert (done.returncode, done.stderr) == (3, "error: nothing of marked was accepted\n")
    assert run("accept", "nothing", cwd=texts).returncode == 3
