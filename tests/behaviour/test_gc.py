"""`buildsys gc`: what holds stays whatever happens, and what went only costs a run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from buildsys.build import Options, build
from buildsys.collect import Collector, Keep
from buildsys.project import Project
from buildsys.request import Variation
from buildsys.state.lock import hold
from tests.behaviour.conftest import Space
from tests.cli.conftest import run_in

RULES = """
config = "config.toml"
[rule.words]
each    = { shard = "data/{shard}.txt" }
shell   = "cp {inputs.text} {outputs.words}; echo {params.mark} >> {outputs.words}"
inputs  = { text = "data/{shard}.txt" }
params  = { mark = "$mark" }
outputs = { words = "build/{profile}/words/{shard}.csv" }
[rule.book]
shell   = "mkdir -p {outputs.book}/all; cat {inputs.words} > {outputs.book}/all/text"
inputs  = { words = "@words[*]" }
outputs = { book = "build/{profile}/book" }
"""


@pytest.fixture
def shop(space: Space) -> Space:
    space.write("rules/book.toml", RULES)
    space.write("data/one.txt", "x\none\n")
    mark(space, 1)
    return space


def mark(space: Space, n: int) -> None:
    space.write("config.toml", f"mark = {n}\n")
    assert space.build().outcome == "done"


def objects(space: Space) -> set[str]:
    return {path.parent.name + path.name for path in (space.root / ".buildsys/store").glob("??/*")}


def collect(space: Space, runs: int = 1, **more: bool) -> None:
    with closing(Collector(Project(space.root))) as collector:
        collector.collect(collector.plan(Keep(runs, **more)))


def test_what_holds_stays_and_what_went_costs_a_run(shop: Space) -> None:
    first = objects(shop)
    mark(shop, 2)
    collect(shop)
    assert shop.build().ran == []
    shop.remove("build")
    assert shop.build().restored == ["book", "words[one]"]
    assert not first <= objects(shop)
    now = objects(shop)
    shop.write("config.toml", "mark = 1\n")
    assert shop.build().ran == ["book", "words[one]"]
    assert now < objects(shop)


def test_the_last_runs_can_be_gone_back_to(shop: Space) -> None:
    mark(shop, 2)
    mark(shop, 3)
    collect(shop, runs=2)
    shop.write("config.toml", "mark = 2\n")
    assert shop.build().restored == ["book", "words[one]"]
    shop.write("config.toml", "mark = 1\n")
    assert shop.build().ran == ["book", "words[one]"]


def test_a_pinned_run_keeps_what_it_found_in_place_too(shop: Space) -> None:
    shop.write("data/two.txt", "x\ntwo\n")
    mark(shop, 1)
    assert run_in(shop.root, "gc", "--pin", "2").stderr == "pinned: 2\n"
    mark(shop, 2)
    collect(shop)
    shop.write("config.toml", "mark = 1\n")
    assert shop.build().restored == ["book", "words[one]", "words[two]"]
    mark(shop, 2)
    with closing(Collector(Project(shop.root))) as collector:
        collector.pin([], no_more=[2])
    collect(shop)
    shop.write("config.toml", "mark = 1\n")
    assert shop.build().ran == ["book", "words[one]", "words[two]"]


def test_a_run_that_never_was_is_not_pinned(shop: Space) -> None:
    assert run_in(shop.root, "gc", "--pin", "41").returncode == 3
    assert not (shop.root / ".buildsys/pinned_runs").exists()


def test_all_profiles_keep_what_holds_in_them(shop: Space) -> None:
    small = Project(shop.root, Variation("small"))
    shop.write("config.small.toml", "mark = 7\n")
    assert build(small, Options(), lambda event: None).outcome == "done"
    mark(shop, 2)
    collect(shop)
    shop.remove("build")
    assert build(small, Options(), lambda event: None).counts == {"restored": 2}
    assert shop.build().restored == ["book", "words[one]"]


def test_what_a_check_holds_back_stays_for_the_next_try(shop: Space) -> None:
    check = '[rule.words.checks]\nlong = "SELECT count(*) > 5 FROM words"\n'
    shop.write("rules/book.toml", RULES + check)
    shop.write("config.toml", "mark = 2\n")
    assert shop.build().failed == ["words[one]"]
    collect(shop)
    shop.write("rules/book.toml", RULES + check.replace("> 5", "> 1"))
    assert "words[one]" not in shop.build().ran


def test_a_dry_run_tells_and_removes_nothing(shop: Space) -> None:
    mark(shop, 2)
    before = objects(shop)
    told = run_in(shop.root, "gc", "--dry-run", "--keep-runs", "1")
    assert "  store     words" in told.stdout
    assert "would be freed" in told.stdout
    assert objects(shop) == before
    done = run_in(shop.root, "gc", "--keep-runs", "1", "--json")
    assert {one["kind"] for one in json.loads(done.stdout)["unneeded"]} >= {"store", "links"}
    assert objects(shop) < before


def test_a_build_that_holds_the_project_is_waited_for_by_nobody(shop: Space) -> None:
    with hold(shop.root / ".buildsys/lock", "buildsys build"):
        assert run_in(shop.root, "gc").returncode == 5


@pytest.mark.parametrize("after", [1, 4])
def test_a_kill_in_the_middle_loses_nothing_that_is_needed(shop: Space, after: int) -> None:
    """The process kills itself before the n-th file that it would remove."""
    mark(shop, 2)
    code = f"""
import os, signal, sys
from buildsys.cli.main import main
left = {after}
def audit(event, args):
    global left
    if event in ("os.remove", "shutil.rmtree") and "/.buildsys/" in str(args[0]):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(audit)
sys.argv = ["buildsys", "gc", "--keep-runs", "1"]
main()
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=shop.root, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert shop.build().ran == []
    shop.remove("build")
    assert shop.build().restored == ["book", "words[one]"]
    collect(shop)
    assert shop.build().ran == []


SCRATCH = RULES.replace("mkdir", "echo x > {scratch}/x; grep -q 3 {inputs.words} || exit 1; mkdir") + "scratch = true\n"


def scratches(space: Space) -> list[str]:
    return [path.parent.name for path in (space.root / ".buildsys/scratch").glob("*/x")]


def test_scratch_stays_while_its_action_may_go_on_from_it(shop: Space) -> None:
    shop.write("rules/book.toml", SCRATCH)
    shop.write("config.toml", "mark = 2\n")
    assert shop.build().failed == ["book"]
    (key,) = scratches(shop)
    collect(shop)
    assert scratches(shop) == [key]
    told = run_in(shop.root, "gc", "--scratch", "--dry-run").stdout
    assert "  scratch   book" in told
    assert scratches(shop) == [key]
    mark(shop, 3)
    collect(shop)
    assert scratches(shop) == []


def test_scratch_goes_where_a_user_says_so(shop: Space) -> None:
    shop.write("rules/book.toml", SCRATCH)
    shop.write("config.toml", "mark = 2\n")
    shop.build()
    collect(shop, scratch=False)
    assert scratches(shop) == []


def test_old_logs_go_but_for_the_newest_of_each_action(shop: Space) -> None:
    shop.write("data/two.txt", "x\ntwo\n")
    mark(shop, 1)
    shop.write("data/two.txt", "x\n2\n")
    mark(shop, 1)
    logs = shop.root / ".buildsys/logs"
    shop.write("rules/book.toml", f"{RULES}\n[store]\nkeep_logs = 1\n")
    collect(shop)
    left = sorted(path.relative_to(logs).as_posix() for path in logs.rglob("*.log"))
    assert left == ["1/words/one.log", "3/book/book.log", "3/words/two.log"]
