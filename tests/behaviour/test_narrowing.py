"""An edit of code that did not run rebuilds nothing, whatever the key says; one of code that did does."""

from __future__ import annotations

from typing import Any

import pytest

from buildsys.project import Project
from buildsys.query import connect
from buildsys.survey import survey
from tests.behaviour.conftest import Space

RULES = """
[rule.words]
each    = { shard = "data/{shard}.txt" }
run     = "scripts/words.py::words"
inputs  = { text = "data/{shard}.txt" }
outputs = { words = "build/{profile}/words/{shard}.txt" }

[rule.total]
run     = "scripts/total.py::total"
inputs  = { words = "@words[*]" }
outputs = { total = "build/{profile}/total.txt" }
"""
TOTAL = "def total(words, total):\n    total.write_text(str(sum(len(path.read_text()) for path in words)))\n"
WORDS = """
def words(text, words):
    found = text.read_text()
    words.write_text(upper(found) if found.startswith("up") else lower(found))

def upper(text):
    return text.upper()

def lower(text):
    return text.lower()
"""


@pytest.fixture
def counts(space: Space) -> Space:
    space.write("rules/words.toml", RULES)
    space.write("data/a.txt", "Low\n")
    space.write("data/b.txt", "Also low\n")
    space.write("scripts/words.py", WORDS)
    space.write("scripts/total.py", TOTAL)
    assert len(space.build().ran) == 3
    return space


def asked(space: Space, sql: str) -> list[Any]:
    with connect(space.root) as con:
        return con.execute(sql).fetchall()


def reasons(space: Space) -> dict[str, tuple[str, str]]:
    return {str(one.action): (one.fate, one.reason) for one in survey(Project(space.root)).actions}


def test_an_edit_of_what_did_not_run_runs_nothing(counts: Space) -> None:
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    found = reasons(counts)
    assert found["words[a]"] == ("reuse", "up to date; what changed in its code did not run")
    built = counts.build()
    assert (built.ran, built.restored) == ([], [])
    assert counts.build().ran == []
    assert reasons(counts)["words[a]"] == ("reuse", "up to date")


def test_an_edit_of_what_ran_runs_its_users(counts: Space) -> None:
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    counts.build()
    counts.replace("scripts/words.py", "text.lower()", "text.strip()")
    assert reasons(counts)["words[a]"][0] == "run"
    assert set(counts.build().ran) >= {"words[a]", "words[b]"}
    assert counts.read("build/default/words/a.txt") == "Low"


def test_why_a_result_holds_under_another_key_is_recorded(counts: Space) -> None:
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    counts.build()
    rows = asked(counts, "SELECT DISTINCT held_by, held_because FROM artifacts WHERE rule = 'words'")
    assert rows == [("narrowed", "what changed in its code did not run")]


def test_one_shard_uses_what_another_does_not(counts: Space) -> None:
    counts.write("data/b.txt", "up there\n")
    assert "words[b]" in counts.build(jobs=1).ran
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    ran = counts.build(jobs=1).ran
    assert "words[b]" in ran
    assert "words[a]" not in ran


def test_an_edit_that_is_taken_back_runs_nothing(counts: Space) -> None:
    counts.replace("scripts/words.py", "text.lower()", "text.strip()")
    counts.build()
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    counts.replace("scripts/words.py", "text.strip()", "text.lower()")
    assert reasons(counts)["words[a]"] == ("restore", "made before; what changed in its code did not run")
    built = counts.build()
    assert built.ran == []
    assert built.restored == ["total", "words[a]", "words[b]"]
    assert counts.read("build/default/words/a.txt") == "low\n"
    assert counts.build().restored == []


def test_an_input_is_the_reason_where_the_code_that_changed_did_not_run(counts: Space) -> None:
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    counts.write("data/a.txt", "Lower\n")
    assert reasons(counts)["words[a]"] == ("run", "input text changed (data/a.txt)")
    assert "words[b]" not in counts.build().ran


def test_where_a_child_process_ran_the_key_decides(counts: Space) -> None:
    counts.replace(
        "scripts/words.py", "    found =", '    import subprocess\n    subprocess.run(["true"])\n    found ='
    )
    counts.build()
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    assert set(counts.build().ran) >= {"words[a]", "words[b]"}


def test_users_of_ephemeral_outputs_run_only_where_their_makers_have_reason_to(counts: Space) -> None:
    counts.replace("rules/words.toml", 'words/{shard}.txt" }', 'words/{shard}.txt" }\nephemeral = true')
    counts.build()
    assert counts.build().ran == []
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    assert counts.build().ran == []
    counts.replace("scripts/total.py", "str(sum", "str(1 + sum")
    assert counts.build().ran == ["total"]
    for path in (counts.root / "build/default/words").iterdir():
        path.unlink()
    assert counts.build().ran == []
    counts.replace("scripts/total.py", "str(1 + sum", "str(2 + sum")
    assert counts.build().ran == ["total", "words[a]", "words[b]"]
    assert counts.build().ran == []
    counts.replace("scripts/words.py", "text.lower()", "text.strip()")
    assert counts.build().ran == ["total", "words[a]", "words[b]"]


def test_another_profile_takes_what_was_made_under_other_code_too(counts: Space) -> None:
    counts.replace("rules/words.toml", "[rule.words]", 'config = "all.toml"\n[rule.words]')
    counts.write("all.toml", "n = 1\n")
    counts.write("all.large.toml", "n = 2\n")
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    built = counts.build(profile="large")
    assert built.ran == []
    assert built.restored == ["total", "words[a]", "words[b]"]


def test_forced_actions_run_all_the_same(counts: Space) -> None:
    counts.replace("scripts/words.py", "text.upper()", "text.title()")
    assert counts.build(force=["words[a]"]).ran == ["words[a]"]


def test_what_waits_for_its_inputs_is_not_said_to_run_for_code_that_did_not(counts: Space) -> None:
    counts.replace("scripts/total.py", "total.write_text", "len(words) > 9 and unused()\n    total.write_text")
    counts.replace("scripts/total.py", "def total", "def unused():\n    return 1\n\ndef total")
    counts.build()
    counts.replace("scripts/total.py", "return 1", "return 2")
    counts.write("data/a.txt", "Lower\n")
    assert reasons(counts)["total"] == ("maybe", "inputs: words, unless equal")
