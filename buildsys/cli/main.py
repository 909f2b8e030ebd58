"""The program: runs a command, renders what is wrong, and ends with the exit code that `errors` names.

The only place where errors for people are printed. A bug is not caught: it shows its traceback.
"""

from __future__ import annotations

import gc
import os
import sys

import click

from buildsys.cli.group import COMMANDS, buildsys
from buildsys.cli.signals import heed_no_more, heed_signals
from buildsys.errors import FAILED, INTERRUPTED, BuildError, nearest, refused
from buildsys.terminal import error_lines, show


def main() -> None:
    """The entry point. Never returns."""
    heed_signals()
    try:
        code = _code()
    except KeyboardInterrupt:  # one more, while the first was told
        code = INTERRUPTED
    if code == INTERRUPTED:
        heed_no_more()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _nobody_reads()
    gc.freeze()  # Python would look through all that is left once more, a tenth of what a short command takes.
    sys.exit(code)


def _code() -> int:
    try:
        return buildsys.main(prog_name="buildsys", standalone_mode=False) or 0
    except BuildError as error:
        _show(error)
        return error.exit_code
    except OSError as error:
        told = refused(error)
        if told is None:
            raise
        _show(told)
        return told.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        _show(_as_build_error(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED


def _show(error: BuildError) -> None:
    show(error_lines(error.render()), sys.stderr)


def _as_build_error(error: click.ClickException) -> BuildError:
    """What click finds wrong with a command line, in our words."""
    if isinstance(error, click.exceptions.NoSuchCommand):
        return BuildError(
            f'there is no command "{error.command_name}"', hint=nearest(error.command_name, list(COMMANDS))
        )
    text = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} --help shows how it is called" if context else ""
    return BuildError(text[:1].lower() + text[1:], hint=hint)


def _nobody_reads() -> int:
    """The reader of standard output has gone, as in `buildsys sql ... | head`: end without a word.

    Here comes what was still buffered; click ends a command that finds out earlier, in the same way.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
