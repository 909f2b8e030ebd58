from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from buildsys.cli.group import COMMANDS, buildsys
from buildsys.cli.replies import command as replies
from buildsys.cli.service import command as service

OTHERS = ("init", "schema", "completion", "service", "replies", "fingerprint")

HEAVY = {"duckdb", "rich", "pyarrow", "torch", "transformers", "datasets", "openai", "aiohttp", "numpy", "msgspec"}


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh process has loaded after running code."""
    program = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_nothing_heavy_and_no_command(arguments):
    main = f"from buildsys.cli.group import buildsys\nbuildsys.main({arguments!r}, standalone_mode=False)"
    loaded = loaded_by(f"import buildsys.cli.main\n{main}")
    assert "buildsys.cli.main" in loaded
    assert not loaded & HEAVY
    assert not loaded & {f"buildsys.cli.{name}" for name in COMMANDS}


def test_completing_a_command_loads_no_command():
    code = (
        "from click.shell_completion import ShellComplete\n"
        "from buildsys.cli.group import buildsys\n"
        "found = ShellComplete(buildsys, {}, 'buildsys', '_X').get_completions([], 'st')\n"
        "assert [item.value for item in found] == ['status'], found"
    )
    assert not loaded_by(code) & (HEAVY | {f"buildsys.cli.{name}" for name in COMMANDS})


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_starts_with_examples_of_it(name):
    told = CliRunner().invoke(buildsys, [name, "--help"]).stdout.splitlines()
    assert told[0] == "Examples:"
    assert "buildsys " + name in told[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_group_says_of_a_command_what_the_command_says_of_itself(name):
    command = buildsys.get_command(click.Context(buildsys), name)
    assert command.name == name
    assert (command.help or "").partition("\n")[0] == COMMANDS[name]


def test_the_help_of_the_group_starts_with_examples_and_lists_all_commands():
    told = CliRunner().invoke(buildsys, ["--help"]).stdout
    assert told.startswith("Examples:\n  buildsys build ")
    assert all(f"\n  {name} " in told for name in COMMANDS)


INNER = [("service", name) for name in service.commands] + [("replies", name) for name in replies.commands]


@pytest.mark.parametrize(("group", "name"), INNER)
def test_the_help_of_a_command_of_a_group_starts_with_examples_of_it(group, name):
    told = CliRunner().invoke(buildsys, [group, name, "--help"]).stdout.splitlines()
    assert told[0] == "Examples:"
    assert f"buildsys {group} {name}" in told[1]


READING = {
    **{name: buildsys.get_command(click.Context(buildsys), name) for name in COMMANDS if name not in OTHERS},
    **{f"service {name}": service.commands[name] for name in ("status", "logs")},
    **{f"replies {name}": replies.commands[name] for name in ("stats", "show", "verify")},
}


@pytest.mark.parametrize("name", READING)
def test_every_command_on_a_project_takes_a_folder_and_gives_json(name):
    options = {option for param in READING[name].params for option in param.opts}
    assert {"-C", "--json"} <= options
