"""`buildsys accept`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from buildsys.accept import Accepted, accept, undo
from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.here import Here, in_profile
from buildsys.cli.output import print_json
from buildsys.phrases import counted, listed
from buildsys.terminal import Line, Span, show


@click.command(
    "accept",
    cls=Command,
    examples=(
        ("buildsys accept tokens --reason 'renamed'", "what there is of it holds; see first: buildsys why tokens"),
        ("buildsys accept 'tokens[0003]'", "that of one shard alone"),
        ("buildsys accept tokens --undo", "take it back: it will run"),
    ),
)
@click.argument("target", metavar="RULE", shell_complete=complete_targets)
@click.option("--reason", metavar="TEXT", default="", help="Why; shown by `why` and `lineage`.")
@click.option("--undo", "is_undo", is_flag=True, help="Accept it no more.")
@json_option("Print the actions and what changed of their code as JSON.")
@in_profile
def command(here: Here, target: str, reason: str, is_undo: bool, as_json: bool) -> None:
    """Say that outputs hold though the code has changed.

    On your word: nothing is run or compared. Refused where anything but the code has changed, and for rules that ask a
    server for replies.
    """
    said = " ".join(reason.split())
    done = (undo if is_undo else accept)(here.project, here.target(target), said)
    if as_json:
        print_json(done)
    else:
        show(_lines(target, done, is_undo=is_undo), sys.stdout)


def _lines(target: str, done: Sequence[Accepted], *, is_undo: bool) -> list[Line]:
    if not done:
        return [[Span(f"nothing to accept: {target} is up to date")]]
    names = listed((str(one.action) for one in done), most=4)
    n_actions = counted(len(done), "action")
    if is_undo:
        return [[Span("no more accepted", "bold"), Span(f": {n_actions} ({names})")]]
    changes = dict.fromkeys(change for one in done for change in one.changes)
    return [
        [Span("accepted", "bold"), Span(f": {n_actions} ({names}), whatever came of this:")],
        *([Span(f"  {change}")] for change in changes),
        [Span(f"undone by: buildsys accept {target} --undo", "dim")],
    ]
