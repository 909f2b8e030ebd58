"""What all commands share: help that starts with examples, and the options `-C`, `-j` and `--json`.

Knows nothing of any command; imports nothing of buildsys, so that `--help` costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(click.Command):
    """A command whose help starts with examples: pairs of a command line and what it is for."""

    def __init__(self, name: str, *, examples: tuple[tuple[str, str], ...], **kwargs: Any) -> None:
        super().__init__(name, **{"context_settings": SETTINGS, **kwargs})
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)
        super().format_help(ctx, formatter)


class DefaultGroup(click.Group):
    """Commands in the order in which they are defined, and `default` where none of them is named."""

    def __init__(self, name: str, *, default: str, examples: tuple[tuple[str, str], ...], **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.default = default
        self.examples = examples

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or ctx.resilient_parsing else [self.default, *args])

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)
        super().format_help(ctx, formatter)


def write_examples(formatter: click.HelpFormatter, examples: tuple[tuple[str, str], ...]) -> None:
    with formatter.section("Examples"):
        formatter.write_dl(examples, col_max=44)
    formatter.write("\n")


def folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-C",
        "folder",
        metavar="DIR",
        default=".",
        type=click.Path(file_okay=False),
        help="Run as if started in DIR.",
    )(function)


def jobs_option(help_text: str) -> Decorator:
    return click.option(
        "-j", "--jobs", type=click.IntRange(min=1), metavar="N", default=lambda: os.cpu_count() or 1, help=help_text
    )


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the limits of `[limits]`, each None where it is not given."""
    for flag, kind, metavar, help_text in _LIMITS:
        function = click.option(flag, type=kind, metavar=metavar, help=help_text)(function)
    return function


def retry_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--retry-failed", is_flag=True, help="Ask again what servers refused.")(function)


_LIMITS: Final = (
    ("--max-output-tokens", click.IntRange(min=0), "N", "Send no more requests once replies hold N tokens."),
    ("--max-cost", click.FloatRange(min=0), "X", "Send no more requests once they have cost X, by [price]."),
    ("--max-requests", click.IntRange(min=0), "N", "Send N requests at most. Flags win over [limits] in a rule file."),
)
"""Last first: an option that is added later is told earlier."""


def json_option(help_text: str) -> Decorator:
    return click.option("--json", "as_json", is_flag=True, help=help_text)
