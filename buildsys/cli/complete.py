"""What a shell offers where a target is typed: rules, their actions, and paths of the project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from buildsys.cli.here import Here
from buildsys.errors import BuildError

if TYPE_CHECKING:
    from buildsys.spec.graph import Graph


def targets(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completion has no way to complain: where the project can't be read it offers nothing."""
    if "/" in incomplete:
        return [CompletionItem(incomplete, type="file")]
    try:
        here = Here.of(ctx)
        graph = here.project.graph()
    except BuildError:
        return []
    if "[" in incomplete:
        found = _actions(here, graph, incomplete.partition("[")[0])
        return [CompletionItem(action) for action in found if action.startswith(incomplete)]
    return [CompletionItem(name, help=graph.rules[name].about) for name in graph.order if name.startswith(incomplete)]


def services(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The services that rule files declare."""
    try:
        graph = Here.of(ctx).project.graph()
    except BuildError:
        return []
    return [CompletionItem(name) for name in graph.services if name.startswith(incomplete)]


def _actions(here: Here, graph: Graph, name: str) -> Iterator[str]:
    """The actions of a rule whose outputs are there."""
    from buildsys.spec.pattern import fill
    from buildsys.state.patterns import matches

    rule = next((rule for rule in graph.rules.values() if rule.name == name and graph.origins[rule.name]), None)
    if rule:
        pattern = fill(rule.outputs[0].pattern, {"profile": graph.profile, "shard": "{shard}"})
        for shard in matches(here.project.looks, pattern):
            yield f"{name}[{shard}]"
