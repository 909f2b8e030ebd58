"""Actions occupy what they take of the machine and of pools, and wait until it is free; what nobody has is refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from buildsys.errors import USAGE
from buildsys.run import machine
from buildsys.run.workers import Workers
from tests.behaviour.conftest import Space
from tests.chat.server import ChatServer

pytestmark = pytest.mark.timeout(60)

# Each action notes when it began and ended, by its name.
SPAN = "{python} -c 'import time; print(time.monotonic_ns())' >> spans/$(basename {outputs.o})"
RULE = """
[rule.NAME]
each      = {{ shard = "data/{{shard}}.txt" }}
shell     = "{span}; sleep {seconds}; {span}; touch {{outputs.o}}"
inputs    = {{ i = "data/{{shard}}.txt" }}
outputs   = {{ o = "build/NAME-{{shard}}" }}
resources = {{ {takes} }}
"""


def rule(name: str, takes: str, seconds: float = 0.1) -> str:
    return RULE.format(span=SPAN, takes=takes, seconds=seconds).replace("NAME", name)


@pytest.fixture
def busy(space: Space) -> Space:
    (space.root / "spans").mkdir()
    for shard in range(4):
        space.write(f"data/{shard}.txt", f"{shard}")
    return space


def spans(space: Space, name: str = "") -> list[tuple[int, int]]:
    files = (space.root / "spans").glob(f"{name}*")
    return sorted((first, last) for first, last in (map(int, file.read_text().split()) for file in files))


def most_at_once(found: list[tuple[int, int]]) -> int:
    ends = sorted([(begun, 1) for begun, _ in found] + [(ended, -1) for _, ended in found])
    return max(itertools.accumulate(step for _, step in ends))


def test_a_pool_lets_so_many_run_as_it_has_room_for(busy: Space) -> None:
    busy.write("rules/r.toml", rule("r", "disk = 2") + "[pools]\ndisk = 5\n")
    assert len(busy.build(jobs=4).ran) == 4
    assert most_at_once(spans(busy)) <= 2


def test_a_pool_of_one_lets_actions_of_several_rules_run_one_by_one(busy: Space) -> None:
    busy.write("rules/r.toml", rule("a", "disk = 1", 0.02) + rule("b", "disk = 1", 0.02) + "[pools]\ndisk = 1\n")
    assert len(busy.build(jobs=4).ran) == 8
    assert most_at_once(spans(busy)) == 1


def test_memory_is_shared(busy: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildsys.run.machine.memory", lambda: 1_000_000_000)
    busy.write("rules/r.toml", rule("r", 'memory = "400MB"'))
    assert len(busy.build(jobs=4).ran) == 4
    assert most_at_once(spans(busy)) <= 2


def test_who_takes_nothing_is_not_held_up(busy: Space) -> None:
    busy.write("rules/r.toml", rule("slow", "disk = 1", 0.4) + rule("free", "", 0) + "[pools]\ndisk = 1\n")
    busy.build(jobs=2)
    assert max(ended for _, ended in spans(busy, "free")) < max(ended for _, ended in spans(busy, "slow"))
    assert most_at_once(spans(busy, "slow")) == 1


GPUS = """
[rule.seen]
each      = { shard = "data/{shard}.txt" }
run       = "seen.py::seen"
inputs    = { i = "data/{shard}.txt" }
outputs   = { o = "seen/{shard}.json" }
resources = { gpu = 1 }
"""
SEEN = """
import json, os, time

def seen(i, o):
    begun = time.monotonic_ns()
    time.sleep(0.2)
    o.write_text(json.dumps([os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid(), begun, time.monotonic_ns()]))
"""


@pytest.fixture
def gpus(busy: Space, monkeypatch: pytest.MonkeyPatch) -> Space:
    """Two GPUs, by the word of the environment."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    busy.write("rules/r.toml", GPUS)
    busy.write("seen.py", SEEN)
    return busy


def seen(space: Space) -> list[tuple[str | None, int, int, int]]:
    return [tuple(json.loads(file.read_text())) for file in sorted((space.root / "seen").iterdir())]


def test_actions_get_gpus_that_no_other_has_at_the_time(gpus: Space) -> None:
    built = gpus.build(jobs=4)
    assert built.errors == ""
    by_device: dict[str | None, list[tuple[int, int]]] = {}
    for device, _, begun, ended in seen(gpus):
        by_device.setdefault(device, []).append((begun, ended))
    assert set(by_device) <= {"2", "5"}
    assert all(most_at_once(found) == 1 for found in by_device.values())


def test_a_warm_worker_stays_with_its_gpu(gpus: Space) -> None:
    gpus.build(jobs=4)
    devices_of: dict[int, set[str | None]] = {}
    for device, pid, _, _ in seen(gpus):
        devices_of.setdefault(pid, set()).add(device)
    assert all(len(devices) == 1 for devices in devices_of.values())


def test_one_after_the_other_they_share_a_warm_worker(gpus: Space) -> None:
    gpus.build(jobs=1)
    assert len({(device, pid) for device, pid, _, _ in seen(gpus)}) == 1


AFTER = """
import json, os

def after(i, o):
    _, pid, _, _ = json.loads(i.read_text())
    o.write_text(str(os.path.exists(f"/proc/{pid}")))
"""


@pytest.mark.parametrize(
    ("takes", "stays"),
    [("gpu = 1", False), ('memory = "600MB"', False), ('memory = "400MB"', True)],
    ids=["its GPU", "its memory", "memory enough"],
)
def test_an_idle_worker_leaves_where_another_rule_is_given_what_it_keeps(
    gpus: Space, monkeypatch: pytest.MonkeyPatch, takes: str, stays: bool
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(machine, "memory", lambda: 1_000_000_000)
    monkeypatch.setattr(Workers, "retire", lambda workers, group: None)  # its rule is done, which is another reason
    first = GPUS.replace("gpu = 1", takes)
    then = first.replace("seen]", "after]").replace("seen.py::seen", "after.py::after").replace("seen/", "after/")
    gpus.write("rules/r.toml", first + then.replace('i = "data/{shard}.txt"', 'i = "@seen"'))
    gpus.write("after.py", AFTER)
    assert gpus.build("after[0]", jobs=1).ran == ["after[0]", "seen[0]"]
    assert gpus.read("after/0.json") == str(stays)


@pytest.mark.parametrize("takes", ["gpu = 0", ""])
def test_who_takes_no_gpu_sees_what_the_caller_sees(gpus: Space, takes: str) -> None:
    gpus.replace("rules/r.toml", "gpu = 1", takes)
    gpus.build(jobs=1)
    assert {device for device, *_ in seen(gpus)} == {"2,5"}


def test_a_command_gets_its_gpus_too(gpus: Space) -> None:
    gpus.write(
        "rules/r.toml",
        """
        [rule.said]
        shell     = "echo $CUDA_VISIBLE_DEVICES > {outputs.o}"
        outputs   = { o = "said.txt" }
        resources = { gpu = 2 }
        """,
    )
    gpus.build()
    assert set(gpus.read("said.txt").strip().split(",")) == {"2", "5"}


def test_resources_are_in_no_key(gpus: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus.build()
    gpus.replace("rules/r.toml", "gpu = 1", "gpu = 2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert gpus.build().ran == []


def test_more_gpus_than_there_are_are_refused_before_anything_runs(gpus: Space) -> None:
    gpus.replace("rules/r.toml", "gpu = 1", "gpu = 3")
    gpus.write("rules/a.toml", rule("free", ""))
    built = gpus.build()
    assert (built.outcome, built.ran, spans(gpus)) == ("refused", [], [])
    assert built.error is not None
    assert built.error.exit_code == USAGE
    assert built.error.problem == "[rule.seen] takes 3 GPUs, and this machine has 2"
    assert "rules/r.toml:2" in built.error.render()


def test_more_memory_than_there_is_is_refused_with_numbers(busy: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildsys.run.machine.memory", lambda: 1_000_000_000)
    busy.write("rules/r.toml", rule("r", 'memory = "4GB"'))
    built = busy.build()
    assert built.error is not None
    assert built.error.problem == "[rule.r] takes 4.0 GB of memory, and this machine has 1.0 GB"


def test_what_is_up_to_date_needs_no_machine_that_could_make_it(gpus: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus.write("rules/a.toml", rule("free", ""))
    gpus.build()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    gpus.replace("rules/a.toml", "sleep", "sleep ")
    assert gpus.build().ran == [f"free[{shard}]" for shard in range(4)]
    gpus.replace("seen.py", "0.2", "0.1")
    built = gpus.build()
    assert built.error is not None
    assert built.error.problem == "[rule.seen] takes 1 GPU, and this machine has none"


def test_a_failure_ends_the_build_though_others_wait(busy: Space) -> None:
    busy.write("rules/r.toml", rule("r", "disk = 1", 0.2).replace("touch", "false") + "[pools]\ndisk = 1\n")
    built = busy.build(jobs=4)
    assert (built.outcome, len(built.failed), len(spans(busy))) == ("failed", 1, 1)
    assert len(busy.build(jobs=4, keep_going=True).failed) == 4


CHAT = """
[rule.asked]
each      = { shard = "data/{shard}.txt" }
chat      = "ask.py::ask"
inputs    = { i = "data/{shard}.txt" }
outputs   = { o = "asked/{shard}" }
endpoint  = "URL"
identity  = "test@1"
resources = { server = 1 }
[rule.taken]
each      = { shard = "@asked[*]" }
shell     = "cp {inputs.i} {outputs.o}"
inputs    = { i = "@asked" }
outputs   = { o = "taken/{shard}" }
resources = { server = 1 }
[pools]
server = 1
"""


ASK = """
def ask(record, replies):
    return None if replies else {"model": "m", "messages": [{"role": "user", "content": record["id"]}]}
"""


def test_chat_actions_take_their_turns_with_the_others(busy: Space) -> None:
    busy.write("ask.py", ASK)
    for shard in range(4):
        busy.write(f"data/{shard}.txt", f'{{"id": "{shard}"}}\n')
    with ChatServer() as server:
        busy.write("rules/r.toml", CHAT.replace("URL", server.url))
        built = busy.build(jobs=1)
        assert len(server.asked) == 4
    assert (built.errors, len(built.ran)) == ("", 8)


def test_actions_of_several_pools_above_and_below_one_another_all_end(busy: Space) -> None:
    busy.write(
        "rules/r.toml",
        rule("up", "disk = 1", 0)
        + rule("down", "disk = 2, net = 1", 0).replace('i = "data/{shard}.txt"', 'i = "@up"')
        + "[pools]\ndisk = 2\nnet = 1\n",
    )
    assert len(busy.build(jobs=1).ran) == 8


@pytest.mark.parametrize(
    ("visible", "found"),
    [("0,1", ("0", "1")), ("", ()), ("-1", ()), ("3,-1,4", ("3",)), ("GPU-8932f937, 1", ("GPU-8932f937", "1"))],
)
def test_the_caller_s_word_on_gpus_is_taken(visible: str, found: tuple[str, ...]) -> None:
    assert machine.gpus({"CUDA_VISIBLE_DEVICES": visible}) == found


def test_a_machine_has_no_more_memory_than_its_group_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = machine.memory()
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("1000000\n")
    assert machine.memory() == 1_000_000 < whole
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert machine.memory() >= whole
