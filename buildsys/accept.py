"""Taking a user's word that what an action made holds under the code as it is now, and taking that back.

Joins what a survey found with the manifest, where the word is recorded as an alias of the key. It runs nothing and
changes no output; whoever calls has not the build lock: it is held here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from buildsys.errors import NO_SUCH_TARGET, NOT_UP_TO_DATE, BuildError
from buildsys.explain import Explained, Explainer
from buildsys.model import ActionId, Result, RuleName, natural_key
from buildsys.past import Past
from buildsys.phrases import listed
from buildsys.project import Project
from buildsys.readers import output_tables
from buildsys.spec.graph import Graph
from buildsys.state.layout import bring_up_to_date
from buildsys.state.lock import hold
from buildsys.state.manifest import Manifest
from buildsys.state.rows import AliasRow, Row
from buildsys.survey import Surveyor

_MOST_FACTS = 4


@dataclass(frozen=True)
class Accepted:
    """One action whose result was accepted, or is no more. changes: of its code, each as `Planned` tells it."""

    action: ActionId
    changes: tuple[str, ...] = ()


def accept(project: Project, target: str, reason: str = "") -> list[Accepted]:
    """What holds now for the actions of a target holds under their code as it is now; those that are up to date stay.

    reason: for people, one line; without one what changed. Raises BuildError, and records nothing, where anything but
    code has changed of one of them (exit 4), or the rule asks a server for replies.
    """
    with _opened(project, "buildsys accept") as (graph, manifest):
        asked = graph.target(target)
        _refuse_chat(graph, asked)
        acceptor = _Acceptor(project, graph, manifest, target)
        explained = acceptor.explained(asked)
        if problems := {one.planned.action: why for one in explained if (why := acceptor.problem(one))}:
            raise _refused(target, problems)
        due = [one for one in explained if acceptor.is_due(one)]
        _record(graph, manifest, [acceptor.row(one, reason) for one in due])
        return [Accepted(one.planned.action, tuple(change.line for change in one.changes)) for one in due]


def undo(project: Project, target: str, reason: str = "") -> list[Accepted]:
    """What was accepted for the actions of a target is no more. Raises BuildError, exit 3, where nothing was."""
    with _opened(project, "buildsys accept --undo") as (graph, manifest):
        asked = graph.target(target)
        held = sorted(manifest.newest(graph.profile).items(), key=lambda pair: natural_key(pair[0].shard))
        rows: list[Row] = [
            AliasRow(graph.profile, action, result.alias.key, "undone", reason)
            for action, result in held
            if asked in (action, action.rule) and result.alias and result.alias.said_by == "accepted"
        ]
        if not rows:
            raise BuildError(f"nothing of {target} was accepted", exit_code=NO_SUCH_TARGET)
        _record(graph, manifest, rows)
        return [Accepted(row.action) for row in rows if isinstance(row, AliasRow)]


@contextmanager
def _opened(project: Project, command: str) -> Iterator[tuple[Graph, Manifest]]:
    """The rules, and the manifest to be written; nobody else writes it meanwhile."""
    if not project.state.is_dir():
        raise BuildError("nothing was built here yet", hint="buildsys build")
    graph = project.graph()
    with hold(project.state / "lock", command):
        bring_up_to_date(project.state)
        with closing(Manifest.open(project.state)) as manifest:
            yield graph, manifest


def _record(graph: Graph, manifest: Manifest, rows: Sequence[Row]) -> None:
    if rows:
        manifest.commit(rows)
        manifest.publish(output_tables(graph))


class _Acceptor:
    """What is known of the actions of one target."""

    def __init__(self, project: Project, graph: Graph, manifest: Manifest, target: str) -> None:
        self._past = Past(lambda question: question(manifest), graph.profile)
        self._surveyor = Surveyor(project, graph, graph.wanted([target]), (), self._past)
        self._surveyor.look()
        self._explainer = Explainer(project, self._surveyor)

    def explained(self, target: ActionId | RuleName) -> list[Explained]:
        return self._explainer.explained(target)

    def is_due(self, one: Explained) -> bool:
        """Its result is of another key, or of other code under the same one."""
        return one.planned.fate in ("run", "restore") and bool(one.changes)

    def problem(self, one: Explained) -> str:
        """Why nobody can say that what holds for an action does so under its new code alone; "" where one can."""
        planned, action = one.planned, one.planned.action
        if planned.fate in ("reuse", "check"):
            return ""
        if planned.fate in ("blocked", "skipped"):
            return f"it is {planned.fate}: {planned.reason}"
        if one.causes:
            return f"needs {listed(dict.fromkeys(cause.action.rule for cause in one.causes))}, which is not up to date"
        result = self._past.newest.get(action)
        keyed = self._surveyor.keyed.get(action)
        if result is None or keyed is None:
            return planned.reason
        others = [change.line for change in one.changes if change.group != "code"]
        if others and not self._differs_in_code_alone(action, result):
            return others[0]
        if moved := self._surveyor.assessor.counting.changed(result):
            return f"{moved[0].name} changed, which its run read"
        if self._surveyor.assessor.where(keyed.prepared.rule, result.outputs) == "nowhere":
            return "its outputs are neither in place nor in the store"
        return "" if one.changes or planned.fate == "restore" else planned.reason

    def _differs_in_code_alone(self, action: ActionId, result: Result) -> bool:
        """By the digest of the rest of the key, where that is recorded with a trace."""
        rest = self._surveyor.keyed[action].rest
        akin = self._past.akin([rest]).get(rest, ())
        return any((other.key, other.evidence) == (result.key, result.evidence) for other in akin)

    def row(self, one: Explained, reason: str) -> AliasRow:
        action = one.planned.action
        result, keyed = self._past.newest[action], self._surveyor.keyed[action]
        return AliasRow(
            self._past.profile,
            action,
            keyed.key,
            "accepted",
            reason or listed((change.line for change in one.changes), most=2),
            result=result.key,
            made_with=result.evidence,
            evidence=self._surveyor.assessor.counting.evidence_now(result, keyed.prepared),
        )


def _refuse_chat(graph: Graph, target: ActionId | RuleName) -> None:
    rule = graph.rules[target.rule if isinstance(target, ActionId) else target]
    if rule.kind == "chat":
        raise BuildError(
            f"replies of {rule.name} can't be accepted for other requests",
            place=rule.place,
            hint="build it: a request that is the same is answered from the log of replies",
        )


def _refused(target: str, problems: dict[ActionId, str]) -> BuildError:
    told = list(problems.items())
    facts = [(str(action), why) for action, why in told[:_MOST_FACTS]]
    if len(told) > _MOST_FACTS:
        facts.append(("and", f"{len(told) - _MOST_FACTS} more"))
    return BuildError(
        f"{target} can't be accepted: more than its code has changed",
        facts=facts,
        hint="build what it needs first, or build it",
        exit_code=NOT_UP_TO_DATE,
    )
