"""What buildsys is asked for: targets, and how the configs are varied for them.

Knows nothing of rules, and imports nothing: a command that finds all up to date needs no more of the engine than this.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_PROFILE: Final = "default"


class Variation(NamedTuple):
    """How one request varies the configs: a profile, and keys that are set for it alone.

    overrides: dotted key and value as it was typed (TOML, else text), applied in order.
    """

    profile: str = DEFAULT_PROFILE
    overrides: tuple[tuple[str, str], ...] = ()


AS_WRITTEN: Final = Variation()
"""The configs as they are."""


class Request(NamedTuple):
    """All that decides what "up to date" is about. targets: none for all rules that are built by default."""

    targets: tuple[str, ...] = ()
    variation: Variation = AS_WRITTEN
