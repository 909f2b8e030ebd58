"""Events as lines of JSON on standard output, for programs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from buildsys.cli.output import json_text, plain
from buildsys.events import ActionFinished, Event, RequestsAnswered
from buildsys.model import ActionId

_EVERY_S: Final = 1.0


class EventLines:
    """Prints each event as a line of JSON, from any thread: its kind, the time, its fields.

    How far the requests of an action are is told once a second, and as it was last when the action ends. clock:
    seconds, from any start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told: dict[ActionId, float] = {}
        self._untold: dict[ActionId, str] = {}

    def __call__(self, event: Event) -> None:
        record = {"event": type(event).__name__, "time": round(time.time(), 3), **plain(event)}
        with self._lock:
            for line in self._due(event, json_text(record)):
                print(line, flush=True)

    def _due(self, event: Event, line: str) -> list[str]:
        """The lines to print now that an event, whose line is given, has come."""
        match event:
            case ActionFinished(action=action):
                self._told.pop(action, None)
                untold = self._untold.pop(action, None)
                return [untold, line] if untold else [line]
            case RequestsAnswered(action=action):
                now = self._clock()
                if action in self._told and now - self._told[action] < _EVERY_S:
                    self._untold[action] = line
                    return []
                self._told[action] = now
                self._untold.pop(action, None)
        return [line]
