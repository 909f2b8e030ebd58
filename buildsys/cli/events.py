"""Events as lines of JSON on standard output, for programs."""

from __future__ import annotations

import json
import threading
import time

from buildsys.cli.output import plain
from buildsys.events import Event


class EventLines:
    """Prints each event as a line of JSON, from any thread: its kind, the time, its fields."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        record = {"event": type(event).__name__, "time": round(time.time(), 3), **plain(event)}
        with self._lock:
            print(json.dumps(record, ensure_ascii=False), flush=True)
