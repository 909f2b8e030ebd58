"""`buildsys completion`."""

from __future__ import annotations

import os
from typing import Final

import click
from click.shell_completion import get_completion_class

from buildsys.cli.command import Command
from buildsys.cli.group import buildsys
from buildsys.errors import BuildError

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Command,
    examples=(
        ('eval "$(buildsys completion bash)"', "in ~/.bashrc"),
        ('eval "$(buildsys completion zsh)"', "in ~/.zshrc"),
        ("buildsys completion fish | source", "in ~/.config/fish/config.fish"),
    ),
)
@click.argument("shell", metavar="[bash|zsh|fish]", type=click.Choice(_SHELLS), required=False)
def command(shell: str | None) -> None:
    """Print the code that makes a shell complete buildsys.

    It completes commands, options, rules, actions and paths. Without a name it is for the shell in $SHELL.
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    found = get_completion_class(name) if name in _SHELLS else None
    if not found:
        raise BuildError(f'there is no completion for the shell "{name}"', hint=f"name one of {', '.join(_SHELLS)}")
    print(found(buildsys, {}, "buildsys", "_BUILDSYS_COMPLETE").source())
