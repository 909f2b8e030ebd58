"""`buildsys status`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.fates import alike, counts, known
from buildsys.cli.here import Here, in_variation
from buildsys.errors import NOT_UP_TO_DATE
from buildsys.phrases import counted
from buildsys.state.stamp import current
from buildsys.terminal import Line, Span, show

if TYPE_CHECKING:
    from buildsys.survey import Fate

    ByRule = dict[str, dict[Fate, int]]


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
    by_rule = _stamped(here, targets) or _surveyed(here, targets)
    up_to_date = all(set(n_by_fate) == {"reuse"} for n_by_fate in by_rule.values())
    if as_json:
        from buildsys.cli.output import print_json

        print_json({"up_to_date": up_to_date, "rules": by_rule})
    else:
        show(status_lines(by_rule), sys.stdout)
    return NOT_UP_TO_DATE if exit_code and not up_to_date else 0


def _stamped(here: Here, targets: tuple[str, ...]) -> ByRule | None:
    found = current(here.root, here.request(targets))
    return {rule: {"reuse": n} for rule, n in found.n_actions.items()} if found else None


def _surveyed(here: Here, targets: tuple[str, ...]) -> ByRule:
    from buildsys.survey import survey

    found = survey(here.project, here.request(targets).targets)
    rules: ByRule = {rule: {} for rule in [*(planned.action.rule for planned in found.actions), *found.guessed]}
    for group in alike(known(found), by=lambda planned: None):
        rules[group.first.action.rule][group.first.fate] = len(group.actions)
    return rules


def status_lines(by_rule: ByRule) -> list[Line]:
    width = max([14, *map(len, by_rule)])
    unknown: Line = [Span("its shards are not known yet", "dim")]
    lines: list[Line] = [
        [Span(f"  {rule:<{width}}  "), *(counts(n_by_fate) or unknown)] for rule, n_by_fate in by_rule.items()
    ]
    n_all = sum(n for n_by_fate in by_rule.values() for n in n_by_fate.values())
    n_waiting = n_all - sum(n_by_fate.get("reuse", 0) for n_by_fate in by_rule.values())
    n = counted(n_all, "action")
    is_complete = all(by_rule.values())
    last = f"{n} up to date" if is_complete and not n_waiting else f"{n_waiting:,} of {n} not up to date"
    return [*lines, [Span(last, "bold")]]
