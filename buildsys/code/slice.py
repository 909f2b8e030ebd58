"""What decides how a rule's code behaves: a fingerprint, the sources that it covers, and the parts that explain it.

The first, sound form: the normalised syntax of every first-party module in the import closure. A computed import takes
all modules of the script's folder. Knows no file system.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from buildsys.code.parse import Broken
from buildsys.code.resolve import Tree, reach
from buildsys.digest import Digest, digest_bytes, digest_of
from buildsys.errors import FAILED, BuildError, Place, nearest


@dataclass(frozen=True)
class Slice:
    """The code that an action can reach.

    fingerprint: equal means that no first-party code in reach has changed.
    sources: path -> text, what a worker runs, whatever is saved meanwhile.
    symbols: (path, symbol, digest), sorted; a symbol "*" is a whole module.
    external: top-level names imported from outside the project, the standard library left out.
    preload: what of them importing the code imports, as "module" or "module:name": no first-party code runs for it.
    """

    fingerprint: Digest
    sources: dict[str, str]
    symbols: tuple[tuple[str, str, Digest], ...]
    external: frozenset[str]
    preload: frozenset[str]


def slice_of(script: str, function: str, tree: Tree, stdlib: Collection[str] = sys.stdlib_module_names) -> Slice:
    """The slice of `script::function`; with function "" that of the script run as a program.

    stdlib: the top-level names of the standard library that it runs with.
    Raises Broken where a module in reach does not parse or does not define the function, and BuildError where the
    script is missing.
    """
    found = reach(script, tree)
    if found is None:
        raise BuildError(f"there is no script {script}", place=Place(script))
    entry = found.modules[script]
    if function and entry.defines.isdisjoint((function, "*")):  # a star import may bring any name
        raise Broken(
            f'{script} defines no "{function}"',
            place=Place(script),
            hint=nearest(function, sorted(entry.defines)),
            exit_code=FAILED,
        )
    symbols = [(path, "*", module.digest) for path, module in found.modules.items()]
    symbols += [(path, "*", digest_bytes(found.texts[path].encode())) for path in found.broken]
    symbols.sort()
    return Slice(
        fingerprint=digest_of("modules", script.rpartition("/")[2], function, _by_folder(script, symbols)),
        sources=found.texts,
        symbols=tuple(symbols),
        external=found.external.difference(stdlib),
        preload=frozenset(name for name in found.preload if _root(name) not in stdlib),
    )


def merge(slices: Sequence[Slice]) -> Slice:
    """The slice of several scripts together."""
    if len(slices) == 1:
        return slices[0]
    return Slice(
        fingerprint=digest_of("merged", [one.fingerprint for one in slices]),
        sources={path: text for one in slices for path, text in one.sources.items()},
        symbols=tuple(sorted({symbol for one in slices for symbol in one.symbols})),
        external=frozenset().union(*(one.external for one in slices)),
        preload=frozenset().union(*(one.preload for one in slices)),
    )


def _root(name: str) -> str:
    return name.partition(":")[0].partition(".")[0]


def _by_folder(script: str, symbols: list[tuple[str, str, Digest]]) -> list[tuple[str, str, Digest]]:
    """Paths relative to the script's folder, so that moving the folder changes nothing."""
    folder = script.rpartition("/")[0]
    return [(path.removeprefix(f"{folder}/"), symbol, digest) for path, symbol, digest in symbols]
