"""Builds that are killed at random moments: the next one needs no help, and repeats at most what was in flight.

`KILLS=200` is the long form, which `.ci/long` runs. Victims are the building process, which also delivers, and what it
has started: zygotes, and the workers, commands and servers that these fork.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.behaviour.conftest import Space
from tests.cli.conftest import PROGRAM, environment
from tests.processes import children_of, processes_in
from tests.run.conftest import within

N_KILLS = int(os.environ.get("KILLS", "10"))
SEED = int(os.environ.get("SEED", "20"))
LATEST_S = 0.05
VICTIMS = ("build", "build", "zygote", "forked")
SHARDS = [f"{n:02}" for n in range(6)]
MADE = {*(f"{rule} {shard}" for rule in ("part", "asked", "shout") for shard in SHARDS), "whole"}

RULES = """
[service.upper]
shell = "exec {{python}} -I -S scripts/server.py {{port}}"
ready = "http://127.0.0.1:{{port}}/"

[rule.part]
each     = {{ shard = "data/{{shard}}.txt" }}
run      = "scripts/work.py::part"
inputs   = {{ text = "data/{{shard}}.txt" }}
params   = {{ edition = {edition} }}
settings = {{ counts = "{counts}" }}
outputs  = {{ o = "build/part/{{shard}}.txt" }}

[rule.asked]
each     = {{ shard = "@part[*]" }}
run      = "scripts/work.py::asked"
inputs   = {{ text = "@part" }}
services = ["upper"]
settings = {{ counts = "{counts}" }}
outputs  = {{ o = "build/asked/{{shard}}.txt" }}

[rule.shout]
each     = {{ shard = "@part[*]" }}
shell    = "echo shout $(basename {{outputs.o}} .txt) >> {{settings.c}}; tr a-z A-Z < {{inputs.text}} > {{outputs.o}}"
inputs   = {{ text = "@part" }}
settings = {{ c = "{counts}" }}
outputs  = {{ o = "build/shout/{{shard}}.txt" }}

[rule.whole]
run      = "scripts/work.py::whole"
inputs   = {{ asked = "@asked[*]", shout = "@shout[*]" }}
settings = {{ counts = "{counts}" }}
outputs  = {{ o = "build/whole.txt" }}
[rule.whole.checks]
something = "SELECT 1 = 1"
"""
SCRIPT = """
import urllib.request

def count(counts, name):
    with open(counts, "a") as file:
        file.write(name + "\\n")

def part(text, edition, counts, o):
    count(counts, "part " + o.stem)
    o.write_text(f"{text.read_text()} of edition {edition}\\n")

def asked(text, services, counts, o):
    count(counts, "asked " + o.stem)
    with urllib.request.urlopen(services["upper"] + "/" + o.stem) as answer:
        o.write_text(text.read_text() + answer.read().decode())

def whole(asked, shout, counts, o):
    count(counts, "whole")
    o.write_text("".join(path.read_text() for path in [*asked, *shout]))
"""
SERVER = """
import socket, sys

listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    conn, _ = listening.accept()
    with conn:
        path = conn.recv(4096).split()[1].decode()
        conn.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + path.upper().encode())
"""


class Press(Space):
    """A project of many small actions, each of which notes outside the project that it was carried out."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "project")
        self._counts = folder / "counts"
        self.write("scripts/work.py", SCRIPT)
        self.write("scripts/server.py", SERVER)
        for shard in SHARDS:
            self.write(f"data/{shard}.txt", f"text {shard}")

    def edit(self, edition: int) -> None:
        """After which every action has to run."""
        self.write("rules/press.toml", RULES.format(edition=edition, counts=self._counts))
        self._counts.write_text("")

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, "build", "--json"],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
        )

    def executed(self) -> Counter[str]:
        return Counter(self._counts.read_text().splitlines())

    def outputs(self) -> dict[str, bytes]:
        folder = self.root / "build"
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def made_in(edition: int) -> dict[str, bytes]:
    """What the scripts make in any clean build."""
    parts = {shard: f"text {shard} of edition {edition}\n" for shard in SHARDS}
    asked = {shard: f"{text}/{shard}" for shard, text in parts.items()}
    files = {f"part/{shard}.txt": text for shard, text in parts.items()}
    files |= {f"asked/{shard}.txt": text for shard, text in asked.items()}
    files |= {f"shout/{shard}.txt": text.upper() for shard, text in parts.items()}
    files["whole.txt"] = "".join([*asked.values(), *(text.upper() for text in parts.values())])
    return {path: text.encode() for path, text in files.items()}


def in_flight(said: str) -> set[str]:
    """The actions that a build has begun and not brought to a good end, as far as it came to say."""
    begun: set[str] = set()
    for line in said.splitlines():
        event = json.loads(line) if line.endswith("}") else {"event": "cut short"}
        if event["event"] == "ActionStarted":
            begun.add(event["action"])
        elif event["event"] == "ActionFinished" and event["outcome"] == "ran":
            begun.discard(event["action"])
    return {action.replace("[", " ").rstrip("]") for action in begun}


def victim_of(build: subprocess.Popen[str], rng: random.Random) -> tuple[str, int]:
    """The process to kill and what it is: a worker, a command and a server are all forked by a zygote."""
    zygotes = children_of(build.pid)
    forked = [pid for zygote in zygotes for pid in children_of(zygote)]
    found = {"build": [build.pid], "zygote": zygotes, "forked": forked}
    kind = rng.choice([kind for kind in VICTIMS if found[kind]])
    return kind, rng.choice(found[kind])


@dataclass(frozen=True)
class Kill:
    """One kill and the build after it. executed: when the killed one was gone."""

    told: str
    executed: int
    in_flight: set[str]
    twice: set[str]


def kill_once(press: Press, rng: random.Random, most_events: int) -> Kill:
    """Kill when the build has told some events, and a moment later; then build."""
    n_events, after_s = rng.randint(0, most_events), rng.uniform(0, LATEST_S)
    with press.start() as build:
        said = "".join(itertools.islice(build.stdout, n_events))
        time.sleep(after_s)
        kind, victim = victim_of(build, rng)
        if build.poll() is None:
            os.kill(victim, signal.SIGKILL)
        said += build.stdout.read()
    told = f"{kind} {1000 * after_s:.0f} ms after {n_events} events, exit {build.returncode}\n{said}"
    assert within(5, lambda: not processes_in(press.root)), f"{told}{processes_in(press.root)} are left"
    executed = press.executed()
    end = press.build()
    assert end.outcome == "done", f"{told}{end.errors}"
    assert set(press.executed()) == MADE, told
    assert max(press.executed().values()) <= 2, told
    return Kill(told, executed.total(), in_flight(said), {name for name, n in press.executed().items() if n > 1})


@pytest.mark.timeout(60 + 60 * N_KILLS)
def test_whatever_is_killed_the_next_build_repeats_at_most_what_was_in_flight(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    press = Press(tmp_path / "killed")
    press.edit(0)
    n_events = len(press.build().events)
    assert set(press.executed()) == MADE
    print(f"seed {SEED}, {N_KILLS} kills of builds that tell {n_events} events")
    kills = []
    for edition in range(1, N_KILLS + 1):
        press.edit(edition)
        kill = kill_once(press, rng, n_events)
        print(f"{edition}: {kill.told.splitlines()[0]}, {kill.executed} executed, {len(kill.twice)} again")
        assert kill.twice <= kill.in_flight, kill.told
        assert press.outputs() == made_in(edition), kill.told
        kills.append(kill)
    print(f"executed before the kill: {sum(kill.executed for kill in kills)} of {N_KILLS * len(MADE)}")
    print(f"executed again: {sum(len(kill.twice) for kill in kills)}")
    clean = Press(tmp_path / "clean")
    clean.edit(N_KILLS)
    assert clean.build().outcome == "done"
    assert press.outputs() == clean.outputs()
