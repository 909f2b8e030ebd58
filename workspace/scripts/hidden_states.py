"""The file format of hidden states: what one stage writes and the trainer reads.

A shard is one safetensors file. Its records lie one after the other along the first axis:

    input_ids  [T]      int32
    loss_mask  [T]      int8     1 if and only if the token was generated
    offsets    [N + 1]  int64    record n is rows offsets[n] to offsets[n + 1]
    taps       [T, 3H]           the residual stream at three boundaries, low to high
    last       [T, H]            the residual stream after the last layer, BEFORE the final norm

Boundary k is the stream that enters layer k, counted from 0 (vLLM's and speculators' numbering; SpecForge, TorchSpec
and ModelOpt say k - 1 for the same tensor). The file's metadata tells boundaries, dtype and the verifier's digest.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

FORMAT = "eagle3 hidden states 1"


@dataclass(frozen=True)
class Record:
    """One sequence of S tokens: input_ids [S], loss_mask [S], taps [S, 3H], last [S, H]."""

    input_ids: Tensor
    loss_mask: Tensor
    taps: Tensor
    last: Tensor


def write(path: Path, tensors: dict[str, Tensor], about: Mapping[str, object]) -> None:
    """Saves one shard. `about` is one metadata entry: several would be written in an order that varies by process."""
    save_file(tensors, path, metadata={"about": json.dumps({"format": FORMAT, **about}, sort_keys=True)})


def read_about(path: Path) -> dict[str, object]:
    with safe_open(path, framework="pt") as shard:
        return dict(json.loads(shard.metadata()["about"]))


def read(path: Path) -> list[Record]:
    """The records of a shard, in order."""
    with safe_open(path, framework="pt") as shard:
        columns = [shard.get_tensor(name) for name in ("input_ids", "loss_mask", "taps", "last")]
        offsets = shard.get_tensor("offsets").tolist()
    return [Record(*(column[a:b] for column in columns)) for a, b in pairwise(offsets)]
