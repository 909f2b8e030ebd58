"""The one thread that writes the manifest, in commits that take a quarter of its time at most.

A commit costs some milliseconds however few its rows are, so what arrives shortly after one waits for company; nobody
waits for it (see docs/decisions/0005). A question is answered at once, after what was recorded before it.

Knows nothing of what the rows mean, nor when a snapshot is worth its price: whoever holds it says so.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from buildsys.state.manifest import Manifest
from buildsys.state.rows import Row

T = TypeVar("T")
_PAUSE = 3.0
"""Pause after a commit, in the time that it took."""


@dataclass(frozen=True)
class _Entry:
    rows: Sequence[Row]
    then: Callable[[], None]


@dataclass(frozen=True)
class _Question:
    ask: Callable[[Manifest], object]
    answer: Future[object]


class _Close:
    """The end of the queue."""


class Recorder:
    """Owns the manifest's connection. `failed` gets the error of a commit that fails: then nothing is recorded."""

    def __init__(self, open_manifest: Callable[[], Manifest], failed: Callable[[BaseException], None]) -> None:
        self._open = open_manifest
        self._failed = failed
        self._not_before = 0.0
        self._queue: queue.SimpleQueue[_Entry | _Question | _Close] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._opened: Future[None] = Future()
        self._thread.start()
        self._opened.result()

    def record(self, rows: Sequence[Row], then: Callable[[], None] = lambda: None) -> None:
        """Commit the rows in the order of the calls; `then` is called, in the recorder's thread, once they last."""
        self._queue.put(_Entry(rows, then))

    def ask(self, question: Callable[[Manifest], T]) -> T:
        """The answer of a question to the manifest, after all that was recorded before it."""
        answer: Future[object] = Future()
        self._queue.put(_Question(question, answer))
        return answer.result()  # type: ignore[return-value]

    def soon(self, question: Callable[[Manifest], object]) -> None:
        """Ask without waiting; an error goes to `failed`."""
        answer: Future[object] = Future()
        answer.add_done_callback(lambda done: self._failed(error) if (error := done.exception()) else None)
        self._queue.put(_Question(question, answer))

    def close(self) -> None:
        """Commit what is left and close the manifest."""
        self._queue.put(_Close())
        self._thread.join()

    def _run(self) -> None:
        try:
            manifest = self._open()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        last: _Question | _Close | None = None
        while not isinstance(last, _Close):
            entries, last = self._take()
            if entries:
                self._commit(manifest, entries)
            if isinstance(last, _Question):
                _answer(last, manifest)
        manifest.close()

    def _take(self) -> tuple[list[_Entry], _Question | _Close | None]:
        """The next commit's entries, up to a question or the end, and that; waits for the first."""
        entries: list[_Entry] = []
        item = self._queue.get()
        while isinstance(item, _Entry):
            entries.append(item)
            try:
                item = self._queue.get(timeout=max(0.0, self._not_before - time.monotonic()))
            except queue.Empty:
                return entries, None
        return entries, item

    def _commit(self, manifest: Manifest, entries: Sequence[_Entry]) -> None:
        started = time.monotonic()
        try:
            manifest.commit([row for entry in entries for row in entry.rows])
        except BaseException as error:
            self._failed(error)
            return
        ended = time.monotonic()
        self._not_before = ended + _PAUSE * (ended - started)
        for entry in entries:
            entry.then()


def _answer(question: _Question, manifest: Manifest) -> None:
    try:
        question.answer.set_result(question.ask(manifest))
    except BaseException as error:
        question.answer.set_exception(error)
