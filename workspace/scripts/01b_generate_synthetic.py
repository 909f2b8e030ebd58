"""Puts the prompts to the verifier, takes its replies apart, and turns them into token shards.

Three entries with nothing in common but the file: `build_request` (before a reply is paid for), `extract` (replies to
samples) and `tokenize` (samples to tokens). None calls another, so an edit of one can't change what the others make.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from transformers import AutoTokenizer, PreTrainedTokenizerBase

Json = dict[str, Any]

# --- asking ---------------------------------------------------------------------------------------------------------


def build_request(
    record: Json, replies: list[Json], *, model: str, max_tokens: int, temperature: float, logprobs: bool
) -> Json | None:
    """The chat request of a record; None once it is answered, since one turn is all we ask.

    `return_token_ids` is understood by vLLM from 0.10.2 on; llama.cpp tells token ids beside logprobs instead.
    """
    if replies:
        return None
    return {
        "model": model,
        "messages": record["messages"],
        "max_tokens": max_tokens,
        "temperature": temperature,
        "logprobs": logprobs,
        "return_token_ids": True,
    }


# --- replies to samples ---------------------------------------------------------------------------------------------

SAMPLES = pa.schema(
    [
        ("record_id", pa.string()),
        ("sample", pa.int32()),
        ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("prompt", pa.string()),
        ("reasoning", pa.string()),
        ("answer", pa.string()),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("prompt_token_ids", pa.list_(pa.int32())),
        ("token_ids", pa.list_(pa.int32())),
        ("model", pa.string()),
        ("error", pa.string()),
    ]
)


BATCH = 1000
"""Rows that are Python objects at a time: parsing a hundred thousand replies is twice as fast as with all of them."""


def extract(replies: Path, samples: Path) -> None:
    """One row a reply, in the order of `replies`; a request that failed is a row with `error` and without an answer.

    Absent texts are "" and never null: SQL's averages leave nulls out, so a check would not see them.
    """
    batches = []
    with replies.open("rb") as lines:
        while some := list(islice(lines, BATCH)):
            rows = [_sample(msgspec.json.decode(line)) for line in some]
            columns = zip(*map(itemgetter(*SAMPLES.names), rows), strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SAMPLES, strict=True)]
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=SAMPLES))
    pq.write_table(pa.Table.from_batches(batches, schema=SAMPLES), samples)


def _sample(row: Json) -> Json:
    """A row of `SAMPLES` from a row of raw replies."""
    messages = row["record"]["messages"]
    body = row["replies"][-1] if row["replies"] else {}
    choice = (body.get("choices") or [{}])[0]
    usage = body.get("usage") or {}
    return {
        "record_id": row["id"],
        "sample": row["sample"],
        "messages": messages,
        "prompt": messages[-1]["content"],
        "reasoning": _reasoning(choice),
        "answer": (choice.get("message") or {}).get("content") or "",
        "finish_reason": choice.get("finish_reason") or "",
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "prompt_token_ids": body.get("prompt_token_ids") or [],
        "token_ids": _reply_token_ids(choice),
        "model": body.get("model") or "",
        "error": _error(row, choice),
    }


def _reasoning(choice: Json) -> str:
    """vLLM says `reasoning` (both names in 0.11.1 to 0.15.1); llama.cpp, SGLang and older vLLM `reasoning_content`."""
    message = choice.get("message") or {}
    return message.get("reasoning") or message.get("reasoning_content") or ""


def _reply_token_ids(choice: Json) -> list[int]:
    """The generated ids where the server tells them: vLLM's `token_ids`, or the `id` beside llama.cpp's logprobs."""
    if choice.get("token_ids"):
        return list(choice["token_ids"])
    tokens = (choice.get("logprobs") or {}).get("content") or []
    return [token["id"] for token in tokens if "id" in token]


def _error(row: Json, choice: Json) -> str:
    if row["error"]:
        return row["error"] if isinstance(row["error"], str) else json.dumps(row["error"], sort_keys=True)
    return "" if choice.get("message") else "the reply holds no message"


# --- samples to tokens ----------------------------------------------------------------------------------------------

TOKENS = pa.schema(
    [
        ("record_id", pa.string()),
        ("sample", pa.int32()),
        ("input_ids", pa.list_(pa.int32())),
        ("loss_mask", pa.list_(pa.int8())),
        ("source", pa.string()),
        ("skipped", pa.string()),
    ]
)


@dataclass(frozen=True)
class Marks:
    """Ids of the tokens that no text shows: start and end of the reasoning, end of a turn."""

    think: int
    end_think: int
    turn_end: int


@dataclass(frozen=True)
class Sequence:
    """What a draft is trained on. loss_mask[i] is 1 if and only if token i was generated; shifting is the trainer's.

    source: "server" where the server told the generated ids, "rebuilt" where they come from the text.
    skipped: why the row is not used, and then without tokens; "" if it is.
    """

    input_ids: tuple[int, ...] = ()
    loss_mask: tuple[int, ...] = ()
    source: str = ""
    skipped: str = ""


def tokenize(
    samples: Path,
    tokenizer: Path,
    tokens: Path,
    *,
    think: int,
    end_think: int,
    turn_end: int,
    max_length: int,
    keep_truncated: bool,
) -> None:
    """One row a sample, in order. tokenizer: a folder for `AutoTokenizer`, with the verifier's chat template.

    max_length: longest sequence in tokens, prompt included. keep_truncated: also use replies cut by `max_tokens`.
    """
    marks = Marks(think, end_think, turn_end)
    text_to_ids = _tokenizer(str(tokenizer))
    rows = []
    for row in pq.read_table(samples).to_pylist():
        sequence = _sequence(row, text_to_ids, marks, max_length, keep_truncated)
        rows.append({"record_id": row["record_id"], "sample": row["sample"], **asdict(sequence)})
    pq.write_table(pa.Table.from_pylist(rows, schema=TOKENS), tokens)


@cache
def _tokenizer(folder: str) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(folder)


def _sequence(
    row: Json, tokenizer: PreTrainedTokenizerBase, marks: Marks, max_length: int, keep_truncated: bool
) -> Sequence:
    """Prompt and reply as tokens, or why not."""
    if row["error"]:
        return Sequence(skipped="error")
    if row["finish_reason"] == "length" and not keep_truncated:
        return Sequence(skipped="truncated")
    prompt = row["prompt_token_ids"] or render_prompt(row["messages"], tokenizer)
    source = "server" if row["token_ids"] else "rebuilt"
    reply = row["token_ids"] or rebuild_reply(row, prompt, tokenizer, marks)
    if row["finish_reason"] != "length" and reply[-1] != marks.turn_end:
        # Some servers count the token that ends the turn as generated, others swallow it; the draft has to learn it.
        reply = [*reply, marks.turn_end]
    if not _round_trip(row, reply, tokenizer, marks):
        return Sequence(source=source, skipped="round trip")
    if len(prompt) + len(reply) > max_length:
        return Sequence(source=source, skipped="too long")
    return Sequence((*prompt, *reply), (0,) * len(prompt) + (1,) * len(reply), source)


def render_prompt(messages: list[Json], tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids of a conversation as the server sees it, up to and with the start of the reply."""
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return tokenizer.encode(text, add_special_tokens=False)


def rebuild_reply(row: Json, prompt: list[int], tokenizer: PreTrainedTokenizerBase, marks: Marks) -> list[int]:
    """Ids of the reply from its text, for servers that tell none."""
    answer = tokenizer.encode(row["answer"], add_special_tokens=False)
    reasoning = tokenizer.encode(row["reasoning"], add_special_tokens=False)
    cut = row["finish_reason"] == "length" and not answer
    return [*_wrap_reasoning(reasoning, prompt, marks, cut), *answer, *([] if cut else [marks.turn_end])]


def _wrap_reasoning(reasoning: list[int], prompt: list[int], marks: Marks, cut: bool) -> list[int]:
    """The reasoning between its marks. Kimi's template ends the prompt with the first; a cut one has no second."""
    opened = prompt[-1] == marks.think
    if not reasoning and not opened:
        return []
    return [*([] if opened else [marks.think]), *reasoning, *([] if cut else [marks.end_think])]


def _round_trip(row: Json, reply: list[int], tokenizer: PreTrainedTokenizerBase, marks: Marks) -> bool:
    """Whether the ids say what the texts say, and are as many as the server counted, give or take the turn's end."""
    body = [token for token in reply if token not in (marks.think, marks.end_think, marks.turn_end)]
    spoken = "".join(str(tokenizer.decode(body, clean_up_tokenization_spaces=False)).split())
    expected = "".join((row["reasoning"] + row["answer"]).split())
    counted = row["completion_tokens"]
    return spoken == expected and (counted is None or counted in (len(reply), len(reply) - 1))
