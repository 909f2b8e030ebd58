"""Files of tensors as tables for checks: those that the library writes, and those that are none."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from buildsys.errors import Place
from buildsys.model import Check, CheckVerdict
from buildsys.run.checks import Checks
from buildsys.run.tensors import MOST_HEADER_BYTES, Tensor, tensors

WEIGHTS = {
    "fc.weight": np.zeros((2, 3), np.float32),
    "empty": np.zeros((0, 4), np.float16),
    "scale": np.array(1.5),
    "it's": np.zeros((7,), np.int8),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file(WEIGHTS, path, metadata={"format": "pt"})
    return path


def verdict(sql: str, *paths: Path) -> CheckVerdict:
    (found,) = Checks().run([Check("one", sql, Place("rules/r.toml", 1))], [], {"model": paths})
    return found


def with_header(path: Path, header: object, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_what_the_library_writes_is_read(file: Path) -> None:
    assert sorted(tensors(file)) == [
        Tensor("empty", "F16", [0, 4], 0),
        Tensor("fc.weight", "F32", [2, 3], 24),
        Tensor("it's", "I8", [7], 7),
        Tensor("scale", "F64", [], 8),
    ]


def test_a_file_of_tensors_is_a_table_of_them(file: Path) -> None:
    types = verdict("SELECT column_name, column_type FROM (DESCRIBE model)", file)
    assert types.rows == (("name", "VARCHAR"), ("dtype", "VARCHAR"), ("shape", "BIGINT[]"), ("bytes", "BIGINT"))
    assert verdict("SELECT count(*) = 4 AND sum(bytes) = 39 FROM model", file).passed
    assert verdict("SELECT shape = [2, 3] AND dtype = 'F32' FROM model WHERE name = 'fc.weight'", file).passed
    assert verdict("FROM model WHERE len(shape) > 2 OR name = '__metadata__'", file).passed
    bad = verdict("SELECT name, shape FROM model WHERE shape[1] = 2", file)
    assert (bad.passed, bad.rows) == (False, (("fc.weight", "[2, 3]"),))


def test_several_files_are_one_table(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    save_file({"more": np.zeros(5, np.uint8)}, other)
    assert verdict("SELECT count(*) = 5 AND sum(bytes) = 44 FROM model", file, other).passed


def test_a_file_without_tensors_is_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "none.safetensors"
    path.write_bytes(save({}))
    assert verdict("SELECT count(*) = 0 FROM model", path).passed


def test_no_tensor_is_read(tmp_path: Path) -> None:
    path = with_header(
        tmp_path / "large.safetensors", {"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1 << 40]}}
    )
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + (1 << 40))
    assert tensors(path) == [Tensor("w", "U8", [1], 1 << 40)]


def told(**more: object) -> dict[str, object]:
    return {"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2], **more}}


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"{not json", "its header is no JSON"),
        (b"\xff\xfe", "its header is no JSON"),
        (b"[" * 200_000, "its header is no JSON"),
        ([], "its header is no object"),
        ({"w": 3}, "the tensor w makes no sense"),
        (told(shape=[-2]), "the tensor w makes no sense"),
        (told(shape=[2**63]), "the tensor w makes no sense"),
        (told(shape=["2"]), "the tensor w makes no sense"),
        (told(dtype=None), "the tensor w makes no sense"),
        (told(dtype="\ud800"), "a name in its header is no text"),
        (json.dumps(told()).replace('"w"', '"\\ud83d"').encode(), "a name in its header is no text"),
        (told(data_offsets=[2, 0]), "the tensor w makes no sense"),
        (told(data_offsets=[0]), "the tensor w makes no sense"),
        (told(data_offsets=[0, 3]), "it ends before its tensor w does"),
        (told(data_offsets=[0, 1]), "its tensors take 1 bytes, and it has 2 for them"),
    ],
)
def test_what_is_no_file_of_tensors_gives_no_answer_and_says_why(tmp_path: Path, header: object, says: str) -> None:
    found = verdict("SELECT count(*) > 0 FROM model", with_header(tmp_path / "w.safetensors", header, b"ab"))
    assert not found.answered
    assert "w.safetensors" in found.detail
    assert says in found.detail


@pytest.mark.parametrize("n_bytes", [0, 7, 8, 50, -1])
def test_a_file_that_was_cut_off_gives_no_answer(file: Path, n_bytes: int) -> None:
    file.write_bytes(file.read_bytes()[:n_bytes])
    found = verdict("SELECT count(*) > 0 FROM model", file)
    assert not found.answered
    assert "model.safetensors is no whole safetensors file" in found.detail


def test_a_header_that_claims_to_be_huge_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes((MOST_HEADER_BYTES + 1).to_bytes(8, "little"))
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="a header of 100,000,001 bytes is longer than any"):
        tensors(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
