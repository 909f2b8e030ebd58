"""`buildsys init`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from buildsys.cli.command import Command, folder_option
from buildsys.diagnostics import missing_packages
from buildsys.model import Diagnostic
from buildsys.phrases import counted
from buildsys.project import Project
from buildsys.template import TEMPLATES, Started, start
from buildsys.terminal import Line, Span, error_lines, show

_EDIT: Final = "workspace/data/prompts/0001.jsonl"


@click.command(
    "init",
    cls=Command,
    examples=(
        ("buildsys init demo", "a small project in a new folder; it builds within seconds, offline"),
        ("buildsys init", "in this folder"),
        ("buildsys init --template eagle3 draft", "the pipeline that trains an EAGLE-3 draft"),
    ),
)
@click.argument("project", metavar="[DIR]", default=".")
@click.option(
    "--template",
    type=click.Choice(TEMPLATES),
    default=TEMPLATES[0],
    help="first: two shards of prompts, a script, a check; the default. eagle3: the whole pipeline, with its verifier.",
)
@folder_option
def command(folder: str, project: str, template: str) -> None:
    """Make a project to start from.

    It overwrites nothing: files that are in the way are told, and nothing is written then.
    """
    root = Path(click.get_current_context().find_root().obj, folder, project)
    started = start(root, template)
    show(_lines(started, project, template, missing_packages(Project(root))), sys.stderr)


def _lines(started: Started, folder: str, template: str, missing: Sequence[Diagnostic]) -> list[Line]:
    rule_file = next(path for path in started.paths if path.startswith("rules/"))
    lines: list[Line] = [[Span(f"{counted(len(started.paths), 'file')} in {folder}", "bold")]]
    lines.append([Span(f"  {rule_file}  says what is made from what: start reading there")])
    if started.unignored:
        lines.append([Span(f"  your .gitignore is left as it is; add to it: {' '.join(started.unignored)}", "yellow")])
    enter = "" if folder == "." else f"cd {shlex.quote(folder)} && "
    lines.append([Span(f"try: {enter}buildsys build")])
    if template != "eagle3":
        lines.append([Span(f"then change a question in {_EDIT}, and: buildsys plan")])
    return [*lines, *(line for one in missing for line in error_lines(one.render()))]
