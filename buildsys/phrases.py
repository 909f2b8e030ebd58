"""Numbers as people read them in one line of a terminal. Knows nothing of what is counted."""

from __future__ import annotations

from collections.abc import Iterable


def duration(seconds: float) -> str:
    """`0.2 s`, `58 s`, `3 min 05 s`, `5 h 02 min`: two units at most, never more exact than is of use."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def counted(n: int, noun: str) -> str:
    """`1 action`, `1,024 actions`, `2 replies`."""
    if n == 1:
        return f"{n:,} {noun}"
    return f"{n:,} {noun.removesuffix('y')}ies" if noun.endswith(("ply", "try")) else f"{n:,} {noun}s"


def short(n: float) -> str:
    """`312`, `12,345`, `123k`, `1.2M`: what is cut off is never rounded up, so that 1.9M of 2M are not 2M of 2M."""
    if n < 100_000:
        return f"{int(n):,}"
    for unit, of_unit in ((1e9, "B"), (1e6, "M")):
        if n >= unit:
            whole = n / unit
            return f"{int(whole) if whole >= 10 else int(whole * 10) / 10:g}{of_unit}"
    return f"{int(n / 1e3)}k"


def percentage(n: float, of: float) -> str:
    """`31 %`, `3.1 %`, `0.04 %`: two digits that count."""
    percent = 100 * n / of
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


def rate(per_second: float, noun: str = "") -> str:
    """`33/s`, `0.4/s`, `1,820 tokens/s`."""
    return f"{per_second:,.{0 if per_second >= 9.95 else 1}f} {noun}".rstrip() + "/s"


def up_to_date(n_actions: int, seconds: float) -> str:
    """What a build says that had nothing to do: `44 actions up to date (0.1 s)`."""
    return f"{counted(n_actions, 'action')} up to date ({duration(seconds)})"


def money(amount: float, currency: str) -> str:
    """`1,204 USD`, `3.20 USD`, `0.0012 USD`, `0 USD`: three digits that count, whatever the amount."""
    if abs(amount) >= 100:
        text = f"{amount:,.0f}"
    elif abs(amount) >= 0.995:
        text = f"{amount:.2f}"
    else:
        text = f"{float(f'{amount:.2g}'):.10f}".rstrip("0").rstrip(".")
    return f"{text} {currency}".rstrip()


def listed(items: Iterable[str], most: int = 8) -> str:
    """`a, b, c`, and where there are more than `most`: `a, b and 40 more`."""
    found = list(items)
    if len(found) <= most:
        return ", ".join(found)
    return f"{', '.join(found[: most - 1])} and {len(found) - most + 1} more"
