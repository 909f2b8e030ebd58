"""Scans: what is read, what is known by its stat, and when a stat is not to be trusted."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from buildsys.digest import digest_bytes
from buildsys.errors import BuildError
from buildsys.model import Artifact
from buildsys.state import files as files_module
from buildsys.state.content import Entry, listing_of
from buildsys.state.files import Files
from buildsys.state.stats import Stat
from tests.state.conftest import again, tick

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_file_is_known_by_the_digest_of_its_bytes(root, write):
    write("data/a.jsonl", "one")
    seen = Files(root, {}).look("data/a.jsonl")
    assert (seen.digest, seen.size, seen.executable, seen.tree) == (digest_bytes(b"one"), 3, False, False)


def test_what_is_missing_is_none(root, write):
    write("file")
    files = Files(root, {})
    assert files.look("nothing") is None
    assert files.look("file/below") is None
    (root / "dangling").symlink_to("nowhere")
    assert files.look("dangling") is None


def test_a_file_that_was_learned_is_not_read_again(root, write):
    write("a")
    tick(root)
    first = Files(root, {})
    first.look("a")
    second = again(first)
    assert second.look("a") == first.look("a")
    assert (first.n_read, second.n_read, second.n_stat) == (1, 0, 1)
    assert second.learned() == []


def test_an_edit_is_read_and_learned_anew(root, write):
    write("a", "one")
    tick(root)
    first = Files(root, {})
    first.look("a")
    write("a", "two")
    tick(root)
    second = again(first)
    assert second.look("a").digest == digest_bytes(b"two")
    assert [path for path, _, _ in second.learned()] == ["a"]


def test_an_edit_that_keeps_size_and_mtime_is_seen(root, write):
    path = write("a", "one")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    tick(root)
    first = Files(root, {})
    first.look("a")
    write("a", "two")
    os.utime(path, ns=times)
    assert again(first).look("a").digest == digest_bytes(b"two")


@pytest.fixture
def stopped_clock(monkeypatch):
    """A file system whose clock has not moved on since the youngest file: as with coarse time stamps."""
    monkeypatch.setattr(Files, "_read_clock", lambda self: 0)


def test_a_file_as_young_as_the_clock_is_never_recorded(root, write, stopped_clock):
    write("a")
    files = Files(root, {})
    files.look("a")
    assert files.learned() == []
    files.look("a")
    assert files.n_read == 2


def test_a_known_row_as_young_as_the_clock_is_not_trusted(root, write, monkeypatch):
    write("a", "one")
    tick(root)
    first = Files(root, {})
    stale = first.look("a")
    second = Files(root, {"a": (stale.stat, digest_bytes(b"what was there a tick earlier"))})
    monkeypatch.setattr(Files, "_read_clock", lambda self: stale.stat.ctime_ns)
    second._clock_ns = stale.stat.ctime_ns
    assert second.look("a").digest == digest_bytes(b"one")


def test_a_file_that_was_written_during_the_scan_is_recorded_once_the_clock_moved_on(root, write):
    files = Files(root, {})
    write("a")
    tick(root)
    files.look("a")
    files.look("a")
    assert files.n_read == 1
    assert [path for path, _, _ in files.learned()] == ["a"]


def test_a_file_with_a_time_in_the_future_is_read_every_time(root, write):
    path = write("a")
    os.utime(path, ns=(0, 4_000_000_000 * 10**9))
    tick(root)
    files = Files(root, {})
    files.look("a")
    files.look("a")
    assert (files.n_read, files.learned()) == (2, [])


def test_what_was_just_put_there_need_not_be_read(root, write):
    files = Files(root, {})
    write("out", "made")
    files.made("out", digest_bytes(b"made"))
    tick(root)
    later = again(files)
    assert later.look("out").digest == digest_bytes(b"made")
    assert (files.n_read, later.n_read) == (0, 0)


def test_what_was_written_to_as_it_arrived_is_read(root, write):
    files = Files(root, {})
    files.arriving("out", Stat.of(os.stat(write("staged", "made"))))
    os.rename(root / "staged", root / "out")
    files.made("out", digest_bytes(b"made"))
    files.arriving("other", Stat.of(os.stat(write("staged", "made"))))
    os.rename(write("staged", "edited"), root / "other")
    files.made("other", digest_bytes(b"made"))
    tick(root)
    later = again(files)
    assert (later.look("out").digest, later.n_read) == (digest_bytes(b"made"), 0)
    assert later.look("other").digest == digest_bytes(b"edited")


def test_a_folder_is_its_names_modes_and_contents(root, write):
    write("model/a", "one")
    write("model/sub/b", "two")
    files = Files(root, {})
    before = files.look("model/")
    assert (before.tree, before.size, [name for name, _ in before.members]) == (True, 6, ["a", "sub/b"])
    digests = {before.digest}
    (root / "model" / "a").chmod(0o755)
    digests.add(files.look("model").digest)
    (root / "model" / "a").rename(root / "model" / "c")
    digests.add(files.look("model").digest)
    write("model/sub/b", "owt")
    digests.add(files.look("model").digest)
    (root / "model" / "sub" / "b").unlink()
    digests.add(files.look("model").digest)
    assert len(digests) == 5


def test_an_empty_folder_inside_is_part_of_it(root, write):
    write("model/a")
    files = Files(root, {})
    before = files.look("model").digest
    (root / "model" / "sub" / "empty").mkdir(parents=True)
    seen = files.look("model")
    assert seen.digest != before
    assert [name for name, _ in seen.members] == ["a", "sub/empty/"]
    write("model/sub/empty/gone").unlink()
    assert files.unmoved(seen)


def test_a_file_never_has_the_digest_of_a_folder(root, write):
    write("model/a", "one")
    files = Files(root, {})
    digest = files.look("model").digest
    write("file", listing_of([Entry("a", digest_bytes(b"one"), 3, executable=False)]))
    assert files.look("file").digest != digest


def test_a_link_in_a_circle_is_an_error_that_names_it(root, write):
    write("model/a")
    (root / "model" / "round").symlink_to("round")
    (root / "alone").symlink_to("alone")
    for path, named in (("model", "model/round"), ("alone", "alone")):
        with pytest.raises(BuildError, match=f"{named} is a link that leads in a circle"):
            Files(root, {}).look(path)


def test_a_pipe_in_a_folder_is_an_error_that_names_it(root, write):
    write("model/a")
    os.mkfifo(root / "model" / "pipe")
    with pytest.raises(BuildError, match="model/pipe is neither a file nor a folder"):
        Files(root, {}).look("model")


def test_what_the_system_can_not_open_is_an_error_that_names_it(root):
    with pytest.raises(BuildError, match="can't be read") as error:
        Files(root, {}).look("x" * 300)
    assert error.value.facts == (("reason", os.strerror(errno.ENAMETOOLONG)),)


def test_an_artifact_is_in_place_with_its_bytes_kind_and_x_bit(root, write):
    write("out/a", "one")
    files = Files(root, {})
    artifact = Artifact("out/a", digest_bytes(b"one"), 3)
    assert files.holds(artifact)
    (root / "out/a").chmod(0o755)
    assert not files.holds(artifact)
    assert files.holds(replace(artifact, executable=True))
    assert not files.holds(replace(artifact, path="out/b"))
    (root / "out/a").unlink()
    os.mkfifo(root / "out/a")
    assert not files.holds(artifact)
    (root / "out/a").unlink()
    (root / "out/a").symlink_to("a")
    assert not files.holds(artifact)


def test_only_the_changed_file_of_a_folder_is_read(root, write):
    for n in range(5):
        write(f"model/{n}")
    tick(root)
    first = Files(root, {})
    first.look("model")
    write("model/3", "another")
    second = again(first)
    second.look("model")
    assert (first.n_read, second.n_read) == (5, 1)


def test_links_in_a_folder_are_followed_and_loops_end(root, write):
    write("elsewhere/a", "one")
    write("model/own", "two")
    (root / "model" / "linked").symlink_to(root / "elsewhere")
    (root / "model" / "loop").symlink_to(root / "model")
    (root / "model" / "dangling").symlink_to("nowhere")
    assert [name for name, _ in Files(root, {}).look("model").members] == ["linked/a", "own"]


def snapshot(root: Path, commit: str = COMMIT) -> Path:
    """The layout of the Hugging Face cache: names in `snapshots/<commit>/` that are links to `blobs/`."""
    repository = root / "models--x--y"
    folder = repository / "snapshots" / commit
    (repository / "blobs").mkdir(parents=True, exist_ok=True)
    for name, blob in (("config.json", "aa" * 20), ("sub/model.safetensors", "bb" * 32)):
        (repository / "blobs" / blob).write_text(name)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(os.path.relpath(repository / "blobs" / blob, (folder / name).parent))
    return folder


def test_a_snapshot_of_the_hugging_face_cache_is_known_without_reading(root):
    folder = snapshot(root)
    files = Files(root, {})
    seen = files.look(str(folder.relative_to(root)))
    assert (seen.tree, files.n_read, seen.size) == (True, 0, len("config.json") + len("sub/model.safetensors"))
    folder.joinpath("config.json").unlink()
    folder.joinpath("config.json").symlink_to("../../blobs/" + "bb" * 32)
    assert files.look(str(folder)).digest != seen.digest
    assert files.n_read == 0


def test_a_snapshot_folder_with_a_file_of_its_own_is_read(root):
    folder = snapshot(root)
    folder.joinpath("notes.txt").write_text("mine")
    files = Files(root, {})
    files.look(str(folder))
    assert files.n_read == 3


def test_a_folder_of_links_that_is_no_commit_is_read(root):
    folder = snapshot(root, commit="main")
    files = Files(root, {})
    files.look(str(folder))
    assert files.n_read == 2


def test_unmoved_until_it_is_written_again(root, write):
    write("a", "one")
    write("model/b", "two")
    files = Files(root, {})
    a, model = files.look("a"), files.look("model")
    assert files.unmoved(a)
    assert files.unmoved(model)
    tick(root)
    write("a", "one")
    write("model/b", "two")
    assert not files.unmoved(a)
    assert not files.unmoved(model)


def test_moved_when_replaced_by_equal_bytes_or_gone(root, write):
    write("a", "one")
    files = Files(root, {})
    seen = files.look("a")
    os.replace(write("b", "one"), root / "a")
    assert not files.unmoved(seen)
    (root / "a").unlink()
    assert not files.unmoved(seen)


def test_a_file_that_never_holds_still_is_an_error_that_names_it(root, write, monkeypatch):
    write("growing")
    digest_stream = files_module.digest_stream

    def read_while_it_grows(file):
        with (root / "growing").open("a") as more:
            more.write("more")
        return digest_stream(file)

    monkeypatch.setattr(files_module, "digest_stream", read_while_it_grows)
    with pytest.raises(BuildError, match="growing changes while it is read"):
        Files(root, {}).look("growing")


def test_what_is_no_file_is_an_error(root):
    os.mkfifo(root / "pipe")
    with pytest.raises(BuildError, match="pipe is neither a file nor a folder"):
        Files(root, {}).look("pipe")
