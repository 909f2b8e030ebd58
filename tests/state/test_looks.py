"""What was looked at is remembered as it was seen first, and any change of it shows when it is looked at again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from buildsys.state import folders
from buildsys.state.folders import folders_of, unchanged
from buildsys.state.looks import Looks
from buildsys.state.stats import Stat


def holds(looks: Looks) -> bool:
    """All that was seen would be seen now."""
    return unchanged(str(looks.root), list(folders_of(looks)))


def test_of_several_looks_the_first_counts(root, write):
    write("a", "one")
    looks = Looks(root)
    looks.stat("a")
    write("a", "another")
    looks.stat("a")
    assert not holds(looks)


def test_what_was_not_there_is_remembered_too(root, write):
    looks = Looks(root)
    assert not looks.exists("deep/a")
    assert looks.names("deep") == {}
    assert holds(looks)
    write("deep/a")
    assert not holds(looks)


def test_what_the_build_put_there_counts_as_it_was_put(root, write):
    looks = Looks(root)
    assert looks.stat("a") is None
    looks.made_at("a", Stat.of(write("a").stat()))
    assert holds(looks)
    write("a", "by hand")
    assert not holds(looks)


def test_names_count_with_their_kind_and_not_with_their_content(root, write):
    write("code/a.py")
    write("elsewhere/b.py")
    looks = Looks(root)
    assert looks.names("code") == {"a.py": ""}
    write("code/a.py", "other")
    assert holds(looks)
    (root / "code/a.py").unlink()
    (root / "code/a.py").symlink_to(root / "elsewhere", target_is_directory=True)
    assert Looks(root).names("code") == {"a.py": "@/"}
    assert not holds(looks)


@pytest.mark.parametrize("n_files", [10, 200], ids=["one by one", "as a whole"])
@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "7").write_text("more"),
        lambda folder: (folder / "7").unlink(),
        lambda folder: (folder / "7").chmod(0o755),
        lambda folder: (folder / "new").write_text("looked for"),
        lambda folder: [path.unlink() for path in folder.iterdir()] and folder.rmdir(),
        lambda folder: folder.rename(folder.with_name("moved")),
    ],
    ids=["edited", "gone", "mode", "there", "folder gone", "folder moved"],
)
def test_a_change_of_one_of_many_files_is_seen(root, write, n_files: int, change: Callable[[Path], object]):
    looks = Looks(root)
    for n in range(n_files):
        write(f"many/{n}")
        looks.stat(f"many/{n}")
    looks.stat("many/new")
    assert holds(looks)
    change(root / "many")
    assert not holds(looks)


def test_a_folder_among_many_files_counts_as_one_whatever_is_in_it(root, write):
    looks = Looks(root)
    for n in range(100):
        write(f"many/{n}")
        looks.stat(f"many/{n}")
    write("many/folder/a")
    assert looks.is_dir("many/folder")
    write("many/folder/b")
    assert holds(looks)


@pytest.mark.parametrize("changed", ["left", "right"])
def test_two_processes_see_what_one_does(root, write, monkeypatch, changed: str):
    forked = []
    fork = os.fork
    monkeypatch.setattr(folders, "_WORTH_A_PROCESS", 0)
    monkeypatch.setattr(os, "fork", lambda: forked.append(1) or fork())
    monkeypatch.setattr("threading.active_count", lambda: 1)
    looks = Looks(root)
    for folder in ("left", "right"):
        write(f"{folder}/a")
        looks.stat(f"{folder}/a")
    assert holds(looks)
    write(f"{changed}/a", "edited")
    assert not holds(looks)
    assert len(forked) == 2
