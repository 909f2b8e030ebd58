"""Large outputs: they are linked into the store and out of it, so that the disk holds them once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from buildsys.model import Artifact
from buildsys.state import objects
from buildsys.state.files import Files
from buildsys.state.publish import publish
from buildsys.state.store import Damaged, Store

LARGE = "x" * 2000


@pytest.fixture(autouse=True)
def copies_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that shares no blocks between files, whichever this one is."""
    monkeypatch.setattr(objects, "clone", lambda source, target: False)


@pytest.fixture
def store(root: Path) -> Store:
    return Store(root / ".buildsys", link_above=1000)


def stored(root: Path, artifact: Artifact) -> Path:
    return root / ".buildsys" / "store" / artifact.digest[:2] / artifact.digest[2:]


def n_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills as objects are read."""
    read: list[str] = []
    digest_stream = objects.digest_stream
    monkeypatch.setattr(objects, "digest_stream", lambda *files: read.append("") or digest_stream(*files))
    return read


def test_a_large_file_and_its_object_are_one_file_that_is_read_only(root, write, store):
    artifact = store.put(write("staged/a", LARGE))
    assert os.path.samefile(root / "staged/a", stored(root, artifact))
    assert (root / "staged/a").stat().st_mode & 0o777 == 0o444


def test_a_small_file_is_copied(root, write, store):
    artifact = store.put(write("staged/a", "small"))
    assert not os.path.samefile(root / "staged/a", stored(root, artifact))
    assert (root / "staged/a").stat().st_mode & 0o200


def test_what_is_put_a_second_time_takes_no_more_disk(root, write, store):
    artifact = store.put(write("staged/a", LARGE))
    assert store.put(write("staged/b", LARGE)).digest == artifact.digest
    assert os.path.samefile(root / "staged/b", stored(root, artifact))
    assert list((root / ".buildsys/store/new").iterdir()) == []


def test_it_comes_out_as_a_link_and_is_verified_before(root, write, store):
    artifact = store.put(write("staged/a", LARGE))
    store.get(artifact, root / "out/a")
    assert os.path.samefile(root / "out/a", stored(root, artifact))
    os.chmod(stored(root, artifact), 0o644)
    stored(root, artifact).write_text("y" * 2000)
    with pytest.raises(Damaged):
        store.get(artifact, root / "out/b")
    assert not (root / "out/b").exists()


def test_the_large_files_of_a_folder_are_linked(root, write, store):
    write("staged/model/config.json", "{}")
    write("staged/model/weights", LARGE)
    artifact = store.put(root / "staged/model")
    store.get(artifact, root / "out/model")
    assert os.path.samefile(root / "out/model/weights", root / "staged/model/weights")
    assert not os.path.samefile(root / "out/model/config.json", root / "staged/model/config.json")


def test_a_program_is_copied_since_the_x_bit_is_no_part_of_an_object(root, write, store):
    write("staged/a", LARGE).chmod(0o755)
    artifact = store.put(root / "staged/a")
    assert not os.path.samefile(root / "staged/a", stored(root, artifact))
    assert not os.access(stored(root, artifact), os.X_OK) or os.stat(stored(root, artifact)).st_mode & 0o111 == 0
    store.get(artifact, root / "out/a")
    assert (root / "out/a").stat().st_mode & 0o111


@pytest.mark.parametrize("make", [os.link, os.symlink])
def test_a_source_that_an_output_shares_stays_its_users(root, write, store, make):
    source = write("data/source", LARGE)
    (root / "staged").mkdir()
    make(source, root / "staged/a")
    artifact = store.put(root / "staged/a")
    assert source.stat().st_mode & 0o200
    assert not os.path.samefile(source, stored(root, artifact))
    source.write_text("edited")
    assert stored(root, artifact).read_text() == LARGE
    assert (root / "staged/a").read_text() == LARGE


def test_once_it_is_in_its_place_nobody_reads_it_again(root, write, store, monkeypatch):
    artifact = store.put(write("staged/a", LARGE))
    read = n_read(monkeypatch)
    publish(Files(root, {}), root / "staged/a", "out/a", ours=store.knows)
    store.moved(artifact)
    store.link(artifact, "a")
    assert read == []


def test_what_was_written_to_while_it_was_moved_is_read(root, write, store):
    artifact = store.put(write("staged/a", LARGE))
    os.chmod(root / "staged/a", 0o644)
    (root / "staged/a").write_text("y" * 1999)
    publish(Files(root, {}), root / "staged/a", "out/a", ours=store.knows)
    store.moved(artifact)
    with pytest.raises(Damaged):
        store.link(artifact, "a")


def test_where_the_file_system_has_no_links_it_is_copied(root, write, store, monkeypatch):
    def refuse(*names: object, **options: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    artifact = store.put(write("staged/a", LARGE))
    assert stored(root, artifact).read_text() == LARGE
    store.get(artifact, root / "out/a")
    assert (root / "out/a").read_text() == LARGE
    assert not os.path.samefile(root / "out/a", stored(root, artifact))


def test_where_blocks_are_shared_nothing_is_linked(root, write, monkeypatch):
    def clone(source, target) -> bool:
        target.write(source.read())
        target.seek(0)
        return True

    monkeypatch.setattr(objects, "clone", clone)
    store = Store(root / ".buildsys", link_above=1000)
    artifact = store.put(write("staged/a", LARGE))
    assert not os.path.samefile(root / "staged/a", stored(root, artifact))
