"""Checks that only warn, and what a change of their severity comes to."""

from __future__ import annotations

import json

import pytest

from buildsys.cli.output import plain
from buildsys.events import CheckFinished
from buildsys.explain import explain
from buildsys.project import Project
from buildsys.query import sql
from buildsys.survey import Planned, survey
from tests.behaviour.conftest import Built, Space

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
"""
WORK = """
import json

def number(source, n):
    n.write_text(json.dumps({"n": int(source.read_text())}))

def add(numbers, sum):
    sum.write_text(json.dumps({"sum": len(numbers)}))
"""
SMALL = "SELECT n FROM n WHERE n > 1"


@pytest.fixture
def sums(space: Space) -> Space:
    for n in range(4):
        space.write(f"data/{n}.txt", str(n))
    space.write("scripts/work.py", WORK)
    declare(space, "warn")
    return space


def declare(space: Space, severity: str, statement: str = SMALL, more: str = "") -> None:
    table = f'{{ sql = "{statement}", severity = "{severity}" }}'
    space.write("rules/sums.toml", f"{RULES}[rule.number.checks]\nsmall = {table}\n{more}")


def warnings(built: Built) -> list[str]:
    return [event.warning for event in built.events if isinstance(event, CheckFinished) and event.warning]


def asked(built: Built) -> list[str]:
    return sorted(
        f"{event.verdict.check} {event.action.shard}" for event in built.events if type(event) is CheckFinished
    )


def plan(space: Space) -> dict[str, Planned]:
    return {str(one.action): one for one in survey(Project(space.root)).actions}


def test_a_check_that_only_warns_holds_nothing_back_and_is_told_once(sums: Space) -> None:
    built = sums.build()
    assert built.outcome == "done"
    assert built.ran == ["number[0]", "number[1]", "number[2]", "number[3]", "sum"]
    told = sorted(warnings(built))
    assert [text.partition("\n")[0] for text in told] == [
        'warning: check "small" failed for number[2]',
        'warning: check "small" failed for number[3]',
    ]
    assert "    1 offending row:\n      n\n      2\n" in told[0]
    assert f"sql: {SMALL}" in told[0]
    assert f"rules/sums.toml:{RULES.count(chr(10)) + 2}" in told[0]
    assert sums.read("build/default/n/3.json") == '{"n": 3}'
    rows = sql(sums.root, "SELECT shard, severity, passed FROM checks ORDER BY shard").rows
    assert rows == [("0", "warn", True), ("1", "warn", True), ("2", "warn", False), ("3", "warn", False)]

    again = sums.build()
    assert (again.outcome, again.ran, asked(again)) == ("done", [], [])
    assert {one.fate for one in plan(sums).values()} == {"reuse"}
    assert sql(sums.root, "SELECT count(*) FROM runs").rows == [(1,)], "nothing was to be done"


def test_offending_rows_are_told_recorded_and_given_to_programs(sums: Space) -> None:
    sums.replace("scripts/work.py", '{"n": int(source.read_text())}', '[{"n": int(source.read_text())}] * 99')
    built = sums.build()
    (told,) = [event for event in built.events if isinstance(event, CheckFinished) and event.action.shard == "2"]
    lines = json.dumps(plain(told))
    assert '"columns": ["n"], "rows": [[2], [2], [2], [2], [2]], "n_rows": 99' in lines
    assert "99 offending rows, the first 5:" in told.warning
    query = "SELECT n_offending, offending->'$[4].n', detail FROM checks WHERE shard = '2'"
    ((n, value, detail),) = sql(sums.root, query).rows
    assert (n, value) == (99, "2")
    assert detail.startswith("99 offending rows")
    assert sql(sums.root, "SELECT n_offending, offending FROM checks WHERE shard = '0'").rows == [(None, None)]


def test_an_answer_that_a_warning_does_not_give_holds_nothing_back_either(sums: Space) -> None:
    declare(sums, "warn", "SELECT nn < 10 FROM n")
    built = sums.build()
    assert built.outcome == "done"
    assert 'warning: check "small" gives no answer for number[0]' in "\n".join(warnings(built))
    assert asked(sums.build()) == []


def test_a_warning_that_becomes_an_error_fails_without_a_run(sums: Space) -> None:
    sums.build()
    declare(sums, "error")
    assert plan(sums)["number[0]"].fate == "reuse"
    assert plan(sums)["number[2]"].fate == "check"
    assert plan(sums)["number[2]"].reason == "failed for it before: small"
    built = sums.build(keep_going=True)
    assert (built.ran, built.failed) == ([], ["number[2]", "number[3]"])
    assert asked(built) == ["small 2", "small 3"], "what passed is not asked anew"
    assert 'check "small" failed for number[2]' in built.errors
    assert sums.build(keep_going=True).failed == ["number[2]", "number[3]"], "still so"


def test_an_error_that_becomes_a_warning_passes_without_a_run_of_what_made_it(sums: Space) -> None:
    declare(sums, "error")
    assert sums.build(keep_going=True).failed == ["number[2]", "number[3]"]
    declare(sums, "warn")
    assert plan(sums)["number[2]"].fate == "check"
    built = sums.build()
    assert (built.outcome, built.ran) == ("done", ["sum"])
    assert asked(built) == ["small 2", "small 3"]
    assert len(warnings(built)) == 2
    assert sums.read("build/default/n/3.json") == '{"n": 3}'
    assert asked(sums.build()) == []


def test_a_check_that_is_added_asks_no_other_one_anew(sums: Space) -> None:
    sums.build()
    declare(sums, "warn", more='few = "SELECT n < 100 FROM n"\n')
    built = sums.build()
    assert (built.outcome, built.ran, warnings(built)) == ("done", [], [])
    assert asked(built) == [f"few {n}" for n in range(4)]


def test_what_comes_back_after_a_warning_is_not_asked_anew(sums: Space) -> None:
    sums.build()
    sums.write("data/3.txt", "1")
    assert warnings(sums.build()) == []
    sums.write("data/3.txt", "3")
    built = sums.build()
    assert (built.outcome, built.restored, asked(built)) == ("done", ["number[3]"], [])


def test_an_error_beside_a_warning_holds_back_and_both_are_told(sums: Space) -> None:
    declare(sums, "warn", more='odd = "SELECT n % 2 = 0 FROM n"\n')
    built = sums.build(keep_going=True)
    assert built.failed == ["number[1]", "number[3]"]
    assert len(warnings(built)) == 2
    assert 'check "odd" failed for number[3]' in built.errors
    assert "small" not in built.errors


def test_why_tells_a_warning_from_what_passed(sums: Space) -> None:
    sums.build()
    (bad,) = explain(Project(sums.root), "number[3]")
    assert bad.planned.fate == "reuse"
    assert bad.basis
    assert (bad.basis.checks, bad.basis.warned) == (("small",), ("small",))
    (good,) = explain(Project(sums.root), "number[1]")
    assert good.basis
    assert (good.basis.checks, good.basis.warned) == (("small",), ())


def test_a_dropped_output_that_was_warned_of_is_not_made_again_for_its_check(sums: Space) -> None:
    sums.replace("rules/sums.toml", "[rule.sum]", "ephemeral = true\n[rule.sum]")
    assert sums.build().outcome == "done"
    sums.remove("build/default/n")
    assert sums.build().ran == []


def test_tensors_are_checked_by_the_header_of_their_file(space: Space) -> None:
    space.write(
        "scripts/train.py",
        """
        import numpy
        from safetensors.numpy import save_file

        def train(weights):
            save_file({"fc.weight": numpy.zeros((4, 2), "float32"), "fc.bias": numpy.zeros(4, "float16")}, weights)
        """,
    )
    rules = """
        [rule.train]
        run     = "scripts/train.py::train"
        outputs = { weights = "build/{profile}/model.safetensors" }
        [rule.train.checks]
        narrow  = "SELECT max(shape[1]) = 4 AND sum(bytes) = 40 FROM weights"
        """
    space.write("rules/train.toml", rules)
    assert space.build().outcome == "done"
    space.write("rules/train.toml", rules + "one_type = \"FROM weights WHERE dtype <> 'F32'\"\n")
    built = space.build()
    assert (built.ran, built.failed) == ([], ["train"])
    assert '"fc.bias"  "F16"  [4]    8' in built.errors
