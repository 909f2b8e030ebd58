"""`buildsys schema`."""

from __future__ import annotations

import click

from buildsys.cli.command import Command
from buildsys.cli.output import print_json
from buildsys.spec.schema import json_schema


@click.command(
    "schema",
    cls=Command,
    examples=(("buildsys schema > rules/schema.json", "then name it in your editor for rules/*.toml"),),
)
def command() -> None:
    """Print the JSON Schema of rule files, for editors."""
    print_json(json_schema())
