"""What the log of replies costs: to write to it, to open it, and to find in it what is there and what is not.

    python bench/replies.py                     # a million replies of 1.5 KB; some minutes
    python bench/replies.py 100000 --write      # adds what it measured to bench/RESULTS.md

Each is written once, with what it takes to have it on the disk. Then the log is opened by processes of their own, which
say how much memory that took beside what Python and the imports take. The text of the replies is random words, in the
form that vLLM gives them.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from pathlib import Path

from nothing_to_do import RESULTS, machine

from buildsys.run.replies import Reply, ReplyLog, request_key

AT_ONCE = 256
N_ASKED = 20_000
ROUNDS = 3
WORDS = [a + b + c for a in ("pro", "re", "con") for b in ("duc", "fer", "ver", "spec") for c in ("t", "s", "ing")]


def key_of(n: int) -> str:
    return request_key({"model": "m", "messages": [{"role": "user", "content": str(n)}]}, "m@1", 0)


def reply_to(n: int) -> Reply:
    text = " ".join(random.Random(n).choices(WORDS, k=130))
    message = {"role": "assistant", "reasoning": text[:300], "content": text, "tool_calls": []}
    usage = {"prompt_tokens": 100 + n % 50, "total_tokens": 350 + n % 50, "completion_tokens": 250}
    body = {"id": f"chatcmpl-{n:032x}", "object": "chat.completion", "created": 1_760_000_000 + n, "model": "m"}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop", "stop_reason": None}
    return Reply(
        kind="reply",
        request=json.dumps({"model": "m", "messages": [{"role": "user", "content": str(n)}]}).encode(),
        identity="m@1",
        sample=0,
        status=200,
        body=json.dumps({**body, "choices": [choice], "usage": usage, "prompt_logprobs": None}).encode(),
        started=1_760_000_000.0 + n,
        ended=1_760_000_001.5 + n,
        model="m",
        endpoint="http://127.0.0.1:8000/v1",
    )


def write(folder: Path, n: int) -> Iterator[str]:
    replies = [reply_to(i) for i in range(AT_ONCE)]
    size = sum(len(one.body) for one in replies) / len(replies)
    spent = 0.0
    with ReplyLog(folder) as log:
        for first in range(0, n, AT_ONCE):
            some = [(key_of(i), reply_to(i)) for i in range(first, min(n, first + AT_ONCE))]
            started = time.perf_counter()
            wait([log.put(key, reply) for key, reply in some])
            spent += time.perf_counter() - started
        yield f"write, {AT_ONCE} at once | {n / spent:,.0f} replies/s"
        started = time.perf_counter()
        log.wait_until_packed()
        yield f"until the last is packed | {time.perf_counter() - started:.1f} s more"
    used = sum(path.stat().st_size for path in folder.iterdir())
    yield f"on the disk, bodies of {size:,.0f} bytes | {used / n:,.0f} bytes a reply"


def read(folder: Path, n: int) -> dict[str, float]:
    """What one opening costs."""
    keys = {
        "there": [key_of(i) for i in random.sample(range(n), min(n, N_ASKED))],
        "in order": [key_of(i) for i in range(min(n, N_ASKED))],
        "not there": [key_of(n + i) for i in range(N_ASKED)],
    }
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    log = ReplyLog(folder, writable=False)
    found = {"open": time.perf_counter() - started}
    found["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    for which, some in keys.items():
        started = time.perf_counter()
        n_found = sum(log.get(key) is not None for key in some)
        found[which] = (time.perf_counter() - started) / len(some) * 1e6
        assert n_found == (0 if which == "not there" else len(some))
    log.close()
    return found


def measure(n: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name, "replies")
        yield from write(folder, n)
        told = [
            json.loads(subprocess.check_output([sys.executable, __file__, str(n), "--read", str(folder)]))
            for _ in range(ROUNDS)
        ]
        least = {what: min(one[what] for one in told) for what in told[0]}
        yield f"open | {least['open'] * 1000:,.0f} ms, {max(one['memory'] for one in told):,.0f} MB"
        for which in ("there", "in order", "not there"):
            yield f"a look-up, {which} | {least[which]:.1f} us"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.read:
        json.dump(read(given.read, given.n), sys.stdout)
        return
    rows = [f"| {row} |" for row in measure(given.n)]
    text = "\n".join([f"| {given.n:,} replies | |", "|---|---|", *rows]) + f"\n\n{machine()}\n"
    print(text)
    if given.write:
        with RESULTS.open("a") as results:
            results.write(f"\n## The log of replies\n\n{text}")


if __name__ == "__main__":
    main()
