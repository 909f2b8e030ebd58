"""What a run read and its rule does not declare counts for its result, is told once, and may be forbidden."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from buildsys.cli.lineage import lineage_lines
from buildsys.events import Notice
from buildsys.project import Project
from buildsys.query import lineage
from buildsys.state.manifest import Manifest
from buildsys.survey import survey
from buildsys.terminal import Line
from tests.behaviour.conftest import Built, Space
from tests.state.conftest import tick

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
TOTAL = """
def total(words, total):
    total.write_text(str(sum(len(path.read_text()) for path in words)))
"""


@pytest.fixture
def counts(space: Space) -> Space:
    space.write("rules/words.toml", RULES)
    for shard in ("a", "b"):
        space.write(f"data/{shard}.txt", f"some words of {shard}\n")
    space.write("scripts/total.py", TOTAL)
    return space


def script(space: Space, body: str, head: str = "") -> None:
    """What `words` does, with `text` and `words` as its arguments."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    space.write("scripts/words.py", f"import os\nfrom pathlib import Path\n{head}\ndef words(text, words):\n{lines}")


def told(built: Built) -> list[str]:
    return [event.text for event in built.events if isinstance(event, Notice)]


READS_STOP = 'stop = Path("extra/stop.txt").read_text()\nwords.write_text(text.read_text().replace(stop, ""))'


def test_a_file_that_is_read_undeclared_counts_and_is_told_once_with_the_line_to_add(counts: Space) -> None:
    counts.write("extra/stop.txt", "of")
    script(counts, READS_STOP)
    assert told(counts.build()) == ['words reads extra/stop.txt: add to its inputs: stop = "extra/stop.txt"']
    assert counts.build().ran == []
    counts.write("extra/stop.txt", "some")
    built = counts.build()
    assert built.ran == ["total", "words[a]", "words[b]"] or built.ran == ["words[a]", "words[b]"]
    assert told(built) == []
    assert counts.read("build/default/words/a.txt") == " words of a\n"
    assert counts.build().ran == []


def test_the_plan_says_which_file_changed(counts: Space) -> None:
    counts.write("extra/stop.txt", "of")
    script(counts, READS_STOP)
    counts.build()
    assert survey(Project(counts.root)).up_to_date
    counts.write("extra/stop.txt", "some")
    planned = {str(one.action): one for one in survey(Project(counts.root)).actions}
    assert planned["words[a]"].fate == "run"
    assert planned["words[a]"].reason == "file extra/stop.txt changed, which its last run read undeclared"


def test_a_stamp_holds_only_while_what_was_discovered_does(counts: Space) -> None:
    counts.write("extra/stop.txt", "of")
    script(counts, READS_STOP)
    counts.build()
    tick(counts.root)
    counts.build()
    assert list((counts.root / ".buildsys/stamps").iterdir())
    counts.write("extra/stop.txt", "me")
    assert set(counts.build().ran) >= {"words[a]", "words[b]"}


def test_lineage_tells_it_up_and_down(counts: Space) -> None:
    counts.write("extra/stop.txt", "of")
    script(counts, READS_STOP)
    counts.build()
    lines = plain(lineage_lines(lineage(counts.root, "build/default/words/a.txt")))
    assert "discovered extra/stop.txt (read)" in lines
    assert "build/default/words/a.txt" in plain(lineage_lines(lineage(counts.root, "extra/stop.txt", down=True)))


def plain(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in line) for line in lines)


CHANGES = {
    "a folder that is listed gets another file": (
        'words.write_text(" ".join(sorted(os.listdir("extra"))))',
        lambda space: space.write("extra/more", ""),
    ),
    "a file that was asked for comes": (
        'words.write_text("yes" if os.path.exists("extra/flag") else "no")',
        lambda space: space.write("extra/flag", ""),
    ),
    "a file that could not be opened comes": (
        'try:\n    words.write_text(open("extra/flag").read())\nexcept OSError:\n    words.write_text("none")',
        lambda space: space.write("extra/flag", "some"),
    ),
    "a file whose size is asked for": (
        'words.write_text(str(os.path.getsize("extra/stop.txt")))',
        lambda space: space.write("extra/stop.txt", "longer"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_all_that_a_run_asked_for_counts(counts: Space, name: str) -> None:
    body, change = CHANGES[name]
    counts.write("extra/stop.txt", "of")
    script(counts, body)
    counts.build()
    assert counts.build().ran == []
    change(counts)
    assert {"words[a]", "words[b]"} <= set(counts.build().ran)
    assert counts.build().ran == []


BOTH = {
    "sqlite3 opens it": 'words.write_text(str(sqlite3.connect("extra.db").execute("SELECT n FROM t").fetchall()))',
    "open for both": 'words.write_bytes(open("extra.db", "r+b").read())',
    "other permissions": 'os.chmod("extra.db", 0o600)\nwords.write_bytes(Path("extra.db").read_bytes())',
}


@pytest.mark.parametrize("name", BOTH)
def test_a_file_that_could_have_been_written_to_counts_where_it_was_only_read(counts: Space, name: str) -> None:
    fill(counts, 1)
    script(counts, BOTH[name], "import sqlite3")
    counts.build(jobs=1)
    assert counts.build().ran == []
    fill(counts, 2)
    assert {"words[a]", "words[b]"} <= set(counts.build(jobs=1).ran)
    assert counts.build().ran == []


def fill(space: Space, n: int) -> None:
    with contextlib.closing(sqlite3.connect(space.root / "extra.db")) as con:
        con.executescript(f"DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT {n} AS n")


def test_what_is_read_when_a_module_is_imported_counts_for_every_action_of_the_worker(counts: Space) -> None:
    counts.write("extra/stop.txt", "of")
    script(counts, 'words.write_text(text.read_text().replace(STOP, ""))', 'STOP = Path("extra/stop.txt").read_text()')
    counts.build(jobs=1)
    counts.write("extra/stop.txt", "some")
    assert {"words[a]", "words[b]"} <= set(counts.build().ran)


def test_what_other_shards_declare_does_not_count(counts: Space) -> None:
    script(counts, "words.write_text(text.read_text().upper())")
    counts.build(jobs=1)
    counts.write("data/a.txt", "other\n")
    assert counts.build(jobs=1).ran == ["total", "words[a]"]


def test_what_another_shard_declares_counts_where_it_is_read(counts: Space) -> None:
    script(counts, 'words.write_text(text.read_text() + Path("data/a.txt").read_text())')
    assert told(counts.build(jobs=1)) == ['words reads data/a.txt: add to its inputs: a = "data/a.txt"']
    counts.write("data/a.txt", "other\n")
    assert {"words[a]", "words[b]"} <= set(counts.build(jobs=1).ran)


def test_what_a_run_has_made_itself_is_no_input(counts: Space) -> None:
    script(
        counts,
        'kept = Path("extra") / text.name\n'
        "kept.parent.mkdir(exist_ok=True)\n"
        "kept.write_text(text.read_text())\n"
        "words.write_text(kept.read_text())",
    )
    assert told(counts.build()) == []
    assert counts.build().ran == []
    counts.write("extra/a.txt", "by hand")
    assert counts.build().ran == []


def test_what_a_run_has_read_and_then_written_runs_nothing_again(counts: Space) -> None:
    counts.write("extra/n", "0")
    script(
        counts,
        'n = int(open("extra/n").read()) + 1\nopen("extra/n", "w").write(str(n))\nwords.write_text(text.read_text())',
    )
    counts.build(jobs=1)
    assert counts.build().ran == []


LISTS = 'names = sorted(os.listdir("extra"))\nwords.write_text(" ".join(names))\n'


def test_what_others_put_into_a_folder_counts_where_a_run_lists_it_and_writes_to_it(counts: Space) -> None:
    counts.write("extra/by hand", "")
    script(counts, LISTS + 'Path("extra", text.name).write_text("kept")')
    counts.build(jobs=1)
    counts.build(jobs=1)  # What the other one has put there since is news for the first.
    assert counts.build().ran == []
    counts.write("extra/more", "")
    assert {"words[a]", "words[b]"} <= set(counts.build(jobs=1).ran)
    assert counts.read("build/default/words/a.txt") == "a.txt b.txt by hand more"
    assert counts.build().ran == []


def test_runs_that_each_time_add_to_a_folder_that_they_list_come_to_rest(counts: Space) -> None:
    counts.write("extra/by hand", "")
    script(counts, LISTS + 'import time\nPath("extra", str(time.time_ns())).write_text("kept")')
    assert any(counts.build(jobs=1).ran == [] for _ in range(6))


def test_what_is_opened_to_be_written_to_and_left_as_it_was_counts(counts: Space) -> None:
    counts.write("extra/n", "0")
    script(counts, 'words.write_text(open("extra/n", "r+").read())')
    counts.build()
    counts.write("extra/n", "1")
    assert {"words[a]", "words[b]"} <= set(counts.build().ran)


@pytest.mark.parametrize(("rule", "problem"), [("words", "words[a]"), ("total", "total")])
def test_an_output_that_is_read_undeclared_fails_the_action_in_every_mode(
    counts: Space, rule: str, problem: str
) -> None:
    script(counts, "words.write_text(text.read_text())")
    counts.build()
    if rule == "words":
        script(counts, 'words.write_text(Path("build/default/total.txt").read_text())')
        expected = "reads build/default/total.txt, an output of total, which is none of its inputs"
        hint = 'add total = "@total" to the inputs of [rule.words]'
    else:
        counts.replace(
            "scripts/total.py", "    total.write", "    open('build/default/total.txt').read()\n    total.write"
        )
        expected = "an output of total, which is none of its inputs"
        hint = "belongs into its scratch"
    built = counts.build(keep_going=True)
    assert problem in built.failed
    assert expected in built.errors
    assert hint in built.errors


def test_an_output_may_be_asked_for_though_it_is_undeclared(counts: Space) -> None:
    """Asking is no reading; once it is there, the answer is another one."""
    script(counts, 'words.write_text(str(os.path.exists("build/default/total.txt")))')
    assert counts.build().failed == []
    assert {"words[a]", "words[b]"} <= set(counts.build().ran)
    assert counts.build().ran == []


def test_outputs_that_come_into_a_folder_that_is_listed_do_not_count(counts: Space) -> None:
    script(counts, 'words.write_text(str(sorted(set(os.listdir("."))  - {"build"})))')
    counts.build()
    counts.build()
    assert counts.build().ran == []


def test_a_file_that_changes_while_it_is_read_makes_its_readers_run_again(counts: Space) -> None:
    counts.write("extra/stop.txt", "of")
    script(
        counts,
        'stop = Path("extra/stop.txt").read_text()\n'
        'import subprocess\nsubprocess.run(["sh", "-c", "printf me > extra/stop.txt"], check=True)\n'
        "words.write_text(stop)",
    )
    counts.build("words[a]", jobs=1)
    assert counts.read("build/default/words/a.txt") == "of"
    assert counts.build("words[a]").ran == ["words[a]"]
    assert counts.read("build/default/words/a.txt") == "me"


WRITES_PAST_ALL = {
    "a file that only it is told of": "out = f'extra/{text.stem}'",
    "a file that it reads then": "out = f'extra/{text.stem}'\nopen(out).read()",
}


@pytest.mark.parametrize("name", WRITES_PAST_ALL)
def test_what_a_child_process_writes_each_time_has_nothing_run_for_ever(counts: Space, name: str) -> None:
    counts.write("extra/a", "")
    counts.write("extra/b", "")
    writes = "\nimport subprocess\nsubprocess.run(['sh', '-c', f'date +%s%N > {out}'], check=True)\n"
    script(counts, WRITES_PAST_ALL[name] + writes + "words.write_text('1')")
    counts.build()
    assert counts.build().ran == ["words[a]", "words[b]"]
    assert counts.build().ran == []
    script(counts, WRITES_PAST_ALL[name] + writes + "words.write_text('22')")
    assert "words[a]" in counts.build().ran
    assert counts.build().ran == [], "it is known by now who writes it"
    for text in ("by hand", "again"):
        counts.write("extra/a", text)
        assert counts.build().ran == ["words[a]"]
        assert counts.build().ran == []


def test_child_processes_of_several_actions_that_write_to_one_file_come_to_rest(counts: Space) -> None:
    counts.write("extra/log", "")
    script(counts, "import subprocess\nsubprocess.run(['sh', '-c', 'date +%s%N > extra/log'])\nwords.write_text('1')")
    assert any(counts.build(jobs=1).ran == [] for _ in range(6))
    counts.replace("scripts/words.py", "'1'", "'22'")
    assert {"words[a]", "words[b]"} <= set(counts.build(jobs=1).ran)
    assert counts.build(jobs=1).ran == []


ASKS = 'words.write_text(os.environ.get("MODE", "none"))'


def test_a_variable_that_is_not_declared_is_not_set_and_told_once(
    counts: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODE", "fast")
    script(counts, ASKS)
    assert told(counts.build()) == ['words asks for the variable MODE, which it does not get: add to its env: "MODE"']
    assert counts.read("build/default/words/a.txt") == "none"
    monkeypatch.setenv("MODE", "slow")
    built = counts.build()
    assert (built.ran, told(built)) == ([], [])


def test_a_variable_that_every_action_gets_counts_where_the_code_asks_for_it(
    counts: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "C")
    script(counts, 'words.write_text(os.environ["LANG"])')
    assert told(counts.build()) == []
    assert counts.build().ran == []
    monkeypatch.setenv("LANG", "C.UTF-8")
    assert {"words[a]", "words[b]"} <= set(counts.build().ran)


def test_a_variable_that_is_set_when_a_script_is_imported_is_there_for_every_action_of_the_worker(
    counts: Space,
) -> None:
    counts.replace("rules/words.toml", "[rule.words]", "[rule.words]\nstrict = true")
    script(counts, 'words.write_text(os.environ["MODE"])\nos.environ["MODE"] = "slow"', 'os.environ["MODE"] = "fast"')
    built = counts.build(jobs=1)
    assert (built.failed, told(built)) == ([], [])
    assert counts.read("build/default/words/a.txt") == counts.read("build/default/words/b.txt") == "fast"
    assert counts.build().ran == []


@pytest.mark.parametrize(
    "where", ['Path("~/n").expanduser()', 'Path.home() / "n"', 'os.path.expandvars("$HOME/n")'], ids=range(3)
)
def test_a_variable_that_a_path_is_filled_in_with_counts(
    counts: Space, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    script(counts, f"words.write_text(open({where}).read())")
    for home in ("one", "two"):
        counts.write(f"{home}/n", home)
        monkeypatch.setenv("HOME", str(counts.root / home))
        counts.build()
        assert counts.read("build/default/words/a.txt") == home


def test_a_variable_that_libraries_have_asked_for_often_counts_where_the_code_asks_for_it(
    counts: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(counts, "for n in range(99):\n    gettext.find('x')\nwords.write_text(os.environ['LANG'])", "import gettext")
    for language in ("de", "fr"):
        monkeypatch.setenv("LANG", language)
        counts.build()
        assert counts.read("build/default/words/a.txt") == language


def test_a_secret_is_never_discovered(counts: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "1")
    counts.replace("rules/words.toml", "outputs = { words", 'secrets = { token = "TOKEN" }\noutputs = { words')
    script(counts, 'words.write_text(text.read_text() + str(len(os.environ["TOKEN"])))')
    assert told(counts.build()) == []
    monkeypatch.setenv("TOKEN", "2")
    assert counts.build().ran == []
    manifest = Manifest.read(counts.root / ".buildsys")
    assert manifest.discovered([one.discovered for _, one in manifest.evidence_of("scripts/words.py")]) == {}
    manifest.close()


STRICT = {
    "a file": (READS_STOP, "it reads extra/stop.txt", 'add to its inputs: stop = "extra/stop.txt"'),
    "a variable": (ASKS, "asks for the variable MODE", 'add to its env: "MODE"'),
}


@pytest.mark.parametrize("what", STRICT)
def test_a_strict_rule_fails_for_what_it_does_not_declare(counts: Space, what: str) -> None:
    body, problem, hint = STRICT[what]
    counts.write("extra/stop.txt", "of")
    counts.replace("rules/words.toml", "outputs = { words", "strict = true\noutputs = { words")
    script(counts, body)
    built = counts.build(keep_going=True)
    assert built.failed == ["words[a]", "words[b]"]
    assert problem in built.errors
    assert hint in built.errors
    script(counts, "words.write_text(text.read_text())")
    assert counts.build().ran == ["total", "words[a]", "words[b]"]


def test_strict_is_not_for_commands(counts: Space) -> None:
    counts.write("rules/more.toml", '[rule.more]\nshell = "touch {outputs.x}"\nstrict = true\noutputs = { x = "x" }\n')
    built = counts.build()
    assert built.error is not None
    assert "strict in [rule.more] does not go with shell" in str(built.error)


def test_an_ephemeral_output_counts_by_what_its_maker_discovered_too(counts: Space) -> None:
    counts.replace("rules/words.toml", "outputs = { words", "ephemeral = true\noutputs = { words")
    counts.write("extra/stop.txt", "of")
    script(counts, READS_STOP)
    assert len(counts.build().ran) == 3
    assert counts.build().ran == []
    counts.write("extra/stop.txt", "zz")
    assert counts.build().ran == ["total", "words[a]", "words[b]"]
    for path in (counts.root / "build/default/words").iterdir():
        path.unlink()
    assert counts.build().ran == []
    counts.replace("scripts/total.py", "str(sum(", "str(1 + sum(")
    assert counts.build().ran == ["total", "words[a]", "words[b]"]
    assert counts.build().ran == []
