"""A build that left nothing to do leaves a stamp, and whatever changes afterwards is seen by a look at that alone."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import buildsys
from buildsys.events import ActionFinished, Event
from buildsys.project import STATE, Project
from buildsys.request import Request, Variation
from buildsys.state.stamp import current
from buildsys.survey import survey
from tests.behaviour.conftest import Space
from tests.state.conftest import tick

RULES = """
config = "configs/one.toml"

[service.echo]
shell  = "{python} scripts/serve.py {inputs.model} {port}"
ready  = "http://127.0.0.1:{port}/"
inputs = { model = "served" }

[rule.upper]
each    = { shard = "data/{shard}.txt" }
run     = "scripts/upper.py::upper"
inputs  = { text = "data/{shard}.txt", model = "model", notes = "notes/*.md" }
params  = { suffix = "$suffix" }
outputs = { out = "build/{profile}/upper/{shard}.txt" }
env     = ["DECLARED"]
secrets = { token = "A_SECRET" }

[rule.tree]
shell   = "mkdir {outputs.tree} && cp {inputs.book} {outputs.tree}/book"
inputs  = { book = "@book" }
services = ["echo"]
outputs = { tree = "build/{profile}/tree" }

[rule.book]
shell   = "sh -c 'cat {inputs.parts}' > {outputs.book}; : -m plugin"
inputs  = { parts = "@upper[*]" }
outputs = { book = "build/{profile}/book.txt" }
"""
SERVE = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler

HTTPServer(("127.0.0.1", int(sys.argv[2])), SimpleHTTPRequestHandler).serve_forever()
"""
UPPER = """
import importlib
import helper
try:
    import optional
except ImportError:
    pass


def upper(text, model, notes, out, suffix):
    out.write_text(helper.loud(text.read_text()) + suffix)


def plugin(name):
    return importlib.import_module(name)
"""
OURS = "ours/buildsys/__init__.py"

Change = Callable[[Space, pytest.MonkeyPatch], object]


def keeping_times(change: Change) -> Change:
    def changed(space: Space, patch: pytest.MonkeyPatch) -> None:
        found = (space.root / "data/1.txt").stat()
        change(space, patch)
        os.utime(space.root / "data/1.txt", ns=(found.st_atime_ns, found.st_mtime_ns))

    return changed


def write(path: str, text: str) -> Change:
    return lambda space, _: space.write(path, text)


def remove(path: str) -> Change:
    return lambda space, _: space.remove(path)


def again(path: str) -> Change:
    """Other bytes of the same length."""
    return lambda space, _: space.write(path, space.read(path).swapcase())


def retarget(space: Space, _: pytest.MonkeyPatch) -> None:
    space.write("elsewhere/second/weights", "w\n")
    (space.root / "model/linked").unlink()
    (space.root / "model/linked").symlink_to(space.root / "elsewhere/second", target_is_directory=True)


def replace_with_equal_bytes(space: Space, _: pytest.MonkeyPatch) -> None:
    shutil.copy2(space.root / "data/1.txt", space.root / "data/new")
    (space.root / "data/new").rename(space.root / "data/1.txt")


def install(space: Space, _: pytest.MonkeyPatch) -> None:
    (space.root / "site/thing-1.0.dist-info").mkdir()


SEEN: dict[str, Change] = {
    "an input edited in place": again("data/1.txt"),
    "an input edited with its size and time put back": keeping_times(again("data/1.txt")),
    "an input that can be executed": lambda space, _: (space.root / "data/1.txt").chmod(0o755),
    "an input replaced by equal bytes": replace_with_equal_bytes,
    "a new shard": write("data/3.txt", "three\n"),
    "a shard that is gone": remove("data/2.txt"),
    "a new file for a star": write("notes/b.md", "note\n"),
    "a file for a star that is gone": remove("notes/a.md"),
    "a file of a folder": again("model/deep/config"),
    "a new file in a folder": write("model/deep/more", "more\n"),
    "a new empty folder in a folder": lambda space, _: (space.root / "model/empty").mkdir(),
    "a file behind a link to a folder outside": again("elsewhere/first/weights"),
    "a link that leads elsewhere": retarget,
    "an output edited": again("build/default/book.txt"),
    "an output that is gone": remove("build/default/upper/1.txt"),
    "all outputs gone": remove("build"),
    "a file of an output that is a folder": again("build/default/tree/book"),
    "a new file in an output that is a folder": write("build/default/tree/more", "more\n"),
    "an output replaced by a folder": lambda space, _: (
        space.remove("build/default/book.txt"),
        os.mkdir(space.root / "build/default/book.txt"),
    ),
    "a rule file": write("rules/one.toml", RULES + "# a comment\n"),
    "a new rule file": write("rules/two.toml", ""),
    "the config": write("configs/one.toml", 'suffix = "?"\nother = 2\n'),
    "a declared variable": lambda _, patch: patch.setenv("DECLARED", "two"),
    "a declared variable that is unset": lambda _, patch: patch.delenv("DECLARED"),
    "the script": write("scripts/upper.py", UPPER.replace("+ suffix", "* 2 + suffix")),
    "a module that is imported": again("scripts/helper.py"),
    "a package that hides a module": write("scripts/helper/__init__.py", "loud = str.upper\n"),
    "a module that was looked for": write("scripts/optional.py", ""),
    "a module that a computed import may name": write("scripts/deep/plugin.py", ""),
    "the script of a service": write("scripts/serve.py", SERVE + "pass\n"),
    "the input of a service": again("served/weights"),
    "a module that a command names": write("plugin.py", ""),
    "the manifest's snapshot gone": remove(".buildsys/manifest.duckdb"),
    "the manifest gone": remove(".buildsys/live"),
    "another manifest": lambda space, _: os.utime(space.root / ".buildsys/live/manifest.duckdb"),
    "the store gone": remove(".buildsys/store"),
    "a package installed": install,
    "another version of buildsys": lambda _, patch: patch.setattr(buildsys, "__version__", "0.0.0"),
    "other code of buildsys": again(OURS),
    "another interpreter": lambda _, patch: patch.setattr("sys.executable", "/usr/bin/another"),
}
UNSEEN: dict[str, Change] = {
    "nothing": lambda space, patch: None,
    "a secret": lambda _, patch: patch.setenv("A_SECRET", "another"),
    "a variable that is not declared": lambda _, patch: patch.setenv("UNDECLARED", "x"),
    "a file that nothing reads": write("README.md", "words\n"),
    "a file in another folder": write("elsewhere/notes", "words\n"),
    "a hidden file in .buildsys": write(".buildsys/x", "x"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Space:
    return Space(tmp_path_factory.mktemp("stamp"))


@pytest.fixture
def stamped(shared: Space, monkeypatch: pytest.MonkeyPatch) -> Space:
    """A project with a stamp that holds: what the last test changed is put back, and what it lost is built."""
    for path in shared.root.iterdir():
        if path.name not in (".buildsys", "build"):
            shared.remove(path.name)
    lay_out(shared)
    monkeypatch.setenv("DECLARED", "one")
    monkeypatch.setenv("A_SECRET", "secret")
    monkeypatch.syspath_prepend(str(shared.root / "site"))
    monkeypatch.setattr(buildsys, "__file__", str(shared.root / OURS))
    settle(shared)
    return shared


def lay_out(space: Space) -> None:
    space.write("rules/one.toml", RULES)
    space.write("configs/one.toml", 'suffix = "!"\n')
    space.write("scripts/upper.py", UPPER)
    space.write("scripts/helper.py", "def loud(text):\n    return text.upper()\n")
    space.write("scripts/serve.py", SERVE)
    space.write("served/weights", "abc\n")
    space.write("elsewhere/first/weights", "w\n")
    space.write("model/deep/config", "abc\n")
    (space.root / "model/linked").symlink_to(space.root / "elsewhere/first", target_is_directory=True)
    space.write("notes/a.md", "note\n")
    space.write("site/readme", "")
    space.write(OURS, "abc\n")
    for shard in ("1", "2"):
        space.write(f"data/{shard}.txt", f"text {shard}\n")


def settle(space: Space) -> None:
    """Build until there is a stamp. Folders that were just made are looked at by the second build."""
    (space.root / ".buildsys").mkdir(exist_ok=True)
    for _ in range(2):
        tick(space.root)
        built = space.build()
        assert built.outcome == "done", built.error or built.errors
        if current(space.root, Request()):
            return
    pytest.fail("there is nothing to do, and no stamp")


def found(space: Space, *targets: str) -> dict[str, int] | None:
    """The actions that a stamp says are up to date, by rule."""
    stamped = current(space.root, Request(targets))
    return dict(stamped.n_actions) if stamped else None


@pytest.mark.parametrize("change", SEEN.values(), ids=SEEN)
def test_a_change_is_seen(stamped: Space, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    change(stamped, monkeypatch)
    assert current(stamped.root, Request()) is None


@pytest.mark.parametrize("change", UNSEEN.values(), ids=UNSEEN)
def test_what_decides_nothing_is_not_looked_at(stamped: Space, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    change(stamped, monkeypatch)
    assert current(stamped.root, Request()) is not None


def mutate(rng: random.Random, root: Path) -> str:
    """Do one thing to one file of the project; what it was."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.relative_to(root).parts[0] != STATE]
    path = rng.choice(files)
    before = path.stat()
    what = rng.choice(["append", "in place", "mode", "remove", "rename", "renew", "beside", "folder", "link"])
    match what:
        case "append":
            path.write_bytes(path.read_bytes() + b"\n")
        case "in place":
            path.write_bytes(path.read_bytes().swapcase())
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        case "mode":
            path.chmod(before.st_mode ^ 0o111)
        case "remove":
            path.unlink()
        case "rename":
            path.rename(path.with_stem(f"{path.stem}0"))
        case "renew":
            shutil.copy2(path, path.with_name("renewed"))
            path.with_name("renewed").rename(path)
        case "beside":
            shutil.copy(path, path.with_stem(f"{path.stem}0"))
        case "folder":
            path.unlink()
            path.mkdir()
        case "link":
            shutil.move(path, root / "moved")
            path.symlink_to(root / "moved")
    return f"{what}: {path.relative_to(root)}"


@pytest.mark.parametrize("seed", range(16))
def test_whatever_one_thing_changes_a_stamp_that_holds_means_that_nothing_is_to_be_done(
    stamped: Space, seed: int
) -> None:
    what = mutate(random.Random(seed), stamped.root)
    if current(stamped.root, Request()):
        assert survey(Project(stamped.root)).up_to_date, what


@pytest.mark.parametrize(
    "damage",
    [
        lambda stamp: b"",
        lambda stamp: stamp[: len(stamp) // 2],
        lambda stamp: stamp.replace(b'"upper"', b'"lower"'),
        lambda stamp: b"buildsys stamp 0 " + stamp[17:],
        lambda stamp: os.urandom(100),
    ],
    ids=["empty", "truncated", "altered", "of another version", "noise"],
)
def test_a_damaged_stamp_is_as_good_as_none(stamped: Space, damage: Callable[[bytes], bytes]) -> None:
    (stamp,) = (stamped.root / ".buildsys/stamps").iterdir()
    stamp.write_bytes(damage(stamp.read_bytes()))
    assert current(stamped.root, Request()) is None
    assert stamped.build().outcome == "done"


def test_a_stamp_holds_for_its_request_alone(stamped: Space) -> None:
    stamped.build("upper[1]")
    assert found(stamped, "upper[1]") == {"upper": 1}
    assert current(stamped.root, Request(("upper[2]",))) is None
    assert current(stamped.root, Request((), Variation("other"))) is None
    assert current(stamped.root, Request((), Variation(overrides=(("suffix", "?"),)))) is None
    assert found(stamped) == {"upper": 2, "book": 1, "tree": 1}


def test_a_build_that_makes_something_takes_back_all_stamps(stamped: Space) -> None:
    stamped.build("upper[1]")
    stamped.write("data/2.txt", "other\n")
    stamped.build("upper[2]")
    assert current(stamped.root, Request(("upper[1]",))) is None
    assert current(stamped.root, Request()) is None


def test_what_changes_after_it_was_looked_at_is_not_stamped(stamped: Space) -> None:
    stamped.write("data/2.txt", "other\n")

    def edit(event: Event) -> None:
        if isinstance(event, ActionFinished) and str(event.action) == "upper[2]":
            stamped.write("data/1.txt", "edited after it was found unchanged\n")

    tick(stamped.root)
    assert stamped.build(on_event=edit).outcome == "done"
    assert current(stamped.root, Request()) is None
    assert "upper[1]" in stamped.build().ran


@pytest.mark.parametrize("shard", ["1", "2"])
def test_a_build_that_did_not_succeed_leaves_no_stamp(stamped: Space, shard: str) -> None:
    stamped.write("scripts/upper.py", UPPER.replace("out.write_text", f'assert text.stem != "{shard}", out.write_text'))
    tick(stamped.root)
    assert stamped.build(keep_going=True).outcome == "failed"
    assert list((stamped.root / ".buildsys").glob("stamps/*")) == []


def test_a_blocked_script_leaves_no_stamp(stamped: Space) -> None:
    stamped.write("scripts/upper.py", "def upper(:\n")
    tick(stamped.root)
    assert stamped.build(keep_going=True).actions("blocked") == ["upper[1]", "upper[2]"]
    assert current(stamped.root, Request()) is None


def test_a_forced_build_leaves_no_stamp(stamped: Space) -> None:
    assert stamped.build(force=["book"]).ran == ["book"]
    assert current(stamped.root, Request()) is None


def test_a_file_as_young_as_the_build_is_not_stamped(stamped: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the file system's clock has not moved on since it was written: an edit might leave the same stat."""
    stamped.write("data/1.txt", "young\n")
    young = (stamped.root / "data/1.txt").stat().st_ctime_ns
    monkeypatch.setattr("buildsys.state.stamp.clock_ns", lambda state: young)
    assert stamped.build().outcome == "done"
    assert current(stamped.root, Request()) is None


def test_a_folder_that_a_build_put_in_place_is_missed_where_it_is_gone(space: Space) -> None:
    """What the build saw there before it made the folder, which is nothing, is not what it left."""
    space.write("rules/tree.toml", '[rule.tree]\nshell = "mkdir {outputs.tree}"\noutputs = { tree = "build/tree" }\n')
    assert space.build().ran == ["tree"]
    space.remove("build/tree")
    assert current(space.root, Request((), Variation())) is None
    assert space.build().restored == ["tree"]
