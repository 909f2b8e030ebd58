"""Why an action will run, or what its result rests on: what differs from the result that holds, with both texts.

Joins what a survey found with what the manifest keeps of earlier keys. It decides nothing: the differences are those
that the survey tells, and this adds where they are and what they look like.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from buildsys.assess import discovered_line, input_parts
from buildsys.code.difference import unified
from buildsys.code.slice import Reached, Slice, is_order
from buildsys.digest import Digest
from buildsys.errors import NO_SUCH_TARGET, BuildError
from buildsys.model import ActionId, ActionKey, Alias, Discovered, Made, Part, Result, Rule, RuleName, Service
from buildsys.plan.decide import compared
from buildsys.prepare import Prepared
from buildsys.project import Project
from buildsys.spec.config import key_line
from buildsys.spec.toml_places import key_positions
from buildsys.state.discoveries import WRITTEN
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
    within: tuple[Changed, ...] = ()


@dataclass(frozen=True)
class Basis:
    """The result that holds now. started: when its run began, in UTC. outputs: with their paths in the workspace.

    dropped: not all of them are there, and need not be. checks: their names, which hold for the outputs where the
    action is up to date, but for those that warned of them. alias: why the result holds under a key that is not its
    own. discovered: what its run asked for that is not declared.
    """

    key: ActionKey
    run_id: int
    started: datetime.datetime | None
    outputs: tuple[Made, ...] = ()
    dropped: bool = False
    checks: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
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
        self._counting = surveyor.assessor.counting
        self._known: dict[tuple[Digest, Digest], list[Changed]] = {}
        self._context = cache(self._past.context)
        self._started = cache(self._past.started)
        self._order = {action: n for n, action in enumerate(surveyor.planned)}

    def explained(self, target: ActionId | RuleName) -> list[Explained]:
        rule = target.rule if isinstance(target, ActionId) else target
        planned = self._surveyor.planned
        found = [one for action, one in planned.items() if action.rule == rule and target in (rule, action)]
        if not found:
            shards = ", ".join(action.shard for action in planned if action.rule == rule) or "none"
            raise BuildError(f"there is no {target}", facts=[("shards", shards)], exit_code=NO_SUCH_TARGET)
        held = [self._past.newest[one.action] for one in found if one.action in self._past.newest]
        inputs = self._past.inputs([result.key for result in held])
        self._counting.learn(held)
        return [self._explained(one, inputs) for one in found]

    def _explained(self, planned: Planned, inputs_of: Mapping[ActionKey, tuple[Part, ...]]) -> Explained:
        action = planned.action
        result = self._past.newest.get(action)
        keyed = self._surveyor.keyed.get(action)
        prepared = keyed.prepared if keyed else self._prepared(planned)
        parts = prepared.parts if prepared else ()
        before = self._context(result.context) if result else ()
        inputs = input_parts(keyed.inputs) if keyed else ()
        inputs_before = inputs_of.get(result.key, ()) if result else ()
        changes: list[Changed] = []
        if result and prepared:
            changes += self._of_rule(result, before, prepared)
        if result and keyed:
            changes += self._changes(inputs_before, inputs, None, None)
            changes += map(self._discovery, self._counting.changed(result))
        return Explained(
            planned,
            (*parts, *inputs),
            (*before, *inputs_before),
            keyed.key if keyed else "",
            _as_planned(planned, changes),
            tuple(self._causes(planned)),
            self._basis(action, result) if result else None,
        )

    def _prepared(self, planned: Planned) -> Prepared | None:
        """Its half of the key, where that was told from an earlier one though its inputs are not known yet."""
        rule = self._surveyor.graph.rules[planned.action.rule]
        return self._surveyor.assessor.prepared(rule) if planned.changes else None

    def _of_rule(self, result: Result, before: Sequence[Part], prepared: Prepared) -> list[Changed]:
        """What differs in the half of the key that all actions of the rule share."""
        pair = result.context, prepared.context
        if pair not in self._known:
            self._known[pair] = self._changes(before, prepared.parts, prepared.code, prepared.rule)
        return self._known[pair]

    def _changes(
        self, before: Sequence[Part], parts: Sequence[Part], code: Slice | None, declared: Rule | Service | None
    ) -> list[Changed]:
        """code, declared: what the code among the parts and its params are of."""
        differences = compared(before, parts)
        texts = self._past.texts([one.old.value for one in differences if one.old and one.old.group == "code"])
        symbols = _symbols(code, parts) if code else {}
        found = []
        for one in differences:
            old, new = (side.value if side else None for side in (one.old, one.new))
            place = self._place(one.part, declared)
            plain = Changed(one.line, one.part.group, one.part.name, old, new, place)
            if code and plain.group == "code":
                symbol = symbols.get(plain.name) if one.new else None
                text = texts.get((plain.name, old)) if old is not None else None
                plain = _with_texts(plain, one.part.path, symbol, text, code.text(symbol) if symbol else [])
            elif plain.group == "service" and old and new:
                plain = replace(plain, within=tuple(self._of_service(plain.name, old)))
            found.append(plain)
        return found

    def _discovery(self, found: Discovered) -> Changed:
        """A discovered input that is no more what it was."""
        nothing = "unset" if found.kind == "variable" else "absent"
        now = self._surveyor.assessor.answers.value_now(found.kind, found.name)
        place, old = "" if found.kind == "variable" else found.name, found.value.removeprefix(WRITTEN)
        return Changed(discovered_line(found), "discovered", found.name, old or nothing, now or nothing, place)

    def _of_service(self, name: str, before: str) -> list[Changed]:
        """What differs in the key of a service; nothing where the earlier one was not kept."""
        parts = self._context(Digest(before))
        service = self._surveyor.graph.services[name]
        served = self._surveyor.assessor.served(service)
        return self._changes(parts, served.parts, served.half.code, service) if parts else []

    def _place(self, part: Part, declared: Rule | Service | None) -> str:
        """Where the part is written; a file, with the line where it is known."""
        if part.group == "param" and declared:
            return self._config_place(part.path) if part.path else self._declared_place(part.name, declared)
        return f"{part.path}:{part.line}" if part.line else part.path

    def _config_place(self, key: str) -> str:
        """Where a key of the config has its value: on the command line, in an overlay, in the config itself."""
        if key in dict(self._project.variation.overrides):
            return f"--set {key}"
        for config in self._project.configs().values():
            for path in filter(None, (config.overlay, config.path)):
                if line := key_line(path, self._project.text(path), key):
                    return f"{path}:{line}"
        return key

    def _declared_place(self, param: str, declared: Rule | Service) -> str:
        """Where a rule or a service declares a param."""
        path, line = declared.place.path, declared.place.line
        kind = "rule" if isinstance(declared, Rule) else "service"
        position = key_positions(self._project.text(path)).get((kind, declared.name, "params", param))
        return f"{path}:{position.line if position else line}"

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
        return [found[action] for action in sorted(found, key=self._order.__getitem__)]

    def _waits(self, planned: Planned) -> bool:
        needs = self._surveyor.needs(planned.action)
        return any(self._surveyor.planned[need].fate in ("run", "maybe") for need in needs)

    def _basis(self, action: ActionId, result: Result) -> Basis:
        keyed = self._surveyor.keyed.get(action)
        return Basis(
            key=result.key,
            run_id=result.run_id,
            started=self._started(result.run_id),
            outputs=result.outputs,
            dropped=keyed is not None and keyed.dropped,
            checks=tuple(check.name for check in self._surveyor.graph.rules[action.rule].checks),
            warned=keyed.warned if keyed else (),
            alias=result.alias,
            discovered=tuple(self._counting.discovered(result)),
        )


def _as_planned(planned: Planned, changes: Sequence[Changed]) -> tuple[Changed, ...]:
    """All that the plan tells, in its order; where it tells no difference, all that there are."""
    if not planned.changes:
        return tuple(changes)
    by_line = {one.line: one for one in changes}
    return tuple(by_line.get(line, Changed(line)) for line in planned.changes)


def _with_texts(
    change: Changed, path: str, symbol: Reached | None, before: str | None, lines: Sequence[tuple[int, str]]
) -> Changed:
    """The change of a symbol with what it looked like and what it looks like now. symbol: None for one that is gone."""
    old, new = [] if before is None else before.split("\n"), [text for _, text in lines]
    is_known = (before is not None or change.old is None) and (lines or symbol is None)
    if is_order(change.name) and sorted(old) != sorted(new):
        is_known = False  # The statements themselves changed, and are told.
    return replace(
        change,
        via=symbol.via if symbol else (),
        before=before,
        after="\n".join(new) if lines else None,
        diff=tuple(unified(path, old, lines)) if is_known else (),
    )


def _symbols(code: Slice, parts: Sequence[Part]) -> dict[str, Reached]:
    """The symbols by the names of their parts."""
    named = zip(code.symbols, (part for part in parts if part.group == "code"), strict=True)
    return {part.name: symbol for symbol, part in named}
