"""Samples as tokens: from the server's ids, or rebuilt from texts, with the same result."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import MARKS, TOKENIZE, VERIFIER, script
from transformers import AutoTokenizer

synthetic = script("01b_generate_synthetic")
THINK, END_THINK, TURN_END = MARKS["think"], MARKS["end_think"], MARKS["turn_end"]


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(VERIFIER)


@pytest.fixture
def tokenized(run, tmp_path):
    """Tokenizes the run's samples after each row went through `change`."""

    def tokenized(change=lambda row: {}, tokenizer=VERIFIER, **params):
        rows = [row | change(row) for row in pq.read_table(run.samples).to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows, schema=synthetic.SAMPLES), tmp_path / "samples")
        synthetic.tokenize(tmp_path / "samples", tokenizer, tmp_path / "tokens", **TOKENIZE | params)
        return pq.read_table(tmp_path / "tokens").to_pylist()

    return tokenized


def sequences(rows):
    return [(row["input_ids"], row["loss_mask"]) for row in rows]


def reply_of(row):
    return [token for token, bit in zip(row["input_ids"], row["loss_mask"], strict=True) if bit]


def test_the_marks_are_the_verifiers_tokens(tokenizer):
    assert tokenizer.convert_ids_to_tokens([THINK, END_THINK, TURN_END]) == ["<think>", "</think>", "<|im_end|>"]


def test_both_ways_agree_on_every_reply_of_the_verifier(tokenized):
    served = tokenized()
    rebuilt = tokenized(lambda row: {"token_ids": [], "prompt_token_ids": []})
    assert {row["source"] for row in served} == {"server"}
    assert {row["source"] for row in rebuilt} == {"rebuilt"}
    assert not any(row["skipped"] for row in served + rebuilt)
    assert sequences(served) == sequences(rebuilt)


def test_the_mask_is_one_exactly_on_the_reply(tokenized, tokenizer):
    for row in tokenized():
        boundary = row["loss_mask"].index(1)
        assert row["loss_mask"] == [0] * boundary + [1] * (len(row["input_ids"]) - boundary)
        assert tokenizer.decode(row["input_ids"][:boundary]).endswith("<|im_start|>assistant\n")
        assert (row["input_ids"][boundary], row["input_ids"][-1]) == (THINK, TURN_END)
        assert row["input_ids"].count(END_THINK) == 1


def test_prompt_ids_of_the_server_are_taken_as_they_are(tokenized):
    rows = tokenized(lambda row: {"prompt_token_ids": [9, 8, 7]})
    assert all(row["input_ids"][:3] == [9, 8, 7] and row["loss_mask"][:4] == [0, 0, 0, 1] for row in rows)


def test_a_server_that_swallows_the_turns_end_gets_it_back(tokenized):
    assert sequences(tokenized(lambda row: {"token_ids": row["token_ids"][:-1]})) == sequences(tokenized())


def test_a_think_mark_in_the_prompt_is_not_generated_again(tokenized, tokenizer, tmp_path):
    """As with Kimi's template, which ends the prompt with <think>."""
    tokenizer.save_pretrained(tmp_path / "prefilled")
    template = tmp_path / "prefilled/chat_template.jinja"
    text = template.read_text()
    template.write_text(text.replace("<|im_start|>assistant\n{% endif", "<|im_start|>assistant\n<think>{% endif"))
    changes = {"token_ids": [], "completion_tokens": None}
    rebuilt = tokenized(lambda row: changes, tokenizer=tmp_path / "prefilled")
    assert [row["input_ids"] for row in rebuilt] == [row["input_ids"] for row in tokenized()]
    assert all(row["loss_mask"][row["input_ids"].index(THINK)] == 0 for row in rebuilt)


def test_truncated_replies_are_skipped_unless_kept(tokenized):
    def cut(row):
        return {"token_ids": row["token_ids"][:9], "finish_reason": "length", "completion_tokens": 9} | halves(row)

    def halves(row):
        reply = AutoTokenizer.from_pretrained(VERIFIER).decode(row["token_ids"][1:9])
        return {"reasoning": reply, "answer": ""}

    assert {(row["skipped"], len(row["input_ids"])) for row in tokenized(cut)} == {("truncated", 0)}
    kept = tokenized(cut, keep_truncated=True)
    assert not any(row["skipped"] for row in kept)
    assert all(len(reply_of(row)) == 9 and TURN_END not in reply_of(row) for row in kept)
    rebuilt = tokenized(lambda row: cut(row) | {"token_ids": []}, keep_truncated=True)
    assert sequences(rebuilt) == sequences(kept)


def test_error_rows_are_skipped(tokenized):
    assert {row["skipped"] for row in tokenized(lambda row: {"error": "refused"})} == {"error"}


@pytest.mark.parametrize(
    "change",
    [
        lambda row: {"answer": row["answer"] + " Indeed."},
        lambda row: {"reasoning": ""},
        lambda row: {"token_ids": row["token_ids"][1:4] + row["token_ids"][8:]},
        lambda row: {"token_ids": [], "completion_tokens": row["completion_tokens"] + 2},
    ],
)
def test_ids_that_do_not_say_what_the_text_says_are_skipped(tokenized, change):
    assert {row["skipped"] for row in tokenized(change)} == {"round trip"}


def test_long_sequences_are_skipped(tokenized):
    lengths = [len(row["input_ids"]) for row in tokenized()]
    limit = sorted(lengths)[len(lengths) // 2]
    skipped = [row["skipped"] for row in tokenized(max_length=limit)]
    assert skipped == ["too long" if length > limit else "" for length in lengths]
