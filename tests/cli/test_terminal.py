from __future__ import annotations

import io

import pytest

from buildsys.phrases import counted, duration, listed, percentage, rate, short
from buildsys.terminal import Span, columns, cut, error_lines, painted, wants_colour


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (0.24, "0.2 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (185, "3 min 05 s"),
        (7199, "119 min 59 s"),
        (18120, "5 h 02 min"),
    ],
)
def test_durations_are_told_in_two_units_at_most(seconds, text):
    assert duration(seconds) == text


def test_counts_have_a_plural_and_thousands():
    assert [counted(n, "action") for n in (0, 1, 1024)] == ["0 actions", "1 action", "1,024 actions"]
    assert [counted(2, noun) for noun in ("reply", "retry", "day")] == ["2 replies", "2 retries", "2 days"]


def test_large_numbers_are_short_and_never_rounded_up():
    given = (0, 312, 99_999, 123_999, 1_299_999, 1_999_999, 2_000_000, 12_900_000, 3.5e9)
    assert [short(n) for n in given] == ["0", "312", "99,999", "123k", "1.2M", "1.9M", "2M", "12M", "3.5B"]


def test_shares_and_rates_have_two_digits_that_count():
    shares = [percentage(n, 100) for n in (100, 31.4, 9.96, 3.14, 0.5, 0.0123)]
    assert shares == ["100 %", "31 %", "10 %", "3.1 %", "0.5 %", "0.012 %"]
    assert rate(9.94) == "9.9/s"
    assert [rate(n, "tokens") for n in (1820.4, 9.96, 0.44)] == ["1,820 tokens/s", "10 tokens/s", "0.4 tokens/s"]


def test_long_lists_end_with_how_many_more():
    assert listed("abc", most=3) == "a, b, c"
    assert listed("abcde", most=3) == "a, b and 3 more"


@pytest.mark.parametrize(
    ("width", "text"), [(20, "tokens 1/8"), (10, "tokens 1/8"), (9, "tokens 1…"), (3, "to…"), (1, "…")]
)
def test_a_line_is_cut_to_its_width_across_spans(width, text):
    assert painted(cut([Span("tokens"), Span(" 1/8", "dim")], width), colour=False) == text


def test_wide_characters_take_two_columns_and_are_not_halved():
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert painted(cut([Span("日本語")], 4), colour=False) == "日…"


def test_colour_stays_within_its_span():
    assert painted([Span("failed", "red"), Span(" one")], colour=True) == "\x1b[1;31mfailed\x1b[0m one"


def test_an_error_stands_out_by_what_is_wrong_and_its_hint():
    head, place, hint = error_lines("error: no\n  a.toml:1\nhint: do")
    assert [span.style for line in (head, place, hint) for span in line] == ["red", "bold", "", "cyan", ""]


def test_colour_is_for_terminals_whose_user_did_not_refuse_it(monkeypatch):
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_colour(Tty())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Tty())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Tty())
