"""Calls in warm workers: what is shared, what is fresh, and what is told when something goes wrong."""

from __future__ import annotations

import datetime
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from buildsys.errors import BuildError
from tests.run.conftest import Space, alive, within

pytestmark = pytest.mark.timeout(60)

MODEL = """
    import functools
    from pathlib import Path

    with open("imports.txt", "a") as file:
        file.write("imported\\n")

    @functools.cache
    def model(path):
        with open("loads.txt", "a") as file:
            file.write(f"{path}\\n")
        return path.read_text()

    def use(weights: Path, suffix: str) -> str:
        return model(weights) + suffix
"""


PREPARE = "prepare(source, shards) in scripts/a.py"


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


# ---------------------------------------------------------------- values


def test_values_come_back_as_they_were_returned(space: Space) -> None:
    space.write("scripts/a.py", "def same(value): return value\n")
    value = {"text": "é", "n": [1, 2.5, None, True], "day": datetime.date(2024, 2, 29), "raw": b"\0", "pair": (1, 2)}
    assert space.workers().call(space.job("scripts/a.py::same", value=value)).value == value


def test_paths_arrive_as_paths(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        from pathlib import Path

        def kinds(one, many, text):
            return [isinstance(one, Path), [isinstance(path, Path) for path in many], isinstance(text, str)]
        """,
    )
    job = space.job("scripts/a.py::kinds", one=Path("x"), many=[Path("y"), Path("z")], text="x")
    assert space.workers().call(job).value == [True, [True, True], True]


def test_a_hundred_megabytes_travel_both_ways(space: Space) -> None:
    space.write("scripts/a.py", "def same(data): return data\n")
    data = bytes(100 << 20)
    assert space.workers().call(space.job("scripts/a.py::same", data=data)).value == data


def test_a_returned_object_of_the_users_own_class_never_reaches_the_builder(space: Space) -> None:
    space.write("scripts/a.py", "class Thing: pass\n\ndef make(): return Thing()\n")
    result = space.workers().call(space.job("scripts/a.py::make"))
    assert (result.ok, result.value) == (True, None)


def test_map_calls_the_function_for_every_item(space: Space) -> None:
    space.write("scripts/a.py", "def build(record, replies, *, model): return [record, len(replies), model]\n")
    job = space.job("scripts/a.py::build", model="m")
    assert space.workers().map(job, [("a", []), ("b", [1])]).value == [["a", 0, "m"], ["b", 1, "m"]]
    assert space.workers().map(job, []).value == []


def test_map_takes_subclasses_of_plain_values_as_plain(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import collections, enum

        class Role(str, enum.Enum):
            USER = "user"

        def build(record): return collections.OrderedDict(role=Role.USER, n=record)
        """,
    )
    (value,) = space.workers().map(space.job("scripts/a.py::build"), [(1,)]).value
    assert value == {"role": "user", "n": 1}
    assert (type(value), type(value["role"])) == (dict, str)


def test_map_refuses_a_value_that_is_not_plain(space: Space) -> None:
    space.write("scripts/a.py", "class Thing: pass\n\ndef build(record): return {'x': Thing()}\n")
    result = space.workers().map(space.job("scripts/a.py::build"), [(1,)])
    assert (result.ok, result.error) == (False, "TypeError: returned a value that is not plain, of type Thing")


def test_map_names_the_item_that_failed(space: Space) -> None:
    space.write("scripts/a.py", "def build(record): return 1 / record\n")
    result = space.workers().map(space.job("scripts/a.py::build"), [(1,), (0,)])
    assert result.error == "ZeroDivisionError: division by zero"
    assert "in item 1" in result.traceback


# ---------------------------------------------------------------- warm workers


def test_a_second_action_imports_and_loads_nothing_again(space: Space) -> None:
    space.write("scripts/a.py", MODEL)
    weights = space.write("weights.txt", "w")
    workers = space.workers()
    for suffix in "12":
        assert workers.call(space.job("scripts/a.py::use", weights=weights, suffix=suffix)).value == "w" + suffix
    assert lines(space.root / "imports.txt") == ["imported"]
    assert lines(space.root / "loads.txt") == [str(weights)]


def test_another_combination_imports_and_loads_anew(space: Space) -> None:
    space.write("scripts/a.py", MODEL)
    weights = space.write("weights.txt", "old ")
    workers = space.workers()
    workers.call(space.job("scripts/a.py::use", weights=weights, suffix="1"))
    weights.write_text("new ")
    job = space.job("scripts/a.py::use", combination="two", weights=weights, suffix="1")
    assert workers.call(job).value == "new 1"
    assert len(lines(space.root / "loads.txt")) == 2


def test_no_more_workers_stay_than_jobs(space: Space) -> None:
    space.write("scripts/a.py", "import os\n\ndef pid(): return os.getpid()\n")
    workers = space.workers(jobs=2)
    call = {name: workers.call(space.job("scripts/a.py::pid", combination=name)).value for name in "abc"}
    assert within(2, lambda: not alive(call["a"]))
    assert alive(call["b"])
    assert alive(call["c"])
    assert workers.call(space.job("scripts/a.py::pid", combination="b")).value == call["b"]


def test_a_third_party_module_is_imported_once_for_all_workers(space: Space) -> None:
    space.write("lib/heavy.py", "with open('heavy.txt', 'a') as file:\n    file.write('imported\\n')\n")
    space.write("scripts/a.py", "import heavy\n\ndef nothing(): pass\n")
    env = {"PYTHONPATH": str(space.root / "lib")}
    workers = space.workers()
    for combination in "abc":
        job = space.job("scripts/a.py::nothing", combination=combination, preload=("heavy", "no_such_module"), env=env)
        assert workers.call(job).ok
    assert lines(space.root / "heavy.txt") == ["imported"]


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_imported_before_the_fork_works_after_it(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import torch

        def multiply(n): return (torch.ones(n, n) @ torch.ones(n, n)).sum().item()
        """,
    )
    workers = space.workers()
    for combination in "ab":
        job = space.job("scripts/a.py::multiply", combination=combination, preload=("torch",), n=400)
        assert workers.call(job).value == 400.0**3


def test_random_state_folder_and_environment_are_fresh_for_every_action(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import os, random, sys

        random.random()

        def draw(spoil):
            state = [random.random(), os.getcwd(), dict(os.environ), list(sys.argv), sys.path[0]]
            os.environ["SPOILED"] = "yes"
            os.environ.pop("PATH")
            os.chdir("/")
            sys.argv.append(spoil)
            return state
        """,
    )
    workers = space.workers()
    first = workers.call(space.job("scripts/a.py::draw", spoil="1"))
    second = workers.call(space.job("scripts/a.py::draw", spoil="2"))
    assert first.ok
    assert first.value == second.value
    assert first.value[1] == str(space.root)
    assert first.value[4] == str(space.root / "scripts")


@pytest.mark.skipif(find_spec("numpy") is None, reason="numpy is not installed")
def test_numpy_draws_the_same_in_every_action(space: Space) -> None:
    space.write(
        "scripts/a.py", "import numpy\n\nnumpy.random.rand()\n\ndef draw(): return float(numpy.random.rand())\n"
    )
    workers = space.workers()
    first, second = [workers.call(space.job("scripts/a.py::draw")) for _ in range(2)]
    assert (first.ok, first.value) == (True, second.value)


def test_the_environment_is_what_the_job_says_and_no_more(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_BUILDER", "1")
    space.write("scripts/a.py", "import os\n\ndef env(): return dict(os.environ)\n")
    job = space.job("scripts/a.py::env", env={"DECLARED": "x"})
    assert space.workers().call(job).value == {"DECLARED": "x", "PYTHONHASHSEED": "0"}


def test_sets_of_strings_come_in_one_order_in_every_build(space: Space) -> None:
    space.write("scripts/a.py", "def order(): return list({str(n) for n in range(50)})\n")
    orders = [space.workers().call(space.job("scripts/a.py::order")).value for _ in range(2)]
    assert orders[0] == orders[1]


def test_a_thread_and_a_child_left_by_an_action_do_not_stop_the_next(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import subprocess, threading, time

        def leave():
            threading.Thread(target=time.sleep, args=[1000]).start()
            subprocess.Popen(["sleep", "1000"])
        """,
    )
    workers = space.workers()
    assert workers.call(space.job("scripts/a.py::leave")).ok
    assert workers.call(space.job("scripts/a.py::leave")).ok
    started = time.monotonic()
    workers.close()
    assert time.monotonic() - started < 4


def test_exit_handlers_of_an_action_run_when_its_worker_leaves(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import atexit, pathlib, weakref

        class Thing: pass
        THING = Thing()

        def register():
            atexit.register(pathlib.Path("left.txt").write_text, "x")
            weakref.finalize(THING, pathlib.Path("finalized.txt").write_text, "x")
        """,
    )
    workers = space.workers()
    workers.call(space.job("scripts/a.py::register"))
    workers.close()
    assert (space.root / "left.txt").exists()
    assert (space.root / "finalized.txt").exists()


def test_two_hundred_calls_over_four_threads_all_get_their_own_answer(space: Space) -> None:
    space.write("scripts/a.py", "def twice(n): return 2 * n\n")
    workers = space.workers(jobs=3)
    rng = random.Random(0)

    def call(n: int) -> object:
        return workers.call(space.job("scripts/a.py::twice", combination=rng.choice("aaabbbcccd"), n=n)).value

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(200))) == [2 * n for n in range(200)]


def test_cost_is_told_for_each_action(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import subprocess, sys, time

        def burn(seconds):
            end = time.process_time() + seconds
            while time.process_time() < end: pass

        def burn_in_a_child():
            subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.2: pass"])

        def allocate(n): return len(bytearray(n))
        """,
    )
    workers = space.workers(jobs=1)
    assert 0.1 <= workers.call(space.job("scripts/a.py::burn", seconds=0.1)).cpu_s < 0.2
    assert workers.call(space.job("scripts/a.py::burn", seconds=0.0)).cpu_s < 0.1
    assert workers.call(space.job("scripts/a.py::burn_in_a_child")).cpu_s >= 0.2
    large = workers.call(space.job("scripts/a.py::allocate", n=200 << 20))
    small = workers.call(space.job("scripts/a.py::allocate", n=1))
    assert large.max_rss > 200 << 20 > small.max_rss
    assert 0 < large.wall_s < 10


# ---------------------------------------------------------------- what goes wrong


def test_an_exception_is_told_in_one_line_and_with_the_users_frames(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import json

        def parse(text):
            return json.loads(text)
        """,
    )
    result = space.workers().call(space.job("scripts/a.py::parse", text="{"))
    assert not result.ok
    assert result.error.startswith("json.decoder.JSONDecodeError: Expecting property name")
    assert "return json.loads(text)" in result.traceback
    assert "worker.py" not in result.traceback
    assert "raw_decode" not in result.traceback
    assert "raw_decode" in space.log.read_text()
    assert result.exit == ""


def test_the_log_shows_no_frame_of_what_overhears(space: Space) -> None:
    space.write("scripts/a.py", "import os\n\ndef f():\n    os.listdir('no/such')\n")
    assert space.workers().call(space.job("scripts/a.py::f")).error.startswith("FileNotFoundError")
    assert "os.listdir('no/such')\n" in space.log.read_text()
    assert "buildsys/run" not in space.log.read_text()


def test_a_traceback_shows_the_frozen_lines(space: Space) -> None:
    script = space.write("scripts/a.py", "def fail():\n    raise ValueError('bad row')  # as it was\n")
    job = space.job("scripts/a.py::fail")
    script.write_text("# moved\n# moved\ndef fail(): pass\n")
    result = space.workers().call(job)
    assert result.error == "ValueError: bad row"
    assert "line 2, in fail\n    raise ValueError('bad row')  # as it was" in result.traceback


def test_sys_exit_is_an_error_of_the_action(space: Space) -> None:
    space.write("scripts/a.py", "import sys\n\ndef leave(): sys.exit(0)\n\ndef stay(): return 1\n")
    workers = space.workers()
    assert workers.call(space.job("scripts/a.py::leave")).error == "SystemExit: the code called sys.exit(0)"
    assert workers.call(space.job("scripts/a.py::stay")).value == 1


@pytest.mark.parametrize(
    ("target", "arguments", "error"),
    [
        ("prepare", {"source": 1}, f"{PREPARE} doesn't fit its rule: missing a required argument: 'shards'"),
        (
            "prepare",
            {"source": 1, "shards": 2, "shard": 3},
            f"{PREPARE} doesn't fit its rule: got an unexpected keyword argument 'shard'",
        ),
        ("prepaer", {}, "scripts/a.py has no function prepaer"),
        ("LIMIT", {}, "LIMIT in scripts/a.py is no function but of type int"),
    ],
)
def test_a_call_that_does_not_fit_is_told_plainly(
    space: Space, target: str, arguments: dict[str, object], error: str
) -> None:
    space.write(
        "scripts/a.py",
        """
        LIMIT = 3

        def prepare(source, shards): pass
        """,
    )
    result = space.workers().call(space.job(f"scripts/a.py::{target}", **arguments))
    assert (result.ok, result.error, result.traceback) == (False, error, "")


def test_a_type_error_of_the_code_itself_keeps_its_traceback(space: Space) -> None:
    space.write("scripts/a.py", "def outer(): inner()\n\ndef inner(x): pass\n")
    result = space.workers().call(space.job("scripts/a.py::outer"))
    assert result.error == "TypeError: inner() missing 1 required positional argument: 'x'"
    assert "in outer" in result.traceback


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "signal 9 (SIGKILL: killed; out of memory?)"),
        ("ctypes.string_at(0)", "signal 11 (SIGSEGV: segmentation fault)"),
        ("os._exit(3)", "exit code 3"),
        ("os._exit(0)", "exit code 0"),
    ],
)
def test_a_worker_that_dies_says_how_and_the_next_call_gets_a_new_one(space: Space, body: str, how: str) -> None:
    space.write("scripts/a.py", f"import ctypes, os, signal\n\ndef die(): {body}\n\ndef live(): return 1\n")
    workers = space.workers(jobs=1)
    result = workers.call(space.job("scripts/a.py::die"))
    assert (result.ok, result.exit) == (False, how)
    assert how in result.error
    assert workers.call(space.job("scripts/a.py::live")).value == 1


def test_a_segmentation_fault_leaves_python_s_stack_in_the_log(space: Space) -> None:
    space.write("scripts/a.py", "import ctypes\n\ndef crash():\n    ctypes.string_at(0)\n")
    space.workers().call(space.job("scripts/a.py::crash"))
    assert "in crash" in space.log.read_text()


def test_a_worker_that_died_while_idle_is_replaced(space: Space) -> None:
    space.write("scripts/a.py", "import os\n\ndef pid(): return os.getpid()\n")
    workers = space.workers(jobs=1)
    pid = workers.call(space.job("scripts/a.py::pid")).value
    assert isinstance(pid, int)
    subprocess.run(["kill", "-9", str(pid)], check=True)
    assert within(2, lambda: not alive(pid))
    again = workers.call(space.job("scripts/a.py::pid"))
    assert again.ok
    assert again.value != pid


def test_an_interpreter_that_does_not_exist_is_an_error_for_people(space: Space) -> None:
    space.write("scripts/a.py", "def f(): pass\n")
    with pytest.raises(BuildError, match="does not start"):
        space.workers().call(space.job("scripts/a.py::f", python=str(space.root / "bin/python")))


def test_a_program_that_is_no_python_is_an_error_for_people(space: Space) -> None:
    space.write("scripts/a.py", "def f(): pass\n")
    python = space.write("python", "#!/bin/sh\necho no such flag >&2\nexit 2\n")
    python.chmod(0o755)
    with pytest.raises(BuildError, match="can't start workers") as caught:
        space.workers().call(space.job("scripts/a.py::f", python=str(python)))
    assert caught.value.facts == (("ended with", "exit code 2"),)
    assert caught.value.excerpt == "no such flag"


def test_a_process_that_an_import_leaves_behind_disturbs_nothing(space: Space) -> None:
    space.write(
        "lib/littering.py",
        """
        import os

        if not os.fork():
            os._exit(0)
        with open("imports.txt", "a") as file:
            file.write("imported\\n")
        """,
    )
    space.write("scripts/a.py", "def f(): return 1\n")
    workers = space.workers()
    env = {"PYTHONPATH": str(space.root / "lib")}
    for combination in "ab":
        job = space.job("scripts/a.py::f", combination=combination, preload=("littering",), env=env)
        assert workers.call(job).value == 1
    assert lines(space.root / "imports.txt") == ["imported"]


# ---------------------------------------------------------------- logs and commands


def test_each_action_has_a_log_with_all_its_output(space: Space) -> None:
    space.write(
        "scripts/a.py",
        """
        import ctypes, os, subprocess, sys

        def talk(word):
            print("out", word)
            print("err", word, file=sys.stderr)
            os.write(1, f"raw {word}\\n".encode())
            ctypes.CDLL(None).printf(f"native {word}\\n".encode())
            subprocess.run(["echo", "child", word])
        """,
    )
    workers = space.workers()
    for word in ("one", "two"):
        log = space.root / "logs" / word / "x.log"
        assert workers.call(space.job("scripts/a.py::talk", word=word, log=log)).ok
        assert sorted(lines(log)) == [f"{source} {word}" for source in ("child", "err", "native", "out", "raw")]


def test_a_command_runs_in_its_folder_with_its_environment_and_log(space: Space) -> None:
    space.write("sub/x.txt", "")
    result = space.workers().shell(
        "ls; echo $WORD >&2", {"PATH": "/bin:/usr/bin", "WORD": "w"}, space.root / "sub", space.log
    )
    assert result.ok
    assert lines(space.log) == ["x.txt", "w"]
    assert result.trace.trace.unseen == ("a command",)


@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("exit 3", "exit code 3"),
        ("kill -9 $$", "signal 9 (SIGKILL: killed; out of memory?)"),
        ("/bin/sh -c 'kill -11 $$'; exit $?", "exit code 139 (SIGSEGV: segmentation fault)"),
    ],
)
def test_a_command_that_fails_says_how(space: Space, command: str, how: str) -> None:
    result = space.workers().shell(command, {"PATH": "/bin:/usr/bin"}, space.root, space.log)
    assert (result.ok, result.exit, result.error) == (False, how, f"the command ended with {how}")


def test_what_a_command_leaves_running_ends_with_it(space: Space) -> None:
    result = space.workers().shell("sleep 1000 & echo $! > pid", {"PATH": "/bin:/usr/bin"}, space.root, space.log)
    assert result.ok
    pid = int((space.root / "pid").read_text())
    assert within(1, lambda: not alive(pid))
