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

AT_START = frozenset(sys.modules)  # What Python itself has loaded can't be shadowed by a script's neighbour.

if __name__ == "__main__":
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]  # This folder is no place to import from.
    # But for the files of this program, in a package that no import of users' code can mean.
    __package__ = "buildsys worker"
    sys.modules[__package__] = type(sys)(__package__)
    sys.modules[__package__].__path__ = [__file__.rpartition("/")[0]]

import atexit
import contextlib
import faulthandler
import functools
import gc
import importlib
import inspect
import io
import os
import random
import resource
import select
import signal
import socket
import time
import traceback
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import landlock
from .frozen import FrozenModules
from .hooks import Hooks
from .imports import AfterImport
from .messages import ENDED, PID, Message, encoded, error_line, receive, receive_request, send
from .places import foreign_folders
from .tracing import Tracer, most_definitions

GRACE_S = 1.0
SEED = 0
TORCH_SEED = 67280421310721
"""What torch starts with, so that an action that is the first to import it draws as the later ones do."""
_OURS = os.path.dirname(__file__)
_PR_SET_CHILD_SUBREAPER = 36
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024

# ---------------------------------------------------------------- the zygote


class Zygote:
    """Forks, and reports how each child ended. Ends them all once the builder's end of `control` is closed."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.children: dict[int, int] = {}  # pid: the pipe that tells how it ended
        self.tried: set[str] = set()  # Modules that were imported, or can't be.
        self.hooks: Hooks | None = None
        self.foreign: list[str] = []
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
                    self.answer(*receive_request(self.control))
        self.end_all()

    def answer(self, request: Message, descriptors: list[int]) -> None:
        status, *conns = descriptors
        if conns:
            hooks = self.overhear()
            self.preload(request["preload"])
            conn = socket.socket(fileno=conns[0])
            self.fork(status, lambda: _serve_calls(conn, hooks, self.foreign))
            conn.close()
        else:
            self.fork(status, lambda: execute(request))

    def overhear(self) -> Hooks:
        """What workers listen through, put in place before anything is imported for them."""
        if self.hooks is None:
            self.foreign = foreign_folders()
            self.hooks = Hooks()
            self.hooks.install()
        return self.hooks

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
        if request.get("sandbox"):
            landlock.restrict(request["sandbox"])
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


# ---------------------------------------------------------------- the worker


class Misfit(Exception):
    """The script has no such function, or it takes other arguments: told without a traceback."""


class Worker:
    """Serves the calls of one combination, one after the other."""

    def __init__(self, start: Message, hooks: Hooks, foreign: Sequence[str]) -> None:
        self.root: str = start["root"]
        self.env: dict[str, str] = start["env"]
        self.frozen = FrozenModules(self.root, start["folder"], start["sources"], AT_START, start["homes"])
        most = {path: most_definitions(text) for path, text in self.frozen.files.items()}
        self.tracer = Tracer(hooks, self.root, foreign, most, self.frozen.paths)
        for path, text in start["sources"].items():
            self.tracer.look_at(path, text)
        self.frozen.install(self.tracer.compiled)
        # numpy imports its generator when it is first asked for.
        after_import = {"numpy.random": lambda module: module.seed(SEED), **self.tracer.after_import}
        AfterImport(self.tracer.importing, after_import).install(1)
        self.signatures: dict[tuple[str, str], inspect.Signature | None] = {}
        self.imported: set[str] = set()
        self.stdout, self.stderr = sys.stdout, sys.stderr
        for stream in (self.stdout, self.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        faulthandler.enable(2)
        _seed()

    def perform(self, call: Message) -> tuple[bytes, bytes]:
        """Do one call in a fresh state; the reply and what is new in the trace, encoded."""
        before = _cpu_s()
        reply: Message
        try:
            with self.tracer.quiet():
                self.reset(call)
                if call["sandbox"]:
                    landlock.restrict(call["sandbox"])
            reply = {"ok": True, "value": self.value(call)}
            data = encoded(reply | _usage(before), strict="items" in call)
        except BaseException as error:
            with self.tracer.quiet():
                reply = self.failure(error)
                if call["sandbox"]:
                    reply["refused"] = landlock.refused(error, call["sandbox"], os.getcwd())
            data = encoded(reply | _usage(before), strict=True)
        self.flush()
        with self.tracer.quiet():
            return data, encoded(self.tracer.news(), strict=True)

    def reset(self, call: Message) -> None:
        self.tracer.fresh()
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
                if hasattr(error, "add_note"):  # from Python 3.11 on
                    error.add_note(f"in item {n}")
                raise
        return values

    def function(self, script: str, name: str) -> Callable[..., object]:
        module = importlib.import_module(self.frozen.name_of(os.path.join(self.root, script)))
        if script not in self.imported:
            self.imported.add(script)
            self.keep_environment()
        function = getattr(module, name, None)
        if function is None:
            raise Misfit(f"{script} has no function {name}")
        if not callable(function):
            raise Misfit(f"{name} in {script} is no function but of type {type(function).__name__}")
        return function  # type: ignore[no-any-return]

    def keep_environment(self) -> None:
        """Variables that are set when a script is imported are there for every call, not for the first alone."""
        with self.tracer.quiet():
            self.env = dict(os.environ)
            self.tracer.touches.keep_set()

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
        _keep_frames(report, lambda file: os.path.dirname(file) != _OURS and not file.startswith("<frozen importlib"))
        print("".join(report.format()), end="", file=self.stderr)
        _keep_frames(report, lambda file: file in self.frozen.files)
        return {"ok": False, "error": error_line(error), "traceback": "".join(report.format())}

    def flush(self) -> None:
        for stream in {sys.stdout, sys.stderr, self.stdout, self.stderr}:
            with contextlib.suppress(Exception):
                stream.flush()
        if native := _native():
            native.fflush(None)


def _serve_calls(conn: socket.socket, hooks: Hooks, foreign: Sequence[str]) -> int:
    """Serve until the builder closes the connection."""
    # A child that user code forks must not hold the connection open after the worker has died.
    os.register_at_fork(after_in_child=conn.close)
    # A module of its own, so that nothing (pickle, multiprocessing) takes this program for the user's.
    sys.modules["__main__"] = types.ModuleType("__main__")
    # What imports registered in the zygote (torch: 134 finalizers, 40 ms) is not for each worker to take apart.
    for finalizer in getattr(weakref.finalize, "_registry", ()):
        finalizer.atexit = False
    with contextlib.suppress(EOFError, ConnectionError):
        worker = Worker(receive(conn), hooks, foreign)
        while True:
            reply, trace = worker.perform(receive(conn))
            send(conn, reply)
            send(conn, trace)
    # Not the whole of Python's end, which waits for threads that an action left.
    atexit._run_exitfuncs()
    return 0


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
