"""The draft's vocabulary: the tokens that the verifier generates most often.

Counted shard by shard and then summed, so one new shard costs one count.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

COUNTS = pa.schema([("token_id", pa.int32()), ("count", pa.int64())])
TOKENS = pa.schema([("draft_id", pa.int32()), ("token_id", pa.int32()), ("count", pa.int64())])


def count(tokens: Path, counts: Path) -> None:
    """How often each token bears loss (was generated) in one shard; rows ordered by token id, zeros left out."""
    found: Counter[int] = Counter()
    for row in pq.read_table(tokens, columns=["input_ids", "loss_mask"]).to_pylist():
        found.update(token for token, bit in zip(row["input_ids"], row["loss_mask"], strict=True) if bit)
    rows = [{"token_id": token, "count": times} for token, times in sorted(found.items())]
    pq.write_table(pa.Table.from_pylist(rows, schema=COUNTS), counts)


def build(
    counts: list[Path], mapping: Path, tokens: Path, coverage: Path, *, vocab_size: int, draft_vocab_size: int
) -> None:
    """`mapping`: d2t and t2d as the engines read them. `tokens`: the same as a table, with what was counted.

    `coverage`: what share of the generated tokens they hold.
    """
    total: Counter[int] = Counter()
    for path in counts:
        for row in pq.read_table(path).to_pylist():
            total[row["token_id"]] += row["count"]
    chosen = choose(total, vocab_size, draft_vocab_size)
    d2t, t2d = tables(chosen, vocab_size)
    save_file({"d2t": d2t, "t2d": t2d}, mapping)
    rows = [{"draft_id": i, "token_id": token, "count": total[token]} for i, token in enumerate(chosen)]
    pq.write_table(pa.Table.from_pylist(rows, schema=TOKENS), tokens)
    inside = sum(total[token] for token in chosen)
    report = {
        "distinct_tokens": len(total),
        "draft_vocab_size": draft_vocab_size,
        "tokens": total.total(),
        "tokens_inside": inside,
        "coverage": inside / max(1, total.total()),
    }
    coverage.write_text(json.dumps(report, indent=2) + "\n")


def choose(total: Counter[int], vocab_size: int, draft_vocab_size: int) -> list[int]:
    """Ids of the `draft_vocab_size` most frequent tokens, ascending; padded with the lowest unused ids."""
    if total and max(total) >= vocab_size:
        raise ValueError(f"token {max(total)} lies outside the verifier's vocabulary of {vocab_size}")
    if draft_vocab_size > vocab_size:
        raise ValueError(f"a draft vocabulary of {draft_vocab_size} is larger than the verifier's, {vocab_size}")
    return sorted(sorted(range(vocab_size), key=lambda token: (-total[token], token))[:draft_vocab_size])


def tables(chosen: list[int], vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """(d2t [D] int64, t2d [V] bool). d2t holds offsets: draft token i is the verifier's token i + d2t[i]."""
    ids = np.array(chosen, dtype=np.int64)
    t2d = np.zeros(vocab_size, dtype=np.bool_)
    t2d[ids] = True
    return ids - np.arange(len(chosen)), t2d
