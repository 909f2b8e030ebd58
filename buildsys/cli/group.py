"""The group `buildsys`: its commands by name, each imported when it is used.

Knows of each command only its name and a line of help, so that `buildsys --help` and completion import none of them.
"""

from __future__ import annotations

import importlib
from typing import Final

import click
from click.shell_completion import CompletionItem

from buildsys import __version__
from buildsys.cli.command import SETTINGS, folder_option, write_examples

COMMANDS: Final = {
    "init": "Make a project to start from.",
    "build": "Bring outputs up to date.",
    "check": "Say what is wrong with rules and scripts, and run nothing.",
    "plan": "Say what a build would run, and why.",
    "status": "Say which rules are up to date.",
    "why": "Explain why an action runs, or what its result rests on.",
    "accept": "Say that outputs hold though the code has changed.",
    "sql": "Ask the manifest, and all outputs that are tables, with SQL.",
    "lineage": "Say what a file was made from, or what was made from it.",
    "service": "Start, end and look at the servers that actions need.",
    "replies": "Look at the replies that were paid for, take them out and bring them in.",
    "log": "Show what an action printed when it ran last.",
    "graph": "Draw which rule needs which.",
    "gc": "Remove what nothing needs any more.",
    "profiles": "List the profiles: what each changes, and its last build.",
    "fingerprint": "Print what decides the result of a function, as a digest.",
    "doctor": "Look for what is wrong, and say what to do.",
    "schema": "Print the JSON Schema of rule files, for editors.",
    "completion": "Print the code that makes a shell complete buildsys.",
}

_EXAMPLES: Final = (
    ("buildsys build", "bring everything up to date"),
    ("buildsys plan", "see first what would run, and why"),
    ("buildsys why 'tokens[0003]'", "see what changed for one action"),
    ('buildsys sql "FROM runs"', "ask what was built when, from what, at what price"),
)


class LazyGroup(click.Group):
    """Imports `buildsys.cli.NAME` for the command NAME, which is called `command` there."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = importlib.import_module(f"buildsys.cli.{cmd_name}").command
        assert isinstance(found, click.Command)
        return found

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, _EXAMPLES)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=LazyGroup, context_settings=SETTINGS)
@folder_option
@click.version_option(__version__, prog_name="buildsys", message="%(prog)s %(version)s")
@click.pass_context
def buildsys(ctx: click.Context, folder: str) -> None:
    """An incremental build system for LLM data and training pipelines."""
    ctx.obj = folder
