"""`buildsys build`."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from buildsys.cli.command import Command, jobs_option, json_option, limit_options, retry_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.here import Here, in_variation
from buildsys.errors import FAILED, INTERRUPTED, LIMIT
from buildsys.phrases import up_to_date
from buildsys.request import Request
from buildsys.state.stamp import current
from buildsys.terminal import Span, show, wants_colour, wants_region

if TYPE_CHECKING:
    from buildsys.events import Event

_CODES: Final = {"done": 0, "failed": FAILED, "limit": LIMIT, "interrupted": INTERRUPTED}


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
        ("buildsys build --max-requests 1000", "send no more than that, and keep the replies"),
        ("buildsys build --retry-failed", "ask again what a server refused"),
    ),
)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, shell_complete=complete_targets)
@jobs_option("Actions at a time; as many as processors.")
@click.option("-k", "--keep-going", is_flag=True, help="After a failure, go on with what does not need it.")
@click.option(
    "--force",
    metavar="TARGET",
    multiple=True,
    shell_complete=complete_targets,
    help="Run this rule or action though it is up to date. Replies that are in the log are not asked for again.",
)
@retry_option
@limit_options
@json_option("Print each event as a line of JSON; how far requests are, once a second.")
@in_variation
def command(
    here: Here,
    targets: tuple[str, ...],
    jobs: int,
    keep_going: bool,
    force: tuple[str, ...],
    retry_failed: bool,
    as_json: bool,
    **limits: Any,
) -> int:
    """Bring outputs up to date.

    A TARGET is a rule, an action or the path of an output; without one, all rules are built that are built by default.

    A limit of requests keeps what was answered, and ends the build with exit code 6 once all else is done.

    A request that its server refused (400, 413, 422) leaves an error in the output, and is asked again only by
    `--retry-failed`. What is made from the answers follows.
    """
    started = time.monotonic()
    command_line = shlex.join(["buildsys", *sys.argv[1:]])
    request = here.request(targets)
    if not force and not retry_failed and (found := current(here.root, request)):
        _tell_nothing_to_do(found.n_actions, request, command_line, time.monotonic() - started, as_json)
        return 0
    from buildsys.build import Options, build
    from buildsys.model import Limits

    options = Options(
        targets=request.targets,
        force=tuple(here.target(text) for text in force),
        jobs=jobs,
        keep_going=keep_going,
        command=command_line,
        limits=Limits(**limits),
        retry_failed=retry_failed,
    )
    with _console(as_json) as emit:
        finished = build(here.project, options, emit)
    return _CODES[finished.outcome]


def _tell_nothing_to_do(
    n_actions: Mapping[str, int], request: Request, command_line: str, seconds: float, as_json: bool
) -> None:
    """What a build tells that looks at everything and finds it up to date, as JSON without a line for each action."""
    n = sum(n_actions.values())
    if not as_json:
        show([[Span(up_to_date(n, seconds))]], sys.stderr)
        return
    from buildsys.cli.events import EventLines
    from buildsys.events import BuildFinished, BuildStarted, ShardsKnown
    from buildsys.model import RuleName

    emit = EventLines()
    emit(BuildStarted(command_line, request.targets, tuple(map(RuleName, n_actions))))
    for rule, n_of_rule in n_actions.items():
        emit(ShardsKnown(RuleName(rule), n_of_rule))
    emit(BuildFinished(0, "done", seconds, {"reused": n}))


def _console(as_json: bool) -> AbstractContextManager[Callable[[Event], None]]:
    from buildsys.cli.events import EventLines
    from buildsys.console import Console

    if as_json:
        return nullcontext(EventLines())
    return Console(sys.stderr, colour=wants_colour(sys.stderr), live=wants_region(sys.stderr))
