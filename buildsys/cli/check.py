"""`buildsys check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.here import Here, in_variation
from buildsys.cli.output import print_json
from buildsys.diagnostics import check
from buildsys.errors import FAILED
from buildsys.model import Diagnostic
from buildsys.phrases import counted
from buildsys.prepare import Preparer
from buildsys.terminal import Line, Span, error_lines, show


@click.command(
    "check",
    cls=Command,
    examples=(
        ("buildsys check", "is anything wrong with the scripts, before they run?"),
        ("buildsys check --json | jq .diagnostics", "for a program, such as an editor"),
    ),
)
@json_option("Print the diagnostics as JSON.")
@in_variation
def command(here: Here, as_json: bool) -> int:
    """Say what is wrong with rules and scripts, and run nothing.

    It reads all rule files, the scripts of all rules, and what these import of the project.

    It ends with 1 where something blocks a rule. A warning blocks nothing, nor does a package that is not installed.
    """
    graph = here.project.graph()
    diagnostics, diagnosis = check(here.project, graph, Preparer(here.project, graph))
    counts = diagnosis.n_scripts, diagnosis.n_modules
    if as_json:
        print_json({"diagnostics": diagnostics, "scripts": counts[0], "modules": counts[1]})
    else:
        show(check_lines(diagnostics, *counts), sys.stdout)
        if diagnosis.trouble:
            show([[Span("warning:", "yellow"), Span(f" {diagnosis.trouble}")]], sys.stderr)
    return FAILED if any(one.level == "error" for one in diagnostics) else 0


def check_lines(diagnostics: Sequence[Diagnostic], n_scripts: int, n_modules: int) -> list[Line]:
    """Every diagnostic in full, then what was looked at and what it came to."""
    lines = [line for one in diagnostics for line in error_lines(one.render())]
    levels = [one.level for one in diagnostics]
    blocked = dict.fromkeys(rule for one in diagnostics if one.level == "error" for rule in one.rules)
    if blocked:
        lines.append([Span("blocked:", "yellow"), Span(f" {', '.join(blocked)}")])
    counts = [counted(n, level) for level in ("error", "warning", "note") if (n := levels.count(level))]
    looked_at = f"{counted(n_scripts, 'script')}, {counted(n_modules, 'module')}: "
    return [*lines, [Span(looked_at, "bold"), Span(", ".join(counts) or "nothing found")]]
