"""`buildsys log`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.complete import targets as complete_targets
from buildsys.cli.here import Here, in_profile
from buildsys.cli.output import print_json
from buildsys.errors import NO_SUCH_TARGET, BuildError, nearest
from buildsys.model import ActionId, Shard, natural_key
from buildsys.run.kept import KEPT, log_path
from buildsys.state.logs import runs_of

_SUFFIX: Final = ".log"


@click.command(
    "log",
    cls=Command,
    examples=(
        ("buildsys log draft", "what it printed when it ran last"),
        ("buildsys log tokens", "the logs of all its actions, by path"),
        ("buildsys log verifier", "what a service printed"),
        ("tail -f $(buildsys log draft --path)", "while it runs"),
    ),
)
@click.argument("target", shell_complete=complete_targets)
@click.option("--path", "only_path", is_flag=True, help="Print the path of the log only.")
@json_option("Print the paths of the logs as JSON, by action.")
@in_profile
def command(here: Here, target: str, only_path: bool, as_json: bool) -> None:
    """Show what an action printed when it ran last.

    Of a rule with several actions, the logs are listed.
    """
    logs = {name: path.relative_to(here.project.root).as_posix() for name, path in _logs(here, here.target(target))}
    if as_json:
        print_json(logs)
    elif only_path:
        print("\n".join(logs.values()))
    elif len(logs) > 1:
        width = max(map(len, logs))
        print("\n".join(f"{name:<{width}}  {path}" for name, path in logs.items()))
    else:
        ((name, path),) = logs.items()
        _copy(name, here.project.root / path)


def _logs(here: Here, text: str) -> list[tuple[str, Path]]:
    """The newest log of each action that a target names. Raises BuildError where none ran yet."""
    graph = here.project.graph()
    if text in graph.services:
        found = list(service_logs(here, [text]).items())
    else:
        runs = runs_of(here.project.state / "logs", graph.profile)
        target = graph.target(text)
        rule, shard = (target.rule, target.shard) if isinstance(target, ActionId) else (target, "")
        logs = _newest(log for run in runs for log in (run / rule).glob(f"{shard or '*'}{_SUFFIX}"))
        has_shards = graph.origins[rule] is not None
        found = [(str(ActionId(rule, Shard(log.stem))) if has_shards else rule, log) for log in logs]
    if not found:
        raise _never_ran(text)
    return sorted(found, key=lambda item: natural_key(item[0]))


def service_logs(here: Here, names: Sequence[str] = ()) -> dict[str, Path]:
    """The newest log of each service, of all that have one without names. Raises BuildError where there is none."""
    graph = here.project.graph()
    kept = here.project.state / KEPT
    runs = runs_of(here.project.state / "logs", graph.profile)
    valid = list(dict.fromkeys([*graph.services, *(log.stem for log in kept.glob(f"*{_SUFFIX}"))]))
    found = {}
    for name in names or valid:
        if name not in valid:
            hint = nearest(name, valid)
            raise BuildError(f'there is no service "{name}"', hint=hint, exit_code=NO_SUCH_TARGET)
        logs = [log for log in (log_path(kept, name), *(run / f"{name}{_SUFFIX}" for run in runs)) if log.is_file()]
        if logs:
            found[name] = max(logs, key=lambda log: log.stat().st_mtime_ns)
        elif names:
            raise _never_ran(name)
    if not found:
        raise _never_ran("a service")
    return found


def _never_ran(text: str) -> BuildError:
    hint = "it has not run yet, or only under another profile"
    return BuildError(f"there is no log of {text}", hint=hint, exit_code=NO_SUCH_TARGET)


def _newest(logs: Iterable[Path]) -> Iterator[Path]:
    """The first of each name."""
    seen: set[str] = set()
    for log in logs:
        if log.name not in seen and log.is_file():
            seen.add(log.name)
            yield log


def _copy(name: str, path: Path) -> None:
    if not path.stat().st_size:
        print(f"{name} printed nothing", file=sys.stderr)
    with path.open("rb") as log:
        shutil.copyfileobj(log, sys.stdout.buffer)
