"""The one thread that writes the manifest. What arrives while a commit runs is the next commit; nothing waits for more.

Knows nothing of what the rows mean, nor when a snapshot is worth its price: whoever holds it says so.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from buildsys.state.manifest import Manifest, Row

T = TypeVar("T")


@dataclass(frozen=True)
class _Entry:
    rows: Sequence[Row]
    then: Callable[[], None]


@dataclass(frozen=True)
class _Question:
    ask: Callable[[Manifest], object]
    answer: Future[object]


class Recorder:
    """Owns the manifest's connection. `failed` is called with the error when a commit fails: then nothing is recorded."""

    def __init__(self, open_manifest: Callable[[], Manifest], failed: Callable[[BaseException], None]) -> None:
        self._open = open_manifest
        self._failed = failed
        self._queue: queue.SimpleQueue[_Entry | _Question | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._opened: Future[None] = Future()
        self._thread.start()
        self._opened.result()

    def record(self, rows: Sequence[Row], then: Callable[[], None] = lambda: None) -> None:
        """Commit the rows, in the order of the calls, and call `then` (in the recorder's thread) once they are durable."""
        self._queue.put(_Entry(rows, then))

    def ask(self, question: Callable[[Manifest], T]) -> T:
        """The answer of a question to the manifest, after all that was recorded before it."""
        answer: Future[object] = Future()
        self._queue.put(_Question(question, answer))
        return answer.result()  # type: ignore[return-value]

    def close(self) -> None:
        """Commit what is left and close the manifest."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            manifest = self._open()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        entries: list[_Entry] = []
        while True:
            item = self._queue.get()
            while isinstance(item, _Entry):
                entries.append(item)
                item = self._next()
            if entries:
                self._commit(manifest, entries)
                entries = []
            if isinstance(item, _Question):
                _answer(item, manifest)
            elif item is None and self._closing:
                break
        manifest.close()
