"""The README's commands are the program's, and its rules can be read."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from buildsys.cli.group import COMMANDS
from buildsys.spec.rulefile import read_rules
from buildsys.template import start

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCKS if found == kind]


def test_two_lines_do_all_the_set_up() -> None:
    install, test = (block.strip() for block in blocks("sh"))
    assert "\n" not in install + test
    assert install.endswith("buildsys build")
    assert "pytest" in test
    assert install.startswith("python3 -m venv .venv && ")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"pipeline", "dev"} <= extras.keys()


def test_every_command_is_told_and_every_told_command_exists() -> None:
    told = set(re.findall(r"(?m)^(?:\$ )?buildsys (\w+)", README))
    assert told == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_that_are_told_exist(command: str) -> None:
    options = set(re.findall(rf"(?m)^(?:\$ )?buildsys {command}\b[^\n]*?(--[a-z-]+)", README))
    shown = subprocess.run(
        [sys.executable, "-m", "buildsys.cli", command, "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(option in shown for option in options)
    assert shown.index("xamples") < shown.index("ptions")


def test_the_rules_that_are_shown_are_those_that_ship() -> None:
    (shown,) = blocks("toml")
    shipped = tomllib.loads((ROOT / "rules/eagle3.toml").read_text())["rule"]["samples"]
    told = tomllib.loads(shown)["rule"]["samples"]
    shipped["checks"] = {name: sql for name, sql in shipped["checks"].items() if name in told["checks"]}
    assert told == shipped


def test_the_shipped_rules_can_be_read() -> None:
    texts = {path: (ROOT / path).read_text() for path in ("rules/eagle3.toml", "workspace/configs/eagle3.toml")}
    declared = read_rules({"rules/eagle3.toml": texts["rules/eagle3.toml"]}, texts.get)
    named = [rule for rule in declared.rules if f"{rule} " in README]
    assert {"prompts", "replies", "samples", "draft", "acceptance"} <= set(named)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)\)", README))))
def test_what_is_linked_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_notebook_that_is_shown_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path / "demo", "first")
    monkeypatch.chdir(tmp_path)
    (shown,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(shown, "README.md", "exec"), names)
    project = names["project"]
    assert project.plan().up_to_date
    assert project.why("texts[0001]")[0].planned.reason == "up to date"
    assert project.sql("SELECT shard, record_id, text FROM texts").num_rows == 4
