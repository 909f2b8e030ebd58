"""`buildsys build`."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
import time
from contextlib import nullcontext
from typing import Final

import click

from buildsys.build import Options, build
from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.here import Here, in_variation
from buildsys.cli.output import plain
from buildsys.console import Console
from buildsys.errors import FAILED, INTERRUPTED
from buildsys.model import Event
from buildsys.terminal import wants_colour

_CODES: Final = {"done": 0, "failed": FAILED, "interrupted": INTERRUPTED}


@click.command(
    "build",
    cls=Command,
    examples=(
        ("buildsys build", "bring everything up to date"),
        ("buildsys build tokens", "one rule, and what it needs"),
        ("buildsys build 'tokens[0003]'", "one action"),
        ("buildsys build workspace/build/default/vocab", "what makes this path"),
        ("buildsys build -k -j 4", "go on after failures, four actions at a time"),
        ("buildsys build --force vocab", "run it though it is up to date"),
    ),
)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, shell_complete=complete_targets)
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Actions at a time; as many as processors.")
@click.option("-k", "--keep-going", is_flag=True, help="After a failure, go on with what does not need it.")
@click.option(
    "--force",
    metavar="TARGET",
    multiple=True,
    shell_complete=complete_targets,
    help="Run this rule or action though it is up to date. Replies that are in the log are not asked for again.",
)
@json_option("Print each event as a line of JSON.")
@in_variation
def command(
    here: Here, targets: tuple[str, ...], jobs: int | None, keep_going: bool, force: tuple[str, ...], as_json: bool
) -> int:
    """Bring outputs up to date.

    A TARGET is a rule, an action or the path of an output; without one, all rules are built that are built by default.
    """
    options = Options(
        targets=tuple(here.target(text) for text in targets),
        force=tuple(here.target(text) for text in force),
        jobs=jobs or os.cpu_count() or 1,
        keep_going=keep_going,
        command=shlex.join(["buildsys", *sys.argv[1:]]),
    )
    live = wants_region()
    console = nullcontext(EventLines()) if as_json else Console(sys.stderr, colour=wants_colour(sys.stderr), live=live)
    with console as emit:
        finished = build(here.project, options, emit)
    return _CODES[finished.outcome]


def wants_region() -> bool:
    """Standard error is a terminal that can go back to an earlier line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class EventLines:
    """Prints each event as a line of JSON, from any thread: its kind, the time, its fields."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        record = {"event": type(event).__name__, "time": round(time.time(), 3), **plain(event)}
        with self._lock:
            print(json.dumps(record, ensure_ascii=False), flush=True)
