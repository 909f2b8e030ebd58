"""The EAGLE-3 draft: one decoder layer that guesses the verifier's next tokens from its hidden states.

arXiv 2503.01840, in the variant that both vLLM and SGLang serve: norms before neither the residual, nor `fc`, nor the
feedback. Parameter names are those of the speculators library. Knows nothing of data, losses or files but its own.

At position p the layer takes the embedding of token p + 1 and the feature g[p] (the verifier's taps through `fc`, or,
further down a chain, the layer's own last output) and predicts token p + 2.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

KeysValues = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Shape:
    """Sizes of a draft; all but the draft's vocabulary are the verifier's."""

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    draft_vocab_size: int


class Attention(nn.Module):
    """Attention over the embedding and the feature side by side, so twice the hidden size wide at its entrance."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = shape.num_attention_heads, shape.num_key_value_heads, shape.head_dim
        width = 2 * shape.hidden_size
        self.q_proj = nn.Linear(width, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, shape.hidden_size, bias=False)
        self.theta = shape.rope_theta

    def project(self, x: Tensor, positions: Tensor) -> tuple[Tensor, KeysValues]:
        """Queries and (keys, values), each [B, heads, S, head_dim], rotated by position; key heads are repeated."""
        batch, length, _ = x.shape
        query, key, value = (
            layer(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        groups = self.heads // self.kv_heads
        key = self._rotate(key, positions).repeat_interleave(groups, dim=1)
        return self._rotate(query, positions), (key, value.repeat_interleave(groups, dim=1))

    def _rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        half = self.head_dim // 2
        frequencies = self.theta ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = positions[:, None].float() * frequencies
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        low, high = x[..., :half], x[..., half:]
        return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)

    def forward(self, query: Tensor, base: KeysValues, own: list[KeysValues]) -> Tensor:
        """Attends to base keys [B, heads, K, head_dim] causally, aligned at the end, and to own keys one to one.

        `own` are the keys of earlier steps down the chain: the query at p sees those made at p, and no others.
        """
        key, value = base
        scale = self.head_dim**-0.5
        blocked = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).triu(1 + key.shape[2] - query.shape[2])
        scores = [(query @ key.transpose(2, 3) * scale).masked_fill(blocked, float("-inf"))]
        scores += [(query * own_key).sum(-1, keepdim=True) * scale for own_key, _ in own]
        weights = torch.cat(scores, dim=-1).softmax(-1)
        mixed = weights[..., : key.shape[2]] @ value
        for index, (_, own_value) in enumerate(own, start=key.shape[2]):
            mixed = mixed + weights[..., index : index + 1] * own_value
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.hidden_norm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = Attention(shape)
        self.mlp = Mlp(shape)


class Eagle3(nn.Module):
    """The draft. d2t [D] int64: offsets, draft token i is the verifier's i + d2t[i]; t2d [V] bool: who is in."""

    d2t: Tensor
    t2d: Tensor

    def __init__(self, shape: Shape, d2t: Tensor, t2d: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size).requires_grad_(False)
        self.fc = nn.Linear(3 * shape.hidden_size, shape.hidden_size, bias=False)
        self.layers = nn.ModuleList([Layer(shape)])
        self.norm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.lm_head = nn.Linear(shape.hidden_size, shape.draft_vocab_size, bias=False)
        self.register_buffer("d2t", d2t)
        self.register_buffer("t2d", t2d)

    def start_from(self, embedding: nn.Module, head: nn.Module) -> None:
        """Takes the weights [V, H] of the verifier's embedding, for ever, and its output rows to begin with."""
        with torch.no_grad():
            self.embed_tokens.weight.copy_(embedding.get_parameter("weight"))
            self.lm_head.weight.copy_(head.get_parameter("weight")[self.t2d])

    def decode(
        self, ids: Tensor, features: Tensor, positions: Tensor, past: KeysValues | None = None
    ) -> tuple[Tensor, KeysValues]:
        """Outputs [B, S, H] before the final norm, and all keys and values up to here; all that is past is seen.

        ids [B, S]: the tokens one ahead of their positions [S]; features [B, S, H].
        """
        query, made = self._enter(ids, features, positions)
        seen = made if past is None else (torch.cat([past[0], made[0]], 2), torch.cat([past[1], made[1]], 2))
        return self._leave(features, self._layer.self_attn(query, seen, [])), seen

    def chain(
        self, ids: Tensor, features: Tensor, positions: Tensor, base: KeysValues, own: list[KeysValues]
    ) -> tuple[Tensor, KeysValues]:
        """One more step down the chains that start at every position at once, as training needs it.

        base: keys and values of the start; own: those of the chain's steps so far. Gives outputs [B, S, H] and the
        keys and values of this step. The same numbers as `decode` gives for each chain alone.
        """
        query, made = self._enter(ids, features, positions)
        return self._leave(features, self._layer.self_attn(query, base, [*own, made])), made

    @property
    def _layer(self) -> Layer:
        return cast(Layer, self.layers[0])

    def _enter(self, ids: Tensor, features: Tensor, positions: Tensor) -> tuple[Tensor, KeysValues]:
        layer = self._layer
        x = torch.cat([layer.input_layernorm(self.embed_tokens(ids)), layer.hidden_norm(features)], dim=-1)
        return layer.self_attn.project(x, positions)

    def _leave(self, features: Tensor, attended: Tensor) -> Tensor:
        layer, hidden = self._layer, features + attended
        return hidden + layer.mlp(layer.post_attention_layernorm(hidden))

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., D] over the draft's vocabulary."""
        return self.lm_head(self.norm(hidden))


def save(folder: Path, draft: Eagle3, verifier: str, architecture: str, taps: list[int], proposed: int) -> None:
    """Writes the draft in the speculators format, which vLLM serves as it is.

    verifier: name or path under which the server finds it; proposed: how many tokens a server asks for by default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous() for name, tensor in draft.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = _config(draft.shape, verifier, architecture, taps, proposed)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(folder: Path) -> Eagle3:
    """The draft of a folder that `save` wrote; a missing or unknown tensor is an error."""
    config = json.loads((folder / "config.json").read_text())
    layer = config["transformer_layer_config"]
    sizes = {name: layer[name] for name in Shape.__dataclass_fields__ if name in layer}
    theta = layer["rope_parameters"]["rope_theta"]
    shape = Shape(**sizes, rope_theta=theta, draft_vocab_size=config["draft_vocab_size"])
    tensors = load_file(folder / "model.safetensors")
    draft = Eagle3(shape, tensors["d2t"], tensors["t2d"])
    draft.load_state_dict(tensors)
    return draft.eval()


def _config(shape: Shape, verifier: str, architecture: str, taps: list[int], proposed: int) -> dict[str, object]:
    """config.json. `norm_before_residual` is always written: vLLM and the library differ in what its absence means."""
    layer = asdict(shape)
    theta = layer.pop("rope_theta")
    draft_vocab_size = layer.pop("draft_vocab_size")
    proposal = {"proposal_type": "greedy", "speculative_tokens": proposed, "verifier_accept_k": 1}
    return {
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.9.0",
        "draft_vocab_size": draft_vocab_size,
        "norm_before_residual": False,
        "norm_before_fc": False,
        "fc_norm": False,
        "norm_output": False,
        "target_hidden_size": None,
        "eagle_aux_hidden_state_layer_ids": taps,
        "embed_requires_grad": False,
        "tie_word_embeddings": False,
        "dtype": "float32",
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{**proposal, "accept_tolerance": 0.0}],
            "verifier": {"name_or_path": verifier, "architectures": [architecture]},
        },
        "transformer_layer_config": {
            "model_type": "llama",
            "num_hidden_layers": 1,
            **layer,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        },
    }
