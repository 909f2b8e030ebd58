"""How the text of a symbol differs from what it was: the lines of a unified diff.

Knows nothing of digests: two texts may differ where what counts of them is equal, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

_AROUND: Final = 3


def unified(path: str, old: Sequence[str], new: Sequence[tuple[int, str]]) -> list[str]:
    """The lines, each after a blank, a `-` or a `+`; before each hunk the place of its first change, `@@ path:line @@`.

    new: with the numbers that they have in the file; without any there is no line to name. Empty where the texts are
    equal.
    """
    texts = [text for _, text in new]
    found = []
    for hunk in SequenceMatcher(None, old, texts, autojunk=False).get_grouped_opcodes(_AROUND):
        first = next(start for kind, _, _, start, _ in hunk if kind != "equal")
        found.append(f"@@ {path}:{_number(new, first)} @@" if new else f"@@ {path} @@")
        for kind, a, b, c, d in hunk:
            if kind == "equal":
                found += [f" {text}" for text in texts[c:d]]
            else:
                found += [*(f"-{text}" for text in old[a:b]), *(f"+{text}" for text in texts[c:d])]
    return found


def _number(lines: Sequence[tuple[int, str]], n: int) -> int:
    """The number of a line; of one after the last, that which it would have."""
    return lines[n][0] if n < len(lines) else lines[-1][0] + 1
