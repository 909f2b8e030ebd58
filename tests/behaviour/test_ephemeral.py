"""Ephemeral outputs: they hold without being there, and are made again when something needs their bytes."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest

from buildsys.collect import Collector, Keep
from buildsys.errors import LIMIT
from buildsys.events import ActionFinished, ActionStarted
from buildsys.project import Project
from buildsys.request import Variation
from buildsys.survey import survey
from tests.behaviour.conftest import Built, Space

RULES = """
config = "config.toml"

[rule.states]
each      = { shard = "data/{shard}.txt" }
run       = "steps.py::states"
inputs    = { text = "data/{shard}.txt" }
params    = { scale = "$scale" }
ephemeral = true
outputs   = { states = "build/{profile}/states/{shard}.bin" }

[rule.sizes]
each    = { shard = "@states[*]" }
run     = "steps.py::sizes"
inputs  = { states = "@states" }
outputs = { sizes = "build/{profile}/sizes/{shard}.txt" }

[rule.draft]
run     = "steps.py::draft"
inputs  = { states = "@states[*]" }
params  = { lr = "$lr" }
outputs = { draft = "build/{profile}/draft.txt" }
"""

STEPS = """
import os

def states(text, states, scale):
    print("states", text)
    states.write_bytes(text.read_bytes() * scale)

def sizes(states, sizes):
    sizes.write_text(str(states.stat().st_size))

def draft(states, draft, lr):
    assert [path.name for path in states] == sorted(path.name for path in states)
    draft.write_text(f"{lr} " + b"".join(path.read_bytes() for path in states).decode())
"""
STATES = [f"states[{n}]" for n in range(3)]


@pytest.fixture
def space(space: Space) -> Space:
    space.write("rules/a.toml", RULES)
    space.write("config.toml", "scale = 10\nlr = 1\n")
    space.write("config.other.toml", "lr = 7\n")
    space.write("steps.py", STEPS)
    for n in range(3):
        space.write(f"data/{n}.txt", "abc"[n] * 10)
    return space


def drop(space: Space) -> None:
    shutil.rmtree(space.root / "build/default/states")


def lr(space: Space, value: int) -> None:
    space.write("config.toml", f"scale = 10\nlr = {value}\n")


def fates(space: Space, *targets: str) -> dict[str, str]:
    return {str(planned.action): planned.fate for planned in survey(Project(space.root), targets).actions}


def reason(built: Built, action: str) -> str:
    (end,) = [e for e in built.events if isinstance(e, ActionFinished) and str(e.action) == action]
    return end.reason


def test_ephemeral_outputs_are_in_place_and_not_in_the_store(space: Space) -> None:
    assert space.build().outcome == "done"
    assert space.read("build/default/states/1.bin") == "b" * 100
    objects = (space.root / ".buildsys/store").rglob("*")
    assert b"b" * 100 not in [path.read_bytes() for path in objects if path.is_file()]


def test_what_was_dropped_runs_nothing(space: Space) -> None:
    space.build()
    drop(space)
    assert set(fates(space).values()) == {"reuse"}
    built = space.build()
    assert (built.ran, built.outcome) == ([], "done")
    assert sorted(built.actions("reused")) == sorted(["draft", *STATES, *(f"sizes[{n}]" for n in range(3))])
    assert not (space.root / "build/default/states").exists()


def test_what_is_needed_again_is_made_again_once(space: Space) -> None:
    space.build()
    drop(space)
    lr(space, 2)
    assert {name for name, fate in fates(space).items() if fate == "run"} == {"draft", *STATES}
    built = space.build()
    assert built.ran == ["draft", *STATES]
    assert reason(built, "states[0]") == "dropped, and draft needs it"
    assert space.read("build/default/draft.txt") == "2 " + "a" * 100 + "b" * 100 + "c" * 100
    lr(space, 3)
    assert space.build().ran == ["draft"]


def test_only_the_shards_that_are_needed_are_made_again(space: Space) -> None:
    space.build()
    drop(space)
    space.replace("steps.py", "sizes.write_text(", "sizes.write_text('' + ")
    space.replace("rules/a.toml", "[rule.draft]", "[rule.draft]\ndefault = false")
    space.remove("build/default/sizes/1.txt")
    built = space.build("sizes[2]")
    assert built.ran == ["sizes[2]", "states[2]"]


def test_a_user_counts_it_by_key_so_other_bytes_under_the_same_key_change_nothing(space: Space) -> None:
    space.replace("steps.py", "* scale)", "* scale + os.urandom(4).hex().encode())")
    space.build()
    drop(space)
    lr(space, 2)
    assert space.build().ran == ["draft", *STATES]  # not sizes
    assert space.build().ran == []


def test_two_outputs_of_one_name_are_two_inputs(space: Space) -> None:
    space.write("steps.py", STEPS + "\ndef pair(one, two):\n    one.write_text('1')\n    two.write_text('2')\n")
    pair = '[rule.pair]\nrun = "steps.py::pair"\nephemeral = true\noutputs = { one = "p/1/x", two = "p/2/x" }\n'
    taken = (
        '[rule.taken]\nshell = "cat {inputs.x} > {outputs.y}"\ninputs = { x = "@pair.one" }\noutputs = { y = "y" }\n'
    )
    space.write("rules/b.toml", pair + taken)
    space.build("taken")
    space.replace("rules/b.toml", "@pair.one", "@pair.two")
    assert space.build("taken").ran == ["taken"]
    assert space.read("y") == "2"


def test_a_target_that_names_it_makes_it_again(space: Space) -> None:
    space.build()
    drop(space)
    assert fates(space, "states[1]") == {"states[1]": "run"}
    assert space.build("states[1]").ran == ["states[1]"]
    assert space.read("build/default/states/1.bin") == "b" * 100


def test_an_edited_one_is_put_aside_and_nothing_stale_stays_in_its_place(space: Space) -> None:
    space.build()
    space.write("build/default/states/1.bin", "mine")
    assert space.build().ran == []
    assert not (space.root / "build/default/states/1.bin").exists()
    assert space.read("build/default/states/1.bin.mine-1") == "mine"
    lr(space, 2)
    assert space.build().ran == ["draft", "states[1]"]


def test_after_a_revert_no_bytes_of_the_other_state_stay_in_place(space: Space) -> None:
    space.build()
    space.write("config.toml", "scale = 20\nlr = 1\n")
    assert space.build().ran == ["draft", "sizes[0]", "sizes[1]", "sizes[2]", *STATES]
    assert len(space.read("build/default/states/1.bin")) == 200
    lr(space, 1)
    built = space.build()
    assert built.ran == []
    assert space.read("build/default/sizes/1.txt") == "100"
    assert not (space.root / "build/default/states/1.bin").exists()
    assert [path.name for path in (space.root / "build/default").rglob("*.mine-*")] == []


def test_a_check_that_was_never_made_of_what_is_dropped_makes_it_again(space: Space) -> None:
    space.replace("rules/a.toml", ".bin", ".csv")
    space.write("steps.py", STEPS.replace("states.write_bytes(", "states.write_bytes(b'n\\n' + "))
    space.build("states")
    drop(space)
    space.replace("rules/a.toml", "[rule.sizes]", 'checks = { some = "SELECT count(*) > 0 FROM states" }\n[rule.sizes]')
    assert space.build("sizes").ran == ["sizes[0]", "sizes[1]", "sizes[2]", *STATES]
    drop(space)
    assert space.build("sizes").ran == []


def test_one_that_fails_when_it_is_made_again_skips_what_needs_it(space: Space) -> None:
    broken = space.root.with_name("broken")  # In a temporary folder, so that it is no input.
    space.replace("steps.py", "print(", f"assert not os.path.exists('{broken}'); print(")
    space.build()
    drop(space)
    lr(space, 2)
    broken.touch()
    built = space.build(keep_going=True)
    assert (built.failed, built.actions("skipped"), built.outcome) == (STATES, ["draft"], "failed")
    broken.unlink()
    assert space.build().ran == ["draft", *STATES]


def test_a_chain_of_them_is_made_again_from_its_start(space: Space) -> None:
    space.replace(
        "rules/a.toml",
        "[rule.draft]",
        '[rule.more]\neach = { shard = "@states[*]" }\nephemeral = true\n'
        'shell = "cat {inputs.x} {inputs.x} > {outputs.y}"\n'
        'inputs = { x = "@states" }\noutputs = { y = "build/{profile}/more/{shard}" }\n[rule.draft]',
    )
    space.replace("rules/a.toml", 'inputs  = { states = "@states[*]" }', 'inputs = { states = "@more[*]" }')
    space.build()
    more = [f"more[{n}]" for n in range(3)]
    drop(space)
    lr(space, 2)
    assert space.build().ran == ["draft"]  # what it reads is still there
    shutil.rmtree(space.root / "build/default/more")
    lr(space, 3)
    assert space.build().ran == ["draft", *more, *STATES]


def test_another_profile_reads_what_is_there_instead_of_making_it_twice(space: Space) -> None:
    space.build()
    built = space.build(profile="other")
    assert built.ran == ["draft"]
    assert space.read("build/other/draft.txt").startswith("7 aaa")
    assert not (space.root / "build/other/states").exists()


def test_a_plan_knows_that_another_profile_has_what_is_needed(space: Space) -> None:
    space.build()
    planned = survey(Project(space.root, Variation("other"))).actions
    assert {one.action.rule: one.fate for one in planned} == {"states": "reuse", "sizes": "restore", "draft": "run"}


def test_what_another_profile_put_at_a_shared_place_is_no_work_of_the_user(space: Space) -> None:
    space.replace("rules/a.toml", "build/{profile}/states/", "build/states/")
    for profile in ("default", "other", "default"):
        assert space.build(profile=profile).outcome == "done"
        space.replace("steps.py", "* scale", "* scale * 2")
    assert sorted(path.name for path in (space.root / "build/states").iterdir()) == ["0.bin", "1.bin", "2.bin"]
    space.remove("data/2.txt")
    assert [space.build(profile=profile).outcome for profile in ("other", "default")] == ["done", "done"]
    assert sorted(path.name for path in (space.root / "build/states").iterdir()) == ["0.bin", "1.bin"]


def test_makers_of_shards_cannot_be_ephemeral(space: Space) -> None:
    space.write("rules/b.toml", '[rule.o]\nshell = "x"\nephemeral = true\noutputs = { o = "o/{shard}" }\n')
    assert space.build().error
    assert "[rule.o] makes shards, so it can't be ephemeral" in space.build().error.problem  # type: ignore[union-attr]


def test_a_folder_may_be_ephemeral(space: Space) -> None:
    space.write("rules/a.toml", RULES.replace("{shard}.bin", "{shard}"))
    folder = 'states.mkdir(); (states / "a").write_bytes(text.read_bytes() * scale)'
    space.write(
        "steps.py",
        STEPS.replace("states.write_bytes(text.read_bytes() * scale)", folder)
        .replace("states.stat()", "(states / 'a').stat()")
        .replace("path.read_bytes()", "(path / 'a').read_bytes()"),
    )
    assert space.build().outcome == "done"
    drop(space)
    lr(space, 2)
    assert space.build().ran == ["draft", *STATES]


def test_equal_actions_are_one_and_their_users_read_what_it_made(space: Space) -> None:
    """Also where both were dropped, and where what it makes is never twice the same."""
    text = RULES.replace("data/{shard}.txt", "data/{shard}/t").replace("{shard}.bin", "{shard}/s")
    space.write("rules/a.toml", text)
    for n, letter in enumerate("aab"):
        space.write(f"data/{n}/t", letter * 10)
    built = space.build(jobs=4)
    assert (built.outcome, len(built.ran)) == ("done", 6)
    assert len({"states[0]", "states[1]"}.intersection(built.ran)) == 1
    assert space.read("build/default/draft.txt") == f"1 {'a' * 200}{'b' * 100}"
    drop(space)
    lr(space, 2)
    built = space.build(jobs=4)
    assert (built.outcome, len(built.ran)) == ("done", 3)
    space.replace("steps.py", "* scale)", "* scale + os.urandom(4).hex().encode())")
    assert space.build(jobs=4).outcome == "done"
    assert space.build("states").outcome == "done"
    drop(space)
    lr(space, 3)
    built = space.build(jobs=4)
    assert (built.errors, built.outcome) == ("", "done")


def test_what_is_gone_before_a_user_could_read_it_fails_that_once(space: Space) -> None:
    space.replace("rules/a.toml", 'inputs  = { states = "@states[*]" }', 'inputs = { states = "@states[*]", y = "@y" }')
    space.replace("steps.py", "(states, draft, lr)", "(states, y, draft, lr)")
    rule = '[rule.y]\nrun = "y.py::y"\ninputs = { x = "x" }\noutputs = { y = "build/{profile}/y" }\n'
    space.write("rules/y.toml", rule)
    gone = 'if x.read_text() == "2":\n        shutil.rmtree("build/default/states")'
    space.write("y.py", f"import shutil\ndef y(x, y):\n    shutil.copy(x, y)\n    {gone}\n")
    space.write("x", "1")
    space.build()
    space.write("x", "2")
    built = space.build(keep_going=True)
    assert (built.ran, built.failed, built.outcome) == (["y"], ["draft"], "failed")
    assert "states[0] were removed or changed before draft could read them" in built.errors
    assert space.build().ran == ["draft", *STATES]


def test_what_is_made_again_for_another_of_its_outputs_leaves_a_reader_alone(
    space: Space, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`slow` reads what is in place of the outputs of `pair` while these are made again for `quick`."""
    mark = tmp_path_factory.mktemp("marks") / "mark"
    space.write(
        "rules/a.toml",
        f"""
config = "config.toml"

[rule.pair]
shell     = "echo one > {{outputs.one}}; echo two > {{outputs.two}}"
outputs   = {{ one = "build/one", two = "build/two" }}
ephemeral = true

[rule.slow]
shell   = "echo {{params.lr}}; until test -e {mark}; do sleep 0.01; done; cp {{inputs.one}} {{outputs.slow}}"
inputs  = {{ one = "@pair.one" }}
params  = {{ lr = "$lr" }}
outputs = {{ slow = "build/slow" }}

[rule.quick]
shell   = "touch {mark}; cat {{inputs.two}} > {{outputs.quick}}; echo {{params.lr}} >> {{outputs.quick}}"
inputs  = {{ two = "@pair.two" }}
params  = {{ lr = "$lr" }}
outputs = {{ quick = "build/quick" }}
""",
    )
    assert space.build().outcome == "done"
    mark.unlink()
    lr(space, 2)
    space.remove("build/two")
    built = space.build(jobs=3)
    began = [str(event.action) for event in built.events if isinstance(event, ActionStarted)]
    assert (sorted(began), built.outcome) == (["pair", "quick", "slow"], "done")


# ---------------------------------------------------------------- the budget


def budget(space: Space, size: str) -> None:
    space.write("rules/b.toml", f'[store]\nephemeral_budget = "{size}"\n')


def test_a_budget_that_is_too_small_is_refused_before_anything_runs(space: Space) -> None:
    space.build()
    drop(space)
    lr(space, 2)
    budget(space, "299B")
    built = space.build()
    assert built.error
    assert built.error.exit_code == LIMIT
    assert ("needed at once", "300 B") in built.error.facts
    assert "300B" in built.error.hint
    assert built.events == []
    budget(space, "300B")
    assert space.build().ran == ["draft", *STATES]


def test_a_budget_that_is_too_small_for_what_is_asked_for_by_name_is_refused_before_anything_runs(space: Space) -> None:
    space.build()
    drop(space)
    budget(space, "99B")
    built = space.build("states")
    assert built.error
    assert built.error.exit_code == LIMIT
    assert built.events == []


def test_a_budget_that_nothing_needs_now_refuses_nothing(space: Space) -> None:
    space.build()
    budget(space, "1B")
    assert space.build().outcome == "done"


def test_what_has_no_room_beside_what_is_needed_fails_with_the_bytes(space: Space) -> None:
    """No sizes are known yet, so nothing can be refused before."""
    budget(space, "250B")
    built = space.build()
    assert built.failed == ["states[2]"]
    assert "needs more room for ephemeral outputs" in built.errors
    assert built.outcome == "limit"


def test_what_waits_for_room_has_not_failed_where_another_has(space: Space) -> None:
    budget(space, "1kB")
    space.replace("steps.py", "print(", "assert not os.path.exists('broken'); print(")
    space.write("broken", "")
    built = space.build()
    assert built.failed == ["states[0]"]
    assert "for ephemeral outputs" not in built.errors


def test_what_nothing_needs_any_more_makes_room(space: Space) -> None:
    space.replace("rules/a.toml", "[rule.draft]", "[rule.draft]\ndefault = false")
    budget(space, "200B")
    built = space.build()
    assert (built.errors, built.outcome) == ("", "done")
    assert len(built.ran) == 6
    left = list((space.root / "build/default/states").iterdir())
    assert len(left) <= 2


def test_the_oldest_of_another_profile_makes_room(space: Space) -> None:
    space.write("config.other.toml", "scale = 20\n")
    budget(space, "600B")
    space.build()
    assert space.build(profile="other").outcome == "done"
    assert len(list((space.root / "build").rglob("*.bin"))) == 3
    assert space.build().ran == []


def test_a_chain_has_room_for_its_next_link(space: Space) -> None:
    """Also while nobody knows how much that takes, and where all that is made first would fit."""
    space.write(
        "rules/a.toml",
        RULES.split("[rule.sizes]")[0]
        + """
[rule.more]
each      = { shard = "@states[*]" }
shell     = "cp {inputs.x} {outputs.y}"
inputs    = { x = "@states" }
outputs   = { y = "build/{profile}/more/{shard}" }
ephemeral = true

[rule.sizes]
each    = { shard = "@states[*]" }
run     = "steps.py::sizes"
inputs  = { states = "@more" }
outputs = { sizes = "build/{profile}/sizes/{shard}.txt" }
""",
    )
    for n in range(3, 6):
        space.write(f"data/{n}.txt", "c" * (10 + n))
    budget(space, "350B")
    for _ in range(2):
        built = space.build(jobs=4)
        assert (built.errors, built.outcome, len(built.ran)) == ("", "done", 18)
        space.replace("steps.py", "print(", "print(1, ")


def test_one_whose_source_moved_needs_room_once(space: Space) -> None:
    budget(space, "300B")
    again = "if not os.path.exists('once'):\n        open('once', 'w'); open('data/1.txt', 'w').write('c' * 10)"
    space.replace("steps.py", 'print("states", text)', again)
    built = space.build(jobs=1)
    assert (built.errors, built.outcome) == ("", "done")


def test_equal_actions_need_room_for_one(space: Space) -> None:
    space.write("rules/a.toml", RULES.replace("data/{shard}.txt", "data/{shard}/t").replace("{shard}.bin", "{shard}/s"))
    for n, letter in enumerate("aaab"):
        space.write(f"data/{n}/t", letter * 10)
    budget(space, "200B")
    built = space.build(jobs=4)
    assert (built.errors, built.outcome) == ("", "done")
    assert len([one for one in built.ran if "states" in one]) == 2
    space.replace("steps.py", "* scale", "[:5] * scale")
    assert space.build(jobs=4).outcome == "done"


def test_what_profiles_share_needs_room_once(space: Space) -> None:
    space.replace("rules/a.toml", "build/{profile}/states/", "build/states/")
    budget(space, "350B")
    assert [space.build(profile=name).outcome for name in ("default", "other")] == ["done", "done"]
    for profile in ("default", "other"):
        space.replace("steps.py", "print(", "print(1, ")
        built = space.build(profile=profile)
        assert (built.errors, built.outcome) == ("", "done")
    with closing(Collector(Project(space.root))) as collector:
        assert [one.size for one in collector.plan(Keep(1)).unneeded if one.kind == "ephemeral"] == [300]


def test_gc_drops_what_all_its_readers_are_made_from(space: Space) -> None:
    def collect() -> None:
        with closing(Collector(Project(space.root))) as collector:
            collector.collect(collector.plan(Keep(1)))

    space.build("sizes")
    collect()
    assert space.read("build/default/states/1.bin") == "b" * 100, "draft has yet to read it"
    space.build()
    collect()
    assert not [*(space.root / "build/default/states").rglob("*.bin")]
    assert space.build().ran == []
    assert space.read("build/default/draft.txt").startswith("1 aaa")
