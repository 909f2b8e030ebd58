"""What keeps the calls of one rule from sending more: an error that one of them found, for all.

Knows nothing of requests in flight. For several threads at once: what it holds is set whole.
"""

from __future__ import annotations

import threading

from buildsys.errors import FAILED, BuildError


class Brake:
    """is_pulled: no more is to be sent. error: why, once that is known."""

    def __init__(self) -> None:
        self.is_pulled = False
        self.error: BuildError | None = None
        self._is_explained = threading.Event()
        self._speakers: dict[str, set[str]] = {}

    def stop(self) -> None:
        """Keep all from being sent that is not. What is in flight comes in: it is paid for. `pull` has to follow."""
        self.is_pulled = True

    def pull(self, error: BuildError) -> None:
        """The same, and why. The first reason counts."""
        self.is_pulled = True
        self.error = self.error or error
        self._is_explained.set()

    def check(self) -> None:
        """Raises the error where it is pulled, when that is known."""
        if self.is_pulled:
            self._is_explained.wait()
            assert self.error
            raise self.error

    def recall(self, asked: str, said: str) -> None:
        """An earlier reply: what model was asked for, and which one its server said that it is."""
        if said:
            self._speakers.setdefault(asked, set()).add(said)

    def hear(self, asked: str, said: str, url: str) -> None:
        """A new reply. Where a model speaks that never did so far, the brake is pulled."""
        known = self._speakers.get(asked)
        if said and known and said not in known:
            self.pull(_another(asked, ", ".join(sorted(known)), said, url))
        self.recall(asked, said)


def _another(asked: str, before: str, said: str, url: str) -> BuildError:
    return BuildError(
        "another model answers than before",
        facts=[("server", url), ("asked for", asked), ("so far", before), ("now", said)],
        hint=(
            "give the rule another `identity`, and all is asked anew; build again, and the rest is asked as it is. The "
            "replies so far are kept"
        ),
        exit_code=FAILED,
    )
