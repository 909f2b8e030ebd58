"""A disk that is full, a folder that is read-only: told, nothing is lost, and the next build needs no help."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.behaviour.conftest import Space
from tests.behaviour.test_damaged_state import BOOK, RULES, SCRIPT, another_edition, outputs
from tests.cli.conftest import PROGRAM, environment

pytestmark = pytest.mark.timeout(180)

EVERY = int(os.environ.get("EVERY", "17"))
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Space:
    """A project whose first edition was built."""
    space = Space(tmp_path_factory.mktemp("first"))
    space.write("rules/r.toml", RULES)
    space.write("scripts/make.py", SCRIPT)
    space.write("scripts/book.py", BOOK)
    for shard in "12":
        space.write(f"data/{shard}.txt", f"these are {shard}")
    assert space.build().outcome == "done"
    return space


@pytest.fixture(scope="module")
def second(first: Space, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The outputs of a clean build of the second edition."""
    space = Space(Path(shutil.copytree(first.root, tmp_path_factory.mktemp("second") / "p", symlinks=True)))
    shutil.rmtree(space.root / ".buildsys")
    shutil.rmtree(space.root / "build")
    another_edition(space)
    assert space.build().outcome == "done"
    return outputs(space)


@pytest.fixture
def space(first: Space, tmp_path: Path) -> Space:
    """A copy of the project in which the second edition is to be built."""
    copy = Space(Path(shutil.copytree(first.root, tmp_path / "copy", symlinks=True)))
    another_edition(copy)
    return copy


def built_in(space: Space, prepare: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """A real build, in a process that `prepare` has taken something from."""
    return subprocess.run(
        [*PROGRAM, "build", "-k"],
        cwd=space.root,
        preexec_fn=prepare,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )


@pytest.mark.parametrize(
    ("is_new", "most_bytes"), [(True, 100), (True, 50_000), (False, 0), (False, 100), (False, 1_000_000)]
)
def test_files_that_can_not_grow(space: Space, second: dict[str, bytes], is_new: bool, most_bytes: int) -> None:
    if is_new:
        space.remove(".buildsys")
        space.remove("build")
    done = built_in(space, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)))
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "file too large" in done.stderr.lower()
    assert space.build().outcome == "done"
    assert outputs(space) == second


def without_privileges() -> None:
    """Permission bits hold from now on, for root as well."""
    libc = ctypes.CDLL(None)
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def holds_permissions(folder: Path) -> bool:
    folder.mkdir()
    folder.chmod(0o555)
    touched = subprocess.run(["touch", folder / "x"], preexec_fn=without_privileges, stderr=subprocess.DEVNULL)
    return touched.returncode != 0


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("build/words", "can't put outputs in place"),
        (".buildsys", "the manifest can't be written"),
        (".buildsys/store", "failed: permission denied"),
        (".buildsys/logs", "failed: permission denied"),
    ],
)
def test_folders_that_are_read_only(
    space: Space, second: dict[str, bytes], tmp_path: Path, folder: str, said: str
) -> None:
    if not holds_permissions(tmp_path / "probe"):
        pytest.skip("permission bits mean nothing here")
    space.write("data/1.txt", "these are others")
    below = [path for path in (space.root / folder).rglob("*") if path.is_dir() and not path.is_symlink()]
    modes = {path: path.stat().st_mode for path in [space.root / folder, *below]}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    done = built_in(space, without_privileges)
    for path, mode in modes.items():
        path.chmod(mode)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert folder in done.stderr
    space.write("data/1.txt", "these are 1")
    assert space.build().outcome == "done"
    assert outputs(space) == second


FULL = """
import errno, os, shutil, sys
from pathlib import Path
from tests.behaviour.conftest import Space
from tests.behaviour.test_damaged_state import another_edition, outputs, told

project, folder, every = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
n, room = 0, None

def count(event, args):
    global n
    is_write = event in ("os.mkdir", "os.rename", "os.symlink", "os.truncate") or event == "open" and args[2] & WRITES
    if is_write and any(str(arg).startswith(str(folder)) for arg in args):
        n += 1
        if room is not None and n > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(args[0]))

sys.addaudithook(count)

def fill(k):
    global n, room
    space = Space(Path(shutil.copytree(project, folder / f"{k}", symlinks=True)))
    another_edition(space)
    n, room = 0, k
    try:
        ended = space.build(jobs=1)
        ended = ended.error.problem if ended.error else ended.outcome
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        ended = "full"
    n_writes, room = n, None
    again = space.build(jobs=1)
    kept = [text for text in told(again) if "is kept as" in text]
    print(k, n_writes, ended, again.outcome, kept, flush=True)
    assert again.outcome == "done", again.errors
    assert outputs(space) == outputs(clean), k
    shutil.rmtree(space.root)
    return n_writes

clean = Space(Path(shutil.copytree(project, folder / "clean", symlinks=True)))
another_edition(clean)
clean.build()
n_writes = fill(1_000_000)
assert n_writes > 30
for k in range(0, n_writes, every):
    fill(k)
"""


@pytest.mark.timeout(180 if EVERY > 1 else 1800)
def test_a_disk_that_is_full_from_the_kth_write_on(first: Space, tmp_path: Path) -> None:
    """`EVERY=1` tries each k, as `.ci/long` does."""
    command = [sys.executable, "-c", FULL, str(first.root), str(tmp_path), str(EVERY)]
    assert subprocess.run(command, cwd=Path(__file__).parents[2]).returncode == 0
