"""What goes wrong is said, loses nothing, and stops only what needs it."""

from __future__ import annotations

import pytest

from buildsys.errors import USAGE, BuildError
from buildsys.project import Project
from buildsys.state.files import Files
from buildsys.survey import survey
from tests.behaviour.conftest import Space

RULES = """
[rule.number]
each    = { shard = "data/{shard}.txt" }
run     = "scripts/work.py::number"
inputs  = { source = "data/{shard}.txt" }
outputs = { n = "build/{profile}/n/{shard}.json" }

[rule.sum]
run     = "scripts/work.py::add"
inputs  = { numbers = "@number[*]" }
outputs = { sum = "build/{profile}/sum.json" }

[rule.other]
run     = "scripts/other.py::other"
outputs = { other = "build/{profile}/other.txt" }
"""
WORK = """
import json

def number(source, n):
    n.write_text(json.dumps({"n": int(source.read_text())}))

def add(numbers, sum):
    total = 0
    for path in numbers:
        total += json.loads(path.read_text())["n"]
    sum.write_text(json.dumps({"sum": total}))
"""
OTHER = """
def other(other):
    other.write_text("other")
"""


@pytest.fixture
def sums(space: Space) -> Space:
    space.write("rules/sums.toml", RULES)
    for n in range(3):
        space.write(f"data/{n}.txt", str(n))
    space.write("scripts/work.py", WORK)
    space.write("scripts/other.py", OTHER)
    return space


def test_an_exception_names_action_reason_log_and_line(sums: Space) -> None:
    sums.write("data/1.txt", "one")
    built = sums.build(jobs=1)
    assert (built.outcome, built.failed) == ("failed", ["number[1]"])
    assert "number[1] failed: ValueError: invalid literal" in built.errors
    assert "because: never built" in built.errors
    assert "scripts/work.py" in built.errors
    assert "json.dumps({" in built.errors
    log = next(line.split()[-1] for line in built.errors.splitlines() if "log:" in line)
    assert "invalid literal" in sums.read(log)


def test_with_keep_going_independent_actions_finish(sums: Space) -> None:
    sums.write("data/1.txt", "one")
    built = sums.build(keep_going=True)
    assert built.ran == ["number[0]", "number[2]", "other"]
    assert built.actions("skipped") == ["sum"]


def test_the_last_good_output_is_still_there_after_a_failure(sums: Space) -> None:
    sums.build()
    before = sums.read("build/default/n/1.json")
    sums.write("data/1.txt", "one")
    assert sums.build().failed == ["number[1]"]
    assert sums.read("build/default/n/1.json") == before
    sums.write("data/1.txt", "1")
    assert sums.build().ran == []


def test_an_output_that_is_not_made_is_a_failure(sums: Space) -> None:
    sums.write("scripts/other.py", "def other(other):\n    pass\n")
    built = sums.build(keep_going=True)
    assert built.failed == ["other"]
    assert 'did not make its output "other"' in built.errors
    assert "rules/sums.toml:" in built.errors


@pytest.mark.parametrize(
    ("death", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("os._exit(3)", "exit code 3"),
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("sys.exit('enough')", "SystemExit"),
    ],
)
def test_a_worker_that_dies_is_a_failed_action(sums: Space, death: str, said: str) -> None:
    sums.write(
        "scripts/other.py",
        f"import ctypes, os, signal, sys\ndef other(other):\n    print('last words', flush=True)\n    {death}\n",
    )
    built = sums.build(keep_going=True)
    assert built.failed == ["other"]
    assert built.ran == ["number[0]", "number[1]", "number[2]", "sum"]
    assert "other failed" in built.errors
    assert said in built.errors
    assert "last words" in built.errors or said == "SystemExit"


def test_a_failing_check_holds_back_and_a_loosened_one_costs_no_run(sums: Space) -> None:
    sums.build()
    before = sums.read("build/default/n/1.json")
    sums.write("rules/sums.toml", RULES + '[rule.number.checks]\nsmall = "SELECT n < 10 FROM n"\n')
    sums.write("data/1.txt", "100")
    built = sums.build(keep_going=True)
    assert built.failed == ["number[1]"]
    assert built.actions("skipped") == ["sum"]
    assert 'check "small" failed for number[1]' in built.errors
    assert "rules/sums.toml:" in built.errors
    assert sums.read("build/default/n/1.json") == before, "it is held back"

    assert sums.build(keep_going=True).failed == ["number[1]"], "still so, without a run"

    sums.write("rules/sums.toml", RULES + '[rule.number.checks]\nsmall = "SELECT n < 1000 FROM n"\n')
    built = sums.build()
    assert (built.outcome, built.ran) == ("done", ["sum"])
    assert '"n": 100' in sums.read("build/default/n/1.json")


def test_a_check_that_is_no_sql_is_refused_before_anything_runs(sums: Space) -> None:
    sums.write("rules/sums.toml", RULES + '[rule.number.checks]\nsmall = "SELECT n < 10 FORM n.n"\n')
    built = sums.build(keep_going=True)
    assert built.events == []
    assert built.error
    assert built.error.exit_code == USAGE
    assert built.error.problem == 'check "small" is no SQL: syntax error at or near "n"'
    assert str(built.error.place) == f"rules/sums.toml:{RULES.count(chr(10)) + 2}:1"
    assert "SELECT n < 10 FORM n.n" in built.error.excerpt
    with pytest.raises(BuildError, match="is no SQL"):
        survey(Project(sums.root))
    sums.write("rules/sums.toml", RULES + '[rule.number.checks]\nsmall = "-- nothing"\n')
    built = sums.build()
    assert built.error
    assert built.error.problem == 'check "small" is no SQL: there is no statement in it'


def test_a_check_that_asks_for_what_is_not_there_gives_no_answer(sums: Space) -> None:
    """Which may be the fault of the SQL or of the outputs, so it is told as neither."""
    sums.write("rules/sums.toml", RULES + '[rule.number.checks]\nsmall = "SELECT nn < 10 FROM n"\n')
    built = sums.build(keep_going=True)
    assert built.failed == ["number[0]", "number[1]", "number[2]"]
    assert 'check "small" gives no answer for number[1]' in built.errors
    assert 'Referenced column "nn" not found' in built.errors
    assert "Candidate bindings" in built.errors
    assert "mend its SQL" in built.errors


def test_a_check_shows_the_offending_rows(sums: Space) -> None:
    sums.write("rules/sums.toml", RULES + '[rule.number.checks]\nodd = "SELECT n FROM n WHERE n = 2"\n')
    built = sums.build(keep_going=True)
    assert built.failed == ["number[2]"]
    assert "    1 offending row:\n      n\n      2\n" in built.errors


def test_a_script_that_does_not_parse_blocks_its_rules_and_invalidates_nothing(sums: Space) -> None:
    sums.build()
    sums.write("scripts/work.py", WORK.replace("    total = 0\n", "    try:\n        total = 0\n"))
    sums.write("scripts/other.py", OTHER.replace('other")', 'changed")'))
    built = sums.build()
    assert built.outcome == "failed"
    assert built.actions("blocked") == ["number[0]", "number[1]", "number[2]", "sum"]
    assert built.ran == ["other"]
    assert "scripts/work.py:" in built.errors
    assert sums.read("build/default/sum.json") == '{"sum": 3}'
    sums.write("scripts/work.py", WORK)
    assert sums.build().ran == []


def test_a_missing_input_is_refused_before_anything_runs(sums: Space) -> None:
    sums.write(
        "rules/more.toml",
        """
        [rule.more]
        run     = "scripts/other.py::other"
        inputs  = { x = "data/none.txt" }
        outputs = { other = "build/{profile}/more.txt" }
        """,
    )
    built = sums.build()
    assert built.outcome == "refused"
    assert built.error is not None
    assert "data/none.txt" in built.error.problem
    assert built.events == []


def test_an_origin_that_fails_skips_all_that_need_its_shards(space: Space) -> None:
    space.write(
        "rules/r.toml",
        """
        [rule.split]
        run     = "scripts/s.py::split"
        outputs = { parts = "build/{profile}/parts/{shard}.txt" }
        [rule.copy]
        each    = { shard = "@split[*]" }
        run     = "scripts/s.py::copy"
        inputs  = { part = "@split" }
        outputs = { copy = "build/{profile}/copy/{shard}.txt" }
        [rule.fold]
        run     = "scripts/s.py::fold"
        inputs  = { copies = "@copy[*]" }
        outputs = { all = "build/{profile}/all.txt" }
        """,
    )
    script = """
        def split(parts):
            raise RuntimeError("no")
        def copy(part, copy):
            copy.write_text(part.read_text())
        def fold(copies, all):
            all.write_text("".join(path.read_text() for path in copies))
        """
    space.write("scripts/s.py", script)
    built = space.build(keep_going=True)
    assert built.failed == ["split"]
    assert built.actions("skipped") == ["copy", "fold"]

    space.write("scripts/s.py", script.replace('raise RuntimeError("no")', "pass"))
    assert "made no shard" in space.build().errors

    space.write("scripts/s.py", script.replace('raise RuntimeError("no")', '(parts / "README").write_text("x")'))
    assert "it made README" in space.build().errors

    good = '[(parts / f"{n}.txt").write_text(str(n)) for n in (10, 9, 100)]'
    space.write("scripts/s.py", script.replace('raise RuntimeError("no")', good))
    assert space.build().ran == ["copy[100]", "copy[10]", "copy[9]", "fold", "split"]
    assert space.read("build/default/all.txt") == "910100", "folds are in natural order"


def test_a_shard_that_does_not_exist_is_no_such_target(sums: Space) -> None:
    built = sums.build("number[7]")
    assert built.error is not None
    assert (built.error.exit_code, built.error.problem) == (3, "there is no number[7]")


@pytest.mark.timeout(30)
def test_a_bug_while_outputs_are_put_in_place_ends_the_build_with_its_traceback(
    sums: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*of: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(Files, "made", bug)
    with pytest.raises(LookupError, match="a bug"):
        sums.build()
