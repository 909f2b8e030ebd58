"""What must hold before anything runs: scripts, inputs and versions are known, patterns match, checks are SQL.

A script that is broken is no reason to refuse: it blocks its rules (`diagnostics`).

Joins the graph with the file system. What one action needs and only becomes known later is not looked at here.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from contextlib import suppress

from buildsys.code.parse import Broken
from buildsys.errors import NO_SUCH_TARGET, BuildError
from buildsys.model import ActionId, Check, Input, Rule, Service, Shard
from buildsys.past import Past
from buildsys.plan.frontier import Frontier
from buildsys.prepare import Preparer
from buildsys.project import Project
from buildsys.spec.graph import Graph, Wanted
from buildsys.spec.pattern import fill, rename
from buildsys.state.files import Files
from buildsys.state.patterns import expand, matches

_MOST_SHARDS = 20


def preflight(project: Project, graph: Graph, wanted: Wanted, preparer: Preparer, files: Files, past: Past) -> Frontier:
    """The frontier of the wanted actions.

    Raises BuildError for the first input, script or shard that is missing, and the first check that is no SQL.
    """
    with project.excerpts():
        frontier = _checked(project, graph, wanted, preparer, files)
        checks = [check for name in wanted.shards for check in graph.rules[name].checks]
        for check, flaw in zip(checks, past.sql_flaws([check.sql for check in checks]), strict=True):
            if flaw:
                raise _no_sql(check, flaw)
        return frontier


def _checked(project: Project, graph: Graph, wanted: Wanted, preparer: Preparer, files: Files) -> Frontier:
    shards: dict[str, list[Shard]] = {}
    services: dict[str, Service] = {}
    for name in wanted.shards:
        rule = graph.rules[name]
        if not isinstance(preparer.code(rule), Broken):
            preparer.versions(rule)
        services |= {service.name: service for service in graph.services_of(rule)}
        if rule.each and isinstance(rule.each.source, str):
            pattern = rule.each.source
            filled = fill(pattern, {"profile": graph.profile, "shard": "{shard}"})
            found = matches(project.looks, filled)
            _refuse_odd_names(project, filled, set(found.values()), rule)
            shards[pattern] = list(found)
            if not shards[pattern]:
                written = rename(pattern, "shard", rule.each.variable)
                raise BuildError(f"[rule.{name}] has no shard: nothing matches {written}", place=rule.place)
        for given in rule.inputs:
            _require(project, graph, files, given)
    for service in services.values():
        with suppress(Broken):
            preparer.service_code(service)
        for given in service.inputs:
            _require(project, graph, files, given)
    return Frontier(graph, wanted, shards)


def _refuse_odd_names(project: Project, pattern: str, known: Collection[str], rule: Rule) -> None:
    """Raises BuildError for a path that fits the pattern but for the characters of its shard."""
    for path in expand(project.looks, pattern.replace("{shard}", "*")):
        if path not in known:
            raise BuildError(
                f"[rule.{rule.name}] can't have a shard of this name: {path}",
                place=rule.place,
                hint="rename it: a shard is made of A-Z a-z 0-9 . _ - and does not start with a dot",
            )


def _require(project: Project, graph: Graph, files: Files, given: Input) -> None:
    if not isinstance(given.source, str) or "{shard}" in given.source:
        return
    path = fill(given.source, {"profile": graph.profile})
    if "*" in path:
        if not expand(project.looks, path):
            raise BuildError(f'input "{given.name}" matches no file: {path}', place=given.place)
    elif not project.looks.exists(path):
        raise BuildError(
            f'input "{given.name}" is missing: {path}',
            place=given.place,
            hint="make it, or name the file that you mean",
        )


def _no_sql(check: Check, flaw: str) -> BuildError:
    """flaw: "Parser Error: what is wrong", then a line of the SQL with a pointer below it."""
    message, *shown = [line for line in flaw.splitlines() if line.strip()]
    return BuildError(
        f'check "{check.name}" is no SQL: {message.removeprefix("Parser Error: ")}',
        place=check.place,
        excerpt="\n".join(shown),
    )


def refuse_unwanted(graph: Graph, wanted: Wanted, force: Collection[str]) -> None:
    """Raises BuildError where something is to be forced that is not built at all."""
    for text in force:
        target = graph.target(text)
        shards = wanted.shards.get(target.rule if isinstance(target, ActionId) else target, frozenset())
        needed = shards is None or (target.shard in shards if isinstance(target, ActionId) else bool(shards))
        if not needed:
            named = shlex.quote(text)
            raise BuildError(
                f"{target} can't be forced: nothing that is to be built needs it",
                hint=f"name it as a target too: buildsys build {named} --force {named}",
            )


def unknown_shard(graph: Graph, frontier: Frontier, targets: Iterable[str]) -> BuildError | None:
    """The error for a shard that was asked for and does not exist, as far as the shards are known."""
    for text in targets:
        target = graph.target(text)
        if not isinstance(target, ActionId) or not (shards := frontier.shards(target.rule)):
            continue
        if target.shard not in shards:
            hint = f"its shards: {', '.join(shards)}" if len(shards) <= _MOST_SHARDS else ""
            return BuildError(f"there is no {target}", hint=hint, exit_code=NO_SUCH_TARGET)
    return None
