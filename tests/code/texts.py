"""A project's Python files as a dict, in place of a disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from buildsys.code.reach import Reach, reach
from buildsys.code.resolve import Resolver

FOLDER = "scripts"
SCRIPT = f"{FOLDER}/one.py"


class Texts(dict[str, str]):
    """The files by path; a `Tree`. `<name>/` are the folders of editable installs; needs: who runs which of them."""

    needs: Mapping[str, Sequence[str]] = {}

    def read(self, path: str) -> str | None:
        return self.get(path)

    def sources(self, folder: str) -> Sequence[str]:
        return sorted(path for path in self if path.startswith(f"{folder}/" if folder else ""))

    def elsewhere(self, name: str) -> Sequence[str]:
        homes = {path.partition("/")[0] for path in self if path.startswith("<")}
        stems = [f"{home}/{name}" for home in sorted(homes)]
        return [stem for stem in stems if f"{stem}.py" in self or self.sources(stem)]

    def behind(self, name: str) -> Sequence[str]:
        return self.needs.get(name, ())


def texts(script: str, beside: str | Mapping[str, str] = "", *, folder: str = FOLDER) -> Texts:
    """The script `one.py` and the files beside it: names of empty ones, or their texts by name."""
    files = dict.fromkeys(beside.split(), "") if isinstance(beside, str) else beside
    prefix = f"{folder}/" if folder else ""
    return Texts({f"{prefix}{name}": text for name, text in {"one.py": script, **files}.items()})


def reach_of(script: str, tree: Texts) -> Reach | None:
    """What a script can import, where its folder is the first place to look."""
    return reach(script, Resolver(tree, script.rpartition("/")[0]))
