"""`buildsys service` and its commands: `status`, `up`, `down`, `logs`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from buildsys.cli.command import SETTINGS, Command, DefaultGroup, json_option
from buildsys.cli.complete import services as complete_services
from buildsys.cli.here import Here, in_profile, in_project, in_variation
from buildsys.cli.log import service_logs
from buildsys.cli.output import print_json
from buildsys.errors import FAILED, BuildError
from buildsys.phrases import duration
from buildsys.run.kept import KEPT, Kept, all_kept, find, log_path
from buildsys.serving import KeyState, Standing, bring_down, bring_up, standings
from buildsys.terminal import Line, Screen, Span, Style, error_lines, show, wants_colour, wants_region

_FOLLOW_S: Final = 0.2
_KEYS: Final[dict[KeyState, Line]] = {
    "stale": [Span("stale", "yellow"), Span(": a build starts it anew")],
    "unknown": [Span("a build first makes what it reads")],
    "undeclared": [Span("no rule file declares it", "yellow")],
}
_STYLES: Final[dict[str, Style]] = {"ready": "green", "not ready": "yellow", "ended": "red", "down": "dim"}


@click.group(
    "service",
    cls=DefaultGroup,
    default="status",
    context_settings=SETTINGS,
    examples=(
        ("buildsys service", "which are up, where, and whether a build would use them"),
        ("buildsys service up verifier", "start one; builds use it until it is brought down"),
        ("buildsys service logs -f verifier", "what it prints"),
        ("buildsys service down", "end all that stay, and what they started"),
    ),
)
def command() -> None:
    """Start, end and look at the servers that actions need.

    A server that a build starts ends with it, unless its rule file says `keep = true`, or `buildsys service up` started
    it. Those stay until they are brought down, or until a build needs another one in their place.
    """


def names_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_services)(function)


@command.command(
    "status",
    cls=Command,
    examples=(
        ("buildsys service status", "all of them"),
        ("buildsys service status --json | jq '.[].url'", "for a program"),
    ),
)
@names_argument
@json_option("Print name, state, URL, process and more as JSON.")
@in_variation
def status(here: Here, names: tuple[str, ...], as_json: bool) -> None:
    """Say which services are up, where, and whether a build would use them."""
    found = standings(here.project, names)
    if as_json:
        print_json([_as_json(one) for one in found])
    else:
        width = max([14, *(len(one.name) for one in found)])
        show([_line(one, width) for one in found], sys.stdout)
        show([] if found else [[Span("no rule file declares a service")]], sys.stderr)


def _as_json(one: Standing) -> dict[str, object]:
    since = datetime.fromtimestamp(one.since).astimezone().isoformat(timespec="seconds") if one.since else ""
    return {**vars(one), "since": since}


def _line(one: Standing, width: int) -> Line:
    line = [Span(f"  {one.name:<{width}}  "), Span(f"{one.state:<10}", _STYLES[one.state])]
    if one.state == "ended":
        return [*line, Span(f"{one.ended or 'exit code 0'} · log: {one.log}", "dim")]
    if one.state == "down":
        return line
    line.append(Span(f"{one.url}  pid {one.pid}  up for {duration(time.time() - one.since)}  "))
    return [*line, *_KEYS.get(one.key, [])]


@command.command(
    "up",
    cls=Command,
    examples=(
        ("buildsys service up", "start all of them, and wait until they answer"),
        ("buildsys service up verifier", "one; one that is up already stays as it is"),
    ),
)
@names_argument
@in_variation
def up(here: Here, names: tuple[str, ...]) -> int:
    """Start services and wait until they answer.

    They are started as a build would start them, builds use them, and they stay until they are brought down. What they
    read must be there: source files, or outputs that are up to date. Ctrl-C leaves those that are loading.
    """
    began = time.time()
    with Progress(here.project.state / KEPT) as progress:
        found = bring_up(here.project, names, shlex.join(["buildsys", *sys.argv[1:]]), progress.show)
    lines: list[Line] = []
    for name, kept in found.items():
        if isinstance(kept, BuildError):
            lines += error_lines(kept.render())
            continue
        where = kept.url.partition("//")[2]
        how = f"ready on {where} ({duration(time.time() - began)})" if kept.since >= began else f"up already on {where}"
        lines.append([Span(f"{name} {how}")])
    show(lines, sys.stderr)
    return FAILED if any(isinstance(kept, BuildError) for kept in found.values()) else 0


class Progress:
    """On a terminal, the last line that each server printed which is being waited for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.time()
        self._live = wants_region(sys.stderr)
        self._screen = Screen(sys.stderr, colour=wants_colour(sys.stderr))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        loading = [f"{kept.name} goes on loading; `buildsys service down {kept.name}` ends it" for kept in self._new()]
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        self._screen.write([[Span(line)] for line in loading] if interrupted else [])

    def show(self) -> None:
        if self._live:
            self._screen.write([], [self._line(kept) for kept in self._new()])

    def _new(self) -> list[Kept]:
        return [kept for kept in all_kept(self._folder) if kept.up and kept.since >= self._began]

    def _line(self, kept: Kept) -> Line:
        head = f"  {kept.name}  starting for {duration(time.time() - kept.since)}  "
        return [Span(head, "bold"), Span(_last_line(log_path(self._folder, kept.name)), "dim")]


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").replace("\r", "\n").split("\n")
    except OSError:
        return ""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return "".join(character for character in last if character.isprintable())


@command.command(
    "down",
    cls=Command,
    examples=(
        ("buildsys service down", "end all that stay"),
        ("buildsys service down verifier", "one, and all that it started"),
    ),
)
@names_argument
@in_project
def down(here: Here, names: tuple[str, ...]) -> None:
    """End services that stay, with all processes that they started.

    They are asked to end, and killed three seconds later. An action that needs one meanwhile fails.
    """
    ended = [kept.name for kept in bring_down(here.project, names)]
    lines: list[Line] = [[Span(f"{name} is down")] for name in ended]
    lines += [[Span(f"{name} is not up")] for name in dict.fromkeys(names) if name not in ended]
    show(lines or [[Span("no service is up")]], sys.stderr)


@command.command(
    "logs",
    cls=Command,
    examples=(
        ("buildsys service logs verifier", "all that it has printed"),
        ("buildsys service logs -f", "what all of them print, until Ctrl-C"),
    ),
)
@names_argument
@click.option("-f", "--follow", is_flag=True, help="Go on as they print more, until all of them have ended.")
@json_option("Print the paths of the logs as JSON, by name.")
@in_profile
def logs(here: Here, names: tuple[str, ...], follow: bool, as_json: bool) -> None:
    """Show what services have printed since they were started."""
    found = service_logs(here, names)
    if as_json:
        print_json({name: path.relative_to(here.project.root).as_posix() for name, path in found.items()})
        return
    servers = [find(here.project.state / KEPT, name) for name in found]
    tail = Tail(found)
    tail.copy()
    # Of a server that ends with its build, nobody knows whether it has.
    while follow and any(kept is None or not kept.gone for kept in servers):
        time.sleep(_FOLLOW_S)
        tail.copy()


class Tail:
    """Copies to standard output what is new in some files, with a heading where there are several."""

    def __init__(self, paths: dict[str, Path]) -> None:
        self._paths = paths
        self._read = dict.fromkeys(paths, 0)
        self._last = "" if len(paths) > 1 else next(iter(paths))

    def copy(self) -> None:
        for name, path in self._paths.items():
            with path.open("rb") as log:
                size = os.fstat(log.fileno()).st_size
                if size < self._read[name]:  # A server was started anew.
                    self._read[name] = 0
                if size == self._read[name]:
                    continue
                if name != self._last:
                    sys.stdout.buffer.write(f"==> {name} <==\n".encode())
                    self._last = name
                log.seek(self._read[name])
                shutil.copyfileobj(log, sys.stdout.buffer)
                self._read[name] = log.tell()
        sys.stdout.buffer.flush()
