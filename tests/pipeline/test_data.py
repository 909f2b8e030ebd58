"""The shipped problems: what is measured on was trained on by nobody."""

import json
import re

import make_data
from conftest import ROOT
from problems import problems


def texts(name):
    lines = (ROOT / "workspace/data" / name).read_text().splitlines()
    return [json.loads(line)["conversations"][0]["value"] for line in lines]


def test_the_verifier_the_sample_and_the_heldout_problems_share_no_text():
    taught = {problem.text for problem in problems("verifier", 24_000)}
    sample, heldout = set(texts("sample.jsonl")), set(texts("heldout.jsonl"))
    assert (len(taught), len(sample), len(heldout)) == (24_000, 640, 96)
    assert not taught & sample
    assert not taught & heldout
    assert not sample & heldout


def test_other_seeds_stay_in_their_split():
    assert not {p.text for p in problems("sample", 500, seed=7)} & set(texts("heldout.jsonl"))


def test_the_shipped_files_are_what_the_script_makes(tmp_path):
    make_data.make(tmp_path / "sample.jsonl", tmp_path / "heldout.jsonl")
    for name in ("sample.jsonl", "heldout.jsonl"):
        assert (tmp_path / name).read_bytes() == (ROOT / "workspace/data" / name).read_bytes()


def test_every_problem_is_worked_out_right():
    for problem in problems("heldout", 300):
        steps = re.findall(r"(\d+) ([*+/-]) (\d+) = (\d+)", problem.reasoning)
        assert len(steps) == 2
        for left, operator, right, result in steps:
            expected = {
                "*": int(left) * int(right),
                "+": int(left) + int(right),
                "-": int(left) - int(right),
                "/": int(left) / int(right),
            }
            assert expected[operator] == int(result)
        assert int(steps[-1][3]) == problem.result
        assert re.findall(r"\d+", problem.answer) == [str(problem.result)]


def test_all_four_kinds_occur():
    assert {p.kind for p in problems("heldout", 96)} == {"shopping", "collecting", "packing", "travelling"}
