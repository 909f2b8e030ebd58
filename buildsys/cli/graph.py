"""`buildsys graph`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.here import Here, in_variation
from buildsys.cli.output import print_json
from buildsys.errors import BuildError
from buildsys.model import Input, Ref, RuleName
from buildsys.phrases import counted
from buildsys.query import shards_built
from buildsys.spec.graph import Graph
from buildsys.spec.pattern import fill
from buildsys.state.patterns import matches

_RULE: Final = "rule_"
_SERVICE: Final = "service_"


@dataclass(frozen=True)
class Node:
    """A rule, or a service. shards: how many it has or makes, None where it has none or nobody knows yet.

    id: its kind and name, and so no word that a drawing language keeps for itself.
    """

    id: str
    name: str
    about: str = ""
    shards: int | None = None

    @property
    def label(self) -> tuple[str, ...]:
        return (self.name,) if self.shards is None else (self.name, counted(self.shards, "shard"))


@dataclass(frozen=True)
class Edge:
    """The node `into` needs what `start` makes, or the service that it is. every: all shards of it, as a list."""

    start: str
    into: str
    every: bool = False


@click.command(
    "graph",
    cls=Command,
    examples=(
        ("buildsys graph", "all rules, for Mermaid, which Markdown viewers draw"),
        ("buildsys graph draft", "one rule, and what it needs"),
        ("buildsys graph --dot | dot -Tsvg > rules.svg", "for Graphviz"),
    ),
)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, shell_complete=complete_targets)
@click.option("--dot", is_flag=True, help="Print it for Graphviz.")
@json_option("Print nodes and edges as JSON.")
@in_variation
def command(here: Here, targets: tuple[str, ...], dot: bool, as_json: bool) -> None:
    """Draw which rule needs which.

    With the services that rules need, and the number of their shards as far as it is known.
    """
    if dot and as_json:
        raise BuildError("--dot and --json exclude one another", hint="name one of them")
    graph = here.project.graph()
    names = list(graph.wanted(here.target(text) for text in targets).shards) if targets else list(graph.order)
    nodes, edges = _nodes(here, graph, names), _edges(graph, names)
    if as_json:
        print_json({"nodes": nodes, "edges": edges})
    else:
        print("\n".join((_dot if dot else _mermaid)(nodes, edges)))


def _nodes(here: Here, graph: Graph, names: Iterable[RuleName]) -> list[Node]:
    built = shards_built(here.project.root, graph.profile)
    rules = [graph.rules[name] for name in names]
    services = {service.name for rule in rules for service in graph.services_of(rule)}
    nodes = [Node(f"{_SERVICE}{name}", name) for name in sorted(services)]
    for rule in rules:
        origin = graph.origins[rule.name]
        shards = built.get(rule.name)
        if origin and not origin.rule:
            pattern = fill(origin.pattern, {"profile": graph.profile, "shard": "{shard}"})
            shards = len(matches(here.project.looks, pattern))
        nodes.append(Node(f"{_RULE}{rule.name}", rule.name, rule.about, shards))
    return nodes


def _edges(graph: Graph, names: Iterable[RuleName]) -> list[Edge]:
    """Each once, in the order of the rules."""
    edges: dict[Edge, None] = {}
    for name in names:
        rule = graph.rules[name]
        if rule.each and isinstance(rule.each.source, Ref):
            edges[Edge(f"{_RULE}{rule.each.source.rule}", f"{_RULE}{name}")] = None
        for service in graph.services_of(rule):
            edges.update(dict.fromkeys(_inputs(service.inputs, f"{_SERVICE}{service.name}")))
            edges[Edge(f"{_SERVICE}{service.name}", f"{_RULE}{name}")] = None
        edges.update(dict.fromkeys(_inputs(rule.inputs, f"{_RULE}{name}")))
    return list(edges)


def _inputs(inputs: Iterable[Input], into: str) -> Iterable[Edge]:
    refs = (given.source for given in inputs if isinstance(given.source, Ref))
    return [Edge(f"{_RULE}{ref.rule}", into, ref.every) for ref in refs]


def _mermaid(nodes: Iterable[Node], edges: Iterable[Edge]) -> list[str]:
    lines = ["flowchart LR"]
    for node in nodes:
        label = "<br>".join(node.label)
        lines.append(f'    {node.id}(["{label}"])' if node.id.startswith(_SERVICE) else f'    {node.id}["{label}"]')
    return [*lines, *(f"    {edge.start} {_arrow(edge)} {edge.into}" for edge in edges)]


def _arrow(edge: Edge) -> str:
    if edge.start.startswith(_SERVICE):
        return "-.->"
    return "-->|all shards|" if edge.every else "-->"


def _dot(nodes: Iterable[Node], edges: Iterable[Edge]) -> list[str]:
    lines = ["digraph rules {", "    rankdir=LR", "    node [shape=box]"]
    for node in nodes:
        shape = ", shape=ellipse" if node.id.startswith(_SERVICE) else ""
        label = r"\n".join(node.label)
        lines.append(f'    {node.id} [label="{label}"{shape}]')
    for edge in edges:
        notes = ["style=dashed"] if edge.start.startswith(_SERVICE) else ['label="all shards"'] if edge.every else []
        lines.append(f"    {edge.start} -> {edge.into}{f' [{notes[0]}]' if notes else ''}")
    return [*lines, "}"]
