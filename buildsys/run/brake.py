"""What keeps the calls of one rule from sending more: an error that one of them found, for all.

Knows nothing of requests in flight. For several threads at once: what it holds is set whole.
"""

from __future__ import annotations

from buildsys.errors import FAILED, BuildError


class Brake:
    """error: why it was pulled, None while it is open."""

    def __init__(self) -> None:
        self.error: BuildError | None = None
        self._speakers: dict[str, set[str]] = {}

    def pull(self, error: BuildError) -> None:
        """Keep what is not sent from being sent. What is in flight comes in, since it is paid for."""
        self.error = self.error or error

    def explain(self, error: BuildError) -> None:
        """Why it was pulled, where that took a while to find out."""
        self.error = error

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
