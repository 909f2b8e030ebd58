"""Metrics: numbers of outputs as rows of the view, for every run and profile that has these outputs."""

from __future__ import annotations

import pytest

from buildsys.events import Notice
from buildsys.query import sql

RULES = """
[rule.train]
run     = "scripts/train.py::train"
params  = {{ quality = {quality} }}
outputs = {{ curve = "workspace/build/{{profile}}/curve.json", report = "workspace/build/{{profile}}/report.json" }}
metrics = [{metrics}]
[rule.train.checks]
good = "SELECT quality > 0 FROM report"
"""
SCRIPT = """
import json

def train(curve, report, quality):
    curve.write_text(json.dumps([{"step": 0, "loss": 2.0}, {"step": 10, "loss": 1.0 / (1 + abs(quality))}]))
    report.write_text(json.dumps({"quality": quality, "of": {"lossless": True}}))
"""


@pytest.fixture
def training(space):
    def declare(quality: int = 1, metrics: str = '"curve", "report"') -> None:
        space.write("rules/train.toml", RULES.format(quality=quality, metrics=metrics))

    space.write("scripts/train.py", SCRIPT)
    space.declare = declare
    declare()
    return space


def flaws(built) -> list[str]:
    """What is told of metrics that can't be read; that the file is no table either is told besides."""
    told = [event.text for event in built.events if isinstance(event, Notice)]
    return [text for text in told if text.startswith("metrics in")]


def rows(space, query: str) -> list[tuple]:
    return [tuple(row) for row in sql(space.root, query).rows]


def test_numbers_of_declared_outputs_are_rows(training):
    assert training.build().ran == ["train"]
    assert rows(training, "SELECT output, name, step, value, holds FROM metrics ORDER BY ALL") == [
        ("curve", "loss", 0, 2.0, True),
        ("curve", "loss", 10, 0.5, True),
        ("report", "of.lossless", None, 1.0, True),
        ("report", "quality", None, 1.0, True),
    ]


def test_each_run_has_the_metrics_of_what_it_made_or_took(training):
    for quality in (1, 2, 1):
        training.declare(quality)
        training.build()
    query = "SELECT run_id, value, holds FROM metrics WHERE name = 'quality' ORDER BY ALL"
    assert rows(training, query) == [(1, 1.0, False), (2, 2.0, False), (3, 1.0, True)]
    assert rows(training, "SELECT outcome FROM actions WHERE run_id = 3") == [("restored",)]


def test_a_result_that_failed_its_check_has_metrics_and_does_not_hold(training):
    training.build()
    training.declare(quality=-1)
    assert training.build().failed == ["train"]
    query = "SELECT run_id, value, holds FROM metrics WHERE name = 'quality' ORDER BY ALL"
    assert rows(training, query) == [(1, 1.0, True), (2, -1.0, False)]


def test_what_is_declared_later_is_read_without_running_again(training):
    training.declare(metrics="")
    training.build()
    assert rows(training, "FROM metrics") == []
    training.declare()
    assert training.build().actions("reused") == ["train"]
    assert rows(training, "SELECT DISTINCT run_id, output, holds FROM metrics ORDER BY ALL") == [
        (1, "curve", False),
        (1, "report", False),
        (2, "curve", True),
        (2, "report", True),
    ]
    training.build()
    assert rows(training, "SELECT max(run_id) FROM runs") == [(2,)]


def test_what_is_declared_later_is_read_from_the_store(training):
    training.declare(metrics="")
    training.build()
    training.declare()
    training.write("workspace/build/default/report.json", '{"quality": 99}')
    assert training.build().restored == ["train"]
    assert rows(training, "SELECT value FROM metrics WHERE name = 'quality' AND holds") == [(1.0,)]


def test_what_is_no_json_is_told_once_and_fails_nothing(training):
    training.replace("scripts/train.py", "curve.write_text(json.dumps(", "curve.write_text('oops' + json.dumps(")
    built = training.build()
    assert built.ran == ["train"]
    assert flaws(built) == [
        "metrics in workspace/build/default/curve.json: it is no JSON: Expecting value, at line 1, column 1"
    ]
    assert rows(training, "SELECT DISTINCT output FROM metrics") == [("report",)]
    again = training.build()
    assert (again.ran, flaws(again)) == ([], [])


def test_equal_bytes_are_recorded_once_and_shown_for_all_that_have_them(space):
    space.write("scripts/count.py", "def count(text, n): n.write_text('{\"n\": 5}')\n")
    space.write("data/a.txt", "a")
    space.write("data/b.txt", "b")
    space.write(
        "rules/count.toml",
        """
        [rule.count]
        each    = { shard = "data/{shard}.txt" }
        run     = "scripts/count.py::count"
        inputs  = { text = "data/{shard}.txt" }
        outputs = { n = "workspace/build/{profile}/n/{shard}.json" }
        metrics = ["n"]
        """,
    )
    space.build()
    assert rows(space, "SELECT shard, value FROM metrics ORDER BY ALL") == [("a", 5.0), ("b", 5.0)]
    assert rows(space, "SELECT count(*) FROM recorded.metrics") == [(1,)]
