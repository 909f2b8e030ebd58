"""`buildsys plan`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from buildsys.cli.command import Command, jobs_option, json_option, limit_options, retry_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.fates import WORDS, Alike, alike, counts, diagnostics, known, unknown_shards
from buildsys.cli.here import Here, in_variation
from buildsys.phrases import counted, duration, listed, money
from buildsys.spec.sizes import size_text
from buildsys.state.stamp import current
from buildsys.terminal import Line, Span, show

if TYPE_CHECKING:
    from buildsys.plan.estimate import Estimate
    from buildsys.plan.limits import Limit
    from buildsys.survey import Survey

_MOST_CHANGES: Final = 5


@click.command(
    "plan",
    cls=Command,
    examples=(
        ("buildsys plan", "what `buildsys build` would run, and why"),
        ("buildsys plan draft", "for one rule, and what it needs"),
        ("buildsys plan --json | jq .actions", "for a program"),
    ),
)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, shell_complete=complete_targets)
@jobs_option("Estimate for N actions at a time; as many as processors.")
@retry_option
@limit_options
@json_option("Print the plan as JSON.")
@in_variation
def command(here: Here, targets: tuple[str, ...], jobs: int, retry_failed: bool, as_json: bool, **limits: Any) -> None:
    """Say what a build would run, and why.

    It runs and changes nothing.

    What it takes is estimated from earlier builds. What was never done is named, and is not in the numbers.

    An action whose inputs are being made anew runs only if they come out different: it is told as "unless equal".

    A limit that the requests would pass is told: a build sends as many of them as it may.
    """
    request = here.request(targets)
    if not as_json and not retry_failed and (stamped := current(here.root, request)):
        show([_up_to_date(sum(stamped.n_actions.values()))], sys.stdout)
        return
    from buildsys.cli.output import print_json
    from buildsys.model import Limits
    from buildsys.survey import survey

    found = survey(here.project, request.targets, jobs, Limits(**limits), retry_refused=retry_failed)
    if as_json:
        print_json(
            {
                "up_to_date": found.up_to_date,
                "actions": found.actions,
                "guessed": found.guessed,
                "ephemeral": found.room,
                "estimate": found.estimate,
                "limits_passed": found.limits_passed,
            }
        )
    else:
        show(plan_lines(found), sys.stdout)
        show(diagnostics(found.actions), sys.stderr)
    found.room.refuse()


def plan_lines(found: Survey) -> list[Line]:
    """All that is not up to date, a line for each rule and reason, the differences below it."""
    if found.up_to_date:
        return [_up_to_date(len(found.actions))]
    actions = known(found)
    fates = Counter(planned.fate for planned in actions)
    waiting = [planned for planned in actions if planned.fate != "reuse"]
    groups = alike(waiting, by=lambda planned: planned.reason)
    unknown = unknown_shards(found)
    width = max([14, *(len(group.first.action.rule) for group in groups), *map(len, unknown)])
    lines: list[Line] = [[Span(f"{counted(len(actions), 'action')}: ", "bold"), *counts(fates)]]
    for group in groups:
        lines += _group_lines(group, width)
    told = {group.first.action.rule for group in groups}
    lines += [
        [Span(f"  {rule:<{width}}  "), Span("its shards are not known yet", "dim")]
        for rule in unknown
        if rule not in told
    ]
    guessed = [rule for rule in found.guessed if rule not in unknown]
    if guessed:
        lines.append([Span(f"the shards of {', '.join(guessed)} are taken to be those of the last build", "dim")])
    if found.estimate:
        lines += [*_estimate_lines(found.estimate), *_limit_lines(found.limits_passed, found.estimate.currency)]
    if found.room.needed:
        budget = found.room.budget
        of = f" of {size_text(budget)}" if budget is not None else ""
        lines.append([Span(f"{found.room.user} needs {size_text(found.room.needed)}{of} for ephemeral outputs", "dim")])
    return lines


def _estimate_lines(found: Estimate) -> list[Line]:
    """`about 49 s (8.0 s if all comes out equal) · at most 64 requests (448 answered), 1,920 tokens · 0.43 USD`."""
    parts = []
    if found.seconds is not None:
        sure_s = found.certain_s or 0.0
        at_least = f" ({duration(sure_s)} if all comes out equal)" if sure_s < 0.9 * found.seconds else ""
        parts.append(f"about {duration(found.seconds)}{at_least}")
    if found.requests or found.answered:
        tokens = f", {counted(round(found.output_tokens), 'token')}" if found.output_tokens else ""
        answered = f" ({found.answered:,} answered)" if found.answered else ""
        at_most = "at most " if found.requests else ""
        parts.append(f"{at_most}{counted(found.requests, 'request')}{answered}{tokens}")
    if found.gpu_s:
        parts.append(f"{found.gpu_s / 3600:.2g} GPU-hours")
    if found.cost is not None and parts:
        parts.append(money(found.cost, found.currency))
    lines: list[Line] = [[Span(" · ".join(parts))]] if parts else []
    unknown = {
        "time": [rule for rule in found.unknown_time if rule not in found.unknown_requests],
        "requests": found.unknown_requests,
        "tokens": found.unknown_tokens,
    }
    missing = [f"{what} of {listed(rules)}" for what, rules in unknown.items() if rules]
    return [*lines, *([[Span(f"not known: {'; '.join(missing)}", "dim")]] if missing else [])]


def _limit_lines(passed: Sequence[Limit], currency: str) -> list[Line]:
    """`max_requests is 10 requests, and up to 32 requests may be needed: a build sends what it may ...`."""
    from buildsys.plan.limits import amount_text

    lines: list[Line] = []
    for limit in passed:
        amount, most = (amount_text(limit.name, n, currency) for n in (limit.amount, limit.most))
        needed = f"{limit.name} is {most}, and up to {amount} may be needed"
        lines.append([Span(f"{needed}: a build sends what it may, and ends with exit code 6", "yellow")])
    return lines


def _up_to_date(n_actions: int) -> Line:
    return [Span(f"{counted(n_actions, 'action')} up to date")]


def _group_lines(group: Alike, width: int) -> list[Line]:
    planned = group.first
    _, words, style = WORDS[planned.fate]
    verb = "to run" if planned.fate == "maybe" else words
    first = [Span(f"  {planned.action.rule:<{width}}  "), Span(f"{len(group.actions):,} {verb}", style)]
    n_columns = len(first[1].text)
    first.append(Span(f"{' ' * max(2, 14 - n_columns)}{planned.reason}", "dim" if planned.fate == "maybe" else ""))
    changes = group.changes()
    more = [f"and {len(changes) - _MOST_CHANGES + 1} more"] if len(changes) > _MOST_CHANGES else []
    shown = [*changes[: _MOST_CHANGES - len(more)], *more]
    indent = " " * (width + 20)
    return [first, *([Span(f"{indent}{change}", "dim")] for change in shown)]
