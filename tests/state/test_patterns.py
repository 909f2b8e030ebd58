"""Paths by pattern: shards and stars, in the order in which people count."""

from __future__ import annotations

from buildsys.state.looks import Looks
from buildsys.state.patterns import expand, matches


def test_shards_come_in_natural_order(root, write):
    for name in ("10", "9", "1a", "b-2", "b-10"):
        write(f"prompts/{name}.jsonl")
    write("prompts/notes.txt")
    assert list(matches(Looks(root), "prompts/{shard}.jsonl")) == ["1a", "9", "10", "b-2", "b-10"]
    assert matches(Looks(root), "prompts/{shard}.jsonl")["9"] == "prompts/9.jsonl"


def test_a_shard_may_be_a_folder_and_stand_twice(root, write):
    write("data/one/one.json")
    write("data/two/other.json")
    assert matches(Looks(root), "data/{shard}/{shard}.json") == {"one": "data/one/one.json"}
    assert matches(Looks(root), "data/{shard}") == {"one": "data/one", "two": "data/two"}
    write("x-3-3.txt")
    write("x-3-4.txt")
    assert matches(Looks(root), "x-{shard}-{shard}.txt") == {"3": "x-3-3.txt"}


def test_hidden_names_and_names_that_are_no_shard_are_skipped(root, write):
    for name in (".9.jsonl.swp", ".8.jsonl", "a b.jsonl", "7.jsonl"):
        write(f"p/{name}")
    assert list(matches(Looks(root), "p/{shard}.jsonl")) == ["7"]
    assert expand(Looks(root), "p/*.jsonl") == ["p/7.jsonl", "p/a b.jsonl"]


def test_a_star_fits_within_one_name(root, write):
    write("a/10/x.txt")
    write("a/9/x.txt")
    write("a/9/deep/x.txt")
    assert expand(Looks(root), "a/*/x.txt") == ["a/9/x.txt", "a/10/x.txt"]
    assert expand(Looks(root), "a/9/x.txt") == ["a/9/x.txt"]


def test_a_folder_that_does_not_exist_has_no_paths(root):
    assert matches(Looks(root), "nowhere/{shard}.jsonl") == {}
    assert expand(Looks(root), "nowhere/*") == []
    assert expand(Looks(root), "nowhere") == []
