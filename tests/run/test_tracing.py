"""Which code ran, found alike by marks and by monitoring, and code that runs as if nobody looked."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

from buildsys.code.functions import function_names
from buildsys.model import Trace
from buildsys.run import marks
from buildsys.run.copies import readers
from buildsys.run.marks import definitions
from tests.run.conftest import Space, interpreter

pytestmark = pytest.mark.timeout(60)


def traced(space: Space, target: str, python: str, **options: object) -> Trace:
    result = space.workers().call(space.job(target, python=python, **options))  # type: ignore[arg-type]
    assert result.ok, result.error + result.traceback
    return result.trace.trace


def functions(trace: Trace, path: str = "scripts/a.py") -> set[str]:
    return {name.removeprefix(f"{path}:") for name in trace.functions if name.startswith(f"{path}:")}


# ---------------------------------------------------------------- what began to run


EVERY_KIND = '''
    """A module."""
    from __future__ import annotations

    import asyncio, contextlib, functools

    if False:
        def dead(): pass

    def decorate(*_): return lambda function: function

    @decorate(lambda: 1,
              [x for x in "ab"])
    def decorated(): return inner_of_all()

    def twice(): return 1

    def twice(): return (lambda: 2)()

    class Base:
        def __init_subclass__(cls): pass

        def method(self): "Only a docstring."

        @property
        def shown(self): return 1

        @staticmethod
        def still(): return 1

        @classmethod
        def of(cls): return cls()

        def unused(self): pass

    class Derived(Base):
        def method(self):
            super().method()

        class Inner:
            def deep(self): pass

    def started():
        """Goes on."""
        yield 1
        yield from [2]

    def only_made(): yield 1

    async def awaited(): return 1

    async def never_awaited(): return 1

    async def flow():
        yield 1

    async def go():
        async for _ in flow():
            await awaited()

    @contextlib.contextmanager
    def around():
        yield

    def outer():
        seen = 0

        def within():
            nonlocal seen
            seen += 1

            def deeper(): pass

        def not_called(): pass

        within()
        return seen

    @functools.lru_cache(None)
    def cached(): return 1

    def default(x=decorate()): return x

    LATE = lambda: unreached()

    def unreached(): pass

    def inner_of_all(): return [outer() for _ in "ab"]

    def f():
        decorated(), twice(), Derived().method(), Base().shown, Base.still(), Derived.of(), Derived.Inner().deep()
        next(started()), only_made(), asyncio.run(go())
        never_awaited().close()
        with around(): pass
        cached(), cached()
'''
RAN = {
    *("decorate", "decorated", "twice#2", "Base.__init_subclass__", "Base.method", "Base.shown", "Base.still"),
    *("Base.of", "Derived.method", "Derived.Inner.deep", "started", "awaited", "flow", "go", "around", "outer"),
    *("outer.within", "cached", "inner_of_all", "f"),
}


def test_the_functions_whose_bodies_began_to_run_are_told_by_name(space: Space, python: str) -> None:
    space.write("scripts/a.py", EVERY_KIND)
    trace = traced(space, "scripts/a.py::f", python)
    assert functions(trace) == RAN
    assert trace.modules == {"scripts/a.py"}
    assert trace.unseen == ()


BOTH_WAYS = """
import importlib.util, json, sys, types

marks_at, way, where = sys.argv[1:4]
if way == "marked" and sys.version_info >= (3, 12):
    sys.monitoring.use_tool_id(4, "another")  # so that it is not to be had
spec = importlib.util.spec_from_file_location("marks", marks_at)
marks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(marks)

texts = {path: open(path, encoding="utf-8").read() for path in sys.argv[4:]}
executed = marks.Executed({path: len(text) for path, text in texts.items()}, print, print)
assert executed.monitors == (way == "monitored")
made = {}
for path, text in texts.items():
    name = path.rpartition("/")[2].removesuffix(".py")
    made[name] = types.ModuleType(name)
    sys.modules[name] = made[name]
    exec(executed.compiled(path, text, path), vars(made[name]))
made["a"].f()
for width in range(5, 40, 7):
    made["textwrap"].fill("some words of which lines are made, a-few-of-them with hyphens", width)
parser = made["argparse"].ArgumentParser(exit_on_error=False)
parser.add_argument("--n", type=int, default=1)
parser.add_argument("rest", nargs="*")
parser.parse_args(["--n", "2", "a", "b"]), parser.format_help()
made["configparser"].ConfigParser().read_string("[a]\\nb = %(c)s\\nc = 1\\n")
made["string"].Template("$a").substitute(a=1), made["fractions"].Fraction(1, 3) + 2
with open(where, "w") as file:
    json.dump(executed.news(), file)
"""


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_marks_find_what_monitoring_finds_in_the_same_interpreter(tmp_path: Path, version: str) -> None:
    """In real code: modules of the standard library, as if they were the project's."""
    python = interpreter(version)
    if not python:
        pytest.skip(f"there is no Python {version}")
    own = tmp_path / "a.py"
    own.write_text(textwrap.dedent(EVERY_KIND))
    folder = subprocess.run([python, "-c", "import os; print(os.path.dirname(os.__file__))"], capture_output=True)
    library = Path(folder.stdout.decode().strip())
    names = ("textwrap", "argparse", "configparser", "string", "fractions")
    files = [str(own), *(str(library / f"{name}.py") for name in names if (library / f"{name}.py").exists())]
    told = {}
    for way in ("marked", "monitored"):
        words = [python, "-c", BOTH_WAYS, marks.__file__, way, str(tmp_path / way), *files]
        done = subprocess.run(words, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        told[way] = json.loads((tmp_path / way).read_text())
    assert told["marked"] == told["monitored"]
    assert {names_of(own)[n] for n in told["marked"][str(own)]} == RAN
    assert sum(map(len, told["marked"].values())) > 100


def names_of(file: Path) -> list[str]:
    return function_names(file.read_text())


def test_functions_of_modules_packages_and_threads(space: Space, python: str) -> None:
    space.write("scripts/pack/__init__.py", "from .one import first\n")
    space.write("scripts/pack/one.py", "def first(): pass\n\ndef second(): pass\n")
    space.write("scripts/pack/two.py", "def third(): pass\n")
    space.write("scripts/never.py", "def fourth(): pass\n")
    space.write(
        "scripts/a.py",
        """
        import threading
        from pack import first

        def aside(): first()

        def f():
            thread = threading.Thread(target=aside)
            thread.start()
            thread.join()
            import pack.two
            pack.two.third()
            if not f: import never
        """,
    )
    trace = traced(space, "scripts/a.py::f", python)
    assert trace.modules == {f"scripts/{name}.py" for name in ("a", "pack/__init__", "pack/one", "pack/two")}
    assert trace.functions == {
        *("scripts/a.py:f", "scripts/a.py:aside", "scripts/pack/one.py:first", "scripts/pack/two.py:third")
    }


def test_what_a_profiler_calls_is_told_or_said_to_be_unseen(space: Space, python: str) -> None:
    """While it is called, Python monitors nothing."""
    space.write(
        "scripts/a.py",
        """
        import sys

        def watch(frame, event, arg): pass

        def f():
            sys.setprofile(watch)
            sys.setprofile(None)
        """,
    )
    trace = space.workers().call(space.job("scripts/a.py::f", python=python)).trace.trace
    told = "scripts/a.py:watch" in trace.functions
    assert (told, trace.unseen) in [(True, ()), (False, ("setprofile in scripts/a.py",))]


def test_what_forked_children_run_is_told_too(space: Space, python: str) -> None:
    space.write(
        "scripts/a.py",
        """
        import multiprocessing, os

        def late(n):
            import b
            return b.of_the_pool(n)

        def of_the_child(): of_its_child() if os.fork() == 0 else os.wait()

        def of_its_child(): pass

        def not_called(): pass

        def f():
            with multiprocessing.get_context("fork").Pool(1) as pool:
                pool.map(late, [1])
            if os.fork() == 0:
                of_the_child()
                os._exit(0)
            os.wait()
        """,
    )
    space.write("scripts/b.py", "def of_the_pool(n): return n\n")
    trace = traced(space, "scripts/a.py::f", python)
    assert functions(trace) == {"f", "late", "of_the_child", "of_its_child"}
    assert functions(trace, "scripts/b.py") == {"of_the_pool"}
    assert trace.modules == {"scripts/a.py", "scripts/b.py"}
    assert trace.unseen == ()


def test_a_trace_tells_all_since_the_fork_of_its_worker(space: Space, python: str) -> None:
    space.write("scripts/a.py", "def one(): pass\n\ndef two(): raise ValueError\n\ndef three(): pass\n")
    workers = space.workers()
    call = {
        name: workers.call(space.job(f"scripts/a.py::{name}", python=python, combination=worker))
        for name, worker in [("one", "x"), ("two", "x"), ("three", "y")]
    }
    assert functions(call["one"].trace.trace) == {"one"}
    assert functions(call["two"].trace.trace) == {"one", "two"}, "failed calls tell as well"
    assert functions(call["three"].trace.trace) == {"three"}


def test_a_request_builder_is_traced_as_any_call(space: Space) -> None:
    space.write("scripts/a.py", "def build(record):\n    return of(record)\n\ndef of(record): return record\n")
    result = space.workers().map(space.job("scripts/a.py::build"), [(1,), (2,)])
    assert functions(result.trace.trace) == {"build", "of"}


def test_a_worker_that_dies_leaves_what_it_told_by_then(space: Space) -> None:
    space.write("scripts/a.py", "import os\n\ndef one(): pass\n\ndef die(): os._exit(1)\n")
    workers = space.workers()
    workers.call(space.job("scripts/a.py::one"))
    trace = workers.call(space.job("scripts/a.py::die")).trace.trace
    assert functions(trace) == {"one"}
    assert trace.unseen == ("the worker ended in the middle",)


def test_a_script_that_does_not_parse_is_told_as_python_tells_it(space: Space, python: str) -> None:
    """Also what is found only when its tree is compiled: the file that is on disk by then is not asked."""
    script = space.write("scripts/a.py", "def f():\n    pass\n\nreturn f\n")
    job = space.job("scripts/a.py::f", python=python)
    script.write_text("\n\n\nsomething else\n")
    result = space.workers().call(job)
    assert result.error == "SyntaxError: 'return' outside function"
    assert "return f" in result.traceback
    assert "something" not in result.traceback


def test_a_file_too_deep_for_its_tree_runs_and_is_told_as_unseen(space: Space) -> None:
    """Python compiles such a text, but not such a tree."""
    if sys.version_info >= (3, 13):
        pytest.skip("this Python compiles such trees")
    space.write("scripts/a.py", f"def f(): return {'+'.join(['1'] * 2000)}\n")
    result = space.workers().call(space.job("scripts/a.py::f"))
    assert result.value == 2000, result.error
    assert result.trace.trace == Trace(
        frozenset({"scripts/a.py"}), frozenset(), ("functions of scripts/a.py that can't be followed",)
    )


def test_numbers_are_counted_as_names_are() -> None:
    """Over the modules of the standard library: as many, in the same order, with the same last names."""
    folder = Path(sysconfig.get_path("stdlib"))
    n = 0
    for file in sorted([*folder.glob("*.py"), *folder.glob("asyncio/*.py")])[::4]:
        text = file.read_text(encoding="utf-8", errors="replace")
        found = definitions(ast.parse(text))
        names = [name.partition("#")[0].rpartition(".")[2] for name in function_names(text)]
        assert [one.node.name for one in found] == names, file
        n += len(names)
    assert n > 1000


# ---------------------------------------------------------------- nobody can tell


def test_code_from_outside_is_neither_marked_nor_monitored(space: Space, python: str) -> None:
    space.write("lib/outside.py", "def one():\n    return 1\n")
    space.write(
        "scripts/a.py",
        """
        import sys, textwrap
        import outside

        def state(function):
            code = function.__code__
            plain = compile(open(code.co_filename).read(), code.co_filename, "exec", dont_inherit=True)
            same = next(c for c in walk(plain) if c.co_name == code.co_name and c.co_firstlineno == code.co_firstlineno)
            monitoring = getattr(sys, "monitoring", None)
            events = monitoring.get_local_events(4, code) if monitoring else 0
            return [code.co_code == same.co_code and code.co_consts == same.co_consts, events]

        def walk(code):
            yield code
            for const in code.co_consts:
                if hasattr(const, "co_code"):
                    yield from walk(const)

        def f():
            outside.one(), textwrap.shorten("a", 5)
            everywhere = sys.monitoring.get_events(4) if hasattr(sys, "monitoring") else 0
            return [state(outside.one), state(textwrap.shorten), everywhere, state(f)]
        """,
    )
    env = {"PYTHONPATH": str(space.root / "lib")}
    result = space.workers().call(space.job("scripts/a.py::f", python=python, env=env))
    assert result.ok, result.error
    *outside, everywhere, own = result.value  # type: ignore[misc]
    assert outside == [[True, 0], [True, 0]]
    assert everywhere == 0
    assert own in ([False, 0], [False, 1]), "what is ours is marked, or monitored"
    assert result.trace.trace.modules == {"scripts/a.py"}


AS_EVER = '''
    """The module's own."""
    from __future__ import annotations

    import dis, inspect, linecache, pickle, sys, traceback

    def plain(a: int, *, b: str = "b") -> None:
        """A docstring."""

    def undocumented(): return sys._getframe().f_lineno

    def lines():
        global X
        X = 1
        return sys._getframe().f_lineno

    def text_first():
        f"no docstring"
        return 1

    def generator(n: int):
        """Counts."""
        for i in range(n):
            yield i

    async def coroutine(): return 1

    def same(function): return function

    class Kind:
        """A class."""

        def method(self):
            @same
            def nested(): raise ValueError("deep")
            nested()

        def __eq__(self, other): return True

    def stepped():
        @same
        def one():
            pass
        for i in range(2):
            i
        return i

    def steps():
        seen = []
        def local(frame, event, arg):
            seen.append([event, frame.f_lineno - frame.f_code.co_firstlineno])
            return local
        sys.settrace(lambda frame, event, arg: local(frame, event, arg) if frame.f_code.co_name == "stepped" else None)
        try:
            stepped()
        finally:
            sys.settrace(None)
        return seen

    def described(function):
        code = function.__code__
        return {
            "doc": function.__doc__,
            "annotations": {name: str(value) for name, value in function.__annotations__.items()},
            "source": inspect.getsource(function),
            "signature": str(inspect.signature(function)),
            "names": [code.co_name, getattr(code, "co_qualname", ""), list(code.co_names), list(code.co_varnames)],
            "flags": [code.co_flags, code.co_argcount, code.co_firstlineno],
            "equal": [code == code.replace(), hash(code) == hash(code.replace())],
            "pickled": pickle.loads(pickle.dumps(function)) is function,
            "doc const": code.co_consts[:1] == (function.__doc__,) or function.__doc__ is None,
        }

    def raised():
        try:
            Kind().method()
        except ValueError:
            return [line.partition('"')[2].rpartition("/")[2] or line for line in traceback.format_exc().splitlines()]

    def report():
        shown = [plain, undocumented, text_first, generator, coroutine]
        return {
            "module": __doc__,
            "functions": [described(function) for function in shown],
            "method": inspect.getdoc(Kind) + str(inspect.getsourcelines(Kind.method)),
            "kinds": [inspect.isgeneratorfunction(generator), inspect.iscoroutinefunction(coroutine)],
            "values": [list(generator(3)), undocumented(), lines(), text_first(), Kind() == 1],
            "raised": raised()[1:],
            "steps": steps(),
        }
'''


def test_code_runs_as_if_nobody_looked(space: Space, python: str) -> None:
    script = space.write("scripts/a.py", AS_EVER)
    code = "import sys, json; sys.path.insert(0, 'scripts'); import a; print(json.dumps(a.report()))"
    plain = subprocess.run(
        [python, "-c", code], cwd=space.root, capture_output=True, text=True, check=True, env={"PATH": ""}
    )
    result = space.workers().call(space.job("scripts/a.py::report", python=python))
    assert result.ok, result.error + result.traceback
    assert script.exists()
    assert json.loads(json.dumps(result.value)) == json.loads(plain.stdout)


BY_VALUE = """
    import copyreg, pickle, types

    def reduced(code):
        return made, tuple(getattr(code, name) for name in NAMES)

    def made(*parts): return types.CodeType(*parts)

    NAMES = [
        *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_nlocals", "co_stacksize", "co_flags"),
        *("co_code", "co_consts", "co_names", "co_varnames", "co_filename", "co_name"),
        *(["co_qualname"] if hasattr(reduced.__code__, "co_qualname") else []),
        *("co_firstlineno", "co_linetable" if hasattr(reduced.__code__, "co_linetable") else "co_lnotab"),
        *(["co_exceptiontable"] if hasattr(reduced.__code__, "co_exceptiontable") else []),
        *("co_freevars", "co_cellvars"),
    ]

    def copied(function):
        copyreg.pickle(types.CodeType, reduced)
        return types.FunctionType(pickle.loads(pickle.dumps(function.__code__)), function.__globals__)
"""


def test_a_copy_of_code_that_was_pickled_by_value_marks_or_is_told_as_unseen(space: Space, python: str) -> None:
    """As `dill` does it in libraries that hand functions to processes of their own, where no source names it."""
    space.write("lib/pickler.py", BY_VALUE)
    space.write("scripts/a.py", "import pickler\n\ndef sent(): return 7\n\ndef f(): return pickler.copied(sent)()\n")
    env = {"PYTHONPATH": str(space.root / "lib")}
    result = space.workers().call(space.job("scripts/a.py::f", python=python, env=env))
    assert result.value == 7, result.error
    marked = "sent" in functions(result.trace.trace)
    assert (marked, result.trace.trace.unseen) in [(True, ()), (False, ("code that was unpickled",))]


MARSHALLED = {
    "marshal.loads(marshal.dumps(sent.__code__))": ["code that marshal wrote", "code that marshal read"],
    "marshal.loads(marshal.dumps({'code': [sent.__code__]}))['code'][0]": [
        *("code that marshal wrote", "code that marshal read"),
    ],
    "loads(dumps((sent.__code__,)))[0]": ["code that marshal wrote", "code that marshal read"],
    "marshal.loads(marshal.dumps(compile('def sent(): return 7', 'x', 'exec'))).co_consts[0]": [],
    "marshal.load(open('kept', 'rb'))": ["code that marshal read"],
}


@pytest.mark.parametrize("code", MARSHALLED)
def test_code_that_marshal_wrote_or_read_is_told_as_unseen_where_it_is_ours(
    space: Space, python: str, code: str
) -> None:
    space.write(
        "scripts/a.py",
        f"""
        import marshal, types
        from marshal import dumps, loads

        def sent(): return 7

        def f():
            code = {code}
            return types.FunctionType(code, {{}})(), dumps(sent.__code__) if "kept" in {code!r} else 0
        """,
    )
    kept = (
        f"import marshal; marshal.dump(compile('7', {str(space.root / 'scripts/a.py')!r}, 'eval'), open('kept', 'wb'))"
    )
    subprocess.run([python, "-c", kept], cwd=space.root, check=True)
    result = space.workers().call(space.job("scripts/a.py::f", python=python))
    assert result.ok, result.error
    assert result.value[0] == 7  # type: ignore[index]
    assert list(result.trace.trace.unseen[: len(MARSHALLED[code])]) == MARSHALLED[code]
    assert ("sent" in functions(result.trace.trace)) is False


def test_marshal_writes_what_it_would_without_a_trace(space: Space, python: str) -> None:
    text = "import marshal\ndef g(x=1): return [x for x in 'ab']\ndef f(): return marshal.dumps(g.__code__, 2).hex()\n"
    file = space.write("scripts/a.py", text)
    plain = f"import sys; sys.path.insert(0, {str(file.parent)!r}); import a; print(a.f())"
    told = subprocess.run([python, "-B", "-c", plain], capture_output=True, text=True, check=True).stdout
    assert space.workers().call(space.job("scripts/a.py::f", python=python)).value == told.strip()


# ---------------------------------------------------------------- code that others read


COMPILED = [
    "c = compile('', '', 'exec')\nc = c.replace(co_name='g')",
    "def f():\n    c: C = compile('', '', 'exec')\n    d = c.replace(co_name='g')\n    d.replace(co_name='h')",
    """
from types import CodeType
def f(place):
    c = compile('', '', 'exec')
    if place: c = c.replace(co_code=c.co_code, co_name=place)
    else: c = CodeType(c.co_argcount, c.co_code, c.co_consts, c.co_names, place)
    exec(c)
""",
]
NOT_COMPILED = [
    "def f(c):\n    c = compile('', '', 'exec')\n    c.replace(co_name='g')",
    "def f(some):\n    c = compile('', '', 'exec')\n    for c in some: c.replace(co_name='g')",
    "def f(g):\n    c = compile('', '', 'exec')\n    c = g.__code__\n    c.replace(co_name='g')",
    """
def f(g):
    c = compile('', '', 'exec')
    def h():
        nonlocal c
        c = g.__code__
    c.replace(co_name='g')
""",
    "c = compile('', '', 'exec')\ndef f(c): c.replace(co_name='g')",
    "def f(g):\n    c = compile('', '', 'exec')\n    d = g.__code__\n    c = d\n    c.replace(co_name='g')",
]
"""Code of a text is nobody's copy; whatever else a name may be bound to is."""
READS = {
    "import torch\n@torch.compile\ndef g(): pass": ["torch.compile"],
    "import torch as t\ng = t.jit.script(1)": ["torch.jit"],
    "from torch import compile as c": ["torch.compile"],
    "from torch.jit import script": ["torch.jit"],
    "import torch._dynamo": ["torch._dynamo"],
    "import torch\nnet.compile()": ["net.compile"],
    "import torch, re\nre.compile('x')": [],
    "x.compile()": [],
    "Args(torch_compile=True)": ["torch_compile"],
    "def f():\n    import numba": ["numba"],
    "from numba import njit": ["numba"],
    "import cloudpickle.x, dill": ["cloudpickle", "dill"],
    "import numbers\nfrom . import dill\nfrom .numba import x": [],
    "# torch.compile\n'''numba'''\nnumba = 1": [],
    "def f(:\n  numba": [],
    "import types\ntypes.CodeType(1)\ntypes.coroutine(f)": ["types.CodeType", "types.coroutine"],
    "from types import CodeType as C, coroutine\nC(1)\n@coroutine\ndef f(): yield": ["CodeType", "coroutine"],
    "import types as t\nmap(t.CodeType, parts)": ["types.CodeType"],
    "from types import CodeType\nx: CodeType | None = None\ndef f(c: CodeType) -> CodeType: pass": [],
    "from types import CodeType\nisinstance(x, (CodeType, str)) or type(x) is CodeType": [],
    "import marshal\nmarshal.loads(b'')": [],
    **{text: [] for text in COMPILED},
    **{text: ["co_name"] for text in NOT_COMPILED},
    "def f(g):\n    c = compile('', '', 'exec')\n    c.replace(co_code=g.co_code)": ["co_code"],
    "from types import CodeType as C\nc = compile('', '', 'exec')\nC(1, c.co_code)": ["CodeType"],
    "f.__code__.replace(co_name='g')": ["co_name"],
}


@pytest.mark.parametrize("text", READS)
def test_who_reads_the_code_of_functions_is_known_by_names(text: str) -> None:
    assert readers(text) == READS[text]


def test_code_that_others_read_is_left_as_it_is_and_said_to_be_unseen(space: Space, python: str) -> None:
    space.write(
        "scripts/a.py", "import b\n\ndef f():\n    b.g()\n    return [h.__code__.co_consts for h in (f, b.g)]\n"
    )
    space.write("scripts/b.py", "def fast():\n    import numba\n\ndef g(): return 'g'\n")
    result = space.workers().call(space.job("scripts/a.py::f", python=python))
    assert result.ok, "marks are not plain: " + result.error
    assert result.trace.trace == Trace(
        frozenset({"scripts/a.py", "scripts/b.py"}), frozenset(), ("numba in scripts/b.py",)
    )


TORCH = """
    import random
    from . import jit

    def compile(model=None, **options): return model

    class default_generator:
        initial_seed, manual_seed = staticmethod(lambda: 1), staticmethod(random.seed)

    manual_seed = random.seed
    cuda = random
    cuda.is_initialized = lambda: False
"""


def test_a_library_that_compiles_a_function_of_ours_finds_it_as_it_was_written(space: Space, python: str) -> None:
    """Whatever it does with it: the marks are gone, also from functions that were there before."""
    space.write("lib/torch/__init__.py", TORCH)
    space.write("lib/torch/jit.py", "def script(obj): return obj\n")
    space.write("lib/fast.py", "import torch\n\ndef fast(f): return torch.compile(f, fullgraph=True)\n")
    space.write(
        "scripts/a.py",
        """
        import fast, sys

        def plain(function):
            return all(const is None or type(const) in (int, str, bytes) for const in function.__code__.co_consts)

        class Model:
            def forward(self): return inner()

        def inner(): return "inner"

        def model(): return Model().forward()

        def f():
            def nested(): pass
            before = plain(inner)
            compiled = fast.fast(model)
            after = [plain(Model.forward), plain(inner), plain(model), plain(nested)]
            return [before, compiled(), after, hasattr(sys, "monitoring")]
        """,
    )
    env = {"PYTHONPATH": str(space.root / "lib")}
    result = space.workers().call(space.job("scripts/a.py::f", python=python, env=env, preload=("torch",)))
    before, value, after, monitored = result.value  # type: ignore[misc]
    assert (before, value, after) == (False, "inner", [monitored is False] * 4)
    assert result.trace.trace.unseen == ("torch.compile",)


def test_a_library_that_scripts_functions_of_its_own_hides_nothing(space: Space) -> None:
    space.write("lib/torch/__init__.py", TORCH)
    space.write("lib/torch/jit.py", "def script(obj): return obj\n")
    space.write("lib/fast.py", "import torch\n\n@torch.jit.script\ndef gelu(): pass\n\nscript = torch.jit.script\n")
    space.write("scripts/a.py", "def f():\n    import fast\n\ndef g():\n    import fast\n    fast.script(f)\n")
    env = {"PYTHONPATH": str(space.root / "lib")}
    workers = space.workers()
    assert workers.call(space.job("scripts/a.py::f", env=env)).trace.trace.unseen == ()
    assert workers.call(space.job("scripts/a.py::g", env=env)).trace.trace.unseen == ("torch.jit",)
