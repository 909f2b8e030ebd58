"""Greedy decoding with and without a draft.

Speculative decoding is lossless: the draft proposes a chain, one pass of the verifier checks all of it, and what is
kept is what the verifier would have said alone. Both ways are here, so that this can be counted instead of believed.
"""

from dataclasses import dataclass

import torch
from eagle3 import Eagle3, KeysValues
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel


@dataclass
class Speculation:
    """token_ids: what was generated. emitted: tokens of each verifier step, in [1, k + 1]; not the prompt's."""

    token_ids: list[int]
    emitted: list[int]


class Reader:
    """The verifier with its cache: reads tokens, gives choices and taps."""

    def __init__(self, model: PreTrainedModel, taps: list[int]) -> None:
        self.model, self.taps, self.cache = model, taps, DynamicCache()

    def read(self, ids: list[int]) -> tuple[list[int], Tensor]:
        """For each of n further tokens the most likely next one, and the taps [n, 3H]."""
        output = self.model(input_ids=torch.tensor([ids]), cache=self.cache, use_cache=True, output_hidden_states=True)
        tapped = [output.hidden_states[tap][0] for tap in self.taps]
        return output.logits[0].argmax(-1).tolist(), torch.cat([torch.empty(len(ids), 0), *tapped], dim=-1)

    def forget(self, n: int) -> None:
        """Takes back the last n tokens read."""
        if n:
            self.cache.crop(-n)


class Drafter:
    """The draft with its cache of positions whose taps are known."""

    def __init__(self, draft: Eagle3) -> None:
        self.draft, self.length = draft, 0
        self.past: KeysValues | None = None

    def propose(self, ids: list[int], taps: Tensor, k: int) -> list[int]:
        """The k tokens after `ids`. taps [n, 3H]: of the positions since the last call, to the last but one token."""
        ahead = torch.tensor([ids[self.length + 1 :]])
        hidden, self.past = self.draft.decode(ahead, self.draft.fc(taps)[None], self._positions(len(taps)), self.past)
        self.length += len(taps)
        hidden, past, proposed = hidden[:, -1:], self.past, [self._choice(hidden)]
        for step in range(k - 1):
            positions = torch.tensor([self.length + step])
            hidden, past = self.draft.decode(torch.tensor([proposed[-1:]]), hidden, positions, past)
            proposed.append(self._choice(hidden))
        return proposed

    def _positions(self, n: int) -> Tensor:
        return torch.arange(self.length, self.length + n)

    def _choice(self, hidden: Tensor) -> int:
        index = int(self.draft.logits(hidden[0, -1]).argmax())
        return index + int(self.draft.d2t[index])


@torch.inference_mode()
def greedy(model: PreTrainedModel, prompt: list[int], max_tokens: int, end: int) -> list[int]:
    """What the verifier says alone, token by token, up to and with `end`."""
    reader, ids = Reader(model, []), list(prompt)
    unread = ids[:]
    while len(ids) - len(prompt) < max_tokens and ids[-1] != end:
        unread = [reader.read(unread)[0][-1]]
        ids += unread
    return ids[len(prompt) :]


@torch.inference_mode()
def speculative(
    model: PreTrainedModel, draft: Eagle3, prompt: list[int], taps: list[int], k: int, max_tokens: int, end: int
) -> Speculation:
    """The same with chains of k drafted tokens."""
    reader, drafter = Reader(model, taps), Drafter(draft)
    choices, tapped = reader.read(prompt)
    ids, emitted = [*prompt, choices[-1]], []
    while len(ids) - len(prompt) < max_tokens and ids[-1] != end:
        proposed = drafter.propose(ids, tapped, k)
        choices, tapped = reader.read([ids[-1], *proposed])
        accepted = n_equal(proposed, choices)
        reader.forget(k - accepted)
        tapped = tapped[: accepted + 1]
        new = cut(choices[: accepted + 1], max_tokens - (len(ids) - len(prompt)), end)
        ids += new
        emitted.append(len(new))
    return Speculation(ids[len(prompt) :], emitted)


def n_equal(proposed: list[int], choices: list[int]) -> int:
    """How many proposed tokens, from the first, are the verifier's own choices."""
    for index, token in enumerate(proposed):
        if token != choices[index]:
            return index
    return len(proposed)


def cut(tokens: list[int], room: int, end: int) -> list[int]:
    """`tokens` up to and with the first `end`, `room` at most."""
    kept = tokens[: tokens.index(end) + 1] if end in tokens else tokens
    return kept[:room]
