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
from buildsys.events import ActionFinished, ActionStarted, BuildFinished, Event, RequestCounts, RequestsAnswered
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
    terminal(
        ActionStarted(action_of("replies[0]"), ""),
        RequestsAnswered(action_of("replies[0]"), RequestCounts(50, 100, 50, 9)),
    )
    line, _ = refresh_at(terminal, 5)
    assert (
        line
        == "  replies         0/2       ━━━━────────────  50 of 100 requests, 10/s · 15 s left · 0 5.0 s"[:78] + "…"
    )


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
