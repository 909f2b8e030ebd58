"""Numbers in JSON files: which of them are metrics, under which names, and what can't be read."""

from __future__ import annotations

import json
import math

import pytest

from buildsys import measured
from buildsys.measured import read_numbers


@pytest.fixture
def numbers(tmp_path):
    """The numbers of a JSON text or value, as plain tuples, and what is wrong with it."""

    def read(document: object) -> tuple[list[tuple], str]:
        path = tmp_path / "report.json"
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        path.write_bytes(data)
        found, flaw = read_numbers(path)
        return [tuple(number) for number in found], flaw

    return read


def test_nested_names_are_joined_with_dots_and_booleans_are_numbers(numbers):
    report = {"k": 3, "trained": {"accepted": 1.5, "lossless": True, "deep": {"er": False}}, "note": "x", "no": None}
    found = [("k", 3.0), ("trained.accepted", 1.5), ("trained.lossless", 1.0), ("trained.deep.er", 0.0)]
    assert numbers(report) == ([(name, None, value) for name, value in found], "")


def test_a_list_of_objects_with_a_step_is_a_curve(numbers):
    points = [{"step": 0, "loss": 2.0, "lr": {"peak": 1}}, {"step": 50, "loss": 1.0}]
    curve = [("loss", 0, 2.0), ("lr.peak", 0, 1.0), ("loss", 50, 1.0)]
    assert numbers(points) == (curve, "")
    assert numbers({"train": points, "n": 2}) == (
        [(f"train.{name}", step, value) for name, step, value in curve] + [("n", None, 2.0)],
        "",
    )


@pytest.mark.parametrize("step", [1.5, True, "1", None, 2**63])
def test_a_step_that_is_no_whole_number_makes_no_curve(numbers, step):
    found, flaw = numbers({"train": [{"step": step, "loss": 2.0}]})
    assert ("train.0.loss", None, 2.0) in found
    assert all(n_step is None for _, n_step, _ in found)
    assert not flaw


def test_other_short_lists_go_by_their_index_and_long_ones_are_left_out(numbers):
    assert numbers({"at": [0.9, 0.7]})[0] == [("at.0", None, 0.9), ("at.1", None, 0.7)]
    assert numbers({"all": list(range(measured.MOST_ITEMS + 1)), "n": 1})[0] == [("n", None, 1.0)]


def test_what_diverged_is_a_number_too(numbers):
    found, flaw = numbers(b'{"loss": NaN, "worst": Infinity, "best": -1e400, "huge": -1' + b"0" * 400 + b"}")
    assert math.isnan(found[0][2])
    assert [value for _, _, value in found[1:]] == [math.inf, -math.inf, -math.inf]
    assert not flaw


@pytest.mark.parametrize(
    ("data", "flaw"),
    [
        (b'{"a": 1,\n "b": }', "it is no JSON: Expecting value, at line 2, column 7"),
        (b"", "it is no JSON: Expecting value, at line 1, column 1"),
        (b"3.5", "it holds no object and no list"),
        (b'{"a": "\xff"}', "it can't be read: 'utf-8' codec can't decode"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "it can't be read: maximum recursion depth"),
    ],
    ids=["cut", "empty", "number", "bytes", "deep"],
)
def test_what_cannot_be_read_is_told(numbers, data, flaw):
    found, told = numbers(data)
    assert found == []
    assert told.startswith(flaw)


def test_of_too_many_numbers_the_first_are_kept(numbers, monkeypatch):
    monkeypatch.setattr(measured, "MOST_NUMBERS", 3)
    found, flaw = numbers([{"step": step, "loss": 0.5} for step in range(5)])
    assert [step for _, step, _ in found] == [0, 1, 2]
    assert flaw == "it holds more than 3 numbers; the first ones are kept"
    assert numbers([{"step": step, "loss": 0.5} for step in range(3)])[1] == ""


def test_a_file_that_is_too_large_is_not_read(numbers, monkeypatch):
    monkeypatch.setattr(measured, "MOST_BYTES", 5)
    assert numbers({"a": 1}) == ([], "it is larger than 0 MB, and is not read")
