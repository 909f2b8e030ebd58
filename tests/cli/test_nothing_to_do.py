"""What the program does where there is nothing to do: it opens nothing of the project, and imports no engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import environment

N_SHARDS = int(os.environ.get("SHARDS", "70"))
"""More than are asked for one by one; the long form takes a thousand."""
RULES = """
config = "config.toml"

[rule.one]
each    = { shard = "data/{shard}.txt" }
shell   = "cp {inputs.text} {outputs.one}"
inputs  = { text = "data/{shard}.txt" }
outputs = { one = "build/one/{shard}.txt" }

[rule.two]
each    = { shard = "@one[*]" }
shell   = "cp {inputs.one} {outputs.two}"
inputs  = { one = "@one" }
outputs = { two = "build/two/{shard}.txt" }

[rule.three]
each    = { shard = "@two[*]" }
shell   = "sh {inputs.script} {inputs.two} {outputs.three} {params.words}"
inputs  = { two = "@two", script = "scripts/copy.sh" }
params  = { words = "$words" }
outputs = { three = "build/three/{shard}.txt" }
"""
SPY = """
import json, os, sys

seen = {"opened": [], "started": []}


def spy(event, args):
    if event == "open" and not args[2] & os.O_DIRECTORY:
        seen["opened"].append(str(args[0]))
    elif event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"):
        seen["started"].append(event)


from buildsys.cli.main import main

sys.addaudithook(spy)
try:
    main()
except SystemExit as ended:
    code = ended.code
print(json.dumps(seen | {"code": code, "modules": list(sys.modules)}), file=sys.stderr)
"""


@dataclass(frozen=True)
class Spied:
    """What a call of the program did. opened: the files of the project."""

    code: int
    opened: list[str]
    started: list[str]
    modules: set[str]
    stdout: str
    stderr: str


def spied(root: Path, *args: str) -> Spied:
    call = [sys.executable, "-P", "-c", SPY, *args]
    done = subprocess.run(call, cwd=root, capture_output=True, text=True, env=environment(), check=True, timeout=110)
    *lines, last = done.stderr.splitlines()
    seen: dict[str, Any] = json.loads(last)
    opened = sorted(path for path in seen["opened"] if Path(root, path).is_relative_to(root))
    return Spied(
        seen["code"],
        [Path(root, path).relative_to(root).as_posix() for path in opened],
        seen["started"],
        set(seen["modules"]),
        done.stdout,
        "\n".join(lines),
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("wide")
    for folder in ("rules", "data", "scripts"):
        (root / folder).mkdir()
    (root / "rules/wide.toml").write_text(RULES)
    (root / "config.toml").write_text('words = "some words"\n')
    (root / "scripts/copy.sh").write_text("cp $1 $2\n")
    for n in range(N_SHARDS):
        (root / f"data/{n}.txt").write_text(f"{n}\n")
    first = spied(root, "build")
    assert (first.code, f"{3 * N_SHARDS:,} ran" in first.stderr) == (0, True), first.stderr
    return root


ANSWERS = [
    (("build",), f"{3 * N_SHARDS:,} actions up to date ("),
    (("build", "-j", "1", "two"), f"{2 * N_SHARDS:,} actions up to date ("),
    (("status",), f"{3 * N_SHARDS:,} actions up to date"),
    (("status", "--json"), f'"three": {{\n      "reuse": {N_SHARDS}'),
    (("plan",), f"{3 * N_SHARDS:,} actions up to date"),
]


@pytest.mark.parametrize(("args", "answer"), ANSWERS, ids=[" ".join(args) for args, _ in ANSWERS])
def test_nothing_to_do_opens_nothing_but_the_stamp(root: Path, args: tuple[str, ...], answer: str) -> None:
    if "two" in args:
        spied(root, *args)
    done = spied(root, *args)
    assert done.code == 0
    assert answer in done.stdout + done.stderr
    assert {path.rpartition("/stamps/")[0] or path for path in done.opened} == {".buildsys", ".buildsys/layout"}
    assert done.started == []


HEAVY = {
    *(
        "buildsys.build",
        "buildsys.survey",
        "buildsys.project",
        "buildsys.model",
        "buildsys.spec.graph",
        "buildsys.console",
    ),
    *("duckdb", "asyncio", "msgspec", "tomllib", "importlib.metadata", "subprocess", "queue", "tempfile"),
}


@pytest.mark.parametrize("command", ["build", "status", "plan"])
def test_nothing_to_do_imports_neither_engine_nor_database(root: Path, command: str) -> None:
    assert spied(root, command).modules & HEAVY == set()


def test_nothing_to_do_is_told_in_events_too(root: Path) -> None:
    events = [json.loads(line) for line in spied(root, "build", "--json").stdout.splitlines()]
    assert [event["event"] for event in events] == ["BuildStarted", *["ShardsKnown"] * 3, "BuildFinished"]
    assert events[0]["rules"] == ["one", "two", "three"]
    assert events[-1]["counts"] == {"reused": 3 * N_SHARDS}


def test_force_takes_no_stamp_for_an_answer(root: Path) -> None:
    assert "1 ran" in spied(root, "build", "--force", "one[7]").stderr
    assert f"{3 * N_SHARDS:,} actions up to date" in spied(root, "build").stderr


def test_one_byte_that_is_edited_in_place_under_the_old_times_is_seen(root: Path) -> None:
    file = root / f"data/{N_SHARDS // 2}.txt"
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"x")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    done = spied(root, "build")
    assert "3 ran" in done.stderr
    assert (root / f"build/three/{file.name}").read_text().startswith("x")
