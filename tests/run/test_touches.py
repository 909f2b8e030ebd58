"""What a run asked of the machine: what counts, what was there at first, and hooks that nobody notices."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest

from buildsys.run.places import Places
from buildsys.run.traced import Touch, Traced
from tests.run.conftest import Space

pytestmark = pytest.mark.timeout(60)


def traced(space: Space, body: str, python: str = sys.executable, **options: object) -> Traced:
    """What is told of a call of a function with this body."""
    write_body(space, body)
    result = space.workers().call(space.job("scripts/a.py::f", python=python, **options))  # type: ignore[arg-type]
    assert result.ok, result.error + result.traceback
    return result.trace


def write_body(space: Space, body: str) -> None:
    space.write(
        "scripts/a.py", "import os, sys\nfrom pathlib import Path\n\ndef f():\n" + textwrap.indent(body, "    ")
    )


def paths(trace: Traced) -> list[tuple[str, str]]:
    return [(touch.kind, touch.path) for touch in trace.touches]


def now(path: Path) -> tuple[int, int, int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode


TRIED = """
def tried(function, *args):
    try:
        function(*args)
    except OSError:
        pass
"""


@pytest.fixture
def data(space: Space) -> Path:
    """Files a, b, c and a folder in `data`."""
    for name in "abc":
        space.write(f"data/{name}.txt", name)
    space.write("data/sub/d.txt", "d")
    return space.root / "data"


# ---------------------------------------------------------------- what counts


ALIKE = """
import glob, io, pathlib
open("data/a.txt").close()
os.close(os.open(Path("data/b.txt"), os.O_RDONLY))
Path("data/c.txt").read_bytes()
os.listdir("data"), list(os.scandir(b"data/sub")), glob.glob("scripts/*.txt")
os.path.exists("data/none"), Path("data/sub/none").is_file(), os.access("data/not", os.R_OK)
os.path.getsize("data/a.txt")
try:
    open("data/missing")
except OSError:
    pass
os.stat("scripts/a.py"), os.lstat("scripts"), Path("data/sub").exists()
open("/etc/passwd").close(), os.path.isdir("/etc")
"""
FOUND = [
    *(("exists", "/etc"), ("file", "/etc/passwd"), ("folder", "data"), ("file", "data/a.txt"), ("file", "data/b.txt")),
    *(("file", "data/c.txt"), ("file", "data/missing"), ("exists", "data/none"), ("exists", "data/not")),
    *(("folder", "data/sub"), ("exists", "data/sub/none"), ("folder", "scripts"), ("file", "scripts/a.py")),
]


def test_files_folders_and_questions_are_found_alike_by_every_python(space: Space, data: Path, python: str) -> None:
    trace = traced(space, ALIKE, python)
    assert sorted(set(paths(trace)) - {("exists", "scripts")}) == sorted(FOUND)
    assert trace.trace.unseen == ()


def test_the_stat_is_that_of_the_first_use(space: Space, data: Path) -> None:
    before = {name: now(data / name) for name in ("a.txt", "b.txt", "sub")}
    trace = traced(
        space,
        "open('data/a.txt'), open('data/b.txt', 'r+').write('xx'), os.listdir('data/sub')",
    )
    assert trace.touches == (
        Touch("file", "data/a.txt", before["a.txt"]),
        Touch("file", "data/b.txt", before["b.txt"], own=True),
        Touch("folder", "data/sub", before["sub"]),
    )


MEASURED = {
    "return os.path.getsize(a)": True,
    "return os.stat(a).st_size": True,
    "return os.lstat(a).st_mtime": True,
    "return Path(a).stat().st_size, Path(a).exists()": True,
    "Path(a).lstat()": False,  # What it gives is not used.
    "return Path(a).stat()": True,
    "os.path.exists(a), os.path.isfile(a); return os.path.getsize(a)": True,
    "return sorted([a, 'data/b.txt'], key=os.path.getmtime)": True,
    "import filecmp; filecmp.cmp(a, a)": True,
    "return [entry.stat().st_size for entry in os.scandir('data') if entry.name == 'a.txt']": True,
    "with os.scandir('data') as found: return [(e.name, e.is_file(), os.fspath(e)) for e in found]": False,
    "return [path.stat().st_size for path in Path('data').iterdir() if path.is_file()]": True,
    "os.path.exists(a), os.path.isfile(a), os.path.isdir(a), os.path.islink(a), os.access(a, os.R_OK)": False,
    "Path(a).exists(), Path(a).is_file(), Path(a).is_dir(), Path(a).is_symlink(), Path(a).resolve()": False,
    "os.stat(a)": False,
    "import stat; return stat.S_ISREG(os.stat(a).st_mode)": False,
    "os.stat('data').st_size, os.stat('/dev/null').st_size": False,
    "import shutil, glob; glob.glob('data/*'), os.path.samefile(a, a), list(os.walk('data'))": False,
    "import library; return library.size(a)": False,
}


@pytest.mark.parametrize("code", MEASURED)
def test_a_file_whose_size_our_code_asks_for_counts_by_its_content(
    space: Space, data: Path, python: str, code: str
) -> None:
    space.write("lib/library.py", "import os\n\ndef size(path): return os.path.getsize(path)\n")
    env = {"PYTHONPATH": str(space.root / "lib")}
    found = paths(traced(space, f"a = 'data/a.txt'\n{code}\n", python, env=env))
    assert (("file", "data/a.txt") in found) == MEASURED[code]


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess; subprocess.run(['true', 'data/a.txt'])",
        "import subprocess; subprocess.run('true --in=a.txt | true', shell=True, cwd='data')",
        "import sqlite3; sqlite3.connect('data/a.txt')",
        "import sqlite3; sqlite3.connect('file:data/a.txt?mode=ro', uri=True)",
    ],
)
def test_files_that_others_are_told_to_read_count(space: Space, data: Path, python: str, code: str) -> None:
    assert ("file", "data/a.txt") in paths(traced(space, code, python))


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess; subprocess.run(['true', 'scripts/a.py', 'data', 'none.txt', '-x', ''])",
        "import sqlite3; sqlite3.connect(':memory:'), sqlite3.connect('new.db')",
    ],
)
def test_what_is_no_data_for_others_does_not(space: Space, data: Path, python: str, code: str) -> None:
    assert not [path for kind, path in paths(traced(space, code, python)) if kind == "file" and path[0] != "/"]


def test_entries_of_a_folder_are_what_they_ever_were(space: Space, data: Path, python: str) -> None:
    body = """
with os.scandir("data") as found:
    entries = {entry.name: entry for entry in found}
one = entries["a.txt"]
assert isinstance(one, os.DirEntry) and repr(one) == "<DirEntry 'a.txt'>" and one.path == "data/a.txt"
assert one.is_file() and not one.is_dir() and not one.is_symlink() and one.inode() == one.stat().st_ino
assert open(one).read() == "a" and os.path.join(one, "x") == "data/a.txt/x"
assert next(os.scandir(b"data/sub")).name == b"d.txt"
found = os.scandir("data")
found.close()
assert list(found) == []
"""
    assert traced(space, body, python).trace.unseen == ()


def test_what_is_not_there_has_no_stat(space: Space) -> None:
    trace = traced(space, "os.path.exists('no'), os.path.exists('no/such'), os.path.exists('scripts/a.py/x')")
    assert [(touch.path, touch.stat) for touch in trace.touches] == [
        *(("no", None), ("no/such", None), ("scripts/a.py/x", None)),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "open(json.__file__).close()",
        "open(pytest_file).close()",
        "open('/proc/self/status').close(), os.listdir('/dev'), os.path.exists('/sys/x')",
        "tempfile.TemporaryFile().close(), os.listdir(tempfile.gettempdir()), os.path.exists('/tmp/x')",
        "open('.buildsys/x').close(), os.listdir('.buildsys'), os.path.exists('.buildsys')",
        "open('.venvs/one/lib/x.py').close(), os.listdir('.venvs/one/lib')",
        "os.path.exists(os.getcwd()), os.path.exists('/'), os.path.exists(os.path.dirname(os.getcwd()))",
        "open(sys.executable, 'rb').close()",
        "import colorsys, wave",
        "from importlib import metadata\nlist(metadata.distributions()), metadata.version('pytest')",
        "import inspect, linecache\ninspect.getmodule(f), inspect.getsourcefile(f), linecache.checkcache()",
        "open(os.pipe()[0], closefd=False), os.stat(0), os.listdir(os.open('/proc', os.O_RDONLY))",
        "os.path.exists(''), os.path.exists('a\\0b')",
    ],
)
def test_what_does_not_count(space: Space, code: str) -> None:
    space.write(".buildsys/x", "")
    space.write(".venvs/one/pyvenv.cfg", "")
    space.write(".venvs/one/lib/x.py", "")
    body = f"import json, tempfile\npytest_file = {pytest.__file__!r}\n{code}\n"
    assert traced(space, body).touches == ()


def test_places_of_the_machine_count_where_they_are_no_part_of_the_interpreter() -> None:
    places = Places("/home/u/project", ["/opt/python", "/home/u/project/env", "/home/u/project"])
    counted = ["/home/u", "/home/u/projects/x", "/opt/pythons", "/etc/hosts", "/usr/share/x", "/dev2", "/opt"]
    assert [places.name(path) for path in counted] == counted
    assert [places.name(f"/home/u/project{path}") for path in ("", "/a", "/envs", "/.buildsys2")] == [
        *("", "a", "envs", ".buildsys2"),
    ]
    for path in ("/opt/python/x", "/tmp", "/tmp/x", "/dev/null", "/home/u/project/env/x", "/home/u/project/.buildsys"):
        assert places.name(path) is None, path
    assert places.name("/srv/lib/python3/site-packages/x.py") is None
    given = ["/", "/home", "/home/u/project", "/opt", "/opt/python"]
    assert [path for path in [*given, "/etc", "/home/v"] if places.is_given(path)] == given


def test_an_environment_that_runs_the_project_from_within_it_does_not_count(space: Space) -> None:
    """A folder on the path that holds distributions, wherever it lies."""
    space.write("lib/thing-1.dist-info/METADATA", "")
    space.write("lib/thing.py", "TEXT = open(__file__).read()\n")
    env = {"PYTHONPATH": str(space.root / "lib")}
    trace = traced(space, "import thing\n", env=env)
    assert (trace.touches, trace.packages) == ((), {"thing"})


def test_a_module_of_the_project_that_is_imported_from_no_frozen_source_counts_as_read(space: Space) -> None:
    space.write("lib/thing.py", "X = 1\n")
    env = {"PYTHONPATH": str(space.root / "lib")}
    for _ in ("compiled", "from its bytecode"):
        assert paths(traced(space, "import thing\n", env=env)) == [("file", "lib/thing.py")]


def test_data_beside_a_package_counts_and_frozen_sources_do_not(space: Space) -> None:
    space.write("scripts/pack/__init__.py", "")
    space.write("scripts/pack/x.txt", "")
    body = "import pkgutil, inspect, pack\n"
    body += "pkgutil.get_data('pack', 'x.txt'), inspect.getsource(f), inspect.getsource(pack)\n"
    trace = traced(space, body)
    assert ("file", "scripts/pack/x.txt") in paths(trace)
    assert not [path for kind, path in paths(trace) if kind == "file" and path.endswith(".py")]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("open(os.getcwd() + '/data//./a.txt')", "data/a.txt"),
        ("open('data/sub/../a.txt')", "data/a.txt"),
        ("open(b'data/a.txt')", "data/a.txt"),
        ("os.chdir('data'), open('a.txt')", "data/a.txt"),
        ("os.open('a.txt', os.O_RDONLY, dir_fd=os.open('data', os.O_RDONLY))", "data/a.txt"),
        ("os.stat('a.txt', dir_fd=os.open('data', os.O_RDONLY))", "data/a.txt"),
        ("os.listdir(os.open('data', os.O_RDONLY))", "data"),
        ("open('link/d.txt')", "link/d.txt"),
        ("open('link/../a.txt')", "link/../a.txt"),
        ("__import__('io').FileIO('data/a.txt')", "data/a.txt"),
        ("open('a.txt', opener=lambda p, f: os.open(p, f, dir_fd=os.open('data', 0)))", "data/a.txt"),
        ("open(mode='r', file='data/a.txt')", "data/a.txt"),
        ("__import__('io').open_code(os.getcwd() + '/data/a.txt')", "data/a.txt"),
        ("os.link('data/a.txt', 'hard')", "data/a.txt"),
        ("os.rename('data/a.txt', 'moved')", "data/a.txt"),
        ("os.symlink('data/a.txt', 'soft'), open('soft')", "soft"),
        ("os.readlink('link')", "link"),
        ("os.path.exists('a.txt'), os.path.exists('a.txt'), os.chdir('data'), os.path.exists('a.txt')", "data/a.txt"),
        ("tried(open, 'a.txt'), tried(open, 'a.txt'), os.chdir('data'), open('a.txt')", "data/a.txt"),
        ("os.path.exists('a.txt'), os.stat('a.txt', dir_fd=os.open('data', os.O_RDONLY))", "data/a.txt"),
    ],
)
def test_paths_are_named_as_the_code_means_them(space: Space, data: Path, code: str, name: str) -> None:
    (space.root / "link").symlink_to("data/sub")
    assert name in [path for _, path in paths(traced(space, TRIED + code))]


# ---------------------------------------------------------------- what the run made itself


@pytest.mark.parametrize(
    "code",
    [
        "Path('x').write_text('x'), Path('x').read_text(), Path('x').exists()",
        "open('data/a.txt', 'w').write('x'), open('data/a.txt').read()",
        "os.mkdir('new'), Path('new/x').write_text('x'), os.listdir('new'), open('new/x').read()",
        "Path('x').write_text('x'), os.rename('x', 'y'), open('y').read(), os.path.exists('x')",
        "os.remove('data/a.txt'), os.path.exists('data/a.txt')",
        "Path('x').write_text('x'), os.link('x', 'y'), open('y').read()",
        "open('x', 'x').close(), os.stat('x')",
    ],
)
def test_what_the_run_has_made_before_is_not_asked_for(space: Space, data: Path, code: str) -> None:
    assert traced(space, code).touches == ()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("open('data/a.txt', 'a').write('x'), open('data/a.txt').read()", "data/a.txt"),
        ("open('data/a.txt', 'a+').read()", "data/a.txt"),
        ("os.path.exists('x') or Path('x').write_text('x')", "x"),
        ("open('data/a.txt').close(), os.remove('data/a.txt')", "data/a.txt"),
        ("tried(os.mkdir, 'data'), os.listdir('data')", "data"),
        ("tried(os.rename, 'no', 'data/a.txt'), open('data/a.txt')", "data/a.txt"),
        ("tried(os.remove, 'data/sub'), os.listdir('data/sub')", "data/sub"),
    ],
)
def test_what_was_there_before_is_an_input_though_the_run_wrote_it(
    space: Space, data: Path, code: str, found: str
) -> None:
    assert (found, True) in [(touch.path, touch.own) for touch in traced(space, TRIED + code).touches]


def test_what_one_action_made_is_there_for_the_next_as_anything_else(space: Space) -> None:
    space.write(
        "scripts/a.py", "def make():\n    open('x', 'w').close()\n    read()\n\ndef read(): open('x').close()\n"
    )
    workers = space.workers()
    assert workers.call(space.job("scripts/a.py::make")).trace.touches == ()
    assert paths(workers.call(space.job("scripts/a.py::read")).trace) == [("file", "x")]


def test_the_next_action_asks_from_the_folder_of_the_project_again(space: Space, data: Path) -> None:
    space.write(
        "scripts/a.py",
        """
        import os

        def one():
            os.chdir("data")
            return [os.path.exists("a.txt") for _ in "ab"]

        def two(): return os.path.exists("a.txt")
        """,
    )
    workers = space.workers()
    workers.call(space.job("scripts/a.py::one"))
    found = workers.call(space.job("scripts/a.py::two")).trace
    assert [(touch.path, touch.stat is None) for touch in found.touches] == [("a.txt", True), ("data/a.txt", False)]


def test_what_an_action_asked_for_stays_an_input_of_the_next(space: Space, data: Path) -> None:
    space.write("scripts/a.py", "def one(): open('data/a.txt').close()\n\ndef two(): open('data/b.txt').close()\n")
    workers = space.workers()
    workers.call(space.job("scripts/a.py::one"))
    first = now(data / "a.txt")
    (data / "a.txt").write_text("changed")
    trace = workers.call(space.job("scripts/a.py::two")).trace
    assert paths(trace) == [("file", "data/a.txt"), ("file", "data/b.txt")]
    assert trace.touches[0].stat == first != now(data / "a.txt")


# ---------------------------------------------------------------- variables


FIRST_TO_LAST = {"PYTHONHASHSEED", "PATH", "THE_LAST"}
"""Who stops half-way through has asked for all by then."""
ALL = {"=names", "=values"}
VARIABLES = [
    ("os.environ.get('ONE')", {"ONE"}),
    ("os.getenv('ONE', 1), 'TWO' in os.environ, os.environ.pop('THREE', None)", {"ONE", "TWO", "THREE"}),
    ("os.environb.get(b'ONE'), os.environ.setdefault('TWO', 'x')", {"ONE", "TWO"}),
    ("dict(os.environ), os.environ.copy(), {**os.environ}, list(os.environ.items()), os.environ | {}", ALL),
    ("os.environ['ONE'] = 'x'; os.environ['ONE']", set()),
    (
        "os.environ['ONE'] = 'x'; next((k, v) for k, v in os.environ.items() if k == 'THE_LAST')",
        FIRST_TO_LAST | {"=names"},
    ),
    ("dict(os.environ); os.environ['PATH']", {"PATH"} | ALL),
    ("os.environ['PATH']; os.environ['PATH']; dict(os.environ)", {"PATH"} | ALL),
    ("[os.environ[name] for name in os.environ if name.endswith('LAST')]", {"=names", "THE_LAST"}),
    ("[name for name in os.environb if name[:1] == b'T']", {"=names"}),
    ("len(os.environ), bool(os.environ)", {"=names"}),
    ("repr(os.environ)", {"=values"}),
    ("import copies; copies.copied()", set()),
]


@pytest.mark.parametrize(("code", "asked"), VARIABLES)
def test_variables_that_are_asked_for_one_by_one(space: Space, code: str, asked: set[str]) -> None:
    """A library that copies all of them has asked for none."""
    space.write(
        "lib/copies.py", "import os\n\ndef copied(): return dict(os.environ), len(os.environ), repr(os.environ)\n"
    )
    env = {"PATH": os.environ["PATH"], "THE_LAST": "x", "PYTHONPATH": str(space.root / "lib")}
    assert {one.name for one in traced(space, code, env=env).variables} == asked


def test_variables_are_found_alike_by_every_python(space: Space, python: str) -> None:
    trace = traced(space, "\n".join(code for code, _ in VARIABLES[:4]), python)
    assert {one.name for one in trace.variables} == {"ONE", "TWO", "THREE"} | ALL


def test_it_is_said_whether_our_code_asked(space: Space) -> None:
    """What native code asks for on a call of ours, as a partial does, is not ours either."""
    space.write(
        "lib/other.py",
        """
        import functools, os

        def ask(name): return os.environ.get(name)

        native = functools.partial(os.environ.get, "THREE")
        """,
    )
    space.write("scripts/b.py", "import other\n\ndef call(): return other.native()\n")
    body = "import b, other\nother.ask('ONE'), other.ask('TWO'), os.getenv('TWO'), os.get_exec_path(), b.call()\n"
    trace = traced(space, body, env={"PYTHONPATH": str(space.root / "lib")})
    assert dict(trace.variables) == {"ONE": False, "TWO": True, "THREE": False, "PATH": True}


def test_a_variable_that_one_action_set_is_asked_for_by_the_next(space: Space) -> None:
    space.write("scripts/a.py", "import os\n\ndef one(): os.environ['X'] = '1'\n\ndef two(): os.environ.get('X')\n")
    workers = space.workers()
    assert workers.call(space.job("scripts/a.py::one")).trace.variables == ()
    assert [one.name for one in workers.call(space.job("scripts/a.py::two")).trace.variables] == ["X"]


# ---------------------------------------------------------------- what runs elsewhere


CHILDREN = {
    "subprocess.run(['true', 'a b'])": "a child process: true 'a b'",
    "subprocess.run('true', shell=True)": "a child process: /bin/sh -c true",
    "subprocess.run(['true'], close_fds=False)": "a child process: true",
    "os.system('true')": "a child process: true",
    "os.waitpid(os.posix_spawn('/bin/true', ['true', b'x'], {}), 0)": "a child process: true x",
    "os.waitpid(os.spawnlp(os.P_NOWAIT, 'true', 'true', 'y'), 0)": "a child process: true y",
    "pty.spawn(['true'], lambda fd: os.read(fd, 1))": "a child process: true",
    "subprocess.run(['true', 'x' * 500])": f"a child process: true {'x' * 94}…",
}


@pytest.mark.parametrize("code", CHILDREN)
def test_child_processes_are_told_by_their_words(space: Space, code: str) -> None:
    trace = traced(space, f"import pty, subprocess\n{code}\n")
    assert trace.trace.unseen == (CHILDREN[code],)
    assert trace.commands


def test_processes_that_multiprocessing_spawns_are_child_processes(space: Space, python: str) -> None:
    body = """
import multiprocessing
process = multiprocessing.get_context("spawn").Process(target=print)
process.start()
process.join()
"""
    (unseen,) = traced(space, body, python).trace.unseen
    assert unseen.startswith("a child process: ")
    assert "spawn_main" in unseen


def test_what_the_library_asks_of_the_machine_by_itself_is_no_child_process(space: Space) -> None:
    body = "import ctypes.util, platform, multiprocessing.resource_tracker as tracker\n"
    body += "platform.processor(), tracker.ensure_running()\n"
    assert traced(space, body).trace.unseen == ()


FORKED = """
import multiprocessing, subprocess

def late(n):
    open("data/a.txt").close()
    Path("made").write_text("x")
    os.path.exists("data/none")
    os.environ.get("ASKED")
    subprocess.run(["true"])

with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.map(print, [1])
def child():
    if os.fork() == 0:
        late(1)
        os._exit(0)
    os.wait()
child()
open("made").close()
open("data/b.txt").close()
"""


def test_what_forked_children_ask_for_is_found_too(space: Space, data: Path, python: str) -> None:
    trace = traced(space, FORKED, python)
    assert paths(trace) == [("file", "data/a.txt"), ("file", "data/b.txt"), ("exists", "data/none")]
    assert [one.name for one in trace.variables if one.ours] == ["ASKED"]
    assert trace.trace.unseen == ("a child process: true",)


def test_many_children_that_find_at_once_lose_nothing(space: Space) -> None:
    body = """
for child in range(8):
    if os.fork() == 0:
        for n in range(200):
            os.path.exists(f"no/{child}/{n}")
        os._exit(0)
for child in range(8):
    os.wait()
"""
    trace = traced(space, body)
    assert len(trace.touches) == 1600
    assert trace.trace.unseen == ()


@pytest.mark.parametrize("body", ["os.closerange(3, 1000)", "[os.close(n) for n in range(3, 100) if tried(n)]"])
def test_a_child_that_can_not_tell_what_it_found_is_unseen_and_writes_nowhere_else(
    space: Space, data: Path, body: str
) -> None:
    """A descriptor that was closed may by now be that of another file."""
    trace = traced(
        space,
        f"""
def tried(n):
    try:
        return os.fstat(n)
    except OSError:
        return None
if os.fork() == 0:
    {body}
    others = [os.open("data/c.txt", os.O_WRONLY) for _ in range(40)]
    os.path.exists("data/none")
    os._exit(0)
os.wait()
""",
    )
    assert "a forked process" in trace.trace.unseen
    assert (data / "c.txt").read_text() == "c"


def test_another_interpreter_in_the_process_is_unseen(space: Space) -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    body = f"import {name} as inner\ninner.destroy(inner.create())\n"
    assert traced(space, body).trace.unseen == ("another interpreter in the process",)


# ---------------------------------------------------------------- nobody notices


def test_what_is_wrapped_is_used_as_ever(space: Space, python: str) -> None:
    body = """
import _io, inspect, io, pickle, shutil, subprocess, tokenize, _posixsubprocess

class Holds:
    stat, exists = os.stat, os.access

wrapped = [os.stat, os.lstat, os.access, os.readlink, os.open, open, os.scandir, _posixsubprocess.fork_exec]
names = ["stat", "lstat", "access", "readlink", "open", "open", "scandir", "fork_exec"]
assert Holds().stat("scripts").st_mode == os.stat("scripts").st_mode
assert all(pickle.loads(pickle.dumps(one)) == one for one in wrapped), "by name"
assert [one.__name__ for one in wrapped] == names
assert open is io.open is _io.open is tokenize._builtin_open
with open("scripts/a.py", "rb") as file:
    assert isinstance(file.raw, io.FileIO) and type(file.raw) is _io.FileIO
    assert issubclass(io.FileIO, io.RawIOBase) and issubclass(_io.FileIO, io.FileIO) and not issubclass(str, io.FileIO)
class Own(io.FileIO): pass
assert not isinstance(file.raw, Own) and isinstance(Own("scripts/a.py"), io.FileIO) and io.FileIO.__name__ == "FileIO"
assert all(callable(one) and one.__doc__ for one in wrapped)
assert shutil.rmtree.avoids_symlink_attacks
assert {os.stat, os.open} <= os.supports_dir_fd and os.stat in os.supports_follow_symlinks and os.stat in os.supports_fd
assert type(os.environ).__getitem__.__name__ == "__getitem__" and type(os.environ).__name__ == "_Environ"
for ask in (os.stat, os.open, open, os.environ.__getitem__):
    for wrong in ([], ["a"] * 5, [None]):
        try:
            ask(*wrong)
        except (TypeError, AttributeError) as error:
            assert "hooks" not in str(error)
        else:
            raise AssertionError(ask)
os.makedirs("tree/a/b"), Path("tree/a/x").write_text("x")
shutil.rmtree("tree")
assert not os.path.exists("tree")
"""
    assert traced(space, body, python).trace.unseen == ()


def test_a_listener_that_fails_fails_nobody_and_is_told(space: Space) -> None:
    body = """
class Odd(str):
    n = 0
    def startswith(self, *args): raise ValueError
    def __contains__(self, other): raise ValueError("odd")
    def __getitem__(self, key): raise ValueError("odd")
class Path2:
    def __fspath__(self):
        Odd.n += 1
        if Odd.n > 1: raise ZeroDivisionError
        return "scripts/a.py"
return os.path.exists(Odd("scripts")), os.stat(Path2()).st_size > 0
"""
    write_body(space, body)
    result = space.workers().call(space.job("scripts/a.py::f"))
    assert result.value == (True, True), result.error
    assert result.trace.trace.unseen == ("an error of the trace: ZeroDivisionError: ",)


def test_an_interrupt_in_a_listener_reaches_the_code(space: Space) -> None:
    body = """
class Slow:
    def __fspath__(self): raise KeyboardInterrupt
try:
    os.stat(Slow())
except KeyboardInterrupt:
    return True
"""
    write_body(space, body)
    assert space.workers().call(space.job("scripts/a.py::f")).value is True


def test_threads_find_all_that_they_ask_for(space: Space, python: str) -> None:
    body = """
import threading
def ask(thread):
    for n in range(200):
        os.path.exists(f"no/{thread}/{n}")
        os.environ.get(f"NO_{thread}_{n}")
threads = [threading.Thread(target=ask, args=[n]) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    trace = traced(space, body, python)
    assert (len(trace.touches), len(trace.variables)) == (800, 800)


def test_packages_that_the_code_itself_imports_are_told(space: Space, python: str) -> None:
    for name in ("early", "stated", "computed", "named", "inner"):
        space.write(f"lib/{name}.py", "import inner\n")
    space.write("scripts/b.py", "")
    body = """
import contextlib, importlib, json, pkgutil, b, early, stated
importlib.import_module("comp" + "uted")
pkgutil.resolve_name("named")
with contextlib.suppress(ImportError):
    __import__("nowhere.deep")
import plistlib
"""
    write_body(space, body)
    env = {"PYTHONPATH": str(space.root / "lib")}
    job = space.job("scripts/a.py::f", python=python, env=env, preload=("early",))
    assert space.workers().call(job).trace.packages == {"stated", "computed", "named", "nowhere"}
