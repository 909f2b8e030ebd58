"""Publication: whole or not at all, and nothing of the user's is lost."""

from __future__ import annotations

import os

import pytest

from buildsys.digest import digest_bytes
from buildsys.model import Artifact
from buildsys.state import publish as publish_module
from buildsys.state.files import Files
from buildsys.state.publish import publish, remove
from buildsys.state.store import Store
from tests.state.conftest import tick


@pytest.fixture(params=["exchange", "portable"])
def files(request, root, monkeypatch) -> Files:
    """With the system's exchange of two names, and without."""
    if request.param == "portable":
        monkeypatch.setattr(publish_module, "swap", lambda one, other: False)
    return Files(root, {})


def ours(*contents: str):
    digests = {digest_bytes(content.encode()) for content in contents}
    return lambda digest: digest in digests


def test_a_new_output_gets_its_folders(root, write, files):
    staged = write(".buildsys/staging/1/0.jsonl", "new")
    assert publish(files, staged, "build/default/x/0.jsonl", ours=ours()) == ""
    assert (root / "build/default/x/0.jsonl").read_text() == "new"
    assert not staged.exists()


def test_an_output_of_the_build_is_replaced(root, write, files):
    write("out/0", "old")
    assert publish(files, write(".buildsys/s", "new"), "out/0", ours=ours("old")) == ""
    assert [path.name for path in (root / "out").iterdir()] == ["0"]
    assert (root / "out/0").read_text() == "new"


def test_what_somebody_else_put_there_is_kept_and_told(root, write, files):
    write("out/0", "by hand")
    assert publish(files, write(".buildsys/s", "new"), "out/0", ours=ours("old")) == "out/0.mine-1"
    assert (root / "out/0").read_text() == "new"
    assert (root / "out/0.mine-1").read_text() == "by hand"
    write("out/0", "by hand again")
    assert publish(files, write(".buildsys/s", "new"), "out/0", ours=ours("old")) == "out/0.mine-2"
    assert (root / "out/0.mine-2").read_text() == "by hand again"


def test_what_is_saved_between_the_look_and_the_move_is_kept(root, write, files):
    write("out/0", "old")

    def saved_meanwhile(digest):
        write("out/0", "saved at the last moment")
        return True

    assert publish(files, write(".buildsys/s", "new"), "out/0", ours=saved_meanwhile) == "out/0.mine-1"
    assert (root / "out/0.mine-1").read_text() == "saved at the last moment"


def test_a_folder_replaces_a_folder_whole(root, write, files):
    write("out/model/a", "old")
    write("out/model/stale", "old")
    was = files.look("out/model").digest
    staged = write(".buildsys/s/model/a", "new").parent
    assert publish(files, staged, "out/model", ours=lambda digest: digest == was) == ""
    assert [(path.name, path.read_text()) for path in (root / "out/model").iterdir()] == [("a", "new")]
    assert [path.name for path in (root / "out").iterdir()] == ["model"]


def test_a_folder_with_an_edited_file_is_kept(root, write, files):
    write("out/model/a", "edited")
    staged = write(".buildsys/s/model/a", "new").parent
    assert publish(files, staged, "out/model", ours=ours()) == "out/model.mine-1"
    assert (root / "out/model.mine-1/a").read_text() == "edited"


@pytest.mark.parametrize("change", ["edit", "add", "link", "empty folder"])
def test_a_stored_folder_that_a_user_changed_is_kept(root, write, files, change):
    store = Store(root / ".buildsys")
    write("out/model/sub/a", "made")
    store.put(root / "out/model")
    folder = root / "out/model/sub"
    {
        "edit": lambda: write("out/model/sub/a", "edited"),
        "add": lambda: write("out/model/sub/b", "mine"),
        "link": lambda: (folder / "link").symlink_to("nowhere"),
        "empty folder": lambda: (folder / "empty").mkdir(),
    }[change]()
    names = sorted(path.name for path in folder.iterdir())
    staged = write(".buildsys/s/model/a", "new").parent

    def ours(digest):
        return store.has(Artifact("", digest, 0))

    assert publish(files, staged, "out/model", ours=ours) == "out/model.mine-1"
    assert sorted(path.name for path in (root / "out/model.mine-1/sub").iterdir()) == names


def test_what_is_neither_a_file_nor_a_folder_is_kept(root, write, files):
    os.mkfifo(root / "out")
    assert publish(files, write(".buildsys/s", "new"), "out", ours=ours()) == "out.mine-1"
    (root / "round").symlink_to("round")
    assert publish(files, write(".buildsys/s", "new"), "round", ours=ours()) == "round.mine-1"
    assert not remove(files, "out.mine-1", ours=ours())
    assert (root / "out.mine-1").is_fifo()
    assert (root / "round.mine-1").is_symlink()


def test_an_edit_at_the_moment_of_the_move_is_not_taken_for_what_was_made(root, write, files):
    write("out", "old")

    assert publish(files, write(".buildsys/s", "new"), "out", ours=ours("old")) == ""
    write("out", "saved at once, and longer")
    files.made("out", digest_bytes(b"new"))
    tick(root)
    assert files.look("out").digest == digest_bytes(b"saved at once, and longer")


def test_a_dangling_link_in_the_way_is_kept(root, write, files):
    (root / "out").symlink_to("nowhere")
    assert publish(files, write(".buildsys/s", "new"), "out", ours=ours()) == "out.mine-1"
    assert (root / "out").read_text() == "new"
    assert (root / "out.mine-1").is_symlink()


def test_another_file_system_is_reached_by_a_copy_beside_the_target(root, write, files, monkeypatch):
    monkeypatch.setattr(publish_module, "_same_file_system", lambda one, other: False)
    write("out/0", "old")
    assert publish(files, write(".buildsys/s", "new"), "out/0", ours=ours("old")) == ""
    assert [(path.name, path.read_text()) for path in (root / "out").iterdir()] == [("0", "new")]


def test_an_unmodified_output_that_no_rule_makes_is_removed_with_its_empty_folders(root, write, files):
    write("build/x/0", "old")
    write("build/keep", "y")
    assert remove(files, "build/x/0", ours=ours("old"))
    assert [path.name for path in (root / "build").iterdir()] == ["keep"]


def test_an_edited_output_that_no_rule_makes_stays(root, write, files):
    write("build/x/0", "edited")
    assert not remove(files, "build/x/0", ours=ours("old"))
    assert (root / "build/x/0").read_text() == "edited"
    assert remove(files, "build/x/missing", ours=ours())
