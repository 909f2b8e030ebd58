"""The state that an older version left is taken over; that of a newer one is left alone.

`layout-1.tar.xz` is a project as the first layout had it, before the layout had a number: built once.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from buildsys.collect import Collector
from buildsys.errors import BuildError
from buildsys.project import Project
from buildsys.query import sql
from buildsys.state import layout
from tests.behaviour.conftest import Space
from tests.cli.conftest import run_in

FIXTURE = Path(__file__).parent / "layout-1.tar.xz"


@pytest.fixture
def old(space: Space) -> Space:
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(space.root, filter="data")
    return space


def number(space: Space) -> str:
    return space.read(".buildsys/layout")


def test_a_project_of_the_first_layout_keeps_its_history(old: Space) -> None:
    assert sql(old.root, "SELECT count(*) FROM runs").rows == [(1,)]
    assert old.build().outcome == "done"
    assert number(old) == "1\n"
    old.write("data/one.txt", "other\n")
    assert old.build().ran == ["words[one]"]
    assert sql(old.root, "SELECT run_id FROM runs WHERE run_id > 1").rows != []
    assert sql(old.root, "SELECT outcome FROM actions WHERE run_id = 1").rows == [("ran",)]


@pytest.mark.parametrize("command", ["build", "plan", "sql", "gc", "log words"])
def test_a_newer_layout_is_refused_by_every_command(old: Space, command: str) -> None:
    old.write(".buildsys/layout", "7\n")
    before = sorted(old.root.rglob("*"))
    done = run_in(old.root, *command.split())
    assert done.returncode == 2
    assert "a newer buildsys has worked in this project" in done.stderr
    assert "its layout:     7" in done.stderr
    assert sorted(old.root.rglob("*")) == before


def test_a_newer_layout_is_refused_by_a_build_and_by_the_collector_themselves(old: Space) -> None:
    old.write(".buildsys/layout", "7\n")
    error = old.build().error
    assert error
    assert error.exit_code == 2
    with pytest.raises(BuildError, match="newer"):
        Collector(Project(old.root))


def test_an_older_layout_is_migrated_step_by_step_and_a_kill_repeats_only_the_last(
    old: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def step(name: str, *, killed: bool = False) -> Callable[[Path], None]:
        def migrate(state: Path) -> None:
            steps.append(name)
            if killed:
                raise KeyboardInterrupt

        return migrate

    monkeypatch.setattr(layout, "MIGRATIONS", (step("one"), step("two", killed=True)))
    with pytest.raises(KeyboardInterrupt):
        layout.bring_up_to_date(old.root / ".buildsys")
    assert number(old) == "2\n"
    monkeypatch.setattr(layout, "MIGRATIONS", (step("one"), step("two")))
    assert old.build().outcome == "done"
    assert number(old) == "3\n"
    assert steps == ["one", "two", "two"]
