"""What is wrong with single source texts, each looked at once: this build's, and what earlier ones found.

Joins the pure findings in a text with the programs that are asked about all texts together, and keeps the answers by
content in a file. Knows nothing of rules, nor which text is whose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from buildsys.code.findings import Fault, Findings, Suspect, read, refined, suspects
from buildsys.code.outline import Imported, Outline
from buildsys.digest import Digest, digest_of
from buildsys.makers import maker
from buildsys.run.diagnose import ask_ruff, compile_elsewhere, ruff, ruff_stamp
from buildsys.state.disk import write_whole

_FORMAT: Final = 1
_MAKERS: Final = ("code", "digest.py", "proofreader.py", "run/diagnose.py", "run/compiles.py")
_MOST_KEPT: Final = 4000
_PACKAGE: Final = "__init__.py"


@dataclass
class _Kept:
    """What the file holds, newest last. findings: by content; elsewhere: faults by content and interpreter."""

    findings: dict[str, Findings] = field(default_factory=dict)
    elsewhere: dict[str, Fault | None] = field(default_factory=dict)


class Proofreader:
    """Reads texts. Those that a linter is to be asked about are gathered until somebody wants its answer.

    trouble: why no linter could be asked, for people; empty where it could, or need not be.
    """

    def __init__(self, cache: Path) -> None:
        """cache: the file that answers are kept in; ignored where it is of another Python, linter or buildsys."""
        self.trouble = ""
        self._cache = cache
        self._stamp: list[object] = []
        self._kept: _Kept | None = None
        self._waiting: dict[str, tuple[str, str]] = {}
        self._new: set[str] = set()

    def read(self, path: str, text: str) -> Findings:
        """The text by itself; its suspects are there once `ask` was called."""
        kept, key = self._load(), _key(path, text)
        found = kept.findings.pop(key, None)
        if found is None:
            found = read(text)
            self._new.add(key)
        kept.findings[key] = found
        if found.suspects is None:
            self._waiting[key] = path.rpartition("/")[2], text
        return found

    def is_new(self, path: str, text: str) -> bool:
        """Nobody has seen what is wrong with it: it was read for the first time."""
        return _key(path, text) in self._new

    def ask(self) -> None:
        """Have the linter look at all texts that it has not seen: one process, none where there is nothing new."""
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        answers = ask_ruff(list(waiting.values())) if ruff() else None
        if answers is None:
            what = "can't be run" if ruff() else "is not installed"
            self.trouble = f"ruff {what}: names in scripts are not looked at"
            return
        findings = self._load().findings
        for (key, (_, text)), said in zip(waiting.items(), answers, strict=True):
            fault = findings[key].fault
            findings[key] = replace(
                findings[key], fault=fault and refined(fault, said), suspects=() if fault else suspects(text, said)
            )

    def elsewhere(
        self, python: str, version: str, env: Mapping[str, str], texts: Sequence[str]
    ) -> list[Fault | None] | None:
        """The faults that another interpreter finds, one a text; None where it gives no answer.

        One process, none where all were seen. version: its minor version, by which answers are kept.
        """
        kept = self._load().elsewhere
        keys = [f"{version} {digest_of(text)}" for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in kept}
        if new:
            found = compile_elsewhere(python, env, list(new.values()))
            if found is None:
                return None
            kept.update(zip(new, found, strict=True))
            self._new.update(new)
        for key in keys:
            kept[key] = kept.pop(key)
        return [kept[key] for key in keys]

    def keep(self) -> None:
        """Write what is new to the file, for the next build."""
        if not self._new or self._kept is None:
            return
        complete = {key: one for key, one in self._kept.findings.items() if one.suspects is not None}
        record = {
            "stamp": self._stamp,
            "findings": {key: _packed(one) for key, one in list(complete.items())[-_MOST_KEPT:]},
            "elsewhere": dict(list(self._kept.elsewhere.items())[-_MOST_KEPT:]),
        }
        write_whole(self._cache, json.dumps(record).encode())

    def _load(self) -> _Kept:
        if self._kept is None:
            self._stamp = [_FORMAT, maker(*_MAKERS), ruff_stamp()]
            self._kept = _Kept()
            try:
                record = json.loads(self._cache.read_bytes())
                if record["stamp"] == self._stamp:
                    self._kept = _Kept(
                        {key: _unpacked(*one) for key, one in record["findings"].items()},
                        {key: one and Fault(*one) for key, one in record["elsewhere"].items()},
                    )
            except (OSError, ValueError, KeyError, TypeError):
                pass  # nothing yet, or what a kill cut short
        return self._kept


def _key(path: str, text: str) -> Digest:
    """By content, and by whether the text is a package's: other names are there then."""
    return digest_of(path.endswith(_PACKAGE), text)


def _packed(one: Findings) -> list[Any]:
    outline = one.outline
    if outline is None:
        return [one.fault, None, one.suspects]
    imports = [list(vars(imported).values()) for imported in outline.imports]
    flags = [outline.opaque, sorted(outline.sets), outline.meddles, outline.moves]
    return [one.fault, [imports, sorted(outline.binds), *flags], one.suspects]


def _unpacked(fault: Any, outline: Any, suspected: Any) -> Findings:
    found = None
    if outline:
        imports, binds, opaque, sets, meddles, moves = outline
        made = (Imported(module, tuple(names), *rest) for module, names, *rest in imports)
        found = Outline(tuple(made), frozenset(binds), opaque, frozenset(sets), meddles, moves)
    return Findings(fault and Fault(*fault), found, tuple(map(_suspect, suspected)))


def _suspect(packed: list[Any]) -> Suspect:
    return Suspect._make([*packed[:-1], tuple(packed[-1])])
