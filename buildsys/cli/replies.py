"""`buildsys replies` and its commands: `stats`, `show`, `reject`, `export`, `import`, `verify`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Final

import click

from buildsys.cli.command import SETTINGS, Command, DefaultGroup, json_option
from buildsys.cli.here import Here, in_project
from buildsys.cli.output import print_json
from buildsys.errors import FAILED, BuildError
from buildsys.ledger import Stats, as_row, bring_in, find, stats, write_all
from buildsys.model import ActionId
from buildsys.phrases import counted, listed
from buildsys.reject import Rejection, Which, foreseen, rejecting
from buildsys.request import DEFAULT_PROFILE
from buildsys.run.replies import Reply
from buildsys.spec.sizes import size_text
from buildsys.terminal import Line, Span, show

_FILE: Final = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.group(
    "replies",
    cls=DefaultGroup,
    default="stats",
    context_settings=SETTINGS,
    examples=(
        ("buildsys replies", "how many there are, of which models, and how they ended"),
        ("buildsys replies show 4f1c", "one: what was asked, and the body that came"),
        ("buildsys replies reject 4f1c", "ask for it anew with the next build"),
        ("buildsys replies export replies.jsonl", "all of them, to keep or to take elsewhere"),
        ("buildsys replies import replies.jsonl", "take those that are not there yet"),
    ),
)
def command() -> None:
    """Look at the replies that were paid for, take them out and bring them in.

    They are in a log of their own, `.buildsys/replies`, and are found there by what was asked. Losing it means paying
    again, for other answers.
    """


@command.command(
    "stats",
    cls=Command,
    examples=(("buildsys replies stats --json | jq .output_tokens", "for a program"),),
)
@json_option("Print the counts as JSON.")
@in_project
def stats_command(here: Here, as_json: bool) -> None:
    """Count the replies, by model and by how they ended."""
    found = stats(_folder(here))
    if as_json:
        print_json(found)
    else:
        show([*_lines(found)], sys.stdout)


def _lines(found: Stats) -> Iterator[Line]:
    yield [Span(f"{counted(found.replies, 'reply')}, {found.output_tokens:,} tokens of output")]
    for title, counts in (("model", found.models), ("finish reason", found.finish_reasons)):
        for name, n in counts.most_common():
            yield [Span(f"  {title:<14} {name:<24} {n:>10,}")]
    for what, n in (("refused", found.refusals), ("rejected or superseded", found.not_counting)):
        if n:
            yield [Span(f"  {what:<39} {n:>10,}")]
    if found.last:
        first, last = (
            datetime.fromtimestamp(at).astimezone().isoformat(" ", "minutes") for at in (found.first, found.last)
        )
        yield [Span(f"  from {first} to {last}", "dim")]
    yield [Span(f"  {size_text(found.disk_bytes)} on disk, {size_text(found.body_bytes)} as received", "dim")]
    for notice in found.notices:
        yield [Span(f"  {notice}", "yellow")]


@command.command(
    "show",
    cls=Command,
    examples=(
        ("buildsys replies show 4f1c", "the first letters are enough"),
        ("buildsys replies show 4f1c --json | jq -r .body", "the body, byte for byte"),
    ),
)
@click.argument("id_", metavar="ID")
@json_option("Print it as `export` writes it, untouched.")
@in_project
def show_command(here: Here, id_: str, as_json: bool) -> None:
    """Show what was asked, and the answer as it came. Ids are the keys of the view `requests`."""
    answers = find(_folder(here), id_)
    if as_json:
        key, reply, _ = answers[-1]
        print_json(as_row(key, reply))
        return
    for key, reply, counts in answers:
        show([*_answer_lines(key, reply, counts=counts)], sys.stdout)


def _answer_lines(key: str, reply: Reply, *, counts: bool) -> Iterator[Line]:
    yield [Span(key, "bold"), Span("" if counts else "  counts no more", "yellow")]
    took = f"after {reply.ended - reply.started:.1f} s"
    yield [Span(f"  {reply.kind}, status {reply.status}, {took}, {_when(reply.ended)}", "dim")]
    yield [Span(f"  {reply.identity} at {reply.endpoint}, sample {reply.sample}", "dim")]
    for title, data in (("request", reply.request), ("body", reply.body)):
        yield [Span(title, "bold")]
        yield from ([Span(f"  {line}")] for line in _pretty(data).splitlines())


def _pretty(data: bytes) -> str:
    with contextlib.suppress(ValueError, RecursionError):
        return json.dumps(json.loads(data), indent=2, ensure_ascii=False)
    return data.decode("utf-8", "backslashreplace")


@command.command(
    "reject",
    cls=Command,
    examples=(
        ("buildsys replies reject --where \"finish_reason = 'length'\"", "all that were cut off"),
        ('buildsys replies reject --where "..." --dry-run', "how many, and what runs again for them"),
        ("buildsys replies reject 4f1c 90ab", "two, by the first letters of their ids"),
    ),
)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--where", metavar="SQL", default="", help="Those for which a condition over the view `requests` holds.")
@click.option("-n", "--dry-run", is_flag=True, help="Reject nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option("Print the ids, and what runs again, as JSON.")
@in_project
def reject_command(here: Here, ids: tuple[str, ...], where: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Have requests asked anew by the next build.

    Their replies stay in the log and count no more, nor does any result that rests on them. To ask again costs what
    asking cost.
    """
    if bool(ids) == bool(where.strip()):
        raise BuildError("say which replies: their ids, or a condition", hint="--where \"finish_reason = 'length'\"")
    _folder(here)
    which = Which(ids, where)
    if dry_run:
        found = foreseen(here.project, which)
        _tell(found, as_json, rejected=False)
        return
    with rejecting(here.project, which) as (found, reject):
        if found.ids:
            if not as_json:
                show([*_rejection_lines(found)], sys.stdout)
            _confirm(found, yes)
            reject()
    _tell(found, as_json, rejected=bool(found.ids))


def _confirm(found: Rejection, yes: bool) -> None:
    """Raises BuildError where nobody says that they may be asked for again."""
    if yes:
        return
    n_replies = counted(len(found.ids), "reply")
    if not sys.stdin.isatty():
        raise BuildError(f"{n_replies} would have to be paid for again", hint="say so with --yes")
    click.confirm(f"ask for {n_replies} anew, and pay for them?", abort=True, err=True)


def _tell(found: Rejection, as_json: bool, *, rejected: bool) -> None:
    """How it ended. rejected: else nothing was done."""
    if as_json:
        actions = [{"profile": profile, "action": action} for profile, action in found.actions]
        print_json({"rejected": rejected, "ids": found.ids, "rules": found.n_asked, "actions": actions})
    elif not found.ids:
        show([[Span("no reply that counts fits: there is nothing to reject")]], sys.stdout)
    elif rejected:
        last = f"{counted(len(found.ids), 'reply')} rejected"
        show([[Span(last, "bold"), Span(" · the next build asks for them anew", "dim")]], sys.stdout)
    else:
        show([*_rejection_lines(found), [Span("nothing was rejected", "dim")]], sys.stdout)


def _rejection_lines(found: Rejection) -> Iterator[Line]:
    """What there is to say before it is done."""
    for rule, n in found.n_asked.items():
        yield [Span(f"  {rule:<14} "), Span(counted(n, "reply"), "bold")]
    names = listed((_named(profile, action) for profile, action in found.actions), most=8)
    again = f"{counted(len(found.actions), 'action')} will run again: {names}"
    yield [Span(again if found.actions else "no action will run again")]
    yield [Span(f"{counted(len(found.ids), 'reply')} to be asked for anew, and paid for")]


def _named(profile: str, action: ActionId) -> str:
    return str(action) if profile == DEFAULT_PROFILE else f"{action} ({profile})"


@command.command(
    "export",
    cls=Command,
    examples=(
        ("buildsys replies export replies.jsonl", "one line of JSON each"),
        ("buildsys replies export - | zstd > replies.jsonl.zst", "packed"),
    ),
)
@click.argument("file", type=_FILE)
@in_project
def export_command(here: Here, file: Path) -> None:
    """Write all replies that count to a file, `-` for standard output."""
    with _writing(here, file) as out:
        n = write_all(_folder(here), out)
    show([[Span(f"{counted(n, 'reply')} written")]], sys.stderr)


@contextlib.contextmanager
def _writing(here: Here, file: Path) -> Iterator[IO[str]]:
    """The file, whole or as it was before."""
    if str(file) == "-":
        yield sys.stdout
        return
    path = here.start / file
    copy = path.with_name(f"{path.name}.rest")
    try:
        with copy.open("w", encoding="utf-8") as out:
            yield out
        os.replace(copy, path)
    except OSError as error:
        raise BuildError(f"{file} can't be written: {error.strerror}", exit_code=FAILED) from None
    finally:
        copy.unlink(missing_ok=True)


@command.command(
    "import",
    cls=Command,
    examples=(
        ("buildsys replies import replies.jsonl", "what is not there yet"),
        ("zstd -dc replies.jsonl.zst | buildsys replies import -", "from standard input"),
    ),
)
@click.argument("file", type=_FILE)
@in_project
def import_command(here: Here, file: Path) -> None:
    """Take replies that were exported, here or elsewhere. What has an answer keeps it."""
    folder = here.project.state / "replies"
    if str(file) == "-":
        n_new, n_known = bring_in(folder, sys.stdin, "standard input")
    else:
        try:
            with (here.start / file).open(encoding="utf-8") as lines:
                n_new, n_known = bring_in(folder, lines, str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise BuildError(f"{file} can't be read: {getattr(error, 'strerror', None) or error}") from None
    show([[Span(f"{counted(n_new, 'reply')} taken, {n_known:,} were there")]], sys.stderr)


@command.command(
    "verify",
    cls=Command,
    examples=(("buildsys replies verify", "reads every byte; exit code 1 where something is damaged"),),
)
@json_option("Print what is damaged as JSON.")
@in_project
def verify_command(here: Here, as_json: bool) -> int:
    """Read the whole log and say what of it is damaged."""
    found = stats(_folder(here))
    if as_json:
        print_json(_verdict(found))
    else:
        show([[Span(notice, "yellow")] for notice in found.notices], sys.stdout)
        n = found.replies + found.refusals + found.not_counting
        show([[Span(f"{counted(n, 'answer')} whole, {counted(len(found.notices), 'damage')} found")]], sys.stderr)
    return FAILED if found.notices else 0


def _verdict(found: Stats) -> Mapping[str, object]:
    return {"whole": found.replies + found.refusals + found.not_counting, "damaged": found.notices}


def _folder(here: Here) -> Path:
    folder = here.project.state / "replies"
    if not folder.is_dir():
        facts = [("project", str(here.project.root))]
        raise BuildError("no reply was ever kept here", facts=facts, hint="buildsys build")
    return folder


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")
