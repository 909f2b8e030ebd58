"""Signals that ask the program to end: they act like Ctrl-C, and can be told from it."""

from __future__ import annotations

import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came: what takes Ctrl-C as "not this one" ends all the same."""


def heed_signals() -> None:
    """A request to end and a lost terminal end the program as Ctrl-C does, unless whoever started it ignores them."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _raise)


def heed_no_more() -> None:
    """The program is about to end with the code it has: a signal that comes now changes nothing."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated
