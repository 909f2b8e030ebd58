"""Trains an EAGLE-3 draft on stored hidden states, with test-time steps: it learns on its own outputs.

The loss of a step is the cross-entropy with the verifier's soft distribution, cut to the draft's vocabulary, over
positions whose next token was generated and whose most likely token the draft can say.

Run as a program under `torchrun`, each process takes its share of every batch and their gradients are added up, so that
any number of processes trains the same draft. A training that was stopped goes on from the last state that it saved.
"""

import argparse
import inspect
import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import eagle3
import torch
import torch.distributed as processes
from eagle3 import Eagle3, KeysValues, Shape
from hidden_states import Record, read, read_about
from matplotlib.figure import Figure
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel


@dataclass(frozen=True)
class Batch:
    """Sequences padded right to one width W: ids [B, W] int64, mask [B, W] bool, taps [B, W, 3H], last [B, W, H]."""

    ids: Tensor
    mask: Tensor
    taps: Tensor
    last: Tensor


@dataclass(frozen=True)
class Teacher:
    """What the verifier says: its final norm and output rows [V, H], from which stored states give logits."""

    norm: torch.nn.Module
    head: Tensor

    @torch.no_grad()
    def targets(self, last: Tensor, t2d: Tensor) -> tuple[Tensor, Tensor]:
        """(probabilities [B, W, D] over the draft's vocabulary, [B, W] bool: is the most likely token in it)."""
        logits = self.norm(last) @ self.head.T
        return logits[..., t2d].softmax(-1), t2d[logits.argmax(-1)]


def train(
    hidden_states: list[Path],
    mapping: Path,
    verifier: Path,
    draft: Path,
    curve: Path,
    plot: Path,
    *,
    verifier_name: str,
    steps: int,
    batch: int,
    lr: float,
    ttt_steps: int,
    ttt_decay: float,
    proposed: int,
    log_every: int,
    seed: int,
    threads: int,
    save_every: int = 0,
    scratch: Path | None = None,
) -> None:
    """A folder in the speculators format, the learning curve as JSON and as PNG; the same bytes on the same machine.

    ttt_steps: length of the chains that are trained; step i counts ttt_decay ** i. batch: sequences a step. save_every:
    steps between two states that are saved in `scratch`, 0 for none; a training that finds one goes on from there, to
    the same bytes as if it had not been stopped.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    records, taps = _records(hidden_states)
    model = _verifier(str(verifier))
    student = make_draft(model, **load_file(mapping))
    teacher = Teacher(model.get_decoder().norm, model.get_output_embeddings().get_parameter("weight"))
    batches = _batches(records, batch, random.Random(seed))
    weights = [ttt_decay**step for step in range(ttt_steps)]
    saved = scratch / "state.pt" if scratch and save_every else None
    points = fit(student, teacher, batches, steps, lr, weights, log_every, save_every, saved)
    if not is_first():
        return
    eagle3.save(draft, student, verifier_name, type(model).__name__, taps, proposed)
    curve.write_text(json.dumps(points, indent=1) + "\n")
    draw(points, plot)
    print(f"loss {points[0]['loss']:.2f} → {points[-1]['loss']:.2f} in {steps} steps")


@cache
def _verifier(folder: str) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval().requires_grad_(False)


def make_draft(model: PreTrainedModel, d2t: Tensor, t2d: Tensor) -> Eagle3:
    """An untrained draft of the verifier's sizes, with its embeddings and its output rows."""
    config = model.config.get_text_config()
    shape = Shape(
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        vocab_size=config.vocab_size,
        max_position_embeddings=config.max_position_embeddings,
        rms_norm_eps=config.rms_norm_eps,
        rope_theta=config.rope_parameters["rope_theta"],
        draft_vocab_size=len(d2t),
    )
    draft = Eagle3(shape, d2t, t2d)
    draft.start_from(model.get_input_embeddings(), model.get_output_embeddings())
    return draft


def _records(paths: list[Path]) -> tuple[list[Record], list[int]]:
    """All records in the order of the shards, and the boundaries that their taps come from, which have to agree."""
    abouts = [read_about(path) for path in paths]
    if any(about != abouts[0] for about in abouts):
        raise ValueError("the shards of hidden states come from different verifiers, taps or dtypes")
    taps: Any = abouts[0]["taps"]
    return [record for path in paths for record in read(path)], taps


def _batches(records: list[Record], size: int, rng: random.Random) -> Iterator[list[Record]]:
    """Endless; every pass in a new order, the rest that fills no batch left out."""
    size = min(size, len(records))
    while True:
        order = rng.sample(records, len(records))
        for start in range(0, len(order) - size + 1, size):
            yield order[start : start + size]


def collate(records: list[Record]) -> Batch:
    def pad(column: list[Tensor], dtype: torch.dtype) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([tensor.to(dtype) for tensor in column], batch_first=True)

    return Batch(
        pad([record.input_ids for record in records], torch.int64),
        pad([record.loss_mask for record in records], torch.bool),
        pad([record.taps for record in records], torch.float32),
        pad([record.last for record in records], torch.float32),
    )


def fit(
    draft: Eagle3,
    teacher: Teacher,
    batches: Iterator[list[Record]],
    steps: int,
    lr: float,
    weights: list[float],
    log_every: int,
    save_every: int = 0,
    saved: Path | None = None,
) -> list[dict[str, Any]]:
    """Trains in place; a point of the curve for every `log_every` steps, averaged over them.

    saved: the file that the state is saved in, and that it goes on from where there is one.
    """
    trained = [parameter for parameter in draft.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, betas=(0.9, 0.95))
    warm = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    points: list[dict[str, Any]] = []
    window: list[Tensor] = []
    done = 0
    if saved and saved.exists():
        state = torch.load(saved, weights_only=True)
        draft.load_state_dict(state["draft"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        points, window, done = state["points"], state["window"], state["step"]
        print(f"goes on from step {done}")
    for step, records in enumerate(islice(batches, done, steps), start=done + 1):
        losses, agreement = unroll(draft, teacher, collate(_share(records)), len(weights))
        loss = (losses * torch.tensor(weights)).sum() / sum(weights)
        loss.backward()
        for parameter in trained:
            total(parameter.grad)
        torch.nn.utils.clip_grad_norm_(trained, 0.5)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        window.append(total(torch.cat([loss.detach()[None], agreement])))
        if step % log_every == 0 or step == steps:
            mean = torch.stack(window).mean(0).tolist()
            points.append({"step": step, "loss": round(mean[0], 6), "agreement": [round(x, 6) for x in mean[1:]]})
            window = []
        if saved and is_first() and step % save_every == 0:
            parts = {"draft": draft, "optimizer": optimizer, "schedule": schedule}
            state = {name: part.state_dict() for name, part in parts.items()}
            save(state | {"points": points, "window": window, "step": step}, saved)
    return points


def save(state: dict[str, Any], path: Path) -> None:
    """All of it or, where this is killed, what was there before."""
    torch.save(state, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


# ---------------------------------------------------------------- several processes


def is_first() -> bool:
    """The process that writes what all of them made; the only one where there is one."""
    return not processes.is_initialized() or processes.get_rank() == 0


def total(x: Tensor) -> Tensor:
    """The sum over all processes, in place: of what each of them has of a batch."""
    if processes.is_initialized():
        processes.all_reduce(x)
    return x


def _share(batch: list[Record]) -> list[Record]:
    """What this process has of a batch; one of them at least, since all take part in every sum."""
    if not processes.is_initialized():
        return batch
    rank, n = processes.get_rank(), processes.get_world_size()
    if len(batch) < n:
        raise ValueError(f"a batch of {len(batch)} sequences is too small for {n} processes")
    return batch[rank::n]


def unroll(draft: Eagle3, teacher: Teacher, batch: Batch, steps: int) -> tuple[Tensor, Tensor]:
    """(losses [steps] in nats, agreement [steps] with the verifier's choice), of chains from all positions at once.

    Each is this process's part of a mean over the tokens of all processes.

    At base position p, step i takes the true token p + 1 + i and guesses token p + 2 + i; its teacher is the verifier's
    distribution at p + 1 + i, and the mask is that of the guessed token.
    """
    probabilities, sayable = teacher.targets(batch.last, draft.t2d)
    features = draft.fc(batch.taps)
    own: list[KeysValues] = []
    losses, agreement = [], []
    positions = torch.arange(batch.ids.shape[1])
    hidden, base = draft.decode(_ahead(batch.ids, 1), features, positions)
    for step in range(steps):
        if step:
            hidden, made = draft.chain(_ahead(batch.ids, 1 + step), hidden, positions + step, base, own)
            own.append(made)
        counted = _ahead(batch.mask, 2 + step) & _ahead(sayable, 1 + step)
        guessed = draft.logits(hidden[counted]).log_softmax(-1)
        wanted = _ahead(probabilities, 1 + step)[counted]
        n_counted = total(counted.sum()).clamp(min=1)
        losses.append(-(wanted * guessed).sum() / n_counted)
        agreement.append((guessed.argmax(-1) == wanted.argmax(-1)).sum() / n_counted)
    return torch.stack(losses), torch.stack(agreement)


def _ahead(x: Tensor, by: int) -> Tensor:
    """x [B, W, ...] moved left along W; what comes in at the right is zero."""
    return torch.cat([x[:, by:], torch.zeros_like(x[:, :by])], dim=1)


def draw(points: list[dict[str, Any]], plot: Path) -> None:
    """Loss and agreement over the steps of training."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    loss, agreement = figure.subplots(1, 2)
    at = [point["step"] for point in points]
    loss.plot(at, [point["loss"] for point in points], color="#1f5fa8")
    loss.set(xlabel="training step", ylabel="loss (nats a token)", ylim=(0, None))
    for step in range(len(points[0]["agreement"])):
        agreement.plot(at, [point["agreement"][step] for point in points], label=f"chain step {step + 1}")
    agreement.set(xlabel="training step", ylabel="agrees with the verifier", ylim=(0, 1))
    agreement.legend(loc="lower right")
    for axes in (loss, agreement):
        axes.grid(alpha=0.3)
    figure.savefig(plot, format="png", dpi=120, metadata={"Software": None})


def main() -> None:
    """The program: an option for each argument of `train`; under `torchrun`, one of several processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, parameter in inspect.signature(train).parameters.items():
        is_path = "Path" in str(parameter.annotation)
        parser.add_argument(
            f"--{name}",
            type=Path if is_path else parameter.annotation,
            nargs="+" if parameter.annotation == list[Path] else None,
            required=parameter.default is inspect.Parameter.empty,
            default=parameter.default,
        )
    if "RANK" in os.environ:
        processes.init_process_group("gloo")
    train(**vars(parser.parse_args()))
    if processes.is_initialized():
        processes.destroy_process_group()


if __name__ == "__main__":
    main()
