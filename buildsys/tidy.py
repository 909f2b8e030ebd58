"""What nothing makes any more: the actions that hold it, and its removal from the workspace.

Joins what holds with what this build made. Removes only what can be had again: bytes that the store has, or that an
ephemeral rule made. Knows nothing of how anything is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import PurePosixPath

from buildsys.ephemeral import Ephemeral
from buildsys.model import ActionId
from buildsys.past import Past
from buildsys.spec.graph import Graph, Wanted
from buildsys.state.files import Files
from buildsys.state.publish import remove
from buildsys.state.store import Store


def obsolete(past: Past, graph: Graph, wanted: Wanted, settled: Collection[ActionId]) -> list[ActionId]:
    """The actions that hold something and whose rule is gone, or their shard. settled: those of this build."""

    def is_obsolete(action: ActionId) -> bool:
        return action.rule not in graph.rules or (action.rule in wanted.shards and action not in settled)

    return [action for action in past.newest if is_obsolete(action)]


def paths_kept(past: Past, made: Iterable[str], gone: Collection[ActionId], settled: Collection[ActionId]) -> set[str]:
    """Where outputs are that hold: those of this build, `made`, and of rules that were not wanted."""
    kept = set(made)
    for action, result in past.newest.items():
        if action not in gone and action not in settled:
            kept.update(output.artifact.path for output in result.outputs)
    return kept


def tidy(
    past: Past, kept: Collection[str], files: Files, store: Store, ephemeral: Ephemeral, left: Callable[[str], None]
) -> None:
    """Remove what is at all other paths that ever held an output; a build that failed may have made it obsolete.

    left: called with the path of what can't be had again, and so is left.
    """
    stale = [path for path in past.places if path not in kept]
    folders = {folder for path in kept for folder in _folders_of(path)} if stale else set()
    for path in stale:
        if path in folders or any(above in kept for above in _folders_of(path)):
            continue  # it holds what is kept, or lies in it
        ours = ephemeral.is_ours(path) if ephemeral.makes(path) else store.knows
        if not remove(files, path, ours=ours):
            left(path)


def _folders_of(path: str) -> list[str]:
    return [str(folder) for folder in PurePosixPath(path).parents]
