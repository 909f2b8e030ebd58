"""`buildsys lineage`."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.here import Here, in_project, profile_names
from buildsys.cli.output import print_json
from buildsys.model import natural_key
from buildsys.phrases import counted
from buildsys.query import Link, lineage
from buildsys.terminal import Line, Span, show

_UNTOLD: Final = ("artifact", "output", "rule", "format")
"""Kinds that have no line of their own: what every action has, and what its artifacts say already."""
_FEW: Final = 2
_ASKED: Final = {
    "file": "read",
    "folder": "listed",
    "exists": "asked for",
    "variable": "variable",
    "package": "package",
}
"""How a run asked for what it discovered, by kind."""


@click.command(
    "lineage",
    cls=Command,
    examples=(
        ("buildsys lineage workspace/build/default/draft", "all that the draft was made from"),
        ("buildsys lineage --down workspace/data/sample.jsonl", "all that was made from a file"),
        ("buildsys lineage --down sampling.max_tokens", "all that a key of the config decides, under all profiles"),
    ),
)
@click.argument("path", shell_complete=complete_targets)
@click.option("--down", is_flag=True, help="What was made from the file or the config key PATH.")
@click.option(
    "--profile", "under", metavar="NAME", shell_complete=profile_names, help="Only artifacts that hold under it."
)
@json_option("Print the links as JSON.")
@in_project
def command(here: Here, path: str, down: bool, under: str | None, as_json: bool) -> None:
    """Say what a file was made from, or what was made from it.

    It tells what was recorded when the file was made, also where the sources have changed since.
    """
    links = lineage(here.project.root, here.target(path), down=down, profile=under)
    if as_json:
        print_json(links)
    else:
        show(lineage_lines(links), sys.stdout)


def lineage_lines(links: list[Link]) -> list[Line]:
    """A block a rule, nearest first: the artifacts that it made, and below them what it made them with."""
    lines: list[Line] = []
    width = max((len(link.rule) for link in links), default=0)
    for rule in dict.fromkeys(link.rule for link in links):
        own = [link for link in links if link.rule == rule]
        paths = [link.path for link in own if link.kind == "artifact"]
        if paths:
            lines.append([Span(f"{rule:<{width}}  ", "bold"), *_paths(paths)])
        for kind in dict.fromkeys(link.kind for link in own):
            if kind not in _UNTOLD:
                told = [link for link in own if link.kind == kind]
                names = ", ".join(_files(told) if kind == "code" else map(_what, told))
                lines.append([Span(f"{'':<{width}}    {kind:<8} ", "dim"), Span(names)])
    return lines


def _paths(paths: list[str]) -> list[Span]:
    """All of a few; of many the first and the last."""
    ordered = sorted(paths, key=natural_key)
    if len(ordered) <= _FEW:
        return [Span(", ".join(ordered))]
    return [Span(f"{ordered[0]} … {ordered[-1].rpartition('/')[2]}"), Span(f"  {len(ordered):,} artifacts", "dim")]


def _files(links: list[Link]) -> list[str]:
    """Code by its files; `why` names the symbols."""
    n_of = Counter(link.name.partition(":")[0] for link in links)
    return [f"{file} ({counted(n, 'symbol')})" for file, n in n_of.items()]


def _what(link: Link) -> str:
    if link.kind == "source":
        return link.path
    if link.kind == "discovered":
        return f"{link.path} ({_ASKED[link.name]})"
    if link.kind == "held":
        return f"{link.name}: {link.value}"
    return f"{link.name} {link.value}" if link.value is not None else link.name
