"""The kernel's sandbox: what it lets a process do, and how an error tells what it did not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from buildsys.run import landlock

pytestmark = [
    pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock"),
    pytest.mark.timeout(60),
]

PROGRAM = """
import os, subprocess, sys
sys.path.insert(0, {package!r})
from buildsys.run import landlock
limits = ((*landlock.SYSTEM, sys.prefix, sys.base_prefix, "data/read", "data/folder"), ("staging",))
limits = tuple(tuple(os.path.realpath(path) for path in paths) for paths in limits)
landlock.restrict(limits)
try:
    exec({code!r})
except OSError as error:
    if error.errno == 16:
        raise
    print("refused", os.path.relpath(landlock.refused(error, limits, os.getcwd())))
else:
    print("done")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in ("data/read", "data/folder/a", "data/secret", "staging/here", "deep/er/secret"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    (tmp_path / "data/link").symlink_to("secret")
    return tmp_path


def run(folder: Path, code: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    text = program.format(package=str(Path(landlock.__file__).parents[2]), code=code)
    return subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True)


def said(folder: Path, code: str) -> str:
    done = run(folder, code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "open('data/read').read()",
        "os.listdir('data/folder'), open('data/folder/a').read()",
        "open('staging/new', 'w').write('x')",
        "os.mkdir('staging/a'), os.rename('staging/here', 'staging/a/there'), os.remove('staging/a/there')",
        "os.link('staging/here', 'staging/too'), os.symlink('here', 'staging/link'), os.truncate('staging/here', 0)",
        "subprocess.run(['cat', 'data/read'], check=True, stdout=subprocess.DEVNULL)",
        "assert os.path.exists('data/secret'), 'that it is there may be asked'",
        "import multiprocessing as m; m.get_context('spawn').Lock()",
        "import socket; socket.getaddrinfo('localhost', 80)",
        "import sqlite3, ssl, ctypes.util; ssl.create_default_context()",
    ],
)
def test_what_is_allowed_is_done(folder: Path, code: str) -> None:
    assert said(folder, code) == "done"


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("open('data/secret')", "data/secret"),
        ("open('data/link')", "data/link"),
        ("os.listdir('data')", "data"),
        ("open('data/new', 'w')", "data/new"),
        ("open('data/read', 'a')", "data/read"),
        ("os.truncate('data/read', 0)", "data/read"),
        ("os.remove('data/secret')", "data/secret"),
        ("os.rename('data/secret', 'staging/mine')", "data/secret"),
        ("os.link('data/read', 'staging/mine')", "data/read"),
        ("os.symlink('x', 'data/mine')", "data/mine"),
        ("os.mkdir('more')", "more"),
        ("open('../outside', 'w')", "../outside"),
        ("__import__('shutil').copy('data/read', 'data/copy')", "data/copy"),
    ],
)
def test_what_is_not_allowed_is_refused_and_named(folder: Path, code: str, path: str) -> None:
    assert said(folder, code) == f"refused {path}"


def test_what_led_to_an_error_tells_too(folder: Path) -> None:
    code = "try:\n    open('data/secret')\nexcept OSError as error:\n    raise OSError('no model') from error"
    assert said(folder, code) == "refused data/secret"


def test_children_are_limited_as_well(folder: Path) -> None:
    done = run(folder, "subprocess.run(['cat', 'data/secret'], check=True)")
    assert "cat: data/secret: Permission denied" in done.stderr


def test_a_process_with_threads_is_not_limited_in_vain(folder: Path) -> None:
    start = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    code = f"import threading; {start}; landlock.restrict(limits)"
    done = run(folder, code, PROGRAM.replace("landlock.restrict(limits)", "", 1))
    assert "several threads" in done.stderr


# ---------------------------------------------------------------- what programs say


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("cat: secret: Permission denied", "secret"),
        ("cp: cannot open 'secret' for reading: Permission denied", "secret"),
        ("cp: cannot open ‘secret’ for reading: Permission denied", "secret"),
        ("/bin/sh: 1: cannot create new.txt: Permission denied", "new.txt"),
        ("ls: cannot open directory '.': Permission denied", "."),
        ("PermissionError: [Errno 13] Permission denied: 'secret'", "secret"),
        ("awk: cannot open secret (Permission denied)", "secret"),
        ("error: Permission denied (os error 13) at secret", "secret"),
        ("first: Permission denied\nsort: open failed: secret: Permission denied\nand more", "secret"),
        ("sed: couldn't open file /no/such/folder/x: Permission denied", ""),
        ("cat: allowed/a: Permission denied", "allowed/a"),
        ("cat: mine/a: Permission denied", ""),
        ("cat: secret: No such file or directory", ""),
        ("Permission denied", ""),
    ],
)
def test_the_line_of_a_program_names_the_path(tmp_path: Path, line: str, path: str) -> None:
    for name in ("secret", "allowed/a", "mine/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    limits = ((*landlock.SYSTEM, str(tmp_path / "allowed")), (str(tmp_path / "mine"),))
    found = landlock.refused_in(line, limits, str(tmp_path))
    assert found == (str((tmp_path / path).resolve()) if path else "")
