"""The store: bytes in and out by digest, verified, and what happens to damaged ones."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from buildsys.digest import digest_bytes
from buildsys.state.files import Files
from buildsys.state.store import Damaged, Store


@pytest.fixture
def store(root) -> Store:
    return Store(root / ".buildsys")


def stored(root: Path, digest: str) -> Path:
    return root / ".buildsys" / "store" / digest[:2] / digest[2:]


def test_what_is_put_comes_out_again(root, write, store):
    artifact = store.put(write("made/0.jsonl", "bytes"))
    assert (artifact.path, artifact.digest, artifact.size) == ("0.jsonl", digest_bytes(b"bytes"), 5)
    assert store.has(artifact)
    store.get(artifact, root / "staging" / "0.jsonl")
    assert (root / "staging" / "0.jsonl").read_text() == "bytes"


def test_objects_are_read_only_and_written_once(root, write, store):
    digest = store.put(write("a", "bytes")).digest
    before = stored(root, digest).stat()
    store.put(write("b", "bytes"))
    after = stored(root, digest).stat()
    assert stat.S_IMODE(after.st_mode) == 0o444
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list((root / ".buildsys/store/new").iterdir()) == []


def test_equal_bytes_may_differ_in_their_x_bit(root, write, store):
    plain = store.put(write("plain", "#!"))
    write("script", "#!").chmod(0o755)
    script = store.put(root / "script")
    assert (plain.digest, plain.executable, script.executable) == (script.digest, False, True)
    for artifact in (plain, script):
        store.get(artifact, root / "out" / artifact.path)
    assert os.access(root / "out" / "script", os.X_OK)
    assert not (root / "out" / "plain").stat().st_mode & 0o111


def test_a_folder_has_the_digest_that_a_scan_gives_it(root, write, store):
    write("model/config.json", "{}")
    write("model/sub/run.sh", "#!").chmod(0o755)
    artifact = store.put(root / "model")
    assert (artifact.tree, artifact.size) == (True, 4)
    assert artifact.digest == Files(root, {}).look("model").digest
    store.get(artifact, root / "staging" / "model")
    assert Files(root, {}).look("staging/model").digest == artifact.digest


def test_folders_share_the_objects_of_equal_files(root, write, store):
    write("one/weights", "w" * 1000)
    write("two/weights", "w" * 1000)
    write("two/more", "m")
    store.put(root / "one")
    n_before = len(list((root / ".buildsys/store").glob("??/*")))
    store.put(root / "two")
    assert len(list((root / ".buildsys/store").glob("??/*"))) == n_before + 2


def spoil(path: Path) -> None:
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[0] ^= 0xFF
    path.write_bytes(content)


def test_a_damaged_object_is_dropped_and_can_be_put_anew(root, write, store):
    artifact = store.put(write("a", "bytes"))
    spoil(stored(root, artifact.digest))
    with pytest.raises(Damaged) as damaged:
        store.get(artifact, root / "out")
    assert damaged.value.digest == artifact.digest
    assert not (root / "out").exists()
    assert not store.has(artifact)
    store.put(root / "a")
    store.get(artifact, root / "out")
    assert (root / "out").read_text() == "bytes"


def test_an_object_that_was_cut_short_is_replaced_by_the_next_put(root, write, store):
    artifact = store.put(write("a", "bytes"))
    os.truncate(stored(root, artifact.digest), 2)
    store.put(root / "a")
    store.get(artifact, root / "out")
    assert (root / "out").read_text() == "bytes"


def test_a_damaged_file_or_listing_damages_its_folder(root, write, store):
    write("model/a", "one")
    artifact = store.put(root / "model")
    spoil(stored(root, digest_bytes(b"one")))
    with pytest.raises(Damaged):
        store.get(artifact, root / "out")
    assert not (root / "out").exists()
    assert not store.has(artifact)
    store.put(root / "model")
    spoil(stored(root, artifact.digest))
    assert not store.has(artifact)


def test_a_link_leads_to_the_bytes_and_stays_the_same(root, write, store):
    artifact = store.put(write("made/0.jsonl", "bytes"))
    link = store.link(artifact, "0003.jsonl")
    assert (link.name, link.read_text()) == ("0003.jsonl", "bytes")
    inode = os.lstat(link).st_ino
    assert store.link(artifact, "0003.jsonl") == link
    assert os.lstat(link).st_ino == inode
    assert store.link(artifact, "other.jsonl") != link


def test_a_linked_folder_is_a_folder_of_links(root, write, store):
    write("made/config.json", "{}")
    write("made/sub/weights", "w")
    link = store.link(store.put(root / "made"), "model")
    assert sorted(str(path.relative_to(link)) for path in link.rglob("*")) == ["config.json", "sub", "sub/weights"]
    assert (link / "sub" / "weights").read_text() == "w"
    assert store.link(store.put(root / "made"), "model") == link


def test_links_move_with_the_project(root, write, store):
    write("made/sub/weights", "w")
    link = store.link(store.put(root / "made"), "model").relative_to(root)
    moved = root.with_name("moved")
    root.rename(moved)
    assert (moved / link / "sub" / "weights").read_text() == "w"
    moved.rename(root)


def test_no_link_to_what_is_not_there(root, write, store):
    artifact = store.put(write("a", "bytes"))
    stored(root, artifact.digest).unlink()
    with pytest.raises(Damaged):
        store.link(artifact, "a")


def test_a_killed_put_leaves_nothing_under_a_digest(root, store):
    killed = """
import os, sys
from pathlib import Path
from buildsys.state import store as module
def dies(source, target): target.write(b"half"); target.flush(); os.kill(os.getpid(), 9)
module.digest_stream = dies
Path("a").write_bytes(b"whole")
store = module.Store(Path(".buildsys"))
store._can_clone = False
store.put(Path("a"))
"""
    assert subprocess.run([sys.executable, "-c", killed], cwd=root).returncode == -9
    assert list((root / ".buildsys/store").glob("??/*")) == []
    assert len(list((root / ".buildsys/store/new").iterdir())) == 1
    store.sweep()
    assert list((root / ".buildsys/store/new").iterdir()) == []


def test_a_group_of_puts_is_made_lasting_at_once(write, store):
    for n in range(3):
        store.put(write(f"{n}", str(n)))
    assert store.sync() is None
