"""The distributions that are installed for one interpreter: which of them an imported name is of, and what they need.

Knows nothing of rules and slices, and reads nothing: it is made of what `inventory` told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from buildsys.state.requirements import Requirement, canonical, required

ABSENT: Final = "not installed"
ALL: Final = "*"
"""Stands for every name, where code asks for all that is installed."""
_UNSAID: Final = "without a version"


class Distribution(NamedTuple):
    """One distribution.

    tops: the top-level names that it provides. spaces: those of them that are only namespaces, which others may share.
    requires: lines of requirements. places: of an editable install, see `inventory`. editable: it is one, but may have
    no place, where the tool that installed it is not known.
    """

    name: str
    version: str
    tops: tuple[str, ...]
    spaces: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    editable: bool = False


class Distributions:
    """What is installed, those first that hide others of their name. environment: the variables of markers."""

    def __init__(self, found: Iterable[Distribution], environment: Mapping[str, str]) -> None:
        self.all = tuple(found)
        self._environment = environment
        self._requirements: dict[tuple[str, frozenset[str]], list[Requirement]] = {}

    @classmethod
    def told(cls, told: Mapping[str, Any]) -> Distributions:
        """As `inventory` tells them. Raises KeyError and TypeError where that is not what it tells."""
        return cls((_distribution(one) for one in told["distributions"]), told["environment"])

    def before(self, others: Iterable[Mapping[str, Any]]) -> Distributions:
        """With others, as `inventory` tells them, that come later on the path."""
        return Distributions((*self.all, *map(_distribution, others)), self._environment)

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """Distribution -> version for top-level names; a name that nothing provides is `{name: ABSENT}`.

        A name may be of several distributions, as that of a namespace is. An editable install is none: it is code.
        """
        found: dict[str, str] = {}
        for name in sorted(names):
            if name == ALL:
                found.update(_version(one) for one in self.all if not one.places)
            elif name not in self._by_top:
                found[name] = ABSENT
            found.update(_version(one) for one in self._by_top.get(name, ()) if not one.places)
        return found

    def closure(self, names: Iterable[str]) -> dict[str, str]:
        """As `versions`, with all that those distributions require here, and what that requires.

        An extra counts where a requirement asks for it: which ones were asked for by hand, no metadata tells.
        """
        found = self.versions(names)
        for name in self._needed(found):
            one = self._by_name.get(name)
            if one is None:
                found[name] = ABSENT
            elif not one.places:
                found.update([_version(one)])
        return found

    def behind(self, name: str) -> list[Distribution]:
        """The editable installs that the distributions of a top-level name require: they may run their code."""
        roots = [one.name for one in self._by_top.get(name, ()) if not one.places]
        needed = (self._by_name.get(one) for one in self._needed(roots))
        return [one for one in needed if one and one.places]

    def provides(self, name: str) -> bool:
        """A distribution that is no editable install has this top-level name for itself: it is no namespace."""
        return any(not one.places and name not in one.spaces for one in self._by_top.get(name, ()))

    def named(self, name: str) -> dict[str, str]:
        """Distribution -> version, for the name of a distribution or one that it provides; empty for any other."""
        one = self._by_name.get(canonical(name))
        found = [one] if one else self._by_top.get(name, ())
        return dict(_version(one) for one in found)

    @property
    def names(self) -> list[str]:
        """All names by which `named` finds some."""
        return sorted({*(one.name for one in self.all), *self._by_top})

    def _needed(self, roots: Iterable[str]) -> Collection[str]:
        """The distributions that these require, each with the extras that are asked of it; by canonical names."""
        extras: dict[str, frozenset[str]] = {}
        waiting = [(canonical(name), frozenset[str]()) for name in roots]
        needed: dict[str, None] = {}
        while waiting:
            name, asked = waiting.pop()
            if name in extras and asked <= extras[name]:
                continue
            extras[name] = asked | extras.get(name, frozenset())
            for wanted in self._required(name, extras[name]):
                needed[wanted.name] = None
                waiting.append(wanted)
        return needed

    def _required(self, name: str, extras: frozenset[str]) -> list[Requirement]:
        if (name, extras) not in self._requirements:
            one = self._by_name.get(name)
            found = (required(line, self._environment, extras) for line in (one.requires if one else ()))
            self._requirements[name, extras] = [wanted for wanted in found if wanted]
        return self._requirements[name, extras]

    @cached_property
    def _by_name(self) -> dict[str, Distribution]:
        return {canonical(one.name): one for one in reversed(self.all)}

    @cached_property
    def _by_top(self) -> dict[str, list[Distribution]]:
        found: dict[str, list[Distribution]] = {}
        for one in self.all:
            for top in one.tops:
                found.setdefault(top, []).append(one)
        return found


def _version(one: Distribution) -> tuple[str, str]:
    return one.name, one.version or _UNSAID


def _distribution(told: Mapping[str, Any]) -> Distribution:
    return Distribution(
        told["name"],
        told["version"],
        tuple(told["tops"]),
        tuple(told["spaces"]),
        tuple(told["requires"]),
        tuple((module, path) for module, path in told["places"]),
        told["editable"],
    )
