"""Serves a verifier folder's `model.gguf` with llama.cpp's own server, in the form of the OpenAI API.

`python serve_verifier.py --model DIR --port N` listens on 127.0.0.1, answers `/health` and `/v1/chat/completions`,
and ends on SIGTERM, on SIGINT and when the process that started it is gone.
"""

import argparse
import os
import signal
import threading
from pathlib import Path
from types import FrameType

import xllamacpp

SLOTS = 32
CONTEXT_PER_SLOT = 512
PARENT_POLL_S = 0.5
WARNINGS = 2


def serve(model: Path, port: int, threads: int = 1) -> xllamacpp.Server:
    """A running server that batches up to 32 requests; port 0: any. One thread: two spin on a busy machine."""
    params = xllamacpp.CommonParams()
    params.model.path = str(model / "model.gguf")
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT_PER_SLOT
    # A reused prefix changes the order of sums, and so, now and then, a token.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.ui = False
    params.verbosity = WARNINGS
    # Without an alias the server tells its file's path in every reply.
    params.model_alias = {model.name}
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    return xllamacpp.Server(params)


def _wait_for_the_end(parent: int) -> None:
    """Returns on SIGTERM or SIGINT, or within half a second of the parent's death, however it died."""
    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    while os.getppid() == parent and not ended.wait(PARENT_POLL_S):
        pass


def main() -> None:
    parent = os.getppid()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    server = serve(options.model, options.port, options.threads)
    print(f"ready on {server.listening_address}", flush=True)
    _wait_for_the_end(parent)


if __name__ == "__main__":
    main()
