"""Source conversations, cleaned, capped and cut into prompt shards.

A record's id is a digest of its cleaned conversation, and a shard is a range of ids, so where a record lands depends on
nothing but the record: a lower cap drops whole shards, cuts one and changes no other byte.
"""

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from conversations import clean
from datasets import load_dataset

LOCAL = "json"


def prepare(source: Path, prompts: Path, *, dataset: str, revision: str, samples: int, shards: int) -> None:
    """Fills the folder `prompts` with `0000.jsonl`, `0001.jsonl` ...: lines `{"id", "messages"}` in the order of ids.

    dataset: "json" reads `source` (JSON lines in open-perfectblend's schema), else a data set of the hub, whose
    `revision` has to be pinned. samples: how many records at most, those with the lowest ids. shards: into how many
    equal ranges all possible ids are divided; a range without records makes no file.
    """
    chosen = heapq.nsmallest(samples, _records(_rows(source, dataset, revision)))
    prompts.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[str]] = {}
    for record_id, messages in chosen:
        line = json.dumps({"id": record_id, "messages": json.loads(messages)}, ensure_ascii=False)
        files.setdefault(f"{shard_of(record_id, shards):04}.jsonl", []).append(line + "\n")
    for name, lines in files.items():
        (prompts / name).write_text("".join(lines), encoding="utf-8")


def shard_of(record_id: str, shards: int) -> int:
    """Number of the shard, in [0, shards), whose range of ids holds this one."""
    return int(record_id[:16], 16) * shards >> 64


def _records(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """(id, messages as JSON) of each distinct conversation."""
    seen: set[str] = set()
    for row in rows:
        messages = clean(row)
        if messages is None:
            continue
        text = json.dumps(messages, ensure_ascii=False, separators=(",", ":"))
        record_id = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if record_id not in seen:
            seen.add(record_id)
            yield record_id, text


def _rows(source: Path, dataset: str, revision: str) -> Iterable[dict[str, Any]]:
    """Rows of the training split. A local file is streamed: the loader's cache of it could be stale."""
    if dataset == LOCAL:
        return load_dataset(LOCAL, data_files=str(source), split="train", streaming=True)
    if not revision:
        raise ValueError(f'dataset "{dataset}" has no revision; pin the commit that you have looked at')
    return load_dataset(dataset, revision=revision, split="train")
