"""`buildsys fingerprint`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from buildsys.cli.command import Command, json_option
from buildsys.cli.output import print_json
from buildsys.errors import BuildError
from buildsys.fingerprint import Fingerprint, fingerprint, read, write
from buildsys.terminal import Line, Span, show


@click.command(
    "fingerprint",
    cls=Command,
    examples=(
        ("buildsys fingerprint src pkg.mod:main", "the fingerprint of main, with src first on the path"),
        ("buildsys fingerprint src pkg.mod:main --slice", "the symbols that it can reach, and how"),
        (
            "buildsys fingerprint src pkg.mod:main --run --trace t",
            "call it without arguments, and keep what it used in t",
        ),
        ("buildsys fingerprint src pkg.mod:main --trace t", "the fingerprint of what that run used, as it is now"),
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("entry", metavar="MODULE:FUNCTION")
@click.option("--run", "runs", is_flag=True, help="Call the function first, without arguments, under a trace.")
@click.option(
    "--trace",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The trace of a run: written with --run, else read.",
)
@click.option("--slice", "lists", is_flag=True, help="List the symbols, and the names by which each is reached.")
@json_option("Print the digest, the symbols and all else that decides as JSON.")
def command(folder: Path, entry: str, runs: bool, file: Path | None, lists: bool, as_json: bool) -> None:
    """Print what decides the result of a function, as a digest."""
    module, colon, function = entry.partition(":")
    if not (module and colon and function):
        raise click.UsageError(f"{entry} is no MODULE:FUNCTION, as in pkg.mod:main")
    folder = folder.resolve()
    kept = None
    if runs:
        from buildsys.trial import run

        kept, error = run(folder, module, function)
        if error:
            click.echo(f"the run ended with an error, and counts as it went: {error}", err=True)
        if file:
            _keep(file, kept)
    elif file:
        kept = read(file)
    found = fingerprint(folder, module, function, kept)
    if as_json:
        print_json(found)
    elif lists:
        show(_lines(found), sys.stdout)
    else:
        click.echo(found.digest)


def _keep(file: Path, kept: object) -> None:
    try:
        write(kept, file)  # type: ignore[arg-type]
    except OSError as error:
        raise BuildError(f"{file} can't be written: {error.strerror}", hint="give --trace another path") from None


def _lines(found: Fingerprint) -> list[Line]:
    symbols = found.decides.symbols
    width = max((len(one.name) for one in symbols), default=0)
    places = max((len(one.place) for one in symbols), default=0)
    return [
        [
            Span(f"{one.name:<{width}}  ", "bold"),
            Span(f"{one.place:<{places}}  ", "dim"),
            Span(" → ".join(one.via)),
        ]
        for one in symbols
    ]
