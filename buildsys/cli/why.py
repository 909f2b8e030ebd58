"""`buildsys why`."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.fates import WORDS, Alike, alike, diagnostics
from buildsys.cli.here import Here, in_variation
from buildsys.cli.output import print_json
from buildsys.model import Part
from buildsys.phrases import listed
from buildsys.survey import Explained, explain
from buildsys.terminal import Line, Span, show


@click.command(
    "why",
    cls=Command,
    examples=(
        ("buildsys why 'tokens[0003]'", "why one action will run, or what its result rests on"),
        ("buildsys why draft", "all actions of a rule"),
        ("buildsys why workspace/build/default/vocab", "whatever makes this path"),
    ),
)
@click.argument("target", shell_complete=complete_targets)
@json_option("Print each action, its fate and all parts of its key as JSON.")
@in_variation
def command(here: Here, target: str, as_json: bool) -> None:
    """Explain why an action runs, or what its result rests on."""
    explained = explain(here.project, here.target(target))
    if as_json:
        print_json(explained)
        return
    show(why_lines(explained), sys.stdout)
    show(diagnostics(each.planned for each in explained), sys.stderr)


def why_lines(explained: list[Explained]) -> list[Line]:
    """Actions with the same differences are told once; where one alone was asked about, also what holds."""
    groups = alike((each.planned for each in explained), by=lambda planned: (planned.reason, planned.changes))
    lines = [line for group in groups for line in _group_lines(group, len(explained), explained[0].ways)]
    if len(explained) == 1 and not explained[0].planned.changes:
        lines += _part_lines(explained[0].parts)
    return lines


def _group_lines(group: Alike, n_of_rule: int, ways: Mapping[str, tuple[str, ...]]) -> list[Line]:
    planned = group.first
    words, _, style = WORDS[planned.fate]
    if len(group.actions) > 1:
        words = words.replace("is ", "are ")
    reason = "" if planned.fate == "reuse" else f": {planned.reason}"
    head: Line = [Span(f"{group.name(n_of_rule)} ", "bold"), Span(words, style), Span(reason)]
    changes = group.changes() or ([planned.reason] if ways else [])
    return [head, *(line for change in changes for line in _change_lines(change, ways, shown=change != planned.reason))]


def _change_lines(change: str, ways: Mapping[str, tuple[str, ...]], *, shown: bool) -> list[Line]:
    """A change, where the head does not say it; of code, how it is reached."""
    _, _, label = change.partition(": ")
    way = ways.get(label, ())
    reached: list[Line] = [[Span(f"    reached by {' → '.join(way)}", "dim")]] if len(way) > 1 else []
    return [*([[Span(f"  {change}")]] if shown else []), *reached]


def _part_lines(parts: tuple[Part, ...]) -> list[Line]:
    """What the key holds, a line for each kind."""
    by_group: dict[str, list[str]] = {}
    for part in parts:
        by_group.setdefault(part.group, []).append(_part_text(part))
    width = max((len(group) for group in by_group), default=0)
    return [[Span(f"  {group:<{width}}  ", "dim"), Span(listed(texts, most=12))] for group, texts in by_group.items()]


def _part_text(part: Part) -> str:
    return f"{part.name} {part.value}" if part.value else part.name
