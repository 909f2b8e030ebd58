"""Digests: what is encoded apart, what is encoded alike."""

from __future__ import annotations

import copy
import datetime
import math
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildsys.digest import Hasher, digest_bytes, digest_of, encode

NOON = datetime.datetime(2026, 3, 1, 12)
APART = [
    *("", "1", "1.0", "True", "true", "None", "ab", "é", "e\N{COMBINING ACUTE ACCENT}"),
    *("\udcc3\udca9", "\ud83d\ude00", "\N{GRINNING FACE}", "\ud800", "\udc80"),
    *(b"", b"1", b"ab", "é".encode()),
    *(1, 0, -1, 10, 2**64, True, False, None),
    *(1.0, 0.0, -0.0, -1.0, 0.1, 0.1 + 2**-56, math.inf, -math.inf, 2.0**64),
    *(NOON.date(), NOON, NOON.time(), NOON.replace(tzinfo=datetime.UTC), "2026-03-01", NOON.replace(microsecond=1)),
    *([], [[]], [[], []], [""], ["", ""], ["ab"], ["a", "b"], ["b", "a"], [["a"], "b"], [["a", "b"]], [None], [0]),
    *({}, [{}], {"": ""}, {"a": "b"}, {"b": "a"}, {"a": {"b": 1}}, {"a": 1, "b": 2}, {"a": 2, "b": 1}, ["a", 1]),
    *({"1": "x"}, {1: "x"}, {1.0: "x", "1": "x"}, {True: "x"}, {"True": "x"}),
]
"""Values of which no two are the same value of the same type."""

SCALARS = st.one_of(
    st.text(st.characters(codec=None), max_size=4),
    st.binary(max_size=4),
    st.integers(-3, 3) | st.integers(),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0]) | st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.dates() | st.datetimes() | st.times(),
)
KEYS = st.sampled_from(["", "a", "b", "1", "2"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
PURE = settings(deadline=None, database=None, max_examples=60)


def shape(value: Any) -> object:
    """The value with its types, so that what Python calls equal (1, 1.0 and True) is told apart."""
    if isinstance(value, dict):
        return "dict", frozenset((shape(key), shape(part)) for key, part in value.items())
    if isinstance(value, list):
        return "list", tuple(map(shape, value))
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("value", APART, ids=repr)
def test_a_value_is_encoded_like_no_other(value: object) -> None:
    assert [other for other in APART if other is not value and encode(other) == encode(value)] == []


@PURE
@given(VALUES, VALUES)
def test_two_values_have_one_encoding_just_where_they_and_their_types_are_equal(one: Any, other: Any) -> None:
    assert (encode(one) == encode(other)) == (shape(one) == shape(other))


@PURE
@given(st.lists(st.lists(VALUES, max_size=3), max_size=3), st.lists(st.lists(VALUES, max_size=3), max_size=3))
def test_fields_of_a_hasher_can_t_run_into_one_another(one: list[list[Any]], other: list[list[Any]]) -> None:
    def digest(fields: list[list[Any]]) -> str:
        hasher = Hasher()
        for field in fields:
            hasher.field(*field)
        return hasher.digest()

    assert (digest(one) == digest(other)) == (shape(one) == shape(other))


@PURE
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_a_mapping_does_not_count(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert encode(dict(items)) == encode(value)


@PURE
@given(st.lists(VALUES, max_size=4))
def test_the_order_of_a_sequence_does(value: list[Any]) -> None:
    backwards = value[::-1]
    assert (encode(backwards) == encode(value)) == (shape(backwards) == shape(value))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], (1, 2)),
        ({"a": 1}, OrderedDict(a=1)),
        ({"a": [1]}, MappingProxyType({"a": (1,)})),
        (range(2), [0, 1]),
    ],
    ids=repr,
)
def test_what_holds_the_values_does_not_count(one: object, other: object) -> None:
    assert encode(one) == encode(other)


REFUSED = [{1, 2}, object(), 1j, [{"a": {1}}], len, datetime.timedelta(1)]


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: type(value).__name__)
def test_a_value_without_an_order_of_its_own_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no canonical encoding for"):
        encode(value)


def test_digests_are_those_that_manifests_and_logs_hold() -> None:
    assert digest_bytes(b"") == "99aa06d3014798d86001c324468d497f"
    assert digest_of() == digest_bytes(encode([]))
    assert digest_of("a", 1, {"b": [2.5, True, None]}) == "30af8869f06788d96d2d9e01353735f3"


def test_a_copy_of_a_hasher_goes_on_by_itself() -> None:
    hasher = Hasher()
    hasher.field("a", 1)
    copied = hasher.copy()
    before = hasher.digest()
    copied.field("b", 2)
    assert hasher.digest() == before
    hasher.field("b", 2)
    assert hasher.digest() == copied.digest() != before


@PURE
@given(VALUES)
def test_encoding_leaves_the_value_as_it_is(value: Any) -> None:
    before = copy.deepcopy(value)
    encode(value)
    assert shape(value) == shape(before)
