"""`buildsys gc`."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Final

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.here import Here, in_project
from buildsys.cli.output import print_json
from buildsys.collect import Collector, Keep, Kind, Plan
from buildsys.errors import BuildError
from buildsys.phrases import counted
from buildsys.spec.sizes import size_text
from buildsys.state.lock import hold
from buildsys.terminal import Line, Span, show

_RUNS: Final = 5
_NOUNS: Final[dict[Kind, str]] = {
    "store": "object",
    "ephemeral": "action",
    "replies": "request",
    "scratch": "folder",
    "links": "folder",
    "staging": "folder",
}


@click.command(
    "gc",
    cls=Command,
    examples=(
        ("buildsys gc --dry-run", "what would go, why, and how much it is"),
        ("buildsys gc", "remove it; what holds now stays, in all profiles"),
        ("buildsys gc --keep-runs 1", "also what earlier runs made, so that going back to them runs them"),
        ("buildsys gc --pin 41", "keep all that held at the end of run 41, from now on"),
        ("buildsys gc --replies", "also raw replies that no result rests on; to ask again costs"),
    ),
)
@click.option("-n", "--dry-run", is_flag=True, help="Remove nothing.")
@click.option(
    "--keep-runs",
    metavar="N",
    type=click.IntRange(min=1),
    default=_RUNS,
    help=f"Keep what the last N runs made or left in place; {_RUNS} without it.",
)
@click.option("--pin", metavar="RUN", type=int, multiple=True, help="Keep the state that RUN left, until --unpin.")
@click.option("--unpin", metavar="RUN", type=int, multiple=True, help="Keep it no more. Neither removes anything yet.")
@click.option("--scratch", is_flag=True, help="Remove all scratch folders: what was interrupted starts anew.")
@click.option("--replies", is_flag=True, help="Remove replies that no result which stays rests on. Asks first.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option("Print what went, and what stayed, as JSON.")
@in_project
def command(
    here: Here,
    dry_run: bool,
    keep_runs: int,
    pin: tuple[int, ...],
    unpin: tuple[int, ...],
    scratch: bool,
    replies: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove what nothing needs any more.

    That is old results, old logs, and leftovers. What was removed is made again when it is needed. Raw replies and what
    interrupted actions left in their scratch folders stay, unless they are asked for.
    """
    state = here.project.state
    keep = Keep(keep_runs, replies=not replies, scratch=not scratch)
    if not state.is_dir():
        raise BuildError("nothing was built here yet", hint="buildsys build")
    with hold(state / "lock", "buildsys gc"), closing(Collector(here.project)) as collector:
        if pin or unpin:
            collector.pin(pin, no_more=unpin)
            _say(collector.pinned(), as_json)
            return
        plan = collector.plan(keep)
        if not as_json:
            show(_lines(plan), sys.stdout)
        if not dry_run:
            _ask(plan, yes)
            collector.collect(plan)
    if as_json:
        gone = [
            {"kind": one.kind, "what": one.what, "why": one.why, "size": one.size, "n": len(one.names)}
            for one in plan.unneeded
        ]
        print_json(
            {"removed": not dry_run, "size": plan.size, "unneeded": gone, "kept": plan.kept, "pinned": plan.pinned}
        )
    else:
        show([_total(plan, dry_run)], sys.stdout)


def _say(pinned: list[int], as_json: bool) -> None:
    if as_json:
        print_json({"pinned": pinned})
    else:
        print(f"pinned: {', '.join(map(str, pinned)) or 'no run'}", file=sys.stderr)


def _ask(plan: Plan, yes: bool) -> None:
    """Raises BuildError where replies would go and nobody says that they may."""
    n = sum(len(one.names) for one in plan.unneeded if one.kind == "replies")
    if not n or yes:
        return
    if not sys.stdin.isatty():
        raise BuildError(f"{counted(n, 'request')} would have to be paid for again", hint="say so with --yes")
    click.confirm(f"forget the replies to {counted(n, 'request')}, for good?", abort=True, err=True)


def _lines(plan: Plan) -> list[Line]:
    width = max([14, *(len(one.what) for one in plan.unneeded)])
    return [
        [
            Span(f"  {one.kind:<10}{one.what:<{width}}"),
            Span(f"{size_text(one.size):>8}  ", "bold"),
            Span(f"{counted(len(one.names), _NOUNS.get(one.kind, 'file')):<14}"),
            Span(one.why, "dim"),
        ]
        for one in plan.unneeded
    ]


def _total(plan: Plan, dry_run: bool) -> Line:
    stays = ", ".join(f"{kind} {size_text(size)}" for kind, size in plan.kept.items() if size)
    freed = f"{size_text(plan.size)} {'would be freed' if dry_run else 'freed'}"
    return [
        Span(freed if plan.unneeded else "nothing to remove", "bold"),
        Span(f" · stays: {stays or 'nothing'}", "dim"),
    ]
