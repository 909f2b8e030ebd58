"""Having replies asked for anew, on a user's word: they stay in the log, and neither they nor what rests on them count.

Joins the log of replies with the manifest, which knows what was made from them. It asks for nothing: the next build
does.

The manifest is written before the log. Killed between the two, an action runs again for a reply that still counts, and
finds it in the log; the other way round, a result would hold that rests on a rejected one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from buildsys.ledger import ids_of
from buildsys.model import ActionId, RuleName, natural_key
from buildsys.project import Project
from buildsys.query import requests_where
from buildsys.readers import output_tables
from buildsys.run.replies import ReplyLog
from buildsys.state import stamp
from buildsys.state.layout import bring_up_to_date
from buildsys.state.lock import hold
from buildsys.state.manifest import Manifest
from buildsys.state.rows import RejectionRow


@dataclass(frozen=True)
class Which:
    """The replies that a user means: by the ids of their requests, or all for which a condition holds.

    prefixes: the first letters of an id are enough. where: SQL over the view `requests`.
    """

    prefixes: Sequence[str] = ()
    where: str = ""


@dataclass(frozen=True)
class Rejection:
    """Replies that count, and may be rejected. ids: of their requests. n_asked: how many of them each rule has asked.

    actions: with their profiles, those that will run again, as far as they hold now.
    """

    ids: tuple[str, ...]
    n_asked: Mapping[RuleName, int]
    actions: tuple[tuple[str, ActionId], ...]


def foreseen(project: Project, which: Which) -> Rejection:
    """What would be rejected, by the last snapshot. Raises BuildError as `rejecting`."""
    with closing(Manifest.read(project.state)) as manifest, ReplyLog(_folder(project), writable=False) as log:
        return _found(project, which, manifest, log)


@contextmanager
def rejecting(project: Project, which: Which) -> Iterator[tuple[Rejection, Callable[[], None]]]:
    """What is to be rejected, and a call that does it. Nothing else is written meanwhile.

    Raises BuildError for a condition that is no SQL, for an id that is none (exit 3), and while a build runs (exit 5).
    """
    tables = output_tables(project.graph())
    with hold(project.state / "lock", "buildsys replies reject"):
        bring_up_to_date(project.state)
        with closing(Manifest.open(project.state)) as manifest, ReplyLog(_folder(project)) as log:
            if not manifest.is_published():
                manifest.publish(tables)
            found = _found(project, which, manifest, log)

            def reject() -> None:
                run_id = max(manifest.runs(), default=0)
                stamp.discard(project.state)
                manifest.commit([RejectionRow(one, run_id) for one in found.ids])
                for written in [log.reject(one, which.where or "by its id") for one in found.ids]:
                    written.result()
                manifest.publish(tables)

            yield found, reject


def _found(project: Project, which: Which, manifest: Manifest, log: ReplyLog) -> Rejection:
    named = requests_where(project.root, which.where) if which.where else ids_of(log, which.prefixes)
    ids = [one for one in sorted(named) if log.get(one)]
    return Rejection(tuple(ids), manifest.asked_by(ids), _in_order(manifest.resting_on(ids)))


def _in_order(actions: Collection[tuple[str, ActionId]]) -> tuple[tuple[str, ActionId], ...]:
    return tuple(sorted(actions, key=lambda one: (one[0], one[1].rule, natural_key(one[1].shard))))


def _folder(project: Project) -> Path:
    return project.state / "replies"
