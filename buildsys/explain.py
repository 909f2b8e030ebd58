"""Why an action will run, or what its result rests on: what differs from the result that holds, with both texts.

Joins what a survey found with what the manifest keeps of earlier keys. It decides nothing: the differences are those
that the survey tells, and this adds where they are and what they look like.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buildsys.assess import input_parts
from buildsys.code.difference import unified
from buildsys.code.slice import Reached, Slice
from buildsys.digest import Digest
from buildsys.errors import NO_SUCH_TARGET, BuildError
from buildsys.model import ActionId, ActionKey, Alias, Discovered, Made, Part, Result, RuleName
from buildsys.plan.decide import Difference, compared
from buildsys.prepare import Prepared
from buildsys.project import Project
from buildsys.spec.config import key_line
from buildsys.spec.toml_places import key_positions
from buildsys.survey import Planned, Surveyor, surveyed


@dataclass(frozen=True)
class Changed:
    """One difference to the result that holds. line: all of it in one line, as `Planned` tells it.

    group, name: of the part, "" where it is none of the key's. old, new: values as people read them, None where there
    is no such part. place: file and line, as far as they are known. via: of code, the names by which it is reached from
    the entry. before, after: of code, its texts, None where there is none or it was not kept. diff: of these, the lines
    of a unified diff.
    """

    line: str
    group: str = ""
    name: str = ""
    old: str | None = None
    new: str | None = None
    place: str = ""
    via: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None
    diff: tuple[str, ...] = ()


@dataclass(frozen=True)
class Basis:
    """The result that holds now. started: when its run began, in UTC. outputs: with their paths in the workspace.

    checks: their names, which hold for the outputs where the action is up to date. alias: why the result holds under a
    key that is not its own. discovered: what its run asked for that is not declared.
    """

    key: ActionKey
    run_id: int
    started: datetime.datetime | None
    outputs: tuple[Made, ...] = ()
    checks: tuple[str, ...] = ()
    alias: Alias | None = None
    discovered: tuple[Discovered, ...] = ()


@dataclass(frozen=True)
class Explained:
    """One action and its fate. parts: all that its key holds now; before: all that that of the result that holds does.

    key: "" where it is not known yet. changes: how the keys differ. causes: actions that it waits for, directly or
    through others, and that run for a reason of their own. basis: the result that holds, None where there is none.
    """

    planned: Planned
    parts: tuple[Part, ...]
    before: tuple[Part, ...]
    key: str
    changes: tuple[Changed, ...]
    causes: tuple[Planned, ...]
    basis: Basis | None


def explain(project: Project, target: str) -> list[Explained]:
    """The actions of a target, explained. Raises BuildError, exit 3, where there is none."""
    graph = project.graph()
    with surveyed(project, graph, graph.wanted([target]), [target]) as surveyor:
        return Explainer(project, surveyor).explained(surveyor.graph.target(target))


class Explainer:
    """Explains what one survey found."""

    def __init__(self, project: Project, surveyor: Surveyor) -> None:
        self._project = project
        self._surveyor = surveyor
        self._past = surveyor.past
        self._known: dict[tuple[Digest, Digest], list[Changed]] = {}

    def explained(self, target: ActionId | RuleName) -> list[Explained]:
        rule = target.rule if isinstance(target, ActionId) else target
        planned = self._surveyor.planned
        found = [
            self._explained(one) for action, one in planned.items() if action.rule == rule and target in (rule, action)
        ]
        if not found:
            shards = ", ".join(action.shard for action in planned if action.rule == rule) or "none"
            raise BuildError(f"there is no {target}", facts=[("shards", shards)], exit_code=NO_SUCH_TARGET)
        return found

    def _explained(self, planned: Planned) -> Explained:
        action = planned.action
        result = self._past.newest.get(action)
        keyed = self._surveyor.keyed.get(action)
        prepared = keyed.prepared if keyed else self._prepared(planned)
        parts = prepared.parts if prepared else ()
        before = self._past.context(result.context) if result else ()
        inputs = input_parts(keyed.inputs) if keyed else ()
        inputs_before = self._past.inputs([result.key]).get(result.key, ()) if result else ()
        changes: list[Changed] = []
        if result and prepared:
            changes += self._of_rule(result, before, prepared)
        if result and keyed:
            changes += [self._changed(one, prepared, {}) for one in compared(inputs_before, inputs)]
        return Explained(
            planned,
            (*parts, *inputs),
            (*before, *inputs_before),
            keyed.key if keyed else "",
            _as_planned(planned, changes),
            tuple(self._causes(planned)),
            self._basis(result) if result else None,
        )

    def _prepared(self, planned: Planned) -> Prepared | None:
        """Its half of the key, where that was told from an earlier one though its inputs are not known yet."""
        rule = self._surveyor.graph.rules[planned.action.rule]
        return self._surveyor.assessor.prepared(rule) if planned.changes else None

    def _of_rule(self, result: Result, before: Sequence[Part], prepared: Prepared) -> list[Changed]:
        """What differs in the half of the key that all actions of the rule share."""
        pair = result.context, prepared.context
        if pair not in self._known:
            differences = compared(before, prepared.parts) if pair[0] != pair[1] else []
            digests = [one.old.value for one in differences if one.old and one.old.group == "code"]
            texts = self._past.texts(digests)
            self._known[pair] = [self._changed(one, prepared, texts) for one in differences]
        return self._known[pair]

    def _changed(self, one: Difference, prepared: Prepared | None, texts: Mapping[tuple[str, str], str]) -> Changed:
        """texts: of symbols, as earlier keys held them."""
        part = one.part
        old, new = (side.value if side else None for side in (one.old, one.new))
        plain = Changed(one.line, part.group, part.name, old, new, self._place(part, prepared))
        if part.group != "code" or not (prepared and prepared.code):
            return plain
        symbol = _symbols(prepared.code, prepared.parts).get(part.name) if one.new else None
        lines = prepared.code.text(symbol) if symbol else []
        before = texts.get((part.name, old)) if old is not None else None
        known = (before is not None or old is None) and (lines or new is None)
        diff = unified(part.path, before.split("\n") if before is not None else [], lines) if known else []
        return Changed(
            *(plain.line, plain.group, plain.name, old, new, plain.place),
            via=symbol.via if symbol else (),
            before=before,
            after="\n".join(text for _, text in lines) if lines else None,
            diff=tuple(diff),
        )

    def _place(self, part: Part, prepared: Prepared | None) -> str:
        """Where the part is written; a file, with the line where it is known."""
        if part.group == "param":
            return self._param_place(part, prepared)
        return f"{part.path}:{part.line}" if part.line else part.path

    def _param_place(self, param: Part, prepared: Prepared | None) -> str:
        """In the config, in the overlay that goes before it, on the command line, else in the rule file."""
        project = self._project
        if param.path in dict(project.variation.overrides):
            return f"--set {param.path}"
        if param.path:
            for config in project.configs().values():
                for path in filter(None, (config.overlay, config.path)):
                    if line := key_line(path, project.text(path), param.path):
                        return f"{path}:{line}"
        place = prepared.rule.place if prepared else None
        if place is None or param.path:
            return param.path
        keys = "rule", prepared.rule.name if prepared else "", "params", param.name
        position = key_positions(project.text(place.path)).get(keys)
        return f"{place.path}:{position.line if position else place.line}"

    def _causes(self, planned: Planned) -> list[Planned]:
        """See `Explained`: those that have changed themselves, or wait for nobody."""
        found: dict[ActionId, Planned] = {}
        waiting = [planned.action]
        seen: set[ActionId] = set()
        while waiting:
            for need in self._surveyor.needs(waiting.pop()):
                one = self._surveyor.planned[need]
                if need in seen or one.fate not in ("run", "maybe"):
                    continue
                seen.add(need)
                if need not in self._surveyor.woken and (one.changes or not self._waits(one)):
                    found[need] = one
                else:
                    waiting.append(need)
        return [one for action, one in self._surveyor.planned.items() if action in found]

    def _waits(self, planned: Planned) -> bool:
        needs = self._surveyor.needs(planned.action)
        return any(self._surveyor.planned[need].fate in ("run", "maybe") for need in needs)

    def _basis(self, result: Result) -> Basis:
        return Basis(
            key=result.key,
            run_id=result.run_id,
            started=self._past.started(result.run_id),
            outputs=result.outputs,
            checks=tuple(check.name for check in self._surveyor.graph.rules[result.action.rule].checks),
            alias=result.alias,
            discovered=tuple(self._past.discovered(result.evidence)),
        )


def _as_planned(planned: Planned, changes: Sequence[Changed]) -> tuple[Changed, ...]:
    """All that the plan tells, in its order; where it tells no difference, all that there are."""
    if not planned.changes:
        return tuple(changes)
    by_line = {one.line: one for one in changes}
    return tuple(by_line.get(line, Changed(line)) for line in planned.changes)


def _symbols(code: Slice, parts: Sequence[Part]) -> dict[str, Reached]:
    """The symbols by the names of their parts."""
    named = zip(code.symbols, (part for part in parts if part.group == "code"), strict=True)
    return {part.name: symbol for symbol, part in named}
