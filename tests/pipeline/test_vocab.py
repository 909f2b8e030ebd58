"""The draft's vocabulary, in the form that the engines read."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from conftest import script
from safetensors.torch import load_file

vocab = script("03_build_vocab_mapping")


def counts_file(path, counts):
    rows = [{"token_id": token, "count": times} for token, times in sorted(counts.items())]
    pq.write_table(pa.Table.from_pylist(rows, schema=vocab.COUNTS), path)
    return path


def test_only_generated_tokens_are_counted(tmp_path):
    rows = {"input_ids": [[5, 6, 6, 7], [6, 5]], "loss_mask": [[0, 1, 1, 1], [1, 0]]}
    pq.write_table(pa.table(rows), tmp_path / "tokens")
    vocab.count(tmp_path / "tokens", tmp_path / "counts")
    assert pq.read_table(tmp_path / "counts").to_pylist() == [
        {"token_id": 6, "count": 3},
        {"token_id": 7, "count": 1},
    ]


def test_the_mapping_of_all_shards(tmp_path):
    shards = [counts_file(tmp_path / "a", {9: 5, 2: 1}), counts_file(tmp_path / "b", {4: 3, 2: 3, 7: 1})]
    mapping, tokens, coverage = (tmp_path / name for name in ("mapping", "tokens", "coverage"))
    vocab.build(shards, mapping, tokens, coverage, vocab_size=12, draft_vocab_size=3)
    tensors = load_file(mapping)
    assert (tensors["d2t"].dtype, tensors["t2d"].dtype) == (torch.int64, torch.bool)
    assert tensors["d2t"].tolist() == [2, 3, 7]  # offsets: token 0 + 2, 1 + 3 and 2 + 7
    assert tensors["t2d"].nonzero().flatten().tolist() == [2, 4, 9]
    rows = pq.read_table(tokens).to_pylist()
    assert [(row["draft_id"], row["token_id"], row["count"]) for row in rows] == [(0, 2, 4), (1, 4, 3), (2, 9, 5)]
    assert json.loads(coverage.read_text()) == {
        "distinct_tokens": 4,
        "draft_vocab_size": 3,
        "tokens": 13,
        "tokens_inside": 12,
        "coverage": 12 / 13,
    }


def test_too_few_tokens_are_padded_with_the_lowest_unused_ids():
    assert vocab.choose(Counter({5: 2, 1: 9}), 10, 5) == [0, 1, 2, 3, 5]


def test_equal_counts_are_settled_by_id():
    assert vocab.choose(Counter({8: 1, 3: 1, 6: 1}), 10, 2) == [3, 6]


def test_the_runs_mapping_leads_back_to_verifier_tokens(run):
    tensors = load_file(run.mapping)
    tokens = torch.arange(320) + tensors["d2t"]
    assert tokens.tolist() == tensors["t2d"].nonzero().flatten().tolist()


def test_a_token_outside_the_vocabulary_is_an_error():
    with pytest.raises(ValueError, match="token 10 lies outside"):
        vocab.choose(Counter({10: 1}), 10, 2)


def test_a_draft_vocabulary_larger_than_the_verifiers_is_an_error():
    with pytest.raises(ValueError, match="larger than the verifier's"):
        vocab.choose(Counter({1: 1}), 10, 11)
