"""What a request costs the client, from its body to the reply in the log; and what it costs to read replies again.

    python bench/requests.py                     # some minutes
    python bench/requests.py --write             # adds what it measured to bench/RESULTS.md

Requests of 1 KB go to a server in a process of its own that answers with 2 KB after a moment, so that as many are in
flight as may be. CPU time is that of the whole process that asks: client, log, packing, and the loop of the engine.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nothing_to_do import RESULTS, machine
from replies import reply_to

from buildsys.run.chat import ChatEngine, Endpoint
from buildsys.run.conversation import Row
from buildsys.run.replies import ReplyLog

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "workspace/scripts/01b_generate_synthetic.py"
DELAY_S = 0.5
N_AGAIN = 100_000
ROUNDS = 2

Json = dict[str, Any]


def build(turns: Sequence[tuple[Json, Sequence[Json]]]) -> list[Json | None]:
    messages = [[{"role": "user", "content": record["text"]}] for record, _ in turns]
    return [
        None if replies else {"model": "m", "messages": asked, "max_tokens": 4096}
        for asked, (_, replies) in zip(messages, turns, strict=True)
    ]


def ask(folder: Path, url: str, n: int, in_flight: int) -> tuple[float, float, int]:
    """CPU and wall seconds a request, and how many replies are in the log. Twice, so that the first one warms up."""
    records = [{"id": str(i), "text": f"question {i} " + "x" * 1000} for i in range(n)]
    with ReplyLog(folder) as log:
        engine = ChatEngine(log, in_flight=in_flight)
        warm = [{"id": f"w{i}", "text": f"warm {i}"} for i in range(in_flight)]
        engine.answer(warm, build, Endpoint(url, "m@1"))
        cpu, wall = time.process_time(), time.perf_counter()
        answered = engine.answer(records, build, Endpoint(url, "m@1"))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        engine.close()
        assert answered.n_sent == n
        return cpu / n, wall / n, len(log) - len(warm)


def asked(n: int, in_flight: int) -> Iterator[str]:
    server = [sys.executable, "-m", "tests.chat.server", str(DELAY_S)]
    costs = []
    for _ in range(ROUNDS):
        with (
            subprocess.Popen(server, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running,
            tempfile.TemporaryDirectory(prefix="bench-") as name,
        ):
            assert running.stdout
            assert running.stdin
            costs.append(ask(Path(name), running.stdout.readline().strip(), n, in_flight))
            running.stdin.close()
    cpu, wall, kept = min(costs)
    assert all(one[2] == n for one in costs)
    rates = f"{cpu * 1000:.2f} ms CPU a request, {1 / wall:,.0f}/s, {kept:,} kept"
    yield f"{n:,} requests, {in_flight:,} in flight | {rates}"


def read_again() -> Iterator[str]:
    """The shipped `extract`, and the rows of a shard made anew from the log, each beside `json.loads` of the same."""
    replies = [reply_to(i) for i in range(2000)]
    rows = [
        Row(str(i), {"id": str(i), "messages": [{"role": "user", "content": "what?"}]}, 0, (one.body,), None)
        for i, one in enumerate(replies)
    ]
    lines = [row.line() for row in rows] * (N_AGAIN // len(rows))
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    gc.freeze()  # As a worker does with what it has imported.
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        shard, samples = Path(name, "replies.jsonl"), Path(name, "samples.parquet")
        shard.write_bytes(b"\n".join(lines) + b"\n")
        spent: dict[str, list[float]] = {"loads": [], "extract": []}
        for _ in range(ROUNDS):
            started = time.process_time()
            for line in lines:
                json.loads(line)
            spent["loads"].append(time.process_time() - started)
            started = time.process_time()
            script.extract(shard, samples)
            spent["extract"].append(time.process_time() - started)
    loads, extract = min(spent["loads"]), min(spent["extract"])
    size = sum(map(len, lines)) / len(lines)
    yield (
        f"extract of {N_AGAIN:,} replies of {size:,.0f} bytes | {extract:.1f} s CPU, "
        f"{extract / loads:.2f} times json.loads of them ({loads:.1f} s)"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    rows = [*asked(5_000, 256), *asked(5_000, 1024), *read_again()]
    text = "\n".join(["| | |", "|---|---|", *(f"| {row} |" for row in rows)]) + f"\n\n{machine()}\n"
    print(text)
    if given.write:
        with RESULTS.open("a") as results:
            results.write(f"\n## Requests\n\n{text}")


if __name__ == "__main__":
    main()
