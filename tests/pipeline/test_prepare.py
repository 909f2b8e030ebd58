"""Cleaning, capping and cutting the source conversations."""

import json

import pytest
from conftest import ROOT, script, write_lines
from conversations import clean

prepare_prompts = script("01_prepare_prompts")


def conversation(*turns):
    return {"conversations": [{"from": who, "value": text} for who, text in turns], "source": "test"}


def prepared(folder, source, **params):
    settings = {"dataset": "json", "revision": "", "samples": 1000, "shards": 8} | params
    prepare_prompts.prepare(source, folder, **settings)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    rows = [conversation(("human", f"Question {n}?"), ("gpt", "Answer.")) for n in range(100)]
    return write_lines(tmp_path_factory.mktemp("source") / "rows.jsonl", rows)


def test_a_conversation_ends_with_its_last_human_turn():
    row = conversation(("system", "Be brief."), ("human", " One? "), ("gpt", "1"), ("human", "Two?"), ("gpt", "2"))
    assert clean(row) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Two?"},
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"conversations": None},
        {"conversations": []},
        conversation(("gpt", "Nobody asked.")),
        conversation(("human", "  ")),
        conversation(("human", None)),
        conversation(("human", "One?"), ("human", "Two?")),
        conversation(("tool", "Who am I?"), ("human", "One?")),
    ],
)
def test_a_broken_conversation_is_dropped(row):
    assert clean(row) is None


def test_broken_and_repeated_rows_make_no_records(tmp_path):
    good, broken = conversation(("human", "One?"), ("gpt", "1")), conversation(("human", ""))
    other_answer = conversation(("human", "One?"), ("gpt", "uno"))
    source = write_lines(tmp_path / "rows.jsonl", [good, broken, good, other_answer])
    files = prepared(tmp_path / "prompts", source)
    assert [json.loads(line)["messages"] for text in files.values() for line in text.splitlines()] == [
        [{"role": "user", "content": "One?"}]
    ]


def test_shards_are_ranges_of_ids_in_order(tmp_path, source):
    files = prepared(tmp_path / "prompts", source)
    ids = [json.loads(line)["id"] for name in sorted(files) for line in files[name].splitlines()]
    assert len(ids) == 100
    assert ids == sorted(ids)
    for name, text in files.items():
        for line in text.splitlines():
            first_digit = int(json.loads(line)["id"][0], 16)
            assert f"{first_digit // 2:04}.jsonl" == name


def test_a_lower_cap_drops_shards_cuts_one_and_changes_no_other_byte(tmp_path, source):
    whole, capped = prepared(tmp_path / "whole", source), prepared(tmp_path / "capped", source, samples=40)
    names = sorted(capped)
    assert len(names) < len(whole)
    assert names == sorted(whole)[: len(names)]
    assert all(capped[name] == whole[name] for name in names[:-1])
    assert whole[names[-1]].startswith(capped[names[-1]])
    assert sum(text.count(b"\n") for text in capped.values()) == 40


def test_the_order_of_the_source_does_not_matter(tmp_path, source):
    turned = tmp_path / "turned.jsonl"
    turned.write_text("".join(reversed(source.read_text().splitlines(keepends=True))))
    assert prepared(tmp_path / "a", source) == prepared(tmp_path / "b", turned)


def test_a_range_without_records_makes_no_file(tmp_path, source):
    files = prepared(tmp_path / "prompts", source, shards=1000)
    assert 1 < len(files) <= 100
    assert all(files.values())


def test_an_edited_source_is_read_anew(tmp_path):
    source = write_lines(tmp_path / "rows.jsonl", [conversation(("human", "One?"))])
    first = prepared(tmp_path / "a", source)
    write_lines(source, [conversation(("human", "Two?"))])
    assert prepared(tmp_path / "b", source) != first


def test_the_shipped_sample_gives_all_its_conversations(tmp_path):
    files = prepared(tmp_path / "prompts", ROOT / "workspace/data/sample.jsonl")
    assert len(files) == 8
    assert sum(text.count(b"\n") for text in files.values()) == 640


def test_a_hub_data_set_has_to_be_pinned(tmp_path, source):
    with pytest.raises(ValueError, match="no revision"):
        prepared(tmp_path / "prompts", source, dataset="mlabonne/open-perfectblend")
