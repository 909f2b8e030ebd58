"""Who may start now, given what is occupied: actions get what they take in the order in which they ask for it.

Knows no machine and no clock: somebody says what there is, and when what was taken is free again. First come, first
served for each resource: who waits for one holds back those that ask for any of his later, so that nobody who takes
much waits for ever for those who take little. Who takes nothing waits for nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from buildsys.model import GPU

Who = TypeVar("Who")


@dataclass(frozen=True)
class Turn(Generic[Who]):
    """One who may start. takes: what he occupies from then on. devices: his GPUs among it. seated: he has a seat."""

    who: Who
    takes: Mapping[str, int]
    devices: tuple[str, ...]
    seated: bool


class Turns(Generic[Who]):
    """What is free, and who waits for it."""

    def __init__(self, sizes: Mapping[str, int], devices: Sequence[str], seats: int) -> None:
        """sizes: how much there is of each resource but GPUs. devices: the GPUs, which are told apart.

        seats: how many of those who take something can work at a time, so that none is given what he can't use yet.
        """
        self._seats = seats
        self._free = {**sizes, GPU: len(devices)}
        self._devices = list(devices)
        self._n_asked = 0
        # Those who take the same resources, of whatever amounts, wait in one line; with the number of each.
        self._lines: dict[frozenset[str], deque[tuple[int, Turn[Who]]]] = {}

    def ask(self, who: Who, takes: Mapping[str, int], *, seated: bool = True) -> None:
        """takes: no more than there is, or he waits for ever. seated: he needs a seat, if he takes anything."""
        taken = {name: amount for name, amount in takes.items() if amount}
        self._n_asked += 1
        asked = Turn(who, taken, (), seated and bool(taken))
        self._lines.setdefault(frozenset(taken), deque()).append((self._n_asked, asked))

    def next(self) -> list[Turn[Who]]:
        """Those who may start, in the order in which they asked; what they take is occupied from now on."""
        turns = []
        waited_for: set[str] = set()
        lines = dict(self._lines)
        while lines:
            names, line = min(lines.items(), key=lambda item: item[1][0][0])
            _, asked = line[0]
            if asked.seated and not self._seats:
                del lines[names]
            elif not waited_for.isdisjoint(names) or any(self._free[name] < n for name, n in asked.takes.items()):
                waited_for |= names
                del lines[names]
            else:
                line.popleft()
                turns.append(self._taken(asked))
                if not line:
                    del self._lines[names], lines[names]
        return turns

    def give_back(self, turn: Turn[Who]) -> None:
        """What he took is free."""
        self._occupy(turn, -1)
        self._devices += turn.devices

    def _taken(self, asked: Turn[Who]) -> Turn[Who]:
        self._occupy(asked, 1)
        # The last ones that came back: where the same is done again, they may be warm for it.
        devices = tuple(self._devices.pop() for _ in range(asked.takes.get(GPU, 0)))
        return replace(asked, devices=devices)

    def _occupy(self, turn: Turn[Who], sign: int) -> None:
        self._seats -= sign * turn.seated
        for name, amount in turn.takes.items():
            self._free[name] -= sign * amount
