"""Braces in paths and commands, and which path patterns can meet."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildsys.spec.pattern import fields, fill, may_meet, names_in, rename


def test_names_are_replaced_and_doubled_braces_made_single() -> None:
    assert fill("{a}/{{a}}/{b.c}", {"a": "1", "b.c": "2"}) == "1/{a}/2"


def test_a_value_is_put_in_as_it_is() -> None:
    assert fill("{a}{b}", {"a": "{b}", "b": "}}"}) == "{b}}}"


def test_a_name_without_a_value_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="shard"):
        fill("x/{shard}", {"profile": "default"})


def test_fields_are_the_names_and_nothing_that_is_doubled() -> None:
    assert fields("{a}/{{b}}/{{{c}}}/{a}") == {"a", "c"}
    assert names_in("{a}/{b}/{a}") == ["a", "b", "a"]


@pytest.mark.parametrize("text", ["{", "}", "a{b", "{a}}", "{{a}", "{{}"])
def test_a_brace_on_its_own_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a single"):
        fields(text)


def test_a_variable_is_renamed_where_it_is_one() -> None:
    assert rename("{part}/{{part}}/part/{profile}", "part", "shard") == "{shard}/{{part}}/part/{profile}"


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", True),
        ("a/b", "a/bc", False),
        ("a/{shard}.jsonl", "a/{shard}.json", False),
        ("a/{shard}.jsonl", "a/index.jsonl", True),
        ("a/{shard}", "a/b/c", True),
        ("a/{shard}/x", "a/b/y", False),
        ("a/{shard}x", "a/x", False),
        ("a/{{shard}}", "a/{shard}", True),
        ("a/{{x}}", "a/{{y}}", False),
        ("build/{profile}/vocab", "build/{profile}/tokens/{shard}", False),
        ("build/{profile}/vocab", "build/default/vocab", True),
    ],
)
def test_patterns_meet_where_one_path_can_be_both_or_lie_in_the_other(one: str, other: str, meet: bool) -> None:
    assert may_meet(one, other) is meet
    assert may_meet(other, one) is meet


SEGMENTS = st.lists(st.sampled_from(["a", "b", "{s}"]), min_size=1, max_size=4).map("".join)


@settings(max_examples=100, deadline=None)
@given(SEGMENTS, SEGMENTS)
def test_segments_meet_exactly_where_some_values_make_them_equal(one: str, other: str) -> None:
    """Tried out with all values of up to four of two letters, which is enough for segments this short."""
    assert may_meet(one, other) is bool(_all_paths(one) & _all_paths(other))


VALUES = ["".join(letters) for n in range(1, 5) for letters in itertools.product("ab", repeat=n)]


def _all_paths(pattern: str) -> set[str]:
    paths = {""}
    for piece in pattern.replace("{s}", "*"):
        paths = {
            path + value for path in paths for value in (VALUES if piece == "*" else [piece]) if len(path + value) < 7
        }
    return paths
