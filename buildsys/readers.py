"""When whoever reads the manifest sees what a build has recorded: now and then while it runs, and at its end.

Joins the recorder with the tables that the graph names. Knows nothing of what the rows say.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from buildsys.events import Event, Notice
from buildsys.spec.graph import Graph
from buildsys.state.manifest import Manifest
from buildsys.state.recorder import Recorder
from buildsys.state.rows import OutputTable
from buildsys.state.tables import is_table

_PUBLISH_S: Final = 2.0
_PUBLISH_SHARE: Final = 20
"""Readers see what is two seconds old, or older where a snapshot takes more than a twentieth of that."""


def output_tables(graph: Graph) -> list[OutputTable]:
    """The outputs that readers have as tables; not ephemeral ones, since what is dropped can't be read."""
    return [
        OutputTable(*place)
        for place in graph.tables()
        if is_table(place.pattern) and not graph.rules[place.rule].ephemeral
    ]


class Readers:
    """Those of one build's manifest."""

    def __init__(self, graph: Graph, recorder: Recorder, emit: Callable[[Event], None]) -> None:
        self._recorder = recorder
        self._emit = emit
        self._tables = output_tables(graph)
        self._published_at = time.monotonic()
        self._publish_s = 0.0

    def due_in_s(self) -> float:
        """Seconds until they should see what has been recorded since they last did."""
        return max(0.0, self._published_at + max(_PUBLISH_S, _PUBLISH_SHARE * self._publish_s) - time.monotonic())

    def show_soon(self) -> None:
        """Publish what was recorded so far, without waiting for it."""
        self._published_at = time.monotonic()
        self._recorder.soon(self._publish)

    def show(self) -> None:
        """Publish what was recorded so far."""
        self._recorder.ask(self._publish)

    def tell(self) -> None:
        """Say what the manifest has to say to people."""
        self._recorder.ask(self._told)

    def _publish(self, manifest: Manifest) -> None:
        """In the recorder's thread, which commits nothing meanwhile."""
        started = time.monotonic()
        manifest.publish(self._tables)
        self._publish_s = time.monotonic() - started
        self._told(manifest)

    def _told(self, manifest: Manifest) -> None:
        while manifest.notices:
            self._emit(Notice("warning", manifest.notices.pop(0)))
