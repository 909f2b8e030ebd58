"""Writes a Llama of the Hugging Face form as one GGUF file, for llama.cpp's server.

Weights stay float32, so greedy replies are the same tokens as torch gives. Covers what the embedded verifier needs:
Llama with tied embeddings and a byte-level BPE. Knows nothing of how the model was trained.
"""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

NORMS_AND_MLP = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(path: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """One file with weights, vocabulary and chat template."""
    writer = gguf.GGUFWriter(path, "llama")
    _add_shape(writer, model)
    _add_vocabulary(writer, tokenizer)
    for name, values in _tensors(model):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: gguf.GGUFWriter, model: LlamaForCausalLM) -> None:
    config: Any = model.config
    writer.add_name("verifier")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def _add_vocabulary(writer: gguf.GGUFWriter, tokenizer: PreTrainedTokenizerFast) -> None:
    """Pre-tokenizer "gpt-2": the tokenizer is trained with that regex, see `train_verifier`."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    added = {token["id"]: token["special"] for token in backend["added_tokens"]}
    # A control token is invisible in text; the think tags have to be seen by the server's reasoning parser.
    kind = {None: gguf.TokenType.NORMAL, True: gguf.TokenType.CONTROL, False: gguf.TokenType.USER_DEFINED}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    writer.add_token_types([kind[added.get(index)] for index in range(len(tokenizer))])
    writer.add_token_merges([" ".join(pair) for pair in backend["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(tokenizer.chat_template)


def _tensors(model: LlamaForCausalLM) -> list[tuple[str, np.ndarray]]:
    """GGUF names and float32 values, in the order of the layers. No `output.weight`: the embeddings are tied."""
    weights = model.state_dict()
    config: Any = model.config
    tensors = [("token_embd.weight", _array(weights["model.embed_tokens.weight"]))]
    tensors.append(("output_norm.weight", _array(weights["model.norm.weight"])))
    for layer in range(config.num_hidden_layers):
        ours, theirs = f"model.layers.{layer}", f"blk.{layer}"
        for name, short in NORMS_AND_MLP.items():
            tensors.append((f"{theirs}.{short}.weight", _array(weights[f"{ours}.{name}.weight"])))
        for name, heads in (("q", config.num_attention_heads), ("k", config.num_key_value_heads)):
            rotary = _array(weights[f"{ours}.self_attn.{name}_proj.weight"])
            tensors.append((f"{theirs}.attn_{name}.weight", _interleave(rotary, heads)))
    return tensors


def _array(weight: Tensor) -> np.ndarray:
    return weight.detach().float().cpu().numpy()


def _interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a q or k projection in llama.cpp's order: rotary pairs side by side, not half a head apart."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))
