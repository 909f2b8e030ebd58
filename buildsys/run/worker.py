"""The program inside an action's interpreter: a zygote that forks, and the workers and commands that it forks.

Run by path (`python worker.py FD`) in any Python from 3.9 on, so it imports nothing but the standard library and
knows nothing of rules, keys or the manifest. The zygote imports heavy modules once, has one thread of its own, forks on
request and watches over what it forked: each child leads a process group, and all groups end when the builder is gone,
however it went, with all that has left them. A worker serves calls of one combination of code and environment, from
frozen sources.

Messages are length-prefixed pickles. A request to the zygote carries the descriptors of its child: a pipe, on which the
zygote writes the child's pid and later how it ended, and for a worker the socket on which it is called.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]  # This folder is no place to import from.

AT_START = frozenset(sys.modules)  # What Python itself has loaded can't be shadowed by a script's neighbour.

import atexit
import contextlib
import datetime
import faulthandler
import functools
import gc
import importlib
import importlib.util
import inspect
import io
import linecache
import os
import pickle
import random
import resource
import select
import signal
import socket
import struct
import time
import traceback
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn

PID = struct.Struct("<i")
ENDED = struct.Struct("<idq")
"""How a child ended: wait status, CPU seconds with its waited children, peak resident bytes."""
GRACE_S = 1.0
SEED = 0
TORCH_SEED = 67280421310721
"""What torch starts with, so that an action that is the first to import it draws as the later ones do."""
_SIZE = struct.Struct("<Q")
_JOINED = 1 << 16
_PR_SET_CHILD_SUBREAPER = 36
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_PLAIN: dict[type, Callable[[Any], object]] = {kind: kind for kind in (dict, list, tuple, set, bytes, int, float)}
_PLAIN[str] = str.__str__  # An enumeration's own `__str__` would tell its name.
_TIMES = (datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone)

Message = dict[str, Any]


# ---------------------------------------------------------------- messages


def send(conn: socket.socket, data: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send one frame; descriptors travel with its first bytes."""
    head = _SIZE.pack(len(data))
    if descriptors:
        socket.send_fds(conn, [head], descriptors)
    elif len(data) < _JOINED:
        data = head + data
    else:
        conn.sendall(head)
    conn.sendall(data)


def receive(conn: socket.socket) -> Message:
    """The next message; EOFError where the other side is gone."""
    return dict(pickle.loads(_exactly(conn, _SIZE.unpack(_exactly(conn, _SIZE.size))[0])))


def _receive_request(conn: socket.socket) -> tuple[Message, list[int]]:
    head, descriptors, _, _ = socket.recv_fds(conn, _SIZE.size, 2)
    if not head:
        raise EOFError
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return dict(pickle.loads(_exactly(conn, _SIZE.unpack(head)[0]))), descriptors


def _exactly(conn: socket.socket, n: int) -> bytearray:
    data = bytearray(n)
    view = memoryview(data)
    while view:
        got = conn.recv_into(view)
        if not got:
            raise EOFError
        view = view[got:]
    return data


class _PlainPickler(pickle.Pickler):
    """Lets plain values through, subclasses of them as their base; nothing whose unpickling imports users' code."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) in _TIMES or any(value is known for known in (*_PLAIN, *_TIMES)):
            return NotImplemented
        for kind, plain in _PLAIN.items():
            if isinstance(value, kind):
                return kind, (plain(value),)
        raise pickle.PicklingError(type(value).__name__)


# ---------------------------------------------------------------- the zygote


class Zygote:
    """Forks, and reports how each child ended. Ends them all once the builder's end of `control` is closed."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.children: dict[int, int] = {}  # pid: the pipe that tells how it ended
        self.tried: set[str] = set()  # Modules that were imported, or can't be.
        self.wake, self.waker = os.pipe()
        for descriptor in (self.wake, self.waker):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.siginterrupt(signal.SIGCHLD, False)  # Imports of native code go on undisturbed.
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                ready = [descriptor for descriptor, _ in poll.poll()]
                if self.wake in ready:
                    os.read(self.wake, 4096)
                    self.reap()
                if self.control.fileno() in ready:
                    self.answer(*_receive_request(self.control))
        self.end_all()

    def answer(self, request: Message, descriptors: list[int]) -> None:
        status, *conns = descriptors
        if conns:
            self.preload(request["preload"])
            conn = socket.socket(fileno=conns[0])
            self.fork(status, lambda: _serve_calls(conn))
            conn.close()
        else:
            self.fork(status, lambda: execute(request))

    def preload(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.tried:
                self.tried.add(name)
                # One that can't be imported raises where the action imports it, with a traceback that means something.
                with contextlib.suppress(Exception, SystemExit):
                    module, _, attribute = name.partition(":")
                    found = importlib.import_module(module)
                    # Packages that import lazily (transformers) do so when the name is asked for.
                    if attribute and not hasattr(found, attribute):
                        importlib.import_module(f"{module}.{attribute}")

    def fork(self, status: int, body: Callable[[], int]) -> None:
        gc.freeze()
        with warnings.catch_warnings():
            # Threads that libraries start at import (OpenBLAS, Arrow) are restarted by their own fork hooks.
            warnings.simplefilter("ignore")
            pid = os.fork()
        if not pid:
            self.become(body, status)
        # Here and in the child: whoever comes first, nobody can signal a group that doesn't exist yet.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self.children[pid] = status
        with contextlib.suppress(OSError):
            os.write(status, PID.pack(pid))

    def become(self, body: Callable[[], int], status: int) -> NoReturn:
        """In the child: leave everything that is the zygote's, do `body` and end with its exit code."""
        code = 1
        try:
            with contextlib.suppress(OSError):
                os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.control.close()
            for descriptor in (self.wake, self.waker, status, *self.children.values()):
                os.close(descriptor)
            gc.enable()
            code = body()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def reap(self) -> None:
        """Report every child that ended, and end what is left of its group."""
        while self.children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            report = self.children.pop(pid, None)
            if report is None:
                continue  # A module that was imported here has left it, or an action has.
            signal_group(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.write(report, ENDED.pack(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT))
            os.close(report)

    def end_all(self) -> None:
        groups = list(self.children)
        for pid in groups:
            signal_group(pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while self.children and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.01)
        for pid in groups:
            signal_group(pid, signal.SIGKILL)
        end_orphans()


def adopt_orphans() -> None:
    """Become the parent of all that loses its own below here, in whatever group or session, where Linux lets us."""
    with contextlib.suppress(AttributeError):
        _native().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> None:
    """Kill all that is left below this process, where Linux tells."""
    with contextlib.suppress(OSError):
        while orphans := " ".join(one.read_text() for one in Path("/proc/self/task").glob("*/children")).split():
            for pid in orphans:
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


def signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def execute(request: Message) -> int:
    # Python ignores these two; a command expects them as a shell would leave them.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _log_to(request["log"])
    try:
        os.chdir(request["cwd"])
        os.execve(request["argv"][0], request["argv"], request["env"])
    except OSError as error:
        print(error, file=sys.stderr)
        return 127


def _log_to(path: str) -> None:
    """Output of this process, of native code in it and of its children goes to the end of `path`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        log = os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        log = os.open(path, flags, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


# ---------------------------------------------------------------- frozen sources


class FrozenModules:
    """Finds first-party modules in `sources` (project-relative path: text), whatever the disk says by now.

    Stands first in `sys.meta_path`. folder: the script's folder, project-relative; modules are named from there.
    """

    def __init__(self, root: str, folder: str, sources: Mapping[str, str]) -> None:
        self.folder = os.path.join(root, folder) if folder else root
        self.files = {os.path.join(root, path): text for path, text in sources.items()}
        self.modules: dict[str, str] = {}
        for path in self.files:
            name = self._importable(path)
            # A package wins over a module of the same name, as in Python.
            if name and (name not in self.modules or path.endswith("__init__.py")):
                self.modules[name] = path
        self.namespaces = {parent for name in self.modules for parent in _parents(name)} - self.modules.keys()

    def name_of(self, script: str) -> str:
        """The module name of a script: what it is called, or a private one where that means another module, or none."""
        stem = os.path.basename(script).removesuffix(".py")
        if self.modules.get(stem) == script and getattr(sys.modules.get(stem), "__file__", script) == script:
            return stem
        name = f"script {stem.replace('.', '_')}"
        self.modules[name] = script
        return name

    def _importable(self, path: str) -> str:
        """The name, dotted from the folder, by which an import finds a file; "" where none does."""
        parts = os.path.relpath(path, self.folder).removesuffix(".py").split(os.sep)
        if parts[-1] == "__init__":
            parts.pop()
        name = ".".join(parts)
        return "" if any("." in part for part in parts) or name in sys.builtin_module_names else name

    def _freeze_loading(self) -> None:
        """Have Python's own loader run the given texts, whoever finds the files; data beside them is read from disk."""
        read = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> types.CodeType | None:
            path = os.path.abspath(loader.path)
            return compile(self.files[path], loader.path, "exec") if path in self.files else read(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]

    def install(self) -> None:
        for name in [*self.modules, *self.namespaces]:
            if name not in AT_START:
                sys.modules.pop(name, None)
        for path, text in self.files.items():
            # No modification time: `linecache` then never asks the disk.
            lines = io.StringIO(text if text.endswith("\n") else text + "\n", newline=None).readlines()
            linecache.cache[path] = (len(text), None, lines, path)
        sys.path.insert(0, self.folder)
        sys.meta_path.insert(0, self)
        self._freeze_loading()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if file := self.modules.get(name):
            return importlib.util.spec_from_file_location(name, file)
        if name in sys.builtin_module_names:
            return None
        place = os.path.join(self.folder, name.replace(".", os.sep))
        if os.path.isfile(place + ".py") or os.path.isfile(os.path.join(place, "__init__.py")):
            raise ImportError(
                f"first-party module {name} was imported in a way that can't be seen from the source "
                "(importlib, exec ...); import it plainly",
                name=name,
            )
        if name in self.namespaces:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [place]
            return spec
        return None


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


# ---------------------------------------------------------------- the worker


class SeededNumpy:
    """Seeds numpy's global generator as it comes into being: numpy imports it when it is first asked for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "numpy.random" else None
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_seed(module: types.ModuleType) -> None:
                execute(module)
                module.seed(SEED)

            spec.loader.exec_module = execute_and_seed  # type: ignore[method-assign]
        return spec


class Misfit(Exception):
    """The script has no such function, or it takes other arguments: told without a traceback."""


class Worker:
    """Serves the calls of one combination, one after the other."""

    def __init__(self, start: Message) -> None:
        self.root: str = start["root"]
        self.env: dict[str, str] = start["env"]
        self.frozen = FrozenModules(self.root, start["folder"], start["sources"])
        self.frozen.install()
        sys.meta_path.insert(1, SeededNumpy())
        self.signatures: dict[tuple[str, str], inspect.Signature | None] = {}
        self.stdout, self.stderr = sys.stdout, sys.stderr
        for stream in (self.stdout, self.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        faulthandler.enable(2)
        _seed()

    def perform(self, call: Message) -> bytes:
        """Do one call in a fresh state; the reply, encoded."""
        before = _cpu_s()
        reply: Message
        try:
            self.reset(call)
            reply = {"ok": True, "value": self.value(call)}
            data = _encoded(reply | _usage(before), strict="items" in call)
        except BaseException as error:
            reply = self.failure(error)
            data = _encoded(reply | _usage(before), strict=True)
        self.flush()
        return data

    def reset(self, call: Message) -> None:
        _log_to(call["log"])
        sys.stdout, sys.stderr = self.stdout, self.stderr
        sys.argv = [os.path.join(self.root, call["script"])]
        os.chdir(self.root)
        if dict(os.environ) != self.env:
            os.environ.clear()
            os.environ.update(self.env)
        _forget_peak()

    def value(self, call: Message) -> object:
        function = self.function(call["script"], call["function"])
        arguments: dict[str, Any] = call["arguments"]
        for name in call["paths"]:
            value = arguments[name]
            arguments[name] = Path(value) if isinstance(value, str) else [Path(path) for path in value]
        items: list[tuple[object, ...]] | None = call.get("items")
        if items != []:
            self.fit(call, function, items[0] if items else ())
        _seed()  # Not before: importing may have drawn numbers, and only the first call of a worker imports.
        if items is None:
            return function(**arguments)
        values = []
        for n, item in enumerate(items):
            try:
                values.append(function(*item, **arguments))
            except Exception as error:
                error.add_note(f"in item {n}")
                raise
        return values

    def function(self, script: str, name: str) -> Callable[..., object]:
        module = importlib.import_module(self.frozen.name_of(os.path.join(self.root, script)))
        function = getattr(module, name, None)
        if function is None:
            raise Misfit(f"{script} has no function {name}")
        if not callable(function):
            raise Misfit(f"{name} in {script} is no function but of type {type(function).__name__}")
        return function  # type: ignore[no-any-return]

    def fit(self, call: Message, function: Callable[..., object], item: tuple[object, ...]) -> None:
        """Raise Misfit where the call doesn't bind: told apart here from a TypeError that the code itself raises."""
        name = call["script"], call["function"]
        if name not in self.signatures:
            self.signatures[name] = None
            with contextlib.suppress(ValueError):  # Some native callables don't tell.
                self.signatures[name] = inspect.signature(function)
        signature = self.signatures[name]
        if signature is None:
            return
        try:
            signature.bind(*item, **call["arguments"])
        except TypeError as error:
            header = f"{call['function']}({', '.join(signature.parameters)}) in {call['script']}"
            raise Misfit(f"{header} doesn't fit its rule: {error}") from None

    def failure(self, error: BaseException) -> Message:
        """What went wrong in one line and with the frames of the sources; all frames but ours go to the log."""
        if isinstance(error, Misfit):
            print(error, file=self.stderr)
            return {"ok": False, "error": str(error), "traceback": ""}
        report = traceback.TracebackException.from_exception(error)
        lines = "".join(report.format_exception_only()).splitlines()
        line = next((line for line in lines if line[:1].strip()), type(error).__name__)
        if isinstance(error, SystemExit):
            line = f"SystemExit: the code called sys.exit({error.code!r})"
        _keep_frames(report, lambda file: file != __file__ and not file.startswith("<frozen importlib"))
        print("".join(report.format()), end="", file=self.stderr)
        _keep_frames(report, lambda file: file in self.frozen.files)
        return {"ok": False, "error": line, "traceback": "".join(report.format())}

    def flush(self) -> None:
        for stream in {sys.stdout, sys.stderr, self.stdout, self.stderr}:
            with contextlib.suppress(Exception):
                stream.flush()
        if native := _native():
            native.fflush(None)


def _serve_calls(conn: socket.socket) -> int:
    """Serve until the builder closes the connection."""
    # A child that user code forks must not hold the connection open after the worker has died.
    os.register_at_fork(after_in_child=conn.close)
    # A module of its own, so that nothing (pickle, multiprocessing) takes this program for the user's.
    sys.modules["__main__"] = types.ModuleType("__main__")
    # What imports registered in the zygote (torch: 134 finalizers, 40 ms) is not for each worker to take apart.
    for finalizer in getattr(weakref.finalize, "_registry", ()):
        finalizer.atexit = False
    with contextlib.suppress(EOFError, ConnectionError):
        worker = Worker(receive(conn))
        while True:
            send(conn, worker.perform(receive(conn)))
    # Not the whole of Python's end, which waits for threads that an action left.
    atexit._run_exitfuncs()
    return 0


def _encoded(reply: Message, *, strict: bool) -> bytes:
    """The reply as bytes. Only plain values travel: the builder must not import what users' values are made of.

    strict: raises TypeError for another value; else it is left out.
    """
    buffer = io.BytesIO()
    try:
        _PlainPickler(buffer, protocol=4).dump(reply)
    except pickle.PicklingError as error:
        if strict:
            raise TypeError(f"returned a value that is not plain, of type {error}") from None
        return _encoded(reply | {"value": None}, strict=True)
    return buffer.getvalue()


def _keep_frames(report: traceback.TracebackException, keep: Callable[[str], bool]) -> None:
    """Drop the other frames, here and in the exceptions that led to this one."""
    report.stack = traceback.StackSummary.from_list([frame for frame in report.stack if keep(frame.filename)])
    for other in (report.__cause__, report.__context__, *(getattr(report, "exceptions", None) or ())):
        if other:
            _keep_frames(other, keep)


def _cpu_s() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _usage(before: float) -> Message:
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"cpu_s": _cpu_s() - before, "max_rss": max(peaks) * _RSS_UNIT}


def _forget_peak() -> None:
    """Let the peak of resident memory start anew, where the system can (Linux)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _seed() -> None:
    random.seed(SEED)
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed(SEED)
    if torch := sys.modules.get("torch"):
        generator = torch.default_generator
        if generator.initial_seed() != TORCH_SEED or torch.cuda.is_initialized():
            torch.manual_seed(TORCH_SEED)
        else:
            generator.manual_seed(TORCH_SEED)  # All there is without a device, in a hundredth of the time.


@functools.cache
def _native() -> Any:
    """The C library that native code in this process prints through; None where Python has no ctypes."""
    try:
        import ctypes

        return ctypes.CDLL(None)
    except (ImportError, OSError):
        return None


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    # Asking CUDA whether there is a device spoils it for forked children; asking NVML doesn't. Workers get their own
    # environment, without this.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    gc.disable()
    adopt_orphans()  # Loads the C library too, once for all workers.
    Zygote(control).serve()
    os._exit(0)  # Python's own end would take apart all that was imported.


if __name__ == "__main__":
    main()
