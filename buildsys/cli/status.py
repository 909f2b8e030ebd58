"""`buildsys status`."""

from __future__ import annotations

import sys

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.fates import alike, counts, known, unknown_shards
from buildsys.cli.here import Here, in_variation
from buildsys.cli.output import print_json
from buildsys.errors import NOT_UP_TO_DATE
from buildsys.phrases import counted
from buildsys.survey import Survey, survey
from buildsys.terminal import Line, Span, show


@click.command(
    "status",
    cls=Command,
    examples=(
        ("buildsys status", "one line a rule"),
        ("buildsys status --exit-code draft", "in a script: ends with 4 if draft is not up to date"),
    ),
)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, shell_complete=complete_targets)
@click.option("--exit-code", is_flag=True, help="End with 4 if anything is not up to date.")
@json_option("Print the number of actions by rule and fate as JSON.")
@in_variation
def command(here: Here, targets: tuple[str, ...], exit_code: bool, as_json: bool) -> int:
    """Say which rules are up to date.

    It runs and changes nothing.
    """
    found = survey(here.project, [here.target(text) for text in targets])
    if as_json:
        print_json({"up_to_date": found.up_to_date, "rules": _by_rule(found)})
    else:
        show(status_lines(found), sys.stdout)
    return NOT_UP_TO_DATE if exit_code and not found.up_to_date else 0


def _by_rule(found: Survey) -> dict[str, dict[str, int]]:
    rules: dict[str, dict[str, int]] = {rule: {} for rule in unknown_shards(found)}
    for group in alike(known(found), by=lambda planned: None):
        rules.setdefault(group.first.action.rule, {})[group.first.fate] = len(group.actions)
    return rules


def status_lines(found: Survey) -> list[Line]:
    known_actions = known(found)
    rules = dict.fromkeys([*(planned.action.rule for planned in found.actions), *found.guessed])
    width = max([14, *map(len, rules)])
    lines: list[Line] = []
    for rule in rules:
        actions = [planned for planned in known_actions if planned.action.rule == rule]
        lines.append(
            [Span(f"  {rule:<{width}}  "), *(counts(actions) or [Span("its shards are not known yet", "dim")])]
        )
    n_waiting = sum(planned.fate != "reuse" for planned in known_actions)
    n = counted(len(known_actions), "action")
    last = f"{n} up to date" if found.up_to_date else f"{n_waiting:,} of {n} not up to date"
    return [*lines, [Span(last, "bold")]]
