"""Whatever is lost or damaged in the state folder, the next build needs no help and ends like a clean one."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from buildsys.events import Notice
from tests.behaviour.conftest import Built, Space

pytestmark = pytest.mark.timeout(120)

RULES = """
[rule.words]
each    = { shard = "data/{shard}.txt" }
run     = "scripts/make.py::words"
inputs  = { text = "data/{shard}.txt" }
outputs = { o = "build/words/{shard}.jsonl" }
[rule.words.checks]
some = "SELECT count(*) > 0 FROM o"

[rule.model]
run     = "scripts/make.py::model"
inputs  = { words = "@words[*]" }
params  = { edition = 1 }
outputs = { o = "build/model" }

[rule.book]
shell   = "{python} scripts/book.py {inputs.model} {outputs.o}"
inputs  = { model = "@model" }
outputs = { o = "build/book.txt" }
"""
SCRIPT = """
import json

def words(text, o):
    o.write_text("".join(json.dumps({"word": word}) + "\\n" for word in text.read_text().split()))

def model(words, edition, o):
    (o / "sub").mkdir(parents=True)
    (o / "sub/words.txt").write_text("".join(path.read_text() for path in words))
    (o / "edition.txt").write_text(f"edition {edition}\\n")
"""
BOOK = """
import sys
from pathlib import Path

Path(sys.argv[2]).write_text("".join(path.read_text() for path in sorted(Path(sys.argv[1]).rglob("*.txt"))))
"""
Damage = Callable[[Path], None]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in range(len(content) // 2, min(len(content) // 2 + 8, len(content))):
        content[at] ^= 0xFF
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def overwrite(file: Path) -> None:
    file.write_bytes(b"\xff\xfenothing of ours\n" * 20)


def outputs(space: Space) -> dict[str, bytes]:
    folder = space.root / "build"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def told(built: Built) -> list[str]:
    return [event.text for event in built.events if isinstance(event, Notice)]


def another_edition(space: Space) -> None:
    space.replace("rules/r.toml", "edition = 1", "edition = 2")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Space, dict[str, bytes]]:
    """A project of which two editions were built, the first last; and the outputs of the second."""
    space = Space(tmp_path_factory.mktemp("known"))
    space.write("rules/r.toml", RULES)
    space.write("scripts/make.py", SCRIPT)
    space.write("scripts/book.py", BOOK)
    for shard in "12":
        space.write(f"data/{shard}.txt", f"these are {shard}")
    space.build()
    another_edition(space)
    space.build()
    second = outputs(space)
    space.replace("rules/r.toml", "edition = 2", "edition = 1")
    assert space.build().restored == ["book", "model"]
    return space, second


@pytest.fixture
def copy(known: tuple[Space, dict[str, bytes]], tmp_path: Path) -> Callable[[str], Space]:
    """Makes a copy of the project, whose next build makes the second edition."""

    def make(name: str) -> Space:
        space = Space(Path(shutil.copytree(known[0].root, tmp_path / name, symlinks=True)))
        another_edition(space)
        return space

    return make


def entries(space: Space) -> list[str]:
    return sorted(entry.name for entry in (space.root / ".buildsys").iterdir())


def test_files_that_are_not_what_they_were(known, copy) -> None:
    damages: Iterator[Damage] = itertools.cycle([flip, cut, overwrite])
    for entry in entries(known[0]):
        space = copy(entry)
        place = space.root / ".buildsys" / entry
        for file in [place] if place.is_file() else sorted(place.rglob("*")):
            if file.is_file() and not any(path.is_symlink() for path in [file, *file.parents]):
                file.chmod(0o644)
                next(damages)(file)
        assert space.build().outcome == "done", entry
        assert outputs(space) == known[1], entry


def test_entries_that_are_gone(known, copy) -> None:
    for entry in entries(known[0]):
        space = copy(entry)
        space.remove(f".buildsys/{entry}")
        assert space.build().outcome == "done", entry
        assert outputs(space) == known[1], entry


def test_without_its_state_a_project_is_built_anew_and_what_is_in_the_way_is_kept_and_told(known, copy) -> None:
    space = copy("copy")
    space.remove(".buildsys")
    built = space.build()
    assert built.ran == ["book", "model", "words[1]", "words[2]"]
    assert [text.rpartition(" ")[2] for text in told(built)] == ["build/model.mine-1", "build/book.txt.mine-1"]


def test_what_the_store_lost_is_made_again_and_told(known, copy) -> None:
    space = copy("copy")
    for file in (space.root / ".buildsys/store").glob("??/*"):
        file.chmod(0o644)
        flip(file)
    built = space.build()
    assert built.ran == ["book", "model"]
    assert "the store lost outputs of book: it runs again" in told(built)


def test_an_output_of_which_the_store_lost_the_bytes_is_no_users_file(known, copy) -> None:
    space = copy("copy")
    space.remove(".buildsys/store")
    built = space.build()
    assert built.ran == ["book", "model"]
    assert told(built) == []
