"""Requests, and replies taken apart, under every name that servers give to the reasoning."""

import json

import pyarrow.parquet as pq
import pytest
from conftest import script, write_lines

synthetic = script("01b_generate_synthetic")

ASKED = {"model": "m", "max_tokens": 8, "temperature": 0.0, "logprobs": True}
RECORD = {"id": "r1", "messages": [{"role": "user", "content": "One?"}]}


def body(message, finish_reason="stop", **more):
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **more}


def extracted(folder, *replies, error=None):
    row = {"id": "r1", "record": RECORD, "sample": 0, "replies": list(replies), "error": error}
    source = write_lines(folder / "replies.jsonl", [row])
    synthetic.extract(source, folder / "samples.parquet")
    (sample,) = pq.read_table(folder / "samples.parquet").to_pylist()
    return sample


def test_one_turn_is_asked():
    request = synthetic.build_request(RECORD, [], **ASKED)
    assert request == {**ASKED, "messages": RECORD["messages"], "return_token_ids": True}
    assert synthetic.build_request(RECORD, [body({"content": "1"})], **ASKED) is None


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"reasoning": "R"}, "R"),
        ({"reasoning_content": "R"}, "R"),
        ({"reasoning": "R", "reasoning_content": "R"}, "R"),
        ({"reasoning": None, "reasoning_content": "R"}, "R"),
        ({"reasoning": "R", "reasoning_content": None}, "R"),
        ({"reasoning": None}, ""),
        ({}, ""),
    ],
)
def test_reasoning_is_found_under_either_name(tmp_path, fields, reasoning):
    sample = extracted(tmp_path, body({"role": "assistant", "content": "1", **fields}))
    assert (sample["reasoning"], sample["answer"], sample["error"]) == (reasoning, "1", "")


@pytest.mark.parametrize("message", [{"content": None, "reasoning": "R"}, {"reasoning": "R"}])
def test_a_reply_cut_while_it_reasons_has_no_answer_and_is_no_error(tmp_path, message):
    sample = extracted(tmp_path, body(message, "length"))
    assert (sample["reasoning"], sample["answer"], sample["finish_reason"], sample["error"]) == ("R", "", "length", "")


def test_a_refused_request_is_a_row_without_an_answer(tmp_path):
    sample = extracted(tmp_path, error={"status": 400, "message": "too long"})
    assert json.loads(sample["error"]) == {"status": 400, "message": "too long"}
    assert (sample["reasoning"], sample["answer"], sample["prompt"]) == ("", "", "One?")


@pytest.mark.parametrize("reply", [{}, {"choices": []}, {"choices": None}, {"choices": [{"message": None}]}])
def test_a_reply_without_a_message_is_an_error_row(tmp_path, reply):
    assert extracted(tmp_path, reply)["error"] == "the reply holds no message"


def test_usage_is_kept_and_may_be_absent(tmp_path):
    counted = extracted(tmp_path, body({"content": "1"}, usage={"prompt_tokens": 3, "completion_tokens": 2}))
    assert (counted["prompt_tokens"], counted["completion_tokens"]) == (3, 2)
    assert extracted(tmp_path, body({"content": "1"}))["completion_tokens"] is None


def test_token_ids_come_from_vllm(tmp_path):
    reply = body({"content": "1"}, prompt_token_ids=[5, 6])
    reply["choices"][0]["token_ids"] = [7, 8]
    sample = extracted(tmp_path, reply)
    assert (sample["prompt_token_ids"], sample["token_ids"]) == ([5, 6], [7, 8])


def test_token_ids_come_from_llama_cpp(tmp_path):
    reply = body({"content": "1"})
    reply["choices"][0]["logprobs"] = {"content": [{"id": 7, "token": "1"}, {"id": 8, "token": ""}]}
    assert extracted(tmp_path, reply)["token_ids"] == [7, 8]


def test_logprobs_without_ids_give_none(tmp_path):
    reply = body({"content": "1"})
    reply["choices"][0]["logprobs"] = {"content": [{"token": "1"}]}
    assert extracted(tmp_path, reply)["token_ids"] == []


def test_the_embedded_verifier_reasons_and_answers(run):
    samples = pq.read_table(run.samples).to_pylist()
    assert len(samples) == 32
    assert all(sample["reasoning"] and sample["answer"] and not sample["error"] for sample in samples)
    assert all(sample["finish_reason"] == "stop" and sample["model"] == "verifier" for sample in samples)
