"""The region that a terminal shows while a build runs, through a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress

import pytest

from buildsys.console import Console
from buildsys.events import (
    ActionFinished,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    Event,
    Notice,
    RequestCounts,
    RequestsAnswered,
    ShardsKnown,
)
from buildsys.model import Limits, Prices
from tests.cli.screen import seen
from tests.cli.test_console import action_of, begin


class Terminal:
    """A console on a pseudo-terminal, and a clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0
        self._shown, inner = pty.openpty()
        self._stream = os.fdopen(inner, "w", encoding="utf-8")
        self.resize(80, 24)
        self._output = b""
        self.console = Console(self._stream, colour=False, live=True, clock=lambda: self.now)

    def resize(self, columns: int, lines: int) -> None:
        self._columns = columns
        fcntl.ioctl(self._stream, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __call__(self, *events: Event) -> None:
        for event in events:
            self.console(event)

    def output(self) -> str:
        """All that was written."""
        self._stream.write("\0")
        self._stream.flush()
        while not self._output.endswith(b"\0"):
            self._output += os.read(self._shown, 65536)
        self._output = self._output[:-1]
        return self._output.decode()

    def lines(self) -> list[str]:
        return seen(self.output(), self._columns)

    def close(self) -> None:
        self._stream.close()
        os.close(self._shown)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


def refresh_at(terminal: Terminal, now: float) -> list[str]:
    terminal.now = now
    terminal.console.refresh()
    return terminal.lines()


def test_it_shows_what_runs_how_far_it_is_and_what_is_left(terminal):
    terminal(*begin(("tokens", 4), ("vocab", 1)))
    terminal(ActionStarted(action_of("tokens[0]"), ""))
    terminal.now = 2
    terminal(ActionFinished(action_of("tokens[0]"), "ran", ""), ActionStarted(action_of("tokens[1]"), ""))
    assert refresh_at(terminal, 3) == [
        "  tokens          1/4       ━━━━────────────  5.0 s left · 1 1.0 s",
        "  1 of 5 actions · 1 running · 3.0 s",
    ]


def test_requests_fill_the_bar_before_any_action_is_done(terminal):
    terminal(*begin(("replies", 2)))
    action = action_of("replies[0]")
    terminal(ActionStarted(action, ""), RequestsAnswered(action, RequestCounts(0, 100)))
    terminal(RequestsAnswered(action, RequestCounts(50, 100, 50, 900)))
    assert refresh_at(terminal, 5) == [
        "  replies         0/2       ━━━━────────────  50 of 100 requests, 10/s",
        "    15 s left · 180 tokens/s",
        "  0 of 2 actions · 1 running · 5.0 s",
    ]


def asked(terminal: Terminal, name: str, now: float, counts: RequestCounts) -> None:
    terminal.now = now
    terminal(RequestsAnswered(action_of(name), counts))


def test_a_rule_that_asks_says_how_its_replies_come_in_what_is_wrong_first(terminal):
    terminal(*begin(("replies", 1)), ActionStarted(action_of("replies"), ""))
    asked(terminal, "replies", 0, RequestCounts(1000, 10_000))
    ends = {"stop": 1100, "length": 66}
    bad = {"truncated": 66, "empty reasoning": 3, "refused": 34}
    counts = RequestCounts(1200, 10_000, 200, 12_000, 900, 256, 12, ends, bad, refused=34)
    asked(terminal, "replies", 10, counts)
    assert refresh_at(terminal, 10)[:2] == [
        "  replies                   ━───────────────  1,200 of 10,000 requests, 20/s",
        "    7 min 20 s left · 1,200 tokens/s · truncated 5.5 %, refused 2.8 %, empty r…",
    ]
    terminal.resize(170, 24)
    assert refresh_at(terminal, 10)[:2] == [
        "  replies                   ━───────────────  1,200 of 10,000 requests, 20/s",
        "    7 min 20 s left · 1,200 tokens/s · truncated 5.5 %, refused 2.8 %, empty reasoning 0.25 %"
        " · 256 in flight, 12 retries · stop 1,100, length 66",
    ]


def test_where_all_is_well_the_line_has_room_for_what_is_on_its_way(terminal):
    terminal(*begin(("replies", 1)), ActionStarted(action_of("replies"), ""))
    asked(terminal, "replies", 0, RequestCounts(0, 10_000))
    ends, bad = {"stop": 200}, {"empty reasoning": 200}
    asked(terminal, "replies", 10, RequestCounts(200, 10_000, 200, 12_000, 900, 256, 2, ends, bad))
    assert refresh_at(terminal, 10)[1] == "    8 min 10 s left · 1,200 tokens/s · 256 in flight, 2 retries"


def test_rates_and_the_time_left_are_those_of_the_last_half_minute(terminal):
    terminal(*begin(("replies", 1)), ActionStarted(action_of("replies"), ""))
    for second in range(101):
        n = 10 * second if second < 50 else 500 + (second - 50)
        asked(terminal, "replies", second, RequestCounts(n, 600, n, 100 * n))
    assert refresh_at(terminal, 100)[:2] == [
        "  replies                   ━━━━━━━━━━━━━━──  550 of 600 requests, 1.0/s",
        "    50 s left · 100 tokens/s",
    ]
    asked(terminal, "replies", 130, RequestCounts(550, 600, 550, 55_000))
    assert refresh_at(terminal, 131)[:2] == [
        "  replies                   ━━━━━━━━━━━━━━──  550 of 600 requests, 0.0/s",
        "    0.0 tokens/s",
    ]


def test_answers_that_were_there_before_are_no_speed_and_reused_actions_are_none_to_come(terminal):
    terminal(*begin(("replies", 100)))
    terminal(*(ActionFinished(action_of(f"replies[{n}]"), "reused", "") for n in range(2, 100)))
    terminal(ActionStarted(action_of("replies[0]"), ""))
    asked(terminal, "replies[0]", 0, RequestCounts(900, 1000))
    asked(terminal, "replies[0]", 10, RequestCounts(950, 1000, 50, 0))
    assert refresh_at(terminal, 10)[:2] == [
        "  replies         98/100    ━━━━━━━─────────  950 of 1,000 requests, 5.0/s",
        "    3 min 30 s left",
    ]


def test_what_is_on_its_way_ends_with_its_action(terminal):
    terminal(*begin(("replies", 2)), ActionStarted(action_of("replies[0]"), ""))
    terminal(ActionStarted(action_of("replies[1]"), ""))
    asked(terminal, "replies[0]", 0, RequestCounts(0, 9, in_flight=9))
    asked(terminal, "replies[1]", 0, RequestCounts(0, 9, in_flight=4))
    assert refresh_at(terminal, 1)[1] == "    13 in flight"
    terminal(ActionFinished(action_of("replies[0]"), "cancelled", ""))
    assert refresh_at(terminal, 1)[1] == "    4 in flight"


def test_what_is_spent_is_told_against_its_limits_the_nearest_first(terminal):
    action = action_of("replies")
    limits = Limits(max_requests=1000, max_output_tokens=2_000_000, max_cost=10.0)
    prices = Prices(request=0.01, action_hour=3600.0, currency="EUR")
    start = BuildStarted("buildsys build", (), (action.rule,), prices, limits=limits)
    terminal(start, ShardsKnown(action.rule, 1), ActionStarted(action, ""))
    terminal(Notice("info", "no request so far"))
    assert refresh_at(terminal, 1)[-1] == "  0 of 1 actions · 1 running · 1.0 s · 1.00 EUR so far"
    asked(terminal, "replies", 1, RequestCounts(312, 5000, 312, 1_260_000))
    assert refresh_at(terminal, 1)[-1] == (
        "  0 of 1 actions · 1 running · 1.0 s · 1.2M of 2M tokens · 312 of 1,000 reques…"
    )
    terminal.resize(120, 24)
    assert refresh_at(terminal, 1)[-1].endswith("312 of 1,000 requests · 3.12 of 10 EUR")


def test_a_single_action_says_why_it_runs(terminal):
    terminal(*begin(("draft", 1)), ActionStarted(action_of("draft"), "its code changed"))
    assert refresh_at(terminal, 41)[0] == "  draft           41 s · its code changed"


def test_a_short_build_shows_no_region(terminal):
    terminal(*begin(("draft", 1)), ActionStarted(action_of("draft"), ""))
    assert refresh_at(terminal, 0.2) == []


def test_lines_that_stay_push_the_region_down(terminal):
    terminal(*begin(("a", 1), ("b", 1)), ActionStarted(action_of("a"), "x"), ActionStarted(action_of("b"), "x"))
    refresh_at(terminal, 1)
    terminal(ActionFinished(action_of("a"), "ran", ""))
    assert terminal.lines() == [
        "  a               1 ran                1.0 s",
        "  b               1.0 s · x",
        "  1 of 2 actions · 1 running · 1.0 s",
    ]


def test_only_the_lines_that_stay_are_left_at_the_end(terminal):
    with terminal.console:
        terminal(*begin(("a", 1)), ActionStarted(action_of("a"), ""))
        refresh_at(terminal, 1)
        terminal(ActionFinished(action_of("a"), "ran", ""), BuildFinished(1, "done", 1.0, {"ran": 1}))
    assert terminal.lines() == [
        "  a               1 ran                1.0 s",
        '1 action: 1 ran in 1.0 s · run 1 · try: buildsys sql "FROM runs"',
    ]


def test_the_region_goes_where_a_build_ends_by_an_exception(terminal):
    with suppress(ZeroDivisionError), terminal.console:
        terminal(*begin(("a", 1)), ActionStarted(action_of("a"), ""))
        assert len(refresh_at(terminal, 1)) == 2
        raise ZeroDivisionError
    assert terminal.lines() == []


def test_it_fits_a_low_terminal(terminal):
    terminal.resize(80, 5)
    rules = [(f"rule{n}", 1) for n in range(20)]
    terminal(*begin(*rules), *(ActionStarted(action_of(name), "x") for name, _ in rules))
    assert len(refresh_at(terminal, 1)) == 4


def test_a_terminal_that_became_narrower_is_cleared_of_the_lines_that_it_wrapped(terminal):
    terminal(*begin(("draft", 1)), ActionStarted(action_of("draft"), "a reason that is longer than thirty columns"))
    refresh_at(terminal, 1)
    before = len(terminal.output())
    terminal.resize(30, 24)
    terminal.now = 2
    terminal.console.refresh()
    # 67 columns wrap to three rows and 34 to two.
    assert terminal.output()[before:].startswith("\x1b[5F\x1b[J")
