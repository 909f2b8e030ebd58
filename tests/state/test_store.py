"""The store: bytes in and out by digest, verified, and what happens to damaged ones."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from buildsys.digest import digest_bytes
from buildsys.errors import BuildError
from buildsys.state import objects
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


def test_links_are_made_anew_where_the_project_was_moved(root, write):
    write("made/sub/weights", "w")
    artifact = Store(root / ".buildsys").put(root / "made")
    link = Store(root / ".buildsys").link(artifact, "model").relative_to(root)
    moved = root.with_name("moved")
    root.rename(moved)
    write("made/in/the/old/place", "w")
    again = Store(moved / ".buildsys").link(artifact, "model")
    assert again == moved / link
    assert (again / "sub" / "weights").resolve().is_relative_to(moved)
    shutil.rmtree(root)
    moved.rename(root)


def test_what_else_is_in_a_folder_of_links_is_removed_when_it_is_asked_for_again(root, write, store):
    write("made/config.json", "{}")
    write("made/sub/weights", "w")
    artifact = store.put(root / "made")
    link = store.link(artifact, "model")
    (link / "sub" / "lock").write_text("left by an action")
    (link / "sub" / "weights").unlink()
    (link / "config.json").unlink()
    (link / "config.json").write_text("other")
    assert store.link(artifact, "model") == link
    assert sorted(str(path.relative_to(link)) for path in link.rglob("*")) == ["config.json", "sub", "sub/weights"]
    assert ((link / "config.json").read_text(), (link / "sub" / "weights").read_text()) == ("{}", "w")


def test_a_link_that_was_replaced_leads_to_the_bytes_again(root, write, store):
    artifact = store.put(write("a", "bytes"))
    link = store.link(artifact, "a")
    link.unlink()
    link.mkdir()
    assert store.link(artifact, "a").read_text() == "bytes"


def test_a_copy_of_a_folder_of_links_leads_to_the_bytes(root, write, store):
    write("made/sub/weights", "w")
    link = store.link(store.put(root / "made"), "model")
    subprocess.run(["cp", "-r", link, root / "copy"], check=True)
    assert (root / "copy" / "sub" / "weights").read_text() == "w"
    assert (root / "copy" / "sub").stat().st_mode & stat.S_IWUSR  # or nobody but root could change the copy


def test_an_empty_folder_is_part_of_a_folder(root, write, store):
    write("made/sub/weights", "w")
    (root / "made" / "logs" / "empty").mkdir(parents=True)
    artifact = store.put(root / "made")
    store.get(artifact, root / "out")
    for folder in (root / "out", store.link(artifact, "model")):
        assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == [
            "logs",
            "logs/empty",
            "sub",
            "sub/weights",
        ]


def test_no_link_to_bytes_that_were_changed(root, write, store):
    artifact = store.put(write("made/a", "bytes"))
    folder = store.put(root / "made")
    store.link(artifact, "a")
    for one in (artifact, folder):
        spoil(stored(root, artifact.digest))
        with pytest.raises(Damaged):
            store.link(one, "a")
        assert not store.has(one)
        store.put(root / "made")
        assert store.link(artifact, "a").read_text() == "bytes"


def test_a_changed_object_is_replaced_by_the_next_put(root, write, store):
    artifact = store.put(write("a", "bytes"))
    spoil(stored(root, artifact.digest))
    Store(root / ".buildsys").put(root / "a")
    assert store.link(artifact, "a").read_text() == "bytes"


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """How many bytes each reading of an object for its digest took."""
    taken: list[int] = []
    digest_stream = objects.digest_stream

    def counted(file, copy_to=None):
        digest = digest_stream(file, copy_to)
        taken.append(file.tell())
        return digest

    monkeypatch.setattr(objects, "digest_stream", counted)
    return taken


def test_a_large_object_is_verified_once_also_by_later_builds(root, write, store, reads):
    artifact = store.put(write("a", b"x" * objects.LARGE))
    small = store.put(write("b", b"x"))
    reads.clear()
    for _ in range(2):
        later = Store(root / ".buildsys")
        for _ in range(2):
            later.link(artifact, "a")
            later.link(small, "b")
    assert reads == [1, 1]
    spoil(stored(root, artifact.digest))
    with pytest.raises(Damaged):
        Store(root / ".buildsys").link(artifact, "a")


def test_a_line_of_the_verified_ones_that_was_cut_short_is_passed_over(root, write, store, reads):
    artifact = store.put(write("a", b"x" * objects.LARGE))
    verified = root / ".buildsys/store/verified"
    os.truncate(verified, verified.stat().st_size - 3)
    reads.clear()
    Store(root / ".buildsys").link(artifact, "a")
    assert reads == [objects.LARGE]


def test_lost_bytes_are_put_back_from_an_unchanged_copy(root, write, store):
    write("made/a", "one")
    write("made/b", "two")
    artifact = store.put(root / "made")
    for digest in (artifact.digest, digest_bytes(b"one")):
        stored(root, digest).unlink()
        assert store.heal(artifact, root / "made")
        assert store.has(artifact)
    stored(root, artifact.digest).unlink()
    write("made/a", "edited")
    assert not store.heal(artifact, root / "made")
    assert not store.heal(artifact, root / "missing")
    assert not store.has(artifact)
    assert not stored(root, digest_bytes(b"edited")).exists()


def test_an_output_that_is_a_link_becomes_a_plain_copy(root, write, store):
    write("source", "bytes")
    (root / "out").symlink_to("source")
    assert store.put(root / "out").digest == digest_bytes(b"bytes")
    assert not (root / "out").is_symlink()
    assert (root / "out").read_text() == (root / "source").read_text() == "bytes"


def test_an_output_that_shares_its_bytes_becomes_a_plain_copy(root, write, store):
    artifact = store.put(write("a", "bytes"))
    os.link(stored(root, artifact.digest), root / "out")
    write("folder/own", "own")
    os.link(root / "a", root / "folder" / "b")
    (root / "folder" / "linked").symlink_to("../a")
    for path in (root / "out", root / "folder"):
        store.put(path)
    plain = [root / "out", *(root / "folder").iterdir()]
    assert [(path.name, path.is_symlink(), path.stat().st_nlink) for path in sorted(plain)] == [
        ("b", False, 1),
        ("linked", False, 1),
        ("own", False, 1),
        ("out", False, 1),
    ]
    with (root / "out").open("a") as file:
        file.write("edit")
    assert store.link(artifact, "a").read_text() == "bytes"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("nowhere", "made/sub/l is a link to nowhere"),
        ("l", "made/sub/l is a link that leads in a circle"),
        ("..", "made/sub/l is a link to a folder above it"),
    ],
)
def test_an_output_with_a_link_to_no_content_is_an_error_that_names_it(root, write, store, target, problem):
    write("made/sub/a")
    (root / "made" / "sub" / "l").symlink_to(target)
    with pytest.raises(BuildError, match=problem):
        store.put(root / "made")


def test_an_output_that_is_a_pipe_is_an_error_that_names_it(root, store):
    os.mkfifo(root / "out")
    with pytest.raises(BuildError, match="out is neither a file nor a folder"):
        store.put(root / "out")


def test_no_link_to_what_is_not_there(root, write, store):
    artifact = store.put(write("a", "bytes"))
    stored(root, artifact.digest).unlink()
    with pytest.raises(Damaged):
        store.link(artifact, "a")


def test_a_killed_put_leaves_nothing_under_a_digest(root, store):
    killed = """
import os, sys
from pathlib import Path
from buildsys.state import objects as module
def dies(source, target): target.write(b"half"); target.flush(); os.kill(os.getpid(), 9)
module.digest_stream = dies
Path("a").write_bytes(b"whole")
objects = module.Objects(Path(".buildsys/store"), 1 << 30)
objects._can_clone = False
objects.put(Path("a"))
"""
    assert subprocess.run([sys.executable, "-c", killed], cwd=root).returncode == -9
    assert list((root / ".buildsys/store").glob("??/*")) == []
    assert len(list((root / ".buildsys/store/new").iterdir())) == 1
    store.sweep()
    assert list((root / ".buildsys/store/new").iterdir()) == []
