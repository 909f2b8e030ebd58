"""`buildsys profiles`."""

from __future__ import annotations

import datetime
import sys

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.here import Here, in_project
from buildsys.cli.output import print_json
from buildsys.phrases import counted
from buildsys.profiles import Profile, profiles
from buildsys.request import DEFAULT_PROFILE
from buildsys.terminal import Line, Span, error_lines, show


@click.command(
    "profiles",
    cls=Command,
    examples=(
        ("buildsys profiles", "those that there are, and what each gives other values"),
        ("buildsys build --profile sampled", "build one of them"),
    ),
)
@json_option("Print the profiles as JSON.")
@in_project
def command(here: Here, as_json: bool) -> None:
    """List the profiles: what each changes, and its last build."""
    found = profiles(here.project)
    if as_json:
        print_json(found)
    else:
        show(profile_lines(found), sys.stdout)


def profile_lines(found: list[Profile]) -> list[Line]:
    """A line a profile, and below it a line for each key that it gives another value."""
    width = max(len(profile.name) for profile in found)
    return [line for profile in found for line in _lines(profile, width)]


def _lines(profile: Profile, width: int) -> list[Line]:
    gone = not (profile.overlays or profile.error or profile.name == DEFAULT_PROFILE)
    note = " · its overlay is gone" if gone else ""
    head: Line = [Span(f"{profile.name:<{width}}  ", "bold"), Span(_built(profile)), Span(note, "yellow")]
    keys = max((len(change.key) for change in profile.changes), default=0)
    changes: list[Line] = [
        [Span(f"  {change.key:<{keys}}  ", "dim"), Span(f"{change.before} → {change.after}")]
        for change in profile.changes
    ]
    return [head, *changes, *error_lines(profile.error)] if profile.error else [head, *changes]


def _built(profile: Profile) -> str:
    last = profile.last
    if last is None:
        return "never built"
    when = last.started.replace(tzinfo=datetime.UTC).astimezone()
    return f"{counted(last.n_actions, 'action')} · run {last.run_id}, {when:%Y-%m-%d %H:%M}: {last.outcome or 'runs'}"
