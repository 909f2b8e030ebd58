"""`buildsys doctor`."""

from __future__ import annotations

import sys
from typing import Final

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.here import Here, in_profile
from buildsys.cli.output import print_json
from buildsys.doctor import Finding, Level, examine
from buildsys.errors import FAILED
from buildsys.phrases import counted
from buildsys.terminal import Line, Span, Style, show

_STYLES: Final[dict[Level, Style]] = {"ok": "green", "note": "yellow", "wrong": "red"}


@click.command(
    "doctor",
    cls=Command,
    examples=(
        ("buildsys doctor", "is anything wrong with this project, its state or this machine?"),
        ("buildsys doctor --deep", "the same, and read every byte of the store"),
    ),
)
@click.option("--deep", is_flag=True, help="Read every byte of the store, too.")
@json_option("Print the findings as JSON.")
@in_profile
def command(here: Here, deep: bool, as_json: bool) -> int:
    """Look for what is wrong, and say what to do.

    It changes nothing. It ends with 1 where something is wrong.
    """
    found = []
    for finding in examine(here.project, deep=deep):
        found.append(finding)
        if not as_json:
            show(_lines(finding), sys.stdout)
    n_wrong = sum(finding.level == "wrong" for finding in found)
    if as_json:
        print_json(found)
    else:
        show([[Span(f"{counted(n_wrong, 'thing')} wrong" if n_wrong else "nothing is wrong", "bold")]], sys.stdout)
    return FAILED if n_wrong else 0


def _lines(finding: Finding) -> list[Line]:
    """A line, and below it what does not fit there."""
    first = [Span(f"  {finding.level:<6}", _STYLES[finding.level]), Span(f"{finding.about:<13}{finding.what}")]
    more = [text for text in (finding.where, f"hint: {finding.hint}" if finding.hint else "") if text]
    return [first, *([Span(f"{'':<21}{text}", "dim")] for text in more)]
