"""`buildsys why`."""

from __future__ import annotations

import datetime
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.fates import WORDS, Alike, alike, diagnostics
from buildsys.cli.here import Here, in_variation
from buildsys.cli.output import print_json
from buildsys.explain import Basis, Changed, Explained, explain
from buildsys.model import Discovered, Part, RuleName
from buildsys.phrases import counted, listed
from buildsys.survey import Planned
from buildsys.terminal import Line, Span, Style, show

_MOST_OF_DIFF: Final = 40
_MOST_CAUSES: Final = 4
_SHOWN_OF_DIGEST: Final = 12
_STYLES: Final[dict[str, Style]] = {"-": "red", "+": "green", "@": "cyan"}
_DISCOVERED: Final = {
    "file": "{} read",
    "folder": "{} listed",
    "exists": "{} looked for",
    "variable": "{} asked for",
    "package": "{} imported",
}
_NOUNS: Final = {"exists": "path"}


@click.command(
    "why",
    cls=Command,
    examples=(
        ("buildsys why 'tokens[0003]'", "why one action will run, or what its result rests on"),
        ("buildsys why draft", "all actions of a rule"),
        ("buildsys why workspace/build/default/vocab", "whatever makes this path"),
        ("buildsys why tokens --full", "long diffs as well, and every part of the key"),
    ),
)
@click.argument("target", shell_complete=complete_targets)
@click.option("--full", is_flag=True, help="Print diffs as long as they are, and all that was compared.")
@json_option("Print each action, its fate, all parts of its key and what changed of them as JSON.")
@in_variation
def command(here: Here, target: str, full: bool, as_json: bool) -> None:
    """Explain why an action runs, or what its result rests on."""
    explained = explain(here.project, here.target(target))
    if as_json:
        print_json(explained)
        return
    show(why_lines(explained, full=full), sys.stdout)
    show(diagnostics(each.planned for each in explained), sys.stderr)


def why_lines(explained: Sequence[Explained], *, full: bool = False) -> list[Line]:
    """Actions with the same differences are told once; where one alone was asked about, also what was compared.

    full: leave nothing out.
    """
    of_action = {each.planned.action: each for each in explained}
    groups = alike((each.planned for each in explained), by=lambda planned: _told(of_action[planned.action]))
    lines: list[Line] = []
    for group in groups:
        causes = {cause.action: cause for one in group.actions for cause in of_action[one.action].causes}
        lines += [_head(group, len(explained)), *_reasons(of_action[group.first.action], full=full)]
        lines += _causes(causes.values(), full=full)
    if len(explained) == 1 and (full or explained[0].planned.fate == "reuse"):
        lines += _compared(explained[0], full=full)
    return lines


def _told(one: Explained) -> tuple[object, ...]:
    """What makes two actions one to tell of."""
    return one.planned.reason, one.changes, tuple((cause.action.rule, cause.reason) for cause in one.causes)


def _head(group: Alike, n_of_rule: int) -> Line:
    planned = group.first
    words, _, style = WORDS[planned.fate]
    if len(group.actions) > 1:
        words = words.replace("is ", "are ")
    reason = planned.reason.removeprefix("up to date").removeprefix("; ")
    return [Span(f"{group.name(n_of_rule)} ", "bold"), Span(words, style), Span(f": {reason}" if reason else "")]


# ---------------------------------------------------------------- what changed


def _reasons(one: Explained, *, full: bool) -> Iterator[Line]:
    """Each difference, where the head does not say it, with all that is known of it."""
    holds = one.planned.fate == "reuse"
    if one.changes and holds:
        yield [Span("  changed since, and its result holds all the same:")]
    for change in one.changes:
        if change.line != one.planned.reason:
            yield [Span(f"  {change.line}")]
        if full or not holds:
            yield from _details(change, full=full)


def _causes(causes: Iterable[Planned], *, full: bool) -> Iterator[Line]:
    """What an action waits for."""
    groups = alike(causes, by=lambda planned: planned.reason)
    for group in groups[: None if full else _MOST_CAUSES]:
        words, _, style = WORDS[group.first.fate]
        yield [Span(f"  before it, {group.name(0)} "), Span(words, style), Span(f": {group.first.reason}")]
    if len(groups) > _MOST_CAUSES and not full:
        yield [Span(f"  and {len(groups) - _MOST_CAUSES} more; all of them: --full", "dim")]


def _details(change: Changed, *, full: bool) -> Iterator[Line]:
    """Below the line of a change: what that does not say."""
    if len(change.via) > 1:
        yield [Span(f"    reached by {' → '.join(change.via)}", "dim")]
    if change.group == "code":
        yield from _diff(change, full=full)
    elif change.group in ("input", "discovered") and change.old and change.new:
        yield [Span(f"    {_short(change.old, full)} → {_short(change.new, full)}", "dim")]
    elif change.group == "param" and change.place:
        yield [Span(f"    {change.place}", "dim")]
    elif change.group == "rule":
        yield from ([Span(f"    {sign} {value}", _STYLES[sign])] for sign, value in _values(change))
    for inner in change.within:
        yield [Span(f"    {inner.line}")]
        yield from ([Span("  "), *line] for line in _details(inner, full=full))


def _values(change: Changed) -> Iterator[tuple[str, str]]:
    yield from ((sign, value) for sign, value in (("-", change.old), ("+", change.new)) if value is not None)


def _diff(change: Changed, *, full: bool) -> Iterator[Line]:
    lines = change.diff if full else change.diff[:_MOST_OF_DIFF]
    yield from ([Span(f"    {line}", _STYLES.get(line[0], ""))] for line in lines)
    if left := len(change.diff) - len(lines):
        yield [Span(f"    … {counted(left, 'more line')}; all of it: --full", "dim")]
    if not change.diff and change.old and change.new and change.after is not None:
        if change.before is None:
            yield [Span("    what it looked like before was not kept", "dim")]
        elif change.before == change.after:
            told = "its text is the same; what counts of it is not: docstrings, annotations, lines or names around it"
            yield [Span(f"    {told}", "dim")]


# ---------------------------------------------------------------- what was compared


def _compared(one: Explained, *, full: bool) -> Iterator[Line]:
    """What the key holds and what is in place, a line for each kind, or for each part."""
    is_equal = one.planned.fate == "reuse"
    if one.basis:
        yield from basis_lines(one.basis, one.planned.action.rule, full=full)
    if is_equal:
        told = "all else" if one.changes else "all of it"
        yield [Span(f"  compared with what there is now, {told} is equal:")]
    rows = [*_part_rows(one.parts, full=full)]
    if one.basis:
        rows += [("discovered", text) for text in discovered_texts(one.basis.discovered, full=full)]
    if one.basis and is_equal:
        rows += _place_rows(one.basis, full=full)
    width = max((len(group) for group, _ in rows), default=0)
    yield from ([Span(f"  {group:<{width}}  ", "dim"), Span(text)] for group, text in rows)
    if rows and not full:
        yield [Span("  each of them: --full", "dim")]


def basis_lines(basis: Basis, rule: RuleName, *, full: bool = False) -> Iterator[Line]:
    """Which run made the result that holds, under which key, and under which other one it counts, and why."""
    when = f", {_local(basis.started)}" if basis.started else ""
    yield [Span(f"  made by run {basis.run_id}{when}"), Span(f", key {_short(basis.key, full)}", "dim")]
    if basis.alias:
        is_accepted = basis.alias.said_by == "accepted"
        because = f": {basis.alias.reason}" if basis.alias.reason else ""
        yield [
            Span("  accepted by a user" if is_accepted else "  counts as it is now"),
            Span(because),
            Span(f", key {_short(basis.alias.key, full)}", "dim"),
        ]
        if is_accepted:
            yield [Span(f"  undone by: buildsys accept {rule} --undo", "dim")]


def _local(utc: datetime.datetime) -> str:
    return utc.replace(tzinfo=datetime.UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _part_rows(parts: Iterable[Part], *, full: bool) -> Iterator[tuple[str, str]]:
    by_group: dict[str, list[Part]] = {}
    for part in parts:
        by_group.setdefault(part.group, []).append(part)
    for group, found in by_group.items():
        yield from ((group, text) for text in _part_texts(group, found, full=full))


def _place_rows(basis: Basis, *, full: bool) -> Iterator[tuple[str, str]]:
    """The outputs as they were found, and the checks that hold for them."""
    artifacts = [made.artifact for made in basis.outputs]
    most = len(artifacts) if full else 4
    texts = (f"{artifact.path} {_short(artifact.digest, full)}" for artifact in artifacts)
    yield "dropped" if basis.dropped else "in place", listed(texts, most)
    passed = [name for name in basis.checks if name not in basis.warned]
    told = [f"{', '.join(names)}: {what}" for names, what in ((passed, "passed"), (basis.warned, "warned")) if names]
    if told:
        yield "checks", "; ".join(told)


def _part_texts(group: str, parts: Sequence[Part], *, full: bool) -> Iterator[str]:
    if full:
        yield from map(_whole, parts)
    elif group == "code":
        n_by_file = Counter(part.path for part in parts)
        files = [path if len(n_by_file) == 1 else f"{path} ({n})" for path, n in n_by_file.items() if path]
        yield f"{counted(len(parts), 'symbol')} in {listed(files, most=4)}"
    elif group == "input":
        yield listed((f"{part.name} {part.path} {_short(part.value, full)}" for part in parts), most=4)
    else:
        yield listed((f"{part.name} {_short(part.value, full)}".rstrip() for part in parts), most=12)


def _whole(part: Part) -> str:
    name = part.name.partition(":")[2] if part.group == "code" else part.name
    where = f"{part.path}:{part.line}" if part.line else part.path
    return " ".join(filter(None, (name, where, part.value)))


def discovered_texts(discovered: Iterable[Discovered], *, full: bool = False) -> Iterator[str]:
    """What a run asked for that is not declared: how much of each kind, or each with what the answer was."""
    by_kind: dict[str, list[Discovered]] = {}
    for one in discovered:
        by_kind.setdefault(one.kind, []).append(one)
    if full:
        yield from (f"{one.kind}  {one.name}  {one.value or 'absent'}" for one in chain(*by_kind.values()))
    elif by_kind:
        counts = {kind: counted(len(found), _NOUNS.get(kind, kind)) for kind, found in by_kind.items()}
        yield ", ".join(_DISCOVERED[kind].format(count) for kind, count in counts.items())


def _short(value: str, full: bool) -> str:
    """A value, of a digest the beginning."""
    is_digest = len(value) == 32 and not set(value) - set("0123456789abcdef")
    return value[:_SHOWN_OF_DIGEST] if is_digest and not full else value
