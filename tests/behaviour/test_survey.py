"""What plan, status and why say is what a build then does."""

from __future__ import annotations

from pathlib import Path

import pytest

from buildsys.explain import explain
from buildsys.project import Project
from buildsys.survey import Planned, survey
from tests.behaviour.conftest import Space
from tests.behaviour.test_rebuild import COUNT, PIPE, RULES, pipe

__all__ = ["pipe"]

EDITS = {
    "nothing": ("scripts/pipe.py", PIPE),
    "a comment": ("scripts/pipe.py", "# comment\n" + PIPE),
    "code": ("scripts/count.py", COUNT.replace("str(len(", "str(1 + len(")),
    "data": ("data/source.txt", "".join(f"line {n}{n}\n" for n in range(9))),
    "fewer shards": ("data/source.txt", "line 0\nline 1\n"),
    "a param": ("config.toml", 'shards = 3\nmark = "?!"\n'),
    "a rule": ("rules/pipe.toml", RULES.replace('mark = "$mark"', 'mark = "~"')),
    "an output that is gone": ("build/default/total.txt", None),
    "a script that does not parse": ("scripts/count.py", "def count(text, n:\n"),
}


def plan(space: Space, *targets: str) -> dict[str, Planned]:
    return {str(planned.action): planned for planned in survey(Project(space.root), targets).actions}


@pytest.mark.parametrize("edit", EDITS)
def test_a_plan_is_what_a_build_then_does(pipe: Space, edit: str) -> None:
    path, text = EDITS[edit]
    if text is None:
        pipe.remove(path)
    else:
        pipe.write(path, text)
    planned = plan(pipe)
    fates = {name: one.fate for name, one in planned.items()}
    built = pipe.build()

    assert {name for name, fate in fates.items() if fate == "run"} <= {*built.ran, *built.failed}
    assert set(built.ran) <= {name for name, fate in fates.items() if fate in ("run", "maybe")}
    assert built.restored == sorted(name for name, fate in fates.items() if fate == "restore")
    assert built.actions("blocked") == sorted(name for name, fate in fates.items() if fate == "blocked")
    assert built.actions("skipped") == sorted(name for name, fate in fates.items() if fate == "skipped")


def test_a_plan_changes_nothing(pipe: Space) -> None:
    pipe.write("scripts/count.py", EDITS["code"][1])

    def files() -> list[tuple[Path, int]]:
        """All but what only saves time."""
        cache, clock = pipe.root / ".buildsys/cache", pipe.root / ".buildsys/clock"
        found = [path for path in pipe.root.rglob("*") if path != clock and not path.is_relative_to(cache)]
        return sorted((path, path.stat().st_mtime_ns) for path in found)

    before = files()
    plan(pipe)
    assert files() == before


def test_nothing_to_do_is_up_to_date(pipe: Space) -> None:
    assert survey(Project(pipe.root)).up_to_date
    pipe.write("config.toml", 'shards = 3\nmark = "?"\n')
    assert not survey(Project(pipe.root)).up_to_date


def test_before_the_first_build_shards_are_not_known(space: Space) -> None:
    space.write("rules/pipe.toml", RULES)
    space.write("config.toml", 'shards = 3\nmark = "!"\n')
    space.write("data/source.txt", "a\nb\n")
    space.write("scripts/pipe.py", PIPE)
    space.write("scripts/marks.py", "def mark(text):\n    return text\n")
    space.write("scripts/count.py", COUNT)
    found = survey(Project(space.root))
    assert [(str(planned.action), planned.fate) for planned in found.actions] == [
        ("split", "run"),
        ("upper", "run"),
        ("count", "run"),
        ("total", "run"),
    ]
    assert set(found.guessed) == {"upper", "count"}


def test_reasons_name_what_changed_and_where(pipe: Space) -> None:
    pipe.write("config.toml", 'shards = 3\nmark = "?"\n')
    assert plan(pipe)["upper[0]"].reason == "param mark changed: '!' (str) → '?' (str) (mark)"
    assert plan(pipe)["count[0]"].reason == "inputs: upper, unless equal"
    pipe.write("scripts/marks.py", "def mark(text):\n    return text + text\n")
    assert plan(pipe)["upper[0]"].changes[0] == "its code changed: mark (scripts/marks.py:1)"
    assert plan(pipe)["split"].reason == "up to date"
    pipe.replace("scripts/pipe.py", "shards):", "shards=3):")
    pipe.write("data/source.txt", "other\n")
    assert plan(pipe)["split"].changes == (
        "its code changed: split (scripts/pipe.py:4)",
        "input source changed (data/source.txt)",
    )


def test_why_lists_all_that_a_key_holds(pipe: Space) -> None:
    (explained,) = explain(Project(pipe.root), "upper[1]")
    assert explained.planned.fate == "reuse"
    held = {(part.group, part.name): part.value for part in explained.parts}
    assert held["param", "mark"] == "'!' (str)"
    assert ("input", "part") in held
    assert ("code", "marks.py:mark") in held
    assert set(explained.parts) == set(explained.before)


def test_a_changed_check_is_not_up_to_date_until_it_passed(pipe: Space) -> None:
    def checked(sql: str) -> None:
        script = COUNT + "def table(total, table):\n    table.write_text('{\"n\": ' + total.read_text() + '}')\n"
        pipe.write("scripts/count.py", script)
        more = """
        [rule.table_of]
        run     = "scripts/count.py::table"
        inputs  = { total = "@total" }
        outputs = { table = "build/{profile}/table.json" }
        """
        pipe.write("rules/table.toml", more + f"        [rule.table_of.checks]\n        right = '{sql}'\n")

    checked('SELECT n > 0 FROM "table"')
    assert pipe.build().outcome == "done"
    assert survey(Project(pipe.root)).up_to_date
    checked('SELECT n > 1000000 FROM "table"')
    for known in ("not known to hold for it", "failed for it before"):
        assert plan(pipe)["table_of"].fate == "check"
        assert plan(pipe)["table_of"].reason == f"{known}: right"
        assert pipe.build().failed == ["table_of"]
    checked('SELECT n > 1 FROM "table"')
    built = pipe.build()
    assert (built.outcome, built.ran) == ("done", [])
    assert survey(Project(pipe.root)).up_to_date


def test_what_waits_for_others_is_not_sure_to_run_where_its_edit_was_taken_back(pipe: Space) -> None:
    first = pipe.read("config.toml")
    pipe.write("config.toml", 'shards = 3\nmark = "?"\n')
    pipe.build()
    pipe.write("config.toml", first)
    pipe.write("scripts/pipe.py", PIPE.replace("text.write", "None or text.write"))
    upper = plan(pipe)["upper[0]"]
    assert upper.fate == "run"  # its code was never like this
    pipe.write("scripts/pipe.py", PIPE)
    pipe.write("data/source.txt", "".join(f"line {n}\n" for n in range(9)) + "\n")
    upper = plan(pipe)["upper[0]"]
    assert (upper.fate, upper.reason) == (
        "maybe",
        "param mark changed: '?' (str) → '!' (str) (mark), unless made before",
    )


def test_a_new_shard_is_not_sure_to_run_where_another_profile_has_made_it(space: Space) -> None:
    space.write(
        "rules/r.toml",
        """
        config = "config.toml"

        [rule.head]
        shell   = "head -c 1 {inputs.text} > {outputs.head}"
        inputs  = { text = "text" }
        outputs = { head = "build/{profile}/head" }

        [rule.part]
        each    = { shard = "data/{shard}" }
        shell   = "cat {inputs.head} {inputs.text} > {outputs.part}"
        inputs  = { head = "@head", text = "data/{shard}" }
        outputs = { part = "build/{profile}/part/{shard}" }
        """,
    )
    for path, text in {"text": "ab", "data/1": "1", "config.toml": "", "config.other.toml": ""}.items():
        space.write(path, text)
    assert space.build().outcome == "done"
    space.write("data/2", "2")
    assert space.build(profile="other").ran == ["part[2]"]
    space.write("data/3", "3")
    space.write("text", "ac")
    planned = plan(space)
    assert (planned["part[2]"].fate, planned["part[2]"].reason) == ("maybe", "never built, unless made before")
    assert planned["part[3]"].fate == "run"
    built = space.build()
    assert (built.ran, built.restored) == (["head", "part[3]"], ["part[2]"])
