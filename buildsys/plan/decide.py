"""What is to be done for an action, and why: values in, a decision out.

Knows no file and no database: whoever asks says what was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from buildsys.model import Decision, Part, Result

NARROWED: Final = "what changed in its code did not run"
REJECTED: Final = "replies were rejected"
Where = Literal["workspace", "store", "dropped", "nowhere"]
"""Where the outputs of a result are: all in place, else those that are not in the store, else dropped as ephemeral ones
may be, else some are lost."""


def decide(
    result: Result | None, where: Where, changes: Sequence[str], *, holds: bool = False, narrowed: bool = False
) -> Decision:
    """Reuse what is in place, restore what the store has, run the rest.

    result: what was made before and counts, if anything. holds: it held before this build, so its outputs were in
    place. narrowed: it counts though its key differs in code. changes: how the key differs from that of the last result
    (see `differences`).
    """
    if result is None:
        return Decision("run", reason_of(changes))
    but = f"; {NARROWED}" if narrowed else ""
    if where == "workspace":
        return Decision("reuse", f"up to date{but}")
    if where == "store" and holds:
        return Decision("restore", f"its outputs are gone or were changed{but}")
    if where == "store":
        return Decision("restore", f"made before{but}" if narrowed else "made before under the same key")
    if where == "dropped":
        return Decision("reuse", f"up to date; its outputs are dropped{but}")
    return Decision("run", "its outputs are neither in place nor in the store")


def reason_of(changes: Sequence[str]) -> str:
    """One line: "its code changed (01b.py)", "param max_tokens changed: 64 (int) → 96 (int)", "never built"."""
    if not changes:
        return "never built"
    more = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
    return changes[0] + more


@dataclass(frozen=True)
class Difference:
    """One thing that two keys hold differently. old, new: None where that one has no such thing, but never both."""

    old: Part | None
    new: Part | None

    @property
    def part(self) -> Part:
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def line(self) -> str:
        """For people: what it is, what of it changed, and where it is."""
        return _line(self.old, self.new, self.part)


def differences(old: Sequence[Part], new: Sequence[Part]) -> list[str]:
    """What differs between two keys, each as one line; the most telling first."""
    return [one.line for one in compared(old, new)]


def compared(old: Sequence[Part], new: Sequence[Part]) -> list[Difference]:
    """What differs between two keys; the most telling first."""
    before, after = _things(old), _things(new)
    changed = [one for one in dict.fromkeys([*after, *before]) if _value(before.get(one)) != _value(after.get(one))]
    changed.sort(key=lambda one: _ORDER.index(one[0]) if one[0] in _ORDER else len(_ORDER))
    return [Difference(before.get(one), after.get(one)) for one in changed]


_ORDER = ("rule", "code", "param", "input", "identity", "service", "env", "output", "version", "python", "format")


def _things(parts: Iterable[Part]) -> dict[tuple[str, str, str, int], Part]:
    """Each part by what makes it the same thing in two keys.

    A file of an input role is one by its name, which is what code sees of its path; of several with one name, in order.
    """
    found: dict[tuple[str, str, str, int], Part] = {}
    n_alike: Counter[tuple[str, str, str]] = Counter()
    for part in parts:
        thing = (part.group, part.name, part.path.rpartition("/")[2] if part.group == "input" else "")
        found[*thing, n_alike[thing]] = part
        n_alike[thing] += 1
    return found


def _value(part: Part | None) -> str | None:
    return part.value if part else None


def _line(old: Part | None, new: Part | None, part: Part) -> str:
    what = "is new" if old is None else "is gone" if new is None else "changed"
    if part.group == "code":
        place = f"{part.path}:{part.line}" if part.line else part.path
        return f"its code {what}: {part.name.partition(':')[2] or part.name}{f' ({place})' if place else ''}"
    if part.group == "input":
        return f"input {part.name} {what} ({part.path})"
    if part.group == "rule":
        return f"the rule's {part.name} {what}"
    label = {"env": "variable", "version": "version of"}.get(part.group, part.group)
    subject = label if part.name == part.group else f"{label} {part.name}"
    where = f" ({part.path})" if part.path else ""
    values = f": {old.value} → {new.value}" if old and new else f": {part.value}"
    return f"{subject} {what}{values}{where}"
