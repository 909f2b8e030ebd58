"""Prompts as chat texts. Plain functions: they import nothing of buildsys, and a test can call them with two paths."""

import json
from pathlib import Path


def render(prompts: Path, texts: Path, system: str, max_words: int) -> None:
    """One shard of prompts as texts, a JSON object a line."""
    with prompts.open() as source, texts.open("w") as target:
        for line in source:
            prompt = json.loads(line)
            words = prompt["question"].split()[:max_words]
            text = f"<system>{system}<user>{' '.join(words)}<assistant>"
            target.write(json.dumps({"id": prompt["id"], "text": text}) + "\n")
    print(f"{prompts.name}: done")


def measure(texts: list[Path], lengths: Path) -> None:
    """The number of texts in all shards, and of characters in the longest of them."""
    found = [json.loads(line)["text"] for path in texts for line in path.open()]
    lengths.write_text(json.dumps({"texts": len(found), "longest": max(map(len, found))}, indent=2) + "\n")
    print(f"{len(found)} texts in {len(texts)} shards")
