"""Sizes as people write them, "64MB", and back. Knows nothing of what is measured."""

from __future__ import annotations

import re
from typing import Final

_SIZE: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<prefix>[kKMGT]?)(?P<binary>i?)B")
_PREFIXES: Final = ("", "k", "M", "G", "T")


def bytes_of(text: str) -> int:
    """ "1.5GB" -> 1500000000, "64 MiB" -> 67108864. Raises ValueError for what is no size."""
    match = _SIZE.fullmatch(text)
    if match is None or (match["binary"] and not match["prefix"]):
        raise ValueError(f"{text!r} is no size")
    prefix = match["prefix"].replace("K", "k")
    unit: int = (1024 if match["binary"] else 1000) ** _PREFIXES.index(prefix)
    return round(float(match["number"]) * unit)


def size_text(n_bytes: int) -> str:
    """56123456 -> "56 MB": two or three digits that count, and the unit."""
    value = float(n_bytes)
    for prefix in _PREFIXES:
        if value < 999.5 or prefix == _PREFIXES[-1]:
            break
        value /= 1000
    return f"{value:.1f} {prefix}B" if value < 9.95 and prefix else f"{value:.0f} {prefix}B"
