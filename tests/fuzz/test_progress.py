"""A long run of the fuzz says how far it is, and not too often."""

from __future__ import annotations

from tests.fuzz.__main__ import Progress


def test_a_line_every_half_minute_tells_count_rate_and_what_is_left() -> None:
    now, lines = [0.0], list[str]()
    progress = Progress(1000, lines.append, lambda: now[0])
    for at, n_done, n_failed in ((10, 20, 0), (29, 40, 0), (31, 62, 1), (45, 80, 1), (62, 124, 1)):
        now[0] = at
        progress.are_done(n_done, n_failed)
    assert lines == [
        "62 of 1,000 graphs, 1 failed, 120 a minute, 8 minutes left",
        "124 of 1,000 graphs, 1 failed, 120 a minute, 7 minutes left",
    ]
    assert round(progress.minutes, 2) == 1.03


def test_nothing_done_yet_is_no_rate() -> None:
    now, lines = [0.0], list[str]()
    progress = Progress(10, lines.append, lambda: now[0])
    now[0] = 40
    progress.are_done(0, 0)
    assert lines == ["0 of 10 graphs, 0 failed, 0 a minute, 0 minutes left"]
