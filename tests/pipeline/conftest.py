"""The pipeline's scripts as modules, the embedded verifier, and a small run of the whole pipeline to look at."""

import importlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = ROOT / "workspace/scripts"
VERIFIER = ROOT / "workspace/verifier"
sys.path.insert(0, str(SCRIPTS))

# Two threads wait for each other on tensors this small, and tests run side by side.
importlib.import_module("torch").set_num_threads(1)

MARKS = {"think": 658, "end_think": 659, "turn_end": 2}
TOKENIZE = {**MARKS, "max_length": 512, "keep_truncated": False}
TAPS = [1, 2, 3]


def script(name: str) -> ModuleType:
    """A script whose name starts with a digit, which `import` can't say."""
    return importlib.import_module(name)


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@dataclass(frozen=True)
class Run:
    """Files of one small run: 32 problems, one shard."""

    replies: Path
    samples: Path
    tokens: Path
    states: Path
    mapping: Path


def start_server(port: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(SCRIPTS / "serve_verifier.py"), "--model", str(VERIFIER), "--port", str(port)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise TimeoutError(f"no server on port {port}")


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    """Where the embedded verifier is served."""
    found = free_port()
    server = start_server(found)
    wait_until_ready(found)
    yield found
    server.terminate()
    server.wait(10)


def ask(port: int, body: dict[str, Any]) -> dict[str, Any]:
    """The raw reply to a chat request."""
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return dict(json.load(response))


@pytest.fixture(scope="session")
def run(port: int, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The scripts in their order on 32 problems, up to the training."""
    folder = tmp_path_factory.mktemp("run")
    synthetic, vocab = script("01b_generate_synthetic"), script("03_build_vocab_mapping")
    script("01_prepare_prompts").prepare(
        ROOT / "workspace/data/sample.jsonl", folder / "prompts", dataset="json", revision="", samples=32, shards=1
    )
    made = Run(*(folder / name for name in ("replies", "samples", "tokens", "states", "mapping")))
    rows = []
    for line in (folder / "prompts/0000.jsonl").read_text().splitlines():
        record = json.loads(line)
        body = synthetic.build_request(record, [], model="verifier", max_tokens=96, temperature=0.0, logprobs=True)
        rows.append({"id": record["id"], "record": record, "sample": 0, "replies": [ask(port, body)], "error": None})
    write_lines(made.replies, rows)
    synthetic.extract(made.replies, made.samples)
    synthetic.tokenize(made.samples, VERIFIER, made.tokens, **TOKENIZE)
    states = script("02_extract_hidden_states")
    states.extract(made.tokens, VERIFIER, made.states, taps=TAPS, dtype="float32", threads=1)
    vocab.count(made.tokens, folder / "counts")
    tokens, coverage = folder / "vocab_tokens", folder / "coverage"
    vocab.build([folder / "counts"], made.mapping, tokens, coverage, vocab_size=660, draft_vocab_size=320)
    return made
