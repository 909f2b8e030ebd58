"""Events as lines of JSON."""

from __future__ import annotations

import json

import pytest

from buildsys.cli.events import EventLines
from buildsys.events import ActionFinished, RequestCounts, RequestsAnswered
from tests.cli.test_console import action_of


def test_how_far_requests_are_is_told_once_a_second_for_each_action_and_at_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    emit = EventLines(lambda: now)
    one, two = action_of("replies[1]"), action_of("replies[2]")
    for n in range(25):
        now = n / 10
        emit(RequestsAnswered(one, RequestCounts(n, 100)))
        if n % 10 == 5:
            emit(RequestsAnswered(two, RequestCounts(n, 100)))
    emit(ActionFinished(two, "ran", ""))
    emit(ActionFinished(one, "ran", ""))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["event"], each["action"], each.get("counts", {}).get("done")) for each in told] == [
        ("RequestsAnswered", "replies[1]", 0),
        ("RequestsAnswered", "replies[2]", 5),
        ("RequestsAnswered", "replies[1]", 10),
        ("RequestsAnswered", "replies[2]", 15),
        ("RequestsAnswered", "replies[1]", 20),
        ("ActionFinished", "replies[2]", None),
        ("RequestsAnswered", "replies[1]", 24),
        ("ActionFinished", "replies[1]", None),
    ]
