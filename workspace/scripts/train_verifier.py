"""Trains the embedded verifier: a Llama of 0.9M parameters that reasons about word problems.

Small enough to commit and to serve from one core, and real: it thinks in `<think>` tags, answers, stops, and is right
about nearly all problems that it has not seen. `workspace/verifier` was made here, with
the shipped settings.
"""

import itertools
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from gguf_export import write_gguf
from problems import Problem, problems
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
THINK, END_THINK = "<think>", "</think>"
CONTEXT = 512
NO_LOSS = -100

# Rows of bare sums: a problem holds two equations in 60 tokens, a drill ten. Without them the verifier of the same
# number of steps got 87 % of unseen problems right, with them 99 %.
DRILL_ROUNDS, DRILL_SUMS = 3, 10
Row = tuple[list[int], list[int]]

# ChatML. The reasoning of an earlier turn is left out when a later one is asked, as the large models' templates do.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.role == 'assistant' and loop.last and message.reasoning_content -%}
<think>{{ message.reasoning_content }}</think>
{%- endif -%}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}"""


def train(
    verifier: Path, *, problem_count: int, steps: int, batch: int, lr: float, vocab_size: int, seed: int, threads: int
) -> None:
    """A folder with weights, tokenizer, GGUF and `training.json` (settings, loss, accuracy on unseen problems)."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    taught = problems("verifier", problem_count, seed)
    tokenizer = make_tokenizer(taught, vocab_size)
    model = make_model(tokenizer)
    rows = [_encode(problem, tokenizer) for problem in taught] + _drills(taught, tokenizer, random.Random(seed))
    loss = _fit(model, rows, steps, batch, lr, seed)
    model.save_pretrained(verifier)
    tokenizer.save_pretrained(verifier)
    write_gguf(verifier / "model.gguf", model, tokenizer)
    report = {"problems": problem_count, "steps": steps, "batch": batch, "lr": lr, "seed": seed, "loss": round(loss, 5)}
    report |= {"parameters": model.num_parameters()}
    report |= accuracy(model, tokenizer, problems("heldout", 400, seed=1))
    (verifier / "training.json").write_text(json.dumps(report, indent=2) + "\n")


def make_tokenizer(taught: list[Problem], vocab_size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE with GPT-2's regex, which llama.cpp knows by name; think tags are tokens that text may show."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 2,
        special_tokens=[PAD, TURN_START, TURN_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator((f"{p.text} {p.reasoning} {p.answer} user\nassistant\n" for p in taught), trainer)
    bpe.add_tokens([AddedToken(tag, normalized=False) for tag in (THINK, END_THINK)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=TURN_END, pad_token=PAD, model_max_length=CONTEXT
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def _encode(problem: Problem, tokenizer: PreTrainedTokenizerFast) -> Row:
    """Token ids of question and reply, and their labels; the question carries no loss (-100)."""
    prompt = _prompt(problem, tokenizer)
    reply = f"{THINK}{problem.reasoning}{END_THINK}{problem.answer}{TURN_END}"
    prompt_ids = tokenizer.encode(prompt)
    reply_ids = tokenizer.encode(reply)
    return prompt_ids + reply_ids, [NO_LOSS] * len(prompt_ids) + reply_ids


def _drills(taught: list[Problem], tokenizer: PreTrainedTokenizerFast, rng: random.Random) -> list[Row]:
    """The sums and differences of all problems in random order, with loss on their results alone."""
    found = [sums for problem in taught for sums in re.findall(r"(\d+ [+-] \d+ =)( \d+)", problem.reasoning)]
    rows = []
    for _ in range(DRILL_ROUNDS):
        rng.shuffle(found)
        for start in range(0, len(found), DRILL_SUMS):
            ids: list[int] = []
            labels: list[int] = []
            for question, result in found[start : start + DRILL_SUMS]:
                asked, told = tokenizer.encode(f" {question}"), tokenizer.encode(result)
                stop = tokenizer.encode(".")
                ids += asked + told + stop
                labels += [NO_LOSS] * len(asked) + told + [NO_LOSS] * len(stop)
            rows.append((ids, labels))
    return rows


def _prompt(problem: Problem, tokenizer: PreTrainedTokenizerFast) -> str:
    messages = [{"role": "user", "content": problem.text}]
    return str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))


def _fit(model: LlamaForCausalLM, rows: list[Row], steps: int, batch: int, lr: float, seed: int) -> float:
    """Trains in place; the mean loss of the last 100 steps in nats a token. Small batches matter more than tokens."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.05)
    warm = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / (steps - warm)))
    )
    losses = []
    model.train()
    for ids, labels in itertools.islice(_batches(rows, batch, random.Random(seed)), steps):
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.eval()
    return sum(losses[-100:]) / len(losses[-100:])


def _batches(rows: list[Row], batch: int, rng: random.Random) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless (ids, labels), both (batch, longest) int64, padded right."""
    while True:
        rng.shuffle(rows)
        for start in range(0, len(rows) - batch + 1, batch):
            chosen = rows[start : start + batch]
            width = max(len(ids) for ids, _ in chosen)
            ids = torch.zeros(batch, width, dtype=torch.int64)
            labels = torch.full((batch, width), NO_LOSS)
            for row, (tokens, taught) in enumerate(chosen):
                ids[row, : len(tokens)] = torch.tensor(tokens)
                labels[row, : len(tokens)] = torch.tensor(taught)
            yield ids, labels


@torch.inference_mode()
def accuracy(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, unseen: list[Problem]) -> dict[str, float]:
    """Shares of problems with the right number in the answer, and with one think span, an answer and an end."""
    tokenizer.padding_side = "left"
    right = formed = 0
    for start in range(0, len(unseen), 100):
        asked = unseen[start : start + 100]
        inputs = tokenizer([_prompt(p, tokenizer) for p in asked], return_tensors="pt", padding=True)
        outputs = model.generate(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=96, do_sample=False
        )
        for problem, output in zip(asked, outputs[:, inputs["input_ids"].shape[1] :], strict=True):
            reply = str(tokenizer.decode(output)).replace(PAD, "")
            match = re.fullmatch(r"<think>([^<]+)</think>([^<]+)<\|im_end\|>", reply)
            formed += match is not None
            right += match is not None and re.findall(r"\d+", match[2]) == [str(problem.result)]
    return {"accuracy": right / len(unseen), "well_formed": formed / len(unseen)}
