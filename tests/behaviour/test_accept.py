"""A user's word that outputs hold under new code: what it needs, what it does, and taking it back."""

from __future__ import annotations

import pytest

from buildsys.accept import accept, undo
from buildsys.errors import NO_SUCH_TARGET, NOT_UP_TO_DATE, USAGE, BuildError
from buildsys.explain import explain
from buildsys.project import Project
from buildsys.query import lineage, sql
from buildsys.survey import survey
from tests.behaviour.conftest import Space

RULES = """
config = "config.toml"

[rule.words]
each    = { shard = "data/{shard}.txt" }
run     = "scripts/words.py::words"
inputs  = { text = "data/{shard}.txt" }
params  = { mark = "$mark" }
outputs = { words = "build/{profile}/words/{shard}.txt" }

[rule.count]
each    = { shard = "@words[*]" }
shell   = "{python} scripts/count.py {inputs.words} {outputs.count}"
inputs  = { words = "@words" }
outputs = { count = "build/{profile}/count/{shard}.txt" }

[rule.total]
run     = "scripts/total.py::total"
inputs  = { counts = "@count[*]" }
outputs = { total = "build/{profile}/total.txt" }
"""
WORDS = """
import os

def words(text, words, mark):
    if os.path.exists("data/loud"):
        mark = mark + "!"
    words.write_text(shout(text.read_text()) + mark)

def shout(text):
    return text.upper()
"""
COUNT = "import sys\nopen(sys.argv[2], 'w').write(str(len(open(sys.argv[1]).read())))\n"
TOTAL = "def total(counts, total):\n    total.write_text(str(sum(int(path.read_text()) for path in counts)))\n"


@pytest.fixture
def built(space: Space) -> Space:
    space.write("rules/words.toml", RULES)
    space.write("config.toml", 'mark = "."\n')
    space.write("data/a.txt", "a\n")
    space.write("data/b.txt", "b\n")
    space.write("scripts/words.py", WORDS)
    space.write("scripts/count.py", COUNT)
    space.write("scripts/total.py", TOTAL)
    assert len(space.build().ran) == 5
    return space


def edit_words(space: Space) -> None:
    space.replace("scripts/words.py", "text.upper()", "str(text).upper()")


def refused(space: Space, target: str) -> BuildError:
    with pytest.raises(BuildError) as found:
        accept(Project(space.root), target)
    return found.value


def actions(space: Space, target: str, reason: str = "") -> list[str]:
    return [str(one.action) for one in accept(Project(space.root), target, reason)]


def test_what_is_accepted_is_up_to_date_and_so_is_what_needs_it(built: Space) -> None:
    edit_words(built)
    assert actions(built, "words") == ["words[a]", "words[b]"]
    assert survey(Project(built.root)).up_to_date
    before = built.read("build/default/words/a.txt")
    assert built.build().ran == []
    assert built.read("build/default/words/a.txt") == before


def test_the_next_edit_of_what_ran_counts_again(built: Space) -> None:
    edit_words(built)
    accept(Project(built.root), "words")
    built.replace("scripts/words.py", "str(text)", "''.join(text)")
    assert built.build().ran == ["words[a]", "words[b]"]


def test_a_comment_after_it_changes_nothing(built: Space) -> None:
    edit_words(built)
    accept(Project(built.root), "words")
    built.replace("scripts/words.py", "def shout", "# More.\ndef shout")
    assert built.build().ran == []


def test_one_shard_alone_can_be_accepted(built: Space) -> None:
    edit_words(built)
    assert actions(built, "words[a]") == ["words[a]"]
    assert built.build().ran == ["words[b]"]


def test_taken_back_it_runs(built: Space) -> None:
    edit_words(built)
    accept(Project(built.root), "words")
    assert [str(one.action) for one in undo(Project(built.root), "words")] == ["words[a]", "words[b]"]
    assert built.build().ran == ["words[a]", "words[b]"]


def test_what_was_not_accepted_cannot_be_taken_back(built: Space) -> None:
    with pytest.raises(BuildError) as found:
        undo(Project(built.root), "words")
    assert (found.value.problem, found.value.exit_code) == ("nothing of words was accepted", NO_SUCH_TARGET)


def test_a_script_that_a_command_runs_can_be_accepted_too(built: Space) -> None:
    built.replace("scripts/count.py", "str(len(", "str(0 + len(")
    assert actions(built, "count") == ["count[a]", "count[b]"]
    assert built.build().ran == []
    undo(Project(built.root), "count")
    assert built.build().ran == ["count[a]", "count[b]"]


def test_with_nothing_changed_there_is_nothing_to_accept(built: Space) -> None:
    assert accept(Project(built.root), "words") == []
    assert sql(built.root, "SELECT count(*) FROM recorded.aliases").rows == [(0,)]


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("config.toml", 'mark = "?"\n', "param mark changed: '.' (str) → '?' (str) (mark)"),
        ("data/a.txt", "other\n", "input text changed (data/a.txt)"),
        ("data/loud", "", "data/loud"),
    ],
    ids=["a param", "an input", "a discovered input"],
)
def test_where_more_than_code_changed_it_is_refused(built: Space, path: str, text: str, why: str) -> None:
    edit_words(built)
    built.write(path, text)
    error = refused(built, "words")
    assert (error.problem, error.exit_code) == (
        "words can't be accepted: more than its code has changed",
        NOT_UP_TO_DATE,
    )
    assert (error.facts[0][0], why in error.facts[0][1]) == ("words[a]", True)
    assert sql(built.root, "SELECT count(*) FROM recorded.aliases").rows == [(0,)]


def test_what_waits_for_others_is_refused(built: Space) -> None:
    edit_words(built)
    built.replace("scripts/total.py", "str(sum", "str(0 + sum")
    assert refused(built, "total").facts == (("total", "needs words, which is not up to date"),)
    accept(Project(built.root), "words")
    assert actions(built, "total") == ["total"]
    assert built.build().ran == []


def test_what_is_blocked_never_built_or_gone_is_refused(built: Space) -> None:
    built.write("scripts/total.py", TOTAL.replace("):", ""))
    assert refused(built, "total").facts[0][1].startswith("it is blocked: ")
    built.write("scripts/total.py", TOTAL)
    built.write("data/c.txt", "c\n")
    edit_words(built)
    assert refused(built, "words").facts == (("words[c]", "never built"),)
    built.remove("data/c.txt")
    built.remove("build/default/words/a.txt")
    built.remove(".buildsys/store")
    assert refused(built, "words[a]").facts == (("words[a]", "its outputs are neither in place nor in the store"),)


def test_outputs_that_the_store_has_are_put_back(built: Space) -> None:
    edit_words(built)
    built.remove("build/default/words/a.txt")
    accept(Project(built.root), "words")
    done = built.build()
    assert (done.ran, done.restored) == ([], ["words[a]"])


def test_replies_are_never_accepted(built: Space) -> None:
    built.write(
        "rules/chat.toml",
        '[rule.replies]\nchat = "scripts/ask.py::ask"\ninputs = { prompts = "data/a.txt" }\n'
        'endpoint = "http://127.0.0.1:9"\nidentity = "none"\noutputs = { replies = "replies.jsonl" }\n',
    )
    built.write("scripts/ask.py", "def ask(record, replies):\n    return None\n")
    error = refused(built, "replies")
    assert (error.problem, error.exit_code) == ("replies of replies can't be accepted for other requests", USAGE)


def test_why_lineage_and_the_manifest_tell_it(built: Space) -> None:
    edit_words(built)
    accept(Project(built.root), "words[a]", "only another way to say it")
    (told,) = explain(Project(built.root), "words[a]")
    assert told.planned.fate == "reuse"
    assert told.basis
    assert told.basis.alias
    assert (told.basis.alias.said_by, told.basis.alias.reason) == ("accepted", "only another way to say it")
    assert [change.line for change in told.changes] == ["its code changed: shout (scripts/words.py:9)"]
    held = sql(built.root, "SELECT shard, held_by, held_because FROM artifacts WHERE rule = 'words' ORDER BY shard")
    assert held.rows == [("a", "accepted", "only another way to say it"), ("b", None, None)]
    links = [link for link in lineage(built.root, "build/default/total.txt") if link.kind == "held"]
    assert [(link.rule, link.shard, link.name, link.value) for link in links] == [
        ("words", "a", "accepted", "only another way to say it")
    ]
    undo(Project(built.root), "words")
    assert not [link for link in lineage(built.root, "build/default/total.txt") if link.kind == "held"]


def test_without_a_reason_it_tells_what_changed(built: Space) -> None:
    edit_words(built)
    accept(Project(built.root), "words")
    (told,) = sql(built.root, "SELECT DISTINCT held_because FROM artifacts WHERE rule = 'words'").rows
    assert told == ("its code changed: shout (scripts/words.py:9)",)


def test_today_s_outputs_are_accepted_where_older_ones_would_be_restored(built: Space) -> None:
    before = built.read("scripts/words.py")
    built.replace("scripts/words.py", "text.upper()", "text.lower()")
    assert built.build().ran
    built.write("scripts/words.py", before)
    accept(Project(built.root), "words")
    assert (built.build().restored, built.read("build/default/words/a.txt")) == ([], "a\n.")
    undo(Project(built.root), "words")
    assert built.build().restored[-2:] == ["words[a]", "words[b]"]
    assert built.read("build/default/words/a.txt") == "A\n."
