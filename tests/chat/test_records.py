"""Records as they are read from JSON Lines: whole, in their order, or an error that says where."""

import pytest

from buildsys.errors import BuildError, Place
from buildsys.run.conversation import read_records


def nested(levels: int) -> bytes:
    return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


def test_every_line_that_is_not_blank_is_a_record_an_empty_one_too():
    data = b'{"id":"a"}\r\n\n  \n{}\n{"id":"b"}'
    assert read_records(data, "p.jsonl") == [{"id": "a"}, {}, {"id": "b"}]


def test_a_line_separator_within_a_string_ends_no_line():
    text = "one\u2028two\u0085three\x1cfour"
    assert read_records(f'{{"text":"{text[:-5]}"}}\n'.encode(), "p.jsonl") == [{"text": text[:-5]}]


def test_numbers_of_any_size_and_halves_of_characters_are_kept():
    data = rb'{"n":123456789012345678901234567890,"half":"\ud83d"}'
    assert read_records(data, "p.jsonl") == [{"n": 123456789012345678901234567890, "half": "\ud83d"}]


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        (b'{"id": nothing}', 8, "Expecting value"),
        (b"[1]", 0, "it is no object"),
        (b"null", 0, "it is no object"),
        (b'{"n": NaN}', 0, "NaN is no JSON"),
        (b'{"t": "\xff"}', 0, "'utf-8' codec can't decode byte 0xff in position 7: invalid start byte"),
        (nested(201), 0, "it is nested more than 200 levels deep"),
        (nested(100_000), 0, "it is nested more than 200 levels deep"),
    ],
)
def test_a_line_that_is_no_record_is_told_with_its_place(line, column, reason):
    with pytest.raises(BuildError) as caught:
        read_records(b'{"id":"a"}\n\n' + line + b'\n{"id":"b"}\n', "data/p.jsonl")
    assert caught.value.place == Place("data/p.jsonl", 3, column)
    assert caught.value.facts == (("reason", reason),)


def test_what_is_nested_as_deep_as_may_be_is_a_record():
    assert len(read_records(nested(200), "p.jsonl")) == 1
