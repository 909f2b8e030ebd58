"""Slices of scripts, made anew only where something has changed that they were made of.

Joins the pure slices with a cache on disk. A slice is made of what its tree answers: texts, names of files, and that
there is nothing; so it is kept beside these answers, and holds while the tree gives them again. Knows no rule.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from buildsys.code.parse import Module, parse
from buildsys.code.resolve import Parse, Tree
from buildsys.code.slice import Reached, Slice, slice_of, used_of
from buildsys.digest import Digest, digest_bytes, digest_of
from buildsys.makers import maker
from buildsys.model import Trace
from buildsys.state.disk import write_whole

_ABSENT: Final = ""


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A slice without its texts. asked: question, about what, and the digest of the answer."""

    maker: Digest
    asked: tuple[tuple[str, str, str], ...]
    fingerprint: Digest
    sources: tuple[str, ...]
    symbols: tuple[Reached, ...]
    external: tuple[str, ...]
    preload: tuple[str, ...]
    variables: tuple[str, ...]


class Slicer:
    """Makes slices over one tree, which gives the same answers as long as this lasts.

    cache: a folder for what was made before; nothing is kept where it is None. within: tells trees that share it apart.
    """

    def __init__(
        self,
        tree: Tree,
        cache: Path | None,
        parse: Parse,
        stdlib: Collection[str] = sys.stdlib_module_names,
        within: str = "",
    ) -> None:
        self._tree = tree
        self._cache = cache / "slices" if cache else None
        self._parse = parse
        self._stdlib = stdlib
        self._within = within
        self._answers: dict[tuple[str, str], str] = {}

    def slice(self, script: str, function: str, folder: str | None = None) -> Slice:
        """As `slice_of`."""
        which = digest_of(self._within, script, function, folder, sorted(self._stdlib))
        return self._whole(which, lambda tree: slice_of(script, function, tree, self._stdlib, folder, self._parse))

    def used_slice(self, script: str, function: str, trace: Trace, folder: str | None = None) -> Slice:
        """As `used_of`."""
        which = digest_of("used", self._within, script, function, folder, trace.digest, sorted(self._stdlib))
        return self._whole(
            which, lambda tree: used_of(script, function, tree, trace, self._stdlib, folder, self._parse)
        )

    def _whole(self, which: str, make: Callable[[Tree], Slice]) -> Slice:
        if kept := self._kept(which):
            texts = {path: self._tree.read(path) or "" for path in kept.sources}
            names = frozenset(kept.external), frozenset(kept.preload), frozenset(kept.variables)
            return Slice(kept.fingerprint, texts, kept.symbols, *names)
        asking = _Asking(self._tree)
        made = make(asking)
        self._keep(which, made, asking)
        return made

    def _kept(self, which: str) -> Kept | None:
        """What was made before, if all that it was made of is as it was."""
        if self._cache is None:
            return None
        try:
            kept = msgspec.msgpack.decode((self._cache / which).read_bytes(), type=Kept)
        except (OSError, msgspec.DecodeError):
            return None  # none yet, or what a kill cut short, or an earlier form: it is made anew
        if kept.maker != _maker() or any(self._answer(what, about) != said for what, about, said in kept.asked):
            return None
        return kept

    def _answer(self, question: str, about: str) -> str:
        """As `answer`; each is given once, since slices of one tree have asked for much of the same."""
        if (question, about) not in self._answers:
            self._answers[question, about] = answer(self._tree, question, about)
        return self._answers[question, about]

    def _keep(self, which: str, made: Slice, asking: _Asking) -> None:
        if self._cache is None or not self._cache.parent.parent.is_dir():
            return  # A project that was never built is left as it is.
        kept = Kept(
            _maker(),
            tuple(asking.asked),
            made.fingerprint,
            tuple(made.sources),
            made.symbols,
            tuple(sorted(made.external)),
            tuple(sorted(made.preload)),
            tuple(sorted(made.variables)),
        )
        with suppress(OSError):  # It only saves time.
            self._cache.mkdir(parents=True, exist_ok=True)
            write_whole(self._cache / which, msgspec.msgpack.encode(kept))


class Parsed:
    """Parses texts, each once as long as its folder lasts. Raises as `parse` does."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "modules"
        self._known: dict[str, Module] = {}

    def __call__(self, path: str, text: str) -> Module:
        if text not in self._known:
            self._known[text] = self._loaded(path, text)
        return self._known[text]

    def _loaded(self, path: str, text: str) -> Module:
        file = self._folder / digest_of(_maker(), text)
        try:
            return msgspec.msgpack.decode(file.read_bytes(), type=Module)
        except (OSError, msgspec.DecodeError):
            module = parse(path, text)
        with suppress(OSError):
            if self._folder.parent.parent.is_dir():
                self._folder.mkdir(parents=True, exist_ok=True)
                write_whole(file, msgspec.msgpack.encode(module))
        return module


class _Asking:
    """A tree that notes what it is asked."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._noted: dict[tuple[str, str], None] = {}

    @property
    def asked(self) -> Iterator[tuple[str, str, str]]:
        for question, about in self._noted:
            yield question, about, answer(self._tree, question, about)

    def read(self, path: str) -> str | None:
        self._noted["read", path] = None
        return self._tree.read(path)

    def sources(self, folder: str) -> Sequence[str]:
        self._noted["sources", folder] = None
        return self._tree.sources(folder)

    def elsewhere(self, name: str) -> Sequence[str]:
        self._noted["elsewhere", name] = None
        return self._tree.elsewhere(name)

    def behind(self, name: str) -> Sequence[str]:
        self._noted["behind", name] = None
        return self._tree.behind(name)


def answer(tree: Tree, question: str, about: str) -> str:
    """What a tree answers, as a digest. Raises as it does."""
    if question == "read":
        text = tree.read(about)
        return _ABSENT if text is None else digest_bytes(text.encode("utf-8", "surrogatepass"))
    found: Sequence[str] = getattr(tree, question)(about)
    return digest_of(list(found)) if found else _ABSENT


def _maker() -> Digest:
    """What makes slices, and what is kept of them."""
    return maker("code", "digest.py", "slicing.py")
