"""How many tokens a verifier step gives with the trained draft, on problems that nothing was trained on.

Every output is compared with plain greedy decoding, and the draft as it was before training stands beside it, so that
the figure can neither be bought by a wrong output nor come from the verifier's own habits.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import eagle3
import torch
from conversations import clean
from eagle3 import Eagle3
from matplotlib.figure import Figure
from speculate import Speculation, greedy, speculative
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel


@dataclass(frozen=True)
class Acceptance:
    """What was measured of one draft.

    tokens_per_step: mean tokens that a verifier step emits, 1 without a draft; the prompt's pass is left out.
    by_position[i]: share of steps that used drafted token i + 1; histogram[n]: steps that used n drafted tokens.
    lossless: outputs that are the same as plain greedy decoding's, of `prompts`.
    """

    tokens_per_step: float
    by_position: list[float]
    histogram: list[int]
    steps: int
    tokens: int
    lossless: int
    prompts: int


def measure(
    draft: Path,
    verifier: Path,
    heldout: Path,
    report: Path,
    summary: Path,
    plot: Path,
    *,
    prompts: int,
    untrained_prompts: int,
    k: int,
    max_tokens: int,
    seed: int,
    threads: int,
) -> None:
    """Report as JSON, summary as a Markdown table, picture as PNG.

    prompts: how many are asked, from the start of `heldout`; untrained_prompts: the untrained draft gets fewer, as it
    takes a verifier step for every token. k: length of a drafted chain.
    """
    torch.set_num_threads(threads)
    model, tokenizer = _verifier(str(verifier))
    lines = heldout.read_text(encoding="utf-8").splitlines()[:prompts]
    asked = [_prompt(json.loads(line), tokenizer) for line in lines]
    end = tokenizer.eos_token_id
    plain = [greedy(model, prompt, max_tokens, end) for prompt in asked]
    taps = json.loads((draft / "config.json").read_text())["eagle_aux_hidden_state_layer_ids"]
    found = {}
    fresh, few = untrained(draft, model, seed), min(prompts, untrained_prompts)
    for name, student, count in (("trained", eagle3.load(draft), len(asked)), ("untrained", fresh, few)):
        runs = [speculative(model, student, prompt, taps, k, max_tokens, end) for prompt in asked[:count]]
        found[name] = summarize(runs, plain[:count], k)
    numbers = {"k": k, "max_tokens": max_tokens, **{name: asdict(one) for name, one in found.items()}}
    report.write_text(json.dumps(numbers, indent=2) + "\n")
    summary.write_text(markdown(found))
    draw(found, plot)
    print(headline(found["trained"], found["untrained"]))


@cache
def _verifier(folder: str) -> tuple[PreTrainedModel, Any]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(folder)


def _prompt(row: dict[str, Any], tokenizer: Any) -> list[int]:
    """Token ids of a held-out conversation up to the start of the reply."""
    messages = clean(row)
    if messages is None:
        raise ValueError(f"a held-out conversation is broken: {str(row)[:200]}")
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return list(tokenizer.encode(text, add_special_tokens=False))


def untrained(draft: Path, model: PreTrainedModel, seed: int) -> Eagle3:
    """The draft as training finds it: sizes and vocabulary, the verifier's embeddings and output rows, no more."""
    torch.manual_seed(seed)
    trained = eagle3.load(draft)
    fresh = Eagle3(trained.shape, trained.d2t, trained.t2d)
    fresh.start_from(model.get_input_embeddings(), model.get_output_embeddings())
    return fresh.eval()


def summarize(runs: list[Speculation], plain: list[list[int]], k: int) -> Acceptance:
    used = [n - 1 for run in runs for n in run.emitted]
    if not used:
        raise ValueError("no reply was long enough for one step of the verifier")
    return Acceptance(
        tokens_per_step=round(sum(used) / len(used) + 1, 4),
        by_position=[round(sum(n > position for n in used) / len(used), 4) for position in range(k)],
        histogram=[used.count(n) for n in range(k + 1)],
        steps=len(used),
        tokens=sum(used) + len(used),
        lossless=sum(run.token_ids == alone for run, alone in zip(runs, plain, strict=True)),
        prompts=len(runs),
    )


def headline(trained: Acceptance, fresh: Acceptance) -> str:
    """The outcome in a line: the last that is printed."""
    return (
        f"{trained.tokens_per_step:.2f} tokens a step (untrained {fresh.tokens_per_step:.2f}), "
        f"{trained.lossless} of {trained.prompts} lossless"
    )


def markdown(found: dict[str, Acceptance]) -> str:
    """One row a draft."""
    k = len(next(iter(found.values())).by_position)
    head = ["draft", "tokens a step", *(f"token {position + 1}" for position in range(k)), "lossless"]
    rows = [head, ["---"] * len(head)]
    for name, one in found.items():
        shares = [f"{share:.0%}" for share in one.by_position]
        rows.append([name, f"{one.tokens_per_step:.2f}", *shares, f"{one.lossless} of {one.prompts}"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def draw(found: dict[str, Acceptance], plot: Path) -> None:
    """Left: how often each drafted token was used. Right: how many were used in a step."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    width, colors = 0.4, ("#1f5fa8", "#c0c0c0")
    for index, (name, one) in enumerate(found.items()):
        shift = (index - 0.5) * width
        label = f"{name}: {one.tokens_per_step:.2f} tokens a step"
        positions = range(1, len(one.by_position) + 1)
        left.bar([p + shift for p in positions], one.by_position, width, color=colors[index], label=label)
        shares = [count / one.steps for count in one.histogram]
        right.bar([n + shift for n in range(len(shares))], shares, width, color=colors[index])
    left.set(xlabel="drafted token", ylabel="share of steps that used it", ylim=(0, 1))
    right.set(xlabel="drafted tokens used in a step", ylabel="share of steps", ylim=(0, 1))
    left.legend(loc="upper right", fontsize="small")
    figure.savefig(plot, format="png", dpi=120, metadata={"Software": None})
