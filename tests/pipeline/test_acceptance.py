"""Speculative decoding loses nothing, and what is counted is what happened."""

import json

import pytest
import torch
from conftest import ROOT, TAPS, VERIFIER, script
from safetensors.torch import load_file
from speculate import Speculation, cut, greedy, n_equal, speculative
from transformers import AutoModelForCausalLM, AutoTokenizer

acceptance, training = script("05_measure_acceptance"), script("04_train_draft")
END = 2


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(VERIFIER, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def prompts():
    tokenizer = AutoTokenizer.from_pretrained(VERIFIER)
    lines = (ROOT / "workspace/data/heldout.jsonl").read_text().splitlines()[:3]
    return [acceptance._prompt(json.loads(line), tokenizer) for line in lines]


@pytest.fixture(scope="module")
def random_draft(run, model):
    torch.manual_seed(3)
    return training.make_draft(model, **load_file(run.mapping)).eval()


@pytest.mark.parametrize("k", [1, 5])
def test_any_draft_gives_the_verifiers_own_output(model, random_draft, prompts, k):
    for prompt in prompts:
        spoken = speculative(model, random_draft, prompt, TAPS, k, 96, END)
        assert spoken.token_ids == greedy(model, prompt, 96, END)
        assert sum(spoken.emitted) + 1 == len(spoken.token_ids)


def test_a_draft_that_knows_the_reply_is_used_to_the_full(model, random_draft, prompts, monkeypatch):
    prompt = prompts[0]
    reply = greedy(model, prompt, 96, END)

    def oracle(self, ids, taps, k):
        said = len(ids) - len(prompt)
        return (reply[said : said + k] + [END] * k)[:k]

    monkeypatch.setattr("speculate.Drafter.propose", oracle)
    spoken = speculative(model, random_draft, prompt, TAPS, 5, 96, END)
    assert spoken.token_ids == reply
    assert spoken.emitted[:-1] == [6] * (len(spoken.emitted) - 1)
    assert len(spoken.emitted) == -(-(len(reply) - 1) // 6)


def test_greedy_is_what_the_library_generates(model, prompts):
    for prompt in prompts:
        ids = torch.tensor([prompt])
        output = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=96, do_sample=False)
        assert greedy(model, prompt, 96, END) == output[0, len(prompt) :].tolist()


def test_max_tokens_holds_for_both(model, random_draft, prompts):
    assert len(greedy(model, prompts[0], 7, END)) == 7
    assert speculative(model, random_draft, prompts[0], TAPS, 5, 7, END).token_ids == greedy(model, prompts[0], 7, END)


def test_proposed_tokens_count_up_to_the_first_wrong_one():
    assert n_equal([1, 2, 3], [1, 2, 9, 4]) == 2
    assert n_equal([7, 2], [1, 2, 3]) == 0
    assert n_equal([1, 2], [1, 2, 3]) == 2


def test_nothing_is_emitted_behind_the_end():
    assert cut([5, END, 6], 10, END) == [5, END]
    assert cut([5, 6, 7], 2, END) == [5, 6]


def test_the_summary_counts_steps_and_positions():
    runs = [Speculation([1, 2, 3, 4, 5], [1, 3]), Speculation([1, 9], [1])]
    found = acceptance.summarize(runs, [[1, 2, 3, 4, 5], [1, 8]], k=2)
    assert found.tokens_per_step == pytest.approx(5 / 3, abs=1e-4)
    assert found.by_position == [0.3333, 0.3333]
    assert found.histogram == [2, 0, 1]
    assert (found.steps, found.tokens, found.lossless, found.prompts) == (3, 5, 1, 2)


def test_a_little_training_is_better_than_none(run, tmp_path):
    outputs = {name: tmp_path / name for name in ("draft", "curve", "plot")}
    settings = {"verifier_name": "v", "steps": 40, "batch": 8, "lr": 3e-3, "ttt_steps": 2, "ttt_decay": 1.0}
    more = {"proposed": 3, "log_every": 20, "seed": 0, "threads": 1}
    training.train([run.states], run.mapping, VERIFIER, **outputs, **settings, **more)
    report, summary, plot = tmp_path / "report", tmp_path / "summary", tmp_path / "picture"
    heldout = ROOT / "workspace/data/heldout.jsonl"
    asked = {"prompts": 4, "untrained_prompts": 2, "k": 3, "max_tokens": 96, "seed": 0, "threads": 1}
    acceptance.measure(outputs["draft"], VERIFIER, heldout, report, summary, plot, **asked)
    found = json.loads(report.read_text())
    assert found["trained"]["tokens_per_step"] > found["untrained"]["tokens_per_step"] + 0.3
    assert (found["trained"]["lossless"], found["untrained"]["lossless"]) == (4, 2)
    assert f"| trained | {found['trained']['tokens_per_step']:.2f} |" in summary.read_text()
    assert plot.read_bytes().startswith(b"\x89PNG")
