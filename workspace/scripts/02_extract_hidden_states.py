"""Runs the verifier over token shards and keeps what the draft learns from: three taps and the last hidden state."""

import hashlib
from functools import cache
from pathlib import Path

import hidden_states
import pyarrow.parquet as pq
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

# Beyond this, hashing the weights would cost more than reading them once for the forward passes.
HASHED_BYTES = 2_000_000_000


def extract(tokens: Path, verifier: Path, states: Path, *, taps: list[int], dtype: str, threads: int) -> None:
    """One safetensors file a token shard, see `hidden_states`. Sequences that were skipped have no record.

    taps: three boundaries, each in [0, layers); dtype: "float32", "bfloat16" or "float16", of the forward and the file.
    """
    torch.set_num_threads(threads)
    model = load(str(verifier), dtype)
    rows = [row for row in pq.read_table(tokens).to_pylist() if not row["skipped"]]
    if not rows:
        raise ValueError(f"{tokens.name} holds no sequence that can be used")
    passes = [forward(model, torch.tensor(row["input_ids"]), taps) for row in rows]
    lengths = torch.tensor([0] + [len(row["input_ids"]) for row in rows])
    tensors = {
        "input_ids": torch.tensor([token for row in rows for token in row["input_ids"]], dtype=torch.int32),
        "loss_mask": torch.tensor([bit for row in rows for bit in row["loss_mask"]], dtype=torch.int8),
        "offsets": lengths.cumsum(0),
        "taps": torch.cat([tapped for tapped, _ in passes]),
        "last": torch.cat([last for _, last in passes]),
    }
    if not (tensors["taps"].isfinite().all() and tensors["last"].isfinite().all()):
        raise ValueError(f"{tokens.name} gives hidden states that are not finite")
    about = {"taps": taps, "numbering": "boundary", "dtype": dtype, "verifier": verifier_digest(str(verifier))}
    hidden_states.write(states, tensors, about)


@cache
def load(verifier: str, dtype: str) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(verifier, dtype=getattr(torch, dtype)).eval()


@cache
def verifier_digest(verifier: str) -> str:
    """sha256 of the weights, or of the configuration where the weights are large or split."""
    weights = Path(verifier) / "model.safetensors"
    small = weights.exists() and weights.stat().st_size < HASHED_BYTES
    named = weights if small else Path(verifier) / "config.json"
    return f"sha256 {named.name} {hashlib.sha256(named.read_bytes()).hexdigest()}"


@torch.inference_mode()
def forward(model: PreTrainedModel, input_ids: Tensor, taps: list[int]) -> tuple[Tensor, Tensor]:
    """(taps [S, 3H], last [S, H]) of one sequence [S]; one at a time, since padding would change sums.

    The library's `hidden_states[-1]` has gone through the final norm; what a draft's trainer wants has not, so `last`
    is caught where it enters that norm.
    """
    layers = model.config.get_text_config().num_hidden_layers
    if len(taps) != 3 or not all(0 <= tap < layers for tap in taps):
        raise ValueError(f"taps {taps}: want three boundaries below {layers}")
    caught: list[Tensor] = []
    norm = model.get_decoder().norm
    handle = norm.register_forward_pre_hook(lambda _module, inputs: caught.append(inputs[0]))
    try:
        output = model(input_ids=input_ids[None], output_hidden_states=True, use_cache=False)
    finally:
        handle.remove()
    return torch.cat([output.hidden_states[tap] for tap in taps], dim=-1)[0], caught[0][0]
