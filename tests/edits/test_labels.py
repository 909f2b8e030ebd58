"""The cases tell the truth, and the scoring tells what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edits.case import CASES, Case, read_cases
from tests.edits.labels import run_both
from tests.edits.scoring import REFUSED, Verdict, score

N_PORTIONS = 8
"""What runs side by side, and in one test."""


@pytest.mark.parametrize("portion", range(N_PORTIONS))
def test_every_label_is_what_running_both_sides_gives(portion: int) -> None:
    ran = list(run_both(read_cases()[portion::N_PORTIONS]))
    assert [f"{one.case.name}: {one.before} | {one.after}" for one in ran if not one.holds] == []
    assert not any(" at 0x" in one.before + one.after for one in ran), "the same wherever it is made"


def test_all_folders_are_cases() -> None:
    assert len(read_cases()) == len(list(CASES.iterdir()))


def case(*, changed: bool, must: bool = True, name: str = "int_vs_float") -> Case:
    return Case(CASES / name, "m:f", changed, must, "", "", {"before": {}, "after": {}})


@pytest.mark.parametrize(
    ("told", "answers", "verdict"),
    [
        (case(changed=True), ["a", "a", "b"], "ok"),
        (case(changed=True), ["a", "a", "a"], "missed"),
        (case(changed=False), ["a", "a", "a"], "ok"),
        (case(changed=False), ["a", "a", "b"], "over"),
        (case(changed=False, must=False), ["a", "a", "b"], "over-may"),
        (case(changed=True), ["a", "c", "b"], "unstable"),
        (case(changed=True), [REFUSED, REFUSED, "b"], "broken"),
        (case(changed=True), ["a", "a", REFUSED], "broken"),
        (case(changed=True, name="syntax_error"), ["a", "a", REFUSED], "ok"),
    ],
)
def test_a_verdict_is_made_of_three_answers(tmp_path: Path, told: Case, answers: list[str], verdict: Verdict) -> None:
    waiting = iter(answers)
    assert score(told, tmp_path / "tree", lambda *_: next(waiting)).verdict == verdict
