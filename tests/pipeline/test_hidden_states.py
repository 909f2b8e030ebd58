"""What is stored of the verifier: the right tensors, before the final norm, in the same bytes each time."""

import hashlib

import hidden_states
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from conftest import TAPS, VERIFIER, script

states = script("02_extract_hidden_states")


@pytest.fixture(scope="module")
def model():
    return states.load(str(VERIFIER), "float32")


def test_norm_and_head_of_the_last_state_give_the_verifiers_logits(run, model):
    for record in hidden_states.read(run.states)[:8]:
        with torch.inference_mode():
            logits = model(input_ids=record.input_ids[None].long()).logits[0]
            rebuilt = model.lm_head(model.model.norm(record.last))
            normed_twice = model.lm_head(model.model.norm(model.model.norm(record.last)))
        torch.testing.assert_close(rebuilt, logits, atol=1e-5, rtol=0)
        assert (normed_twice - logits).abs().max() > 0.1


def test_taps_are_the_streams_that_enter_the_layers(run, model):
    record = hidden_states.read(run.states)[0]
    entering = {}
    handles = [
        model.model.layers[layer].register_forward_pre_hook(
            lambda _module, inputs, layer=layer: entering.__setitem__(layer, inputs[0][0])
        )
        for layer in TAPS
    ]
    with torch.inference_mode():
        model(input_ids=record.input_ids[None].long())
    for handle in handles:
        handle.remove()
    assert torch.equal(record.taps, torch.cat([entering[layer] for layer in TAPS], dim=-1))


def test_records_are_the_token_shards_rows(run):
    rows = pq.read_table(run.tokens).to_pylist()
    records = hidden_states.read(run.states)
    assert len(records) == len(rows) == 32
    for row, record in zip(rows, records, strict=True):
        assert record.input_ids.tolist() == row["input_ids"]
        assert record.loss_mask.tolist() == row["loss_mask"]
        assert record.taps.shape == (len(row["input_ids"]), 3 * 128)
        assert record.last.shape == (len(row["input_ids"]), 128)


def test_the_file_says_what_it_is(run):
    digest = hashlib.sha256((VERIFIER / "model.safetensors").read_bytes()).hexdigest()
    assert hidden_states.read_about(run.states) == {
        "format": hidden_states.FORMAT,
        "taps": TAPS,
        "numbering": "boundary",
        "dtype": "float32",
        "verifier": f"sha256 model.safetensors {digest}",
    }


def test_the_same_tokens_give_the_same_bytes(run, tmp_path):
    states.extract(run.tokens, VERIFIER, tmp_path / "again", taps=TAPS, dtype="float32", threads=1)
    assert (tmp_path / "again").read_bytes() == run.states.read_bytes()


def test_skipped_rows_have_no_record(run, tmp_path):
    table = pq.read_table(run.tokens)
    rows = table.to_pylist()
    rows[1] |= {"input_ids": [], "loss_mask": [], "skipped": "truncated"}
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / "tokens")
    states.extract(tmp_path / "tokens", VERIFIER, tmp_path / "states", taps=TAPS, dtype="float32", threads=1)
    kept = [record.input_ids.tolist() for record in hidden_states.read(tmp_path / "states")]
    assert kept == [row["input_ids"] for row in rows if not row["skipped"]]


def test_half_precision_takes_half_the_room(run, tmp_path):
    states.extract(run.tokens, VERIFIER, tmp_path / "half", taps=TAPS, dtype="bfloat16", threads=1)
    assert hidden_states.read(tmp_path / "half")[0].last.dtype == torch.bfloat16
    assert (tmp_path / "half").stat().st_size < 0.6 * run.states.stat().st_size


@pytest.mark.parametrize("taps", [[1, 2], [1, 2, 4], [-1, 1, 2]])
def test_taps_that_the_verifier_does_not_have_are_refused(run, tmp_path, taps):
    with pytest.raises(ValueError, match="three boundaries below 4"):
        states.extract(run.tokens, VERIFIER, tmp_path / "states", taps=taps, dtype="float32", threads=1)
