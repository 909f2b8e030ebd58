"""Folders that outlive the actions that work in them: what an action leaves there is found by its next attempt.

One folder an action key, `KEY/`, and beside it a note, `KEY.json`, that says whose it is; what is called `.KEY` is on
its way out. Knows nothing of what is in a folder, nor of when an action has succeeded; who holds the build's lock may
call, and one thread at a time for one key.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from buildsys.digest import Digest
from buildsys.model import ActionId, ActionKey, RuleName, Shard
from buildsys.state.disk import remove, write_whole


@dataclass(frozen=True)
class Note:
    """Whose a scratch is. rule, shard, profile, run_id: of the last attempt; begun: when that was, seconds since 1970.

    sources: digest of the stats of the source files that it read in place. in_use: until it has ended in order.
    """

    rule: str
    shard: str
    profile: str
    run_id: int
    sources: Digest
    begun: float = field(default_factory=time.time)
    in_use: bool = True

    @property
    def action(self) -> ActionId:
        return ActionId(RuleName(self.rule), Shard(self.shard))


class Scratch:
    """The scratch folders of a project. state: its `.buildsys`."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "scratch"

    def open(self, key: ActionKey, note: Note) -> Path:
        """The folder of a key, made where it is missing, with all that earlier attempts left in it.

        It is emptied where an attempt was killed and its sources were written to since: then nobody knows whether that
        happened before, so what it left may be of bytes that the key does not hold.
        """
        before = self._note(key)
        if before is None or (before.in_use and before.sources != note.sources):
            self.discard(key)
        self._folder.mkdir(exist_ok=True)
        self._write(key, note)
        folder = self._folder / key
        folder.mkdir(exist_ok=True)
        return folder

    def rest(self, key: ActionKey) -> None:
        """Its action has ended, and its sources are those of its key."""
        if note := self._note(key):
            self._write(key, replace(note, in_use=False))

    def discard(self, key: ActionKey) -> None:
        """Remove a folder; nothing happens where there is none. No attempt ever finds a part of it."""
        gone = self._folder / f".{key}"
        with suppress(FileNotFoundError):
            os.rename(self._folder / key, gone)
            shutil.rmtree(gone, ignore_errors=True)
        self._path(key).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what a kill kept from being removed, or from being written."""
        for gone in self._folder.glob(".*"):
            with suppress(OSError):
                remove(gone)

    def found(self) -> dict[ActionKey, Note | None]:
        """All keys that have a folder, and what is noted of each."""
        folders = [path.name for path in self._folder.glob("[!.]*") if path.is_dir()]
        return {key: self._note(key) for key in map(ActionKey, sorted(folders))}

    def paths(self, key: ActionKey) -> tuple[Path, ...]:
        """All that there is of a key: its folder first."""
        return self._folder / key, *(path for path in (self._path(key),) if path.exists())

    def _path(self, key: ActionKey) -> Path:
        return self._folder / f"{key}.json"

    def _note(self, key: ActionKey) -> Note | None:
        """None where there is none that can be read."""
        try:
            return Note(**json.loads(self._path(key).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def _write(self, key: ActionKey, note: Note) -> None:
        write_whole(self._path(key), json.dumps(asdict(note)).encode())
