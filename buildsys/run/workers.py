"""Warm workers: calls of users' functions in other processes, and shell commands; slots, reuse, cancellation.

Knows nothing of rules, keys or files of the project: a job carries all it needs by value. Two jobs of one interpreter,
environment and combination may share a worker, one after the other; what a worker holds (a loaded model behind
`functools.cache`) is then as fresh as the combination says.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import dumps
from typing import Final

from buildsys.errors import BuildError
from buildsys.run.frozen import Home
from buildsys.run.landlock import Limits, refused_in
from buildsys.run.machine import VISIBLE
from buildsys.run.messages import receive, send
from buildsys.run.process import COMMANDS, WORKERS, Child, Zygote, kill_together, last_lines, readable
from buildsys.run.traced import A_COMMAND, UNTOLD, Heard, Traced

CANCEL_S = 2.0
"""From SIGTERM to SIGKILL."""
END_S = 2.0
"""What an idle worker gets to leave by itself, exit handlers included."""
CANCELLED = "cancelled"
_SEARCHED_LINES: Final = 50
"""Of a log, for what a sandbox refused."""
_FIXED = {"PYTHONHASHSEED": "0"}
"""Added to every environment, else sets of strings come in another order in every build."""


@dataclass(frozen=True)
class Share:
    """What a process may take of the machine. devices: GPUs, none for those that the environment names; memory: bytes.

    Of what is idle, nothing keeps what another one was given.
    """

    devices: tuple[str, ...] = ()
    memory: int = 0

    @property
    def env(self) -> dict[str, str]:
        return {VISIBLE: ",".join(self.devices)} if self.devices else {}


@dataclass(frozen=True)
class Sandbox:
    """All that a process may read and write; see `landlock`. temporary: a folder of its own for temporary files."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    temporary: str

    @property
    def limits(self) -> Limits:
        return self.read, (*self.write, self.temporary)

    @property
    def env(self) -> dict[str, str]:
        return {"TMPDIR": self.temporary}


@dataclass(frozen=True)
class Job:
    """One action's call, everything by value.

    python: path of the interpreter. combination: what a worker may be shared by; the caller digests into it the code,
    params, environment and shared inputs. group: what workers are told to leave by (`Workers.retire`). preload: imports
    from outside, "module" or "module:name", made once for all workers; one that fails is skipped, so that the action's
    own import tells. sources: first-party modules, path -> text; nothing else is first-party. homes: where those of
    them lie that are installed as editable. folder: the script's folder, project-relative; `sys.path[0]`.
    arguments: plain values, paths and lists of paths. env: the whole environment. sandbox: what it may read and write;
    such a call has a process of its own, in which nothing was imported before.
    log: where all output goes, appended; also that of native code and of children.
    """

    python: str
    combination: str
    preload: tuple[str, ...]
    sources: Mapping[str, str]
    folder: str
    script: str
    function: str
    arguments: Mapping[str, object]
    env: Mapping[str, str]
    log: Path
    group: str = ""
    share: Share = Share()
    homes: tuple[Home, ...] = ()
    sandbox: Sandbox | None = None


@dataclass(frozen=True)
class JobResult:
    """How a call or a command went.

    value: what the function returned, None where that was not plain (JSON-like, bytes, dates).
    error: one line, "" where ok. traceback: frames of the sources only, as they were frozen.
    exit: where a process ended before its time, "signal 9 (...)", "exit code 3", "cancelled"; else "".
    cpu_s: user and system, waited children included. max_rss: bytes, of the largest process.
    trace: what the worker did since its fork, this call included, failed or not. refused: the path, absolute, that a
    sandbox refused where that is why it failed, "" where nothing tells of one.
    """

    ok: bool
    value: object = None
    error: str = ""
    traceback: str = ""
    exit: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    max_rss: int = 0
    trace: Traced = UNTOLD
    refused: str = ""


class _Cancelled(Exception):
    pass


class _Worker:
    """The builder's end of one worker process."""

    def __init__(self, key: object, job: Job, child: Child, conn: socket.socket, start: bytes, heard: Heard) -> None:
        self.key = key
        self.group = job.group
        self.share = job.share
        self.alone = job.sandbox is not None
        self.child = child
        self._conn = conn
        self._heard = heard
        self._cpu_s = 0.0
        self._left = 0.0
        with contextlib.suppress(OSError):  # One that has died by now is told apart when it is asked.
            send(conn, start)

    def ask(self, call: bytes) -> JobResult:
        """Call and wait for the reply, or for the worker's end. One that dies after its reply has still replied."""
        started = time.perf_counter()
        try:
            send(self._conn, call)
            if self._conn.fileno() in readable(self._conn.fileno(), self.child.fileno()):
                reply, told = receive(self._conn), receive(self._conn)
                self._cpu_s += reply["cpu_s"]
                self._heard.add(told)
                return JobResult(**reply, wall_s=time.perf_counter() - started, trace=self._heard.traced)
        except (EOFError, OSError):
            pass
        ended = self.child.end(END_S)
        how = ended.exit or "exit code 0"
        return JobResult(
            ok=False,
            error=f"the worker ended in the middle: {how}",
            exit=how,
            wall_s=time.perf_counter() - started,
            cpu_s=max(0.0, ended.cpu_s - self._cpu_s),
            max_rss=ended.max_rss,
            trace=self._heard.broken_off,
        )

    @property
    def ready(self) -> bool:
        """An idle one says nothing: what can be read is its end, even where its zygote has not told yet."""
        return not readable(self._conn.fileno(), self.child.fileno(), timeout_ms=0)

    @property
    def alive(self) -> bool:
        return self.child.wait(0) is None

    def leave(self) -> None:
        """Tell an idle worker to end, without waiting for it."""
        self._left = time.monotonic()
        self._conn.close()

    @property
    def overdue(self) -> bool:
        return time.monotonic() > self._left + END_S


class Workers:
    """At most `most` worker processes below `root`, idle ones included, warm ones first.

    memory: bytes that the shares of all processes may come to, idle ones included. Thread-safe; every method blocks.
    """

    def __init__(self, root: Path, most: int, memory: int = sys.maxsize) -> None:
        self._root = root.resolve()
        self._most = most
        self._memory = memory
        self._occupied = 0  # Bytes of the shares of all calls in flight that are not waiting for a worker's slot.
        self._zygotes: dict[object, Zygote] = {}
        self._changed = threading.Condition()
        self._idle: list[_Worker] = []  # Least recently used first.
        self._leaving: list[_Worker] = []
        self._n = 0  # Workers alive or starting, idle ones included, leaving ones not.
        self._calls = 0  # In flight, waiting ones included.
        self._running: set[Child] = set()
        self._cancelled = False

    def call(self, job: Job) -> JobResult:
        """`function(**arguments)` in a worker of the job's combination.

        Raises BuildError where the interpreter can't start workers; whatever the code does is in the result.
        """
        return self._in_flight(lambda: self._ask(job, _call(job)))

    def map(self, job: Job, items: Sequence[tuple[object, ...]]) -> JobResult:
        """As `call`, with value = [function(*item, **arguments) for item in items]; fails where one is not plain."""
        return self._in_flight(lambda: self._ask(job, {**_call(job), "items": list(items)}))

    def shell(
        self,
        command: str,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        share: Share = Share(),
        sandbox: Sandbox | None = None,
    ) -> JobResult:
        """Run a command with /bin/sh in a process group of its own; what it leaves running ends with it."""
        argv = ["/bin/sh", "-c", command]
        own = {**env, **share.env, **(sandbox.env if sandbox else {})}
        return self._in_flight(lambda: self._execute(argv, own, cwd, log, share, sandbox))

    def retire(self, group: str) -> None:
        """Let the idle workers of a group leave: nothing more comes for them, and they may hold a model each."""
        with self._changed:
            for worker in [worker for worker in self._idle if worker.group == group]:
                self._dismiss(worker)
                self._n -= 1
            self._changed.notify_all()

    def cancel(self) -> None:
        """Stop everything that runs, for good: SIGTERM to the process groups, SIGKILL two seconds later.

        Returns once all calls are over; these, and all later ones, have exit "cancelled".
        """
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()
            for child in self._running:
                child.signal(signal.SIGTERM)
            if self._changed.wait_for(lambda: not self._calls, CANCEL_S):
                return
        self.kill()
        with self._changed:
            self._changed.wait_for(lambda: not self._calls)

    def kill(self) -> None:
        """End all processes now, idle ones too, without waiting for the calls to return."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()
            others = [worker.child for worker in [*self._idle, *self._leaving]]
            zygotes, children = list(self._zygotes.values()), [*self._running, *others]
        kill_together(zygotes, children)

    def close(self) -> None:
        """Cancel what runs, let idle workers leave, end the zygotes."""
        self.cancel()
        with self._changed:
            for worker in self._idle:
                worker.leave()
            leaving = [*self._leaving, *self._idle]
            self._leaving, self._idle = [], []
            zygotes = list(self._zygotes.values())
            self._zygotes.clear()
        deadline = time.monotonic() + END_S
        for worker in leaving:
            worker.child.end(max(0.0, deadline - time.monotonic()))
        for zygote in zygotes:
            zygote.close()

    def _in_flight(self, work: Callable[[], JobResult]) -> JobResult:
        """Do one call; what goes wrong after a cancellation is its consequence."""
        with self._changed:
            self._calls += 1
        try:
            result = work()
        except (_Cancelled, BuildError):
            if not self._cancelled:
                raise
            result = JobResult(ok=False)
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()
        if self._cancelled and not result.ok:
            return replace(result, error=CANCELLED, exit=CANCELLED, traceback="")
        return result

    def _ask(self, job: Job, call: Mapping[str, object]) -> JobResult:
        data = dumps(call, protocol=4)
        worker = self._acquire(job)
        try:
            with self._runs(worker.child):
                return worker.ask(data)
        except BaseException:
            # Interrupted half-way: its next message would answer this call.
            worker.child.end(0)
            raise
        finally:
            self._release(worker)

    def _execute(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        share: Share,
        sandbox: Sandbox | None,
    ) -> JobResult:
        started = time.perf_counter()
        self._make_room(share)
        try:
            if self._cancelled:
                raise _Cancelled
            zygote = self._zygote(sys.executable, os.environ, flags=COMMANDS)
            child = zygote.execute(argv, env, cwd, log, sandbox.limits if sandbox else None)
            with self._runs(child):
                try:
                    child.wait()
                finally:
                    ended = child.end(0)
        finally:
            with self._changed:
                self._occupied -= share.memory
        return JobResult(
            ok=not ended.exit,
            error=ended.exit and f"the command ended with {ended.exit}",
            exit=ended.exit,
            wall_s=time.perf_counter() - started,
            cpu_s=ended.cpu_s,
            max_rss=ended.max_rss,
            trace=A_COMMAND,
            refused=_refused(sandbox, log, cwd) if sandbox and ended.exit else "",
        )

    @contextlib.contextmanager
    def _runs(self, child: Child) -> Iterator[None]:
        with self._changed:
            self._running.add(child)
            if self._cancelled:
                child.signal(signal.SIGTERM)
        try:
            yield
        finally:
            with self._changed:
                self._running.discard(child)

    def _acquire(self, job: Job) -> _Worker:
        """An idle worker of the job's combination, else a new one, maybe in place of the one that idles longest."""
        env = _environment(job)
        key = object() if job.sandbox else (job.python, job.combination, frozenset(env.items()))
        if worker := self._claim(key):
            return worker
        try:
            self._make_room(job.share)
            return self._start(job, env, key)
        except BaseException:
            with self._changed:
                self._n -= 1
                self._occupied -= job.share.memory
                self._changed.notify_all()
            raise

    def _claim(self, key: object) -> _Worker | None:
        """Wait for a slot: one with a warm worker in it, else an empty one."""
        with self._changed:
            while not self._cancelled:
                self._bury()
                for worker in reversed(self._idle):
                    if worker.key == key:
                        self._idle.remove(worker)
                        self._occupied += worker.share.memory
                        return worker
                if self._n < self._most:
                    self._n += 1
                    return None
                if self._idle:
                    # Nobody waits for its end, which may take as long as a new fork; `_bury` sees to it.
                    self._dismiss(self._idle[0])
                    return None
                self._changed.wait()
        raise _Cancelled

    def _make_room(self, share: Share) -> None:
        """Occupy a share, once those have ended that are idle and keep some of it: a device, or memory that is scarce.

        An idle worker may hold a model; it leaves only where there would be too little without it.
        """
        with self._changed:
            self._occupied += share.memory
            idle = [*self._leaving, *self._idle]
            ending = [worker for worker in idle if not set(share.devices).isdisjoint(worker.share.devices)]
            held = sum(worker.share.memory for worker in idle if worker not in ending)
            for worker in idle:
                if (
                    share.memory
                    and worker.share.memory
                    and worker not in ending
                    and self._occupied + held > self._memory
                ):
                    ending.append(worker)
                    held -= worker.share.memory
            for worker in ending:
                if worker in self._idle:
                    self._dismiss(worker)
                    self._n -= 1
                self._leaving.remove(worker)
            self._changed.notify_all()
        for worker in ending:
            worker.child.end(END_S)

    def _dismiss(self, worker: _Worker) -> None:
        self._idle.remove(worker)
        self._leaving.append(worker)
        worker.leave()

    def _bury(self) -> None:
        """Forget workers that have died while idle, and kill those that should have left long ago."""
        for worker in [worker for worker in self._idle if not worker.ready]:
            self._dismiss(worker)
            self._n -= 1
        for worker in self._leaving:
            if worker.overdue:
                worker.child.signal(signal.SIGKILL)
        self._leaving = [worker for worker in self._leaving if worker.alive]

    def _release(self, worker: _Worker) -> None:
        with self._changed:
            self._occupied -= worker.share.memory
            self._idle.append(worker)
            if worker.alone:
                self._dismiss(worker)
                self._n -= 1
            self._bury()
            self._changed.notify_all()

    def _start(self, job: Job, env: Mapping[str, str], key: object) -> _Worker:
        # Libraries read the environment when they are imported, so a zygote has that of its actions.
        # CUDA reads it when it is first used, never in a zygote: one serves all GPUs.
        # Threads that imports start would not be in the sandbox, so its zygote imports nothing.
        zygote = self._zygote(job.python, {**_FIXED, **job.env}, imports=not job.sandbox)
        child, conn = zygote.fork(() if job.sandbox else job.preload)
        start = {
            "root": str(self._root),
            "folder": job.folder,
            "sources": dict(job.sources),
            "homes": job.homes,
            "env": env,
        }
        return _Worker(key, job, child, conn, dumps(start, protocol=4), Heard(job.sources))

    def _zygote(
        self, python: str, env: Mapping[str, str], flags: Sequence[str] = WORKERS, *, imports: bool = True
    ) -> Zygote:
        key = (python, tuple(flags), frozenset(env.items()), imports)
        with self._changed:
            if self._cancelled:
                raise _Cancelled
            zygote = self._zygotes.get(key)
            if zygote and not zygote.alive:
                zygote.close()
                zygote = None
            if not zygote:
                zygote = self._zygotes[key] = Zygote(python, env, self._root, flags)
            return zygote


def _call(job: Job) -> dict[str, object]:
    """The message of one call. Paths travel as text: their pickled form differs between versions of Python."""
    arguments = dict(job.arguments)
    paths = []
    for name, value in job.arguments.items():
        if isinstance(value, Path):
            arguments[name] = str(value)
        elif isinstance(value, (list, tuple)) and value and all(isinstance(path, Path) for path in value):
            arguments[name] = [str(path) for path in value]
        else:
            continue
        paths.append(name)
    return {
        "script": job.script,
        "function": job.function,
        "arguments": arguments,
        "paths": paths,
        "log": str(job.log.absolute()),
        "sandbox": job.sandbox.limits if job.sandbox else None,
    }


def _environment(job: Job) -> dict[str, str]:
    return {**_FIXED, **job.env, **job.share.env, **(job.sandbox.env if job.sandbox else {})}


def _refused(sandbox: Sandbox, log: Path, folder: Path) -> str:
    """The path that a command says was refused."""
    return refused_in(last_lines(log, _SEARCHED_LINES), sandbox.limits, str(folder))
