"""What the engine tells of the call of a chat action, handed on: as events to people, and to its canary.

Knows nothing of how an action is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from buildsys.canary import MOST_ROWS, Canary, Follower
from buildsys.events import Event, Notice, RequestCounts, RequestsAnswered
from buildsys.model import ActionId
from buildsys.run.call import Listener
from buildsys.run.conversation import Asked, Row


class Teller(Listener):
    """Tells of a chat action what the engine tells of its call, and has its canary look at what comes.

    requests: all that were made, once that has ended.
    """

    def __init__(
        self,
        action: ActionId,
        emit: Callable[[Event], None],
        also: Callable[[], None],
        canary: Canary | None,
        following: Sequence[Follower],
    ) -> None:
        self._action = action
        self._emit = emit
        self._also = also
        self._canary = canary
        self._following = following
        self._n_seen = self._n_new = 0
        self.requests: tuple[Asked, ...] = ()

    def before_first(self) -> None:
        if self._canary:
            self._canary.begin(self._action)

    def after_first(self, rows: Sequence[Row]) -> None:
        if self._canary and self._canary.begin(self._action):
            self._canary.judge(self._action, self._following, rows)

    def before_rest(self, rows: Callable[[int], Sequence[Row]]) -> None:
        if self._canary:
            self._canary.resume(self._action, self._following, rows(MOST_ROWS))

    def progress(self, counts: RequestCounts) -> None:
        self._emit(RequestsAnswered(self._action, counts))
        self._also()
        self._n_new += counts.sent - self._n_seen
        self._n_seen = counts.sent

    def look(self, rows: Callable[[int], Sequence[Row]]) -> None:
        n_new, self._n_new = self._n_new, 0
        if self._canary and self._canary.note(n_new):
            self._canary.look_again(self._action, self._following, rows(MOST_ROWS))
            if self._canary.brake.error:
                self._emit(
                    Notice("warning", f"{self._action.rule}: {self._canary.brake.error.problem}: no more is sent")
                )

    def left_out(self, url: str, words: str) -> None:
        self._emit(Notice("warning", f"{url} is asked no more: {words}"))

    def ended(self, requests: tuple[Asked, ...]) -> None:
        self.requests = requests
