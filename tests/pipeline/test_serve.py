"""The embedded verifier's server: the same tokens as torch, and no orphan."""

import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import torch
from conftest import SCRIPTS, VERIFIER, ask, free_port, start_server, wait_until_ready
from problems import problems
from speculate import greedy
from transformers import AutoModelForCausalLM, AutoTokenizer


def gone(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
        except (urllib.error.URLError, ConnectionError):
            return True
        time.sleep(0.05)
    return False


def test_greedy_replies_are_torchs_tokens(port):
    tokenizer = AutoTokenizer.from_pretrained(VERIFIER)
    model = AutoModelForCausalLM.from_pretrained(VERIFIER, dtype=torch.float32).eval()
    for problem in problems("heldout", 24, seed=5):
        messages = [{"role": "user", "content": problem.text}]
        body = ask(port, {"model": "v", "messages": messages, "max_tokens": 96, "temperature": 0.0, "logprobs": True})
        served = [token["id"] for token in body["choices"][0]["logprobs"]["content"]]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert served == greedy(model, prompt, 96, tokenizer.eos_token_id)
        assert body["usage"]["prompt_tokens"] == len(prompt)


def test_the_verifier_is_mostly_right(port):
    right = 0
    for problem in problems("heldout", 40, seed=6):
        messages = [{"role": "user", "content": problem.text}]
        body = ask(port, {"model": "v", "messages": messages, "max_tokens": 96, "temperature": 0.0})
        right += body["choices"][0]["message"]["content"] == problem.answer
    assert right >= 38


def test_sigterm_ends_the_server():
    port = free_port()
    server = start_server(port)
    wait_until_ready(port)
    server.terminate()
    assert server.wait(10) == 0


def test_the_server_ends_with_its_parent():
    port = free_port()
    starter = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(60)"
    command = [str(SCRIPTS / "serve_verifier.py"), "--model", str(VERIFIER), "--port", str(port)]
    parent = subprocess.Popen([sys.executable, "-c", starter, sys.executable, *command])
    wait_until_ready(port)
    parent.kill()
    parent.wait()
    assert gone(port)


@pytest.mark.parametrize("missing", ["--model", "--port"])
def test_both_arguments_are_needed(missing):
    given = {"--model": str(VERIFIER), "--port": "0"}
    del given[missing]
    (pair,) = given.items()
    command = [sys.executable, str(SCRIPTS / "serve_verifier.py"), *pair]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert missing in done.stderr
