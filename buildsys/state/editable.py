"""Code that is installed as editable for one interpreter: where it lies, and what it is called in a slice.

Knows nothing of rules. Such code counts as the project's own, wherever it lies. What lies in the project has its path
there; of all else the path is `<distribution>/module/...`, as it is imported, so that no key tells where it lies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from buildsys.state.distributions import Distribution, Distributions
from buildsys.state.looks import Looks, Names
from buildsys.state.requirements import canonical

_OF_A_PROJECT: Final = frozenset(("pyproject.toml", "setup.py", "setup.cfg"))
_COMPILED: Final = re.compile(r"(\w+)(\.[\w-]+)?\.(so|pyd)")


def is_outside(path: str) -> bool:
    """Whether a path of a slice is of code outside the project."""
    return path.startswith("<")


class Home(NamedTuple):
    """Where modules of an editable install lie.

    module: its name, dotted, "" for whatever is in the folder. stem: how its path is written in a slice. path: where it
    is, absolute. Stem and path are those of a folder, or of a module without its suffix.
    """

    module: str
    stem: str
    path: str

    @property
    def is_outside(self) -> bool:
        """It is not in the project."""
        return is_outside(self.stem)

    def holds(self, path: str) -> bool:
        """Whether a path of a slice, a file's or a folder's, is of this home."""
        if not self.stem:  # the project's own folder
            return not is_outside(path)
        return path == self.stem or path.startswith((f"{self.stem}/", f"{self.stem}."))

    def located(self, path: str) -> str:
        """Where a path of it is."""
        return self.path + path[len(self.stem) :]

    @property
    def place(self) -> str:
        """Where it is, relative to the project where it lies there."""
        return self.path if self.is_outside else self.stem

    def below(self, name: str) -> Home:
        """The home of one top-level name that is found in this folder."""
        return Home(name, f"{self.stem}/{name}" if self.stem else name, f"{self.path}/{name}")


class Editables:
    """The editable installs of one interpreter. stdlib: the names that Python finds before them."""

    def __init__(self, looks: Looks, distributions: Distributions, stdlib: Collection[str]) -> None:
        self._looks = looks
        self._distributions = distributions
        self._stdlib = stdlib
        self._roots = (os.path.normpath(looks.root), os.path.realpath(looks.root))
        self._of = {one.name: self._homes(one) for one in distributions.all if one.places}
        self._stems: dict[str, tuple[str, ...]] = {}

    def elsewhere(self, name: str) -> Sequence[str]:
        """See `resolve.Tree`. A name that a distribution has for itself is found before editable ones."""
        if name not in self._stems:
            hidden = not self._of or name in self._stdlib or self._distributions.provides(name)
            self._stems[name] = () if hidden else tuple(dict.fromkeys(self._found(name)))
        return self._stems[name]

    def behind(self, name: str) -> Sequence[str]:
        """See `resolve.Tree`."""
        if not self._of or name in self._stdlib:
            return ()
        return tuple(stem for one in self._distributions.behind(name) for stem in self._all(one))

    def locate(self, path: str) -> str:
        """Where a path of a slice is: absolute for code outside the project, else relative to it, as it is given."""
        home = next((home for home in self._every if home.is_outside and home.holds(path)), None)
        return home.located(path) if home else path

    def parts(self, folder: str) -> list[tuple[str, str]]:
        """What a folder of a slice outside the project consists of: (path in a slice, where that is)."""
        found = []
        for home in self._every:
            if home.is_outside and home.holds(folder):
                found.append((folder, home.located(folder)))
            elif home.stem.startswith(f"{folder}/"):
                found.append((home.stem, home.path))
        return found

    def homes_of(self, paths: Iterable[str]) -> tuple[Home, ...]:
        """The homes of these files of a slice, each with the name of a module."""
        found: dict[Home, None] = {}
        for path in paths:
            for home in self._every:
                if home.holds(path):
                    found.update(dict.fromkeys(self._tops(home, path)))
        return tuple(found)

    def compiled(self, paths: Iterable[str], names: Iterable[str]) -> dict[str, str]:
        """The compiled modules in the packages that these files of a slice are part of, and of these top-level names.

        Path in a slice -> where it is: their bytes are code that no slice holds.
        """
        stems = {stem for name in names for stem in self.elsewhere(name)}
        stems.update(home.stem for home in self.homes_of(paths))
        return {path: where for stem in sorted(stems) for path, where in self._compiled(stem)}

    @property
    def _every(self) -> Iterator[Home]:
        return (home for homes in self._of.values() for home in homes)

    def _homes(self, one: Distribution) -> list[Home]:
        found: list[Home] = []
        n_folders = 0
        for module, path in one.places:
            n_folders += not module
            number = f" {n_folders}" if not module and n_folders > 1 else ""
            stem = "/".join([f"<{canonical(one.name)}{number}>", *filter(None, module.split("."))])
            inside = self._inside(os.path.normpath(path))
            # One that lies there under another name than that of its module is called by that of its module.
            if inside is not None and module in ("", inside.rpartition("/")[2]):
                stem = inside
            found.append(Home(module, stem, path))
        return sorted(found, key=lambda home: -len(home.stem))

    def _inside(self, path: str) -> str | None:
        """The path in the project, "" for its folder; None where it is elsewhere."""
        for root in self._roots:
            if path == root or path.startswith(f"{root}/"):
                return path[len(root) + 1 :]
        return None

    def _found(self, name: str) -> Iterator[str]:
        for home in self._every:
            if not home.module and self._has(home.place, name):
                yield home.below(name).stem
            elif home.module == name:
                yield home.stem
            elif home.module.startswith(f"{name}."):
                yield f"{home.stem.partition('/')[0]}/{name}"

    def _all(self, one: Distribution) -> Iterator[str]:
        """The stems of all top-level modules and packages of an editable install."""
        for home in self._of[one.name]:
            if home.module:
                yield home.stem
                continue
            listed = self._names(home.place)
            names = {name.removesuffix(".py") for name in listed if name.endswith(".py")}
            names |= {name for name, mark in listed.items() if mark and self._is_package(home.below(name))}
            own = {name for name in names if canonical(name) == canonical(one.name)}
            # Where the folder is that of a project, its tests and the like lie beside the package.
            is_project = not _OF_A_PROJECT.isdisjoint(listed)
            yield from (home.below(name).stem for name in sorted(own if own and is_project else names))

    def _has(self, folder: str, name: str) -> bool:
        names = self._names(folder)
        return bool(names.get(name)) or f"{name}.py" in names or any(_is_compiled(file, name) for file in names)

    def _tops(self, home: Home, path: str) -> Iterator[Home]:
        """The home of the top-level name that a path has in a home; none where it has none, as a script has not."""
        if home.module:
            yield home
            return
        top = home.below(path[len(home.stem) :].strip("/").partition("/")[0].removesuffix(".py"))
        # All of a project lies in its folder: of that, only packages are meant.
        if home.stem or self._is_package(top):
            yield top

    def _is_package(self, home: Home) -> bool:
        return self._looks.is_file(f"{home.place}/__init__.py")

    def _compiled(self, stem: str) -> Iterator[tuple[str, str]]:
        path = self.locate(stem)
        for file in sorted(self._names(os.path.dirname(path))):
            if _is_compiled(file, os.path.basename(path)):
                yield f"{os.path.dirname(stem)}/{file}".lstrip("/"), os.path.join(os.path.dirname(path), file)
        waiting = [(stem, path)]
        while waiting:
            stem, path = waiting.pop()
            for file, mark in sorted(self._names(path).items()):
                if mark == "/" and file != "__pycache__":
                    waiting.append((f"{stem}/{file}", f"{path}/{file}"))
                elif _is_compiled(file):
                    yield f"{stem}/{file}", f"{path}/{file}"

    def _names(self, folder: str) -> Names:
        try:
            return self._looks.names(folder)
        except OSError:
            return {}


def _is_compiled(file: str, name: str = "") -> bool:
    found = _COMPILED.fullmatch(file)
    return bool(found and found[1] == (name or found[1]))
