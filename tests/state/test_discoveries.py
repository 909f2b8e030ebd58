"""What was discovered is worth the same only while a run would see the same, and each question is left in the looks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from buildsys.digest import digest_bytes
from buildsys.model import Discovered
from buildsys.state.discoveries import CHANGING, Discoveries
from buildsys.state.files import Files
from buildsys.state.looks import Looks
from tests.state.conftest import tick

Write = Callable[..., Path]


def discoveries(root: Path, made: tuple[str, ...] = (), environ: dict[str, str] | None = None) -> Discoveries:
    looks = Looks(root)
    return Discoveries(Files(root, {}, looks), looks, made.__contains__, environ or {})


CHANGES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a file is written to": ("file", "data/a.txt", lambda root: (root / "data/a.txt").write_text("other")),
    "a file goes": ("file", "data/a.txt", lambda root: (root / "data/a.txt").unlink()),
    "a file that was not there comes": ("file", "data/new", lambda root: (root / "data/new").write_text("")),
    "a folder gets a name": ("folder", "data", lambda root: (root / "data/b").write_text("")),
    "a folder loses a name": ("folder", "data", lambda root: (root / "data/a.txt").unlink()),
    "a name becomes a folder": (
        "folder",
        "data",
        lambda root: ((root / "data/a.txt").unlink(), (root / "data/a.txt").mkdir()),
    ),
    "a folder comes": ("folder", "none", lambda root: (root / "none").mkdir()),
    "what was not there comes": ("exists", "data/new", lambda root: (root / "data/new").write_text("")),
    "what was there goes": ("exists", "data/a.txt", lambda root: (root / "data/a.txt").unlink()),
    "a folder takes a file's place": (
        "exists",
        "data/a.txt",
        lambda root: ((root / "data/a.txt").unlink(), (root / "data/a.txt").mkdir()),
    ),
}
NO_CHANGES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a file is touched": ("file", "data/a.txt", lambda root: os.utime(root / "data/a.txt")),
    "a listed file is written to": ("folder", "data", lambda root: (root / "data/a.txt").write_text("other")),
    "a folder below gets a name": ("folder", "", lambda root: (root / "data/b").write_text("")),
    "Python keeps what it compiled": ("folder", "data", lambda root: (root / "data/__pycache__").mkdir()),
    "a build puts an output there": ("folder", "data", lambda root: (root / "data/out").write_text("")),
    "what is asked for is written to": ("exists", "data/a.txt", lambda root: (root / "data/a.txt").write_text("x")),
}


@pytest.mark.parametrize(("kind", "name", "change"), CHANGES.values(), ids=CHANGES)
def test_it_is_worth_something_else_once(
    root: Path, write: Write, kind: str, name: str, change: Callable[[Path], object]
) -> None:
    write("data/a.txt")
    before = discoveries(root).value_now(kind, name)
    tick(root)
    change(root)
    assert discoveries(root).value_now(kind, name) != before


@pytest.mark.parametrize(("kind", "name", "change"), NO_CHANGES.values(), ids=NO_CHANGES)
def test_it_is_worth_the_same_though(
    root: Path, write: Write, kind: str, name: str, change: Callable[[Path], object]
) -> None:
    write("data/a.txt")
    before = discoveries(root, ("data/out",)).value_now(kind, name)
    change(root)
    assert discoveries(root, ("data/out",)).value_now(kind, name) == before


def test_a_file_is_worth_its_content(root: Path, write: Write) -> None:
    path = write("data/a.txt", "text")
    found = discoveries(root)
    assert found.value_now("file", "data/a.txt") == digest_bytes(b"text")
    assert found.value_now("file", str(path)) == digest_bytes(b"text")


def test_what_is_no_file_is_told_apart_and_not_read(root: Path, write: Write) -> None:
    write("data/a.txt")
    os.mkfifo(root / "pipe")
    os.symlink("circle", root / "circle")
    found = discoveries(root)
    values = [found.value_now("file", name) for name in ("data", "pipe", "none", "circle", "data/a.txt/below")]
    assert values == ["folder", "other", "", "unreadable", ""]
    assert [found.value_now("exists", name) for name in ("data", "pipe", "none")] == ["folder", "other", ""]


@pytest.mark.skipif(os.getuid() == 0, reason="everything can be read by root")
def test_a_file_that_may_not_be_read_is_worth_that(root: Path, write: Write) -> None:
    write("data/a.txt").chmod(0)
    assert discoveries(root).value_now("file", "data/a.txt") == "unreadable"


def test_a_file_that_is_written_to_all_the_time_is_never_what_it_was(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("data/a.txt")
    look = Files._read

    def read_and_write(files: Files, *of: object) -> object:
        monkeypatch.setattr("buildsys.state.files.digest_stream", lambda file: path.write_text(path.read_text() + "x"))
        return look(files, *of)  # type: ignore[arg-type]

    monkeypatch.setattr(Files, "_read", read_and_write)
    assert discoveries(root).value_now("file", "data/a.txt") == CHANGING


def test_a_variable_is_worth_what_it_holds_and_does_not_tell_it(root: Path) -> None:
    one, same, other = (discoveries(root, environ={"MODE": mode}) for mode in ("fast", "fast", "slow"))
    assert one.value_now("variable", "MODE") == same.value_now("variable", "MODE")
    assert one.value_now("variable", "MODE") != other.value_now("variable", "MODE")
    assert "fast" not in one.value_now("variable", "MODE")
    assert one.value_now("variable", "NONE") == ""


def test_all_variables_are_worth_their_names_or_what_they_hold(root: Path) -> None:
    def worth(name: str, **variables: str | None) -> str:
        looks = Looks(root)
        found = Discoveries(Files(root, {}, looks), looks, lambda path: False, {"LEFT": "out"}, variables)
        value = found.value_now("variable", name)
        assert looks.variables == variables, "what a stamp looks at again"
        return value

    assert worth("=names", A="1", B=None) == worth("=names", A="2") != worth("=names", A="1", B="")
    assert worth("=values", A="1", B=None) == worth("=values", A="1") != worth("=values", A="2")
    whole = discoveries(root, environ={"A": "1"})
    assert whole.value_now("variable", "=values") == worth("=values", A="1")


def test_the_first_answer_counts_for_the_whole_build(root: Path, write: Write) -> None:
    path = write("data/a.txt", "text")
    found = discoveries(root)
    before = Discovered("file", "data/a.txt", found.value_now("file", "data/a.txt"))
    tick(root)
    path.write_text("another")
    assert found.is_unchanged(before)
    assert found.look_again("file", "data/a.txt") == digest_bytes(b"another")


def test_every_question_is_left_in_the_looks(root: Path, write: Write) -> None:
    write("data/a.txt")
    looks = Looks(root)
    found = Discoveries(Files(root, {}, looks), looks, lambda path: False, {"MODE": "fast"})
    asked = [("file", "data/a.txt"), ("folder", "data"), ("exists", "none"), ("variable", "MODE")]
    for kind, name in asked:
        found.value_now(kind, name)
    assert {"data/a.txt", "data", "none"} <= looks.facts.keys()
    assert (list(looks.listings), looks.variables) == (["data"], {"MODE": "fast"})


def test_what_was_read_once_is_known_by_its_stat(root: Path, write: Write) -> None:
    write("data/a.txt")
    tick(root)
    first = Files(root, {})
    Discoveries(first, Looks(root), lambda path: False).value_now("file", "data/a.txt")
    later = Files(root, {path: (stat, digest) for path, stat, digest in first.learned()})
    Discoveries(later, Looks(root), lambda path: False).value_now("file", "data/a.txt")
    assert (first.n_read, later.n_read) == (1, 0)
