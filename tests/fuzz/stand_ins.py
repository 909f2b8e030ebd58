"""Workers and a manifest in this process: real ones take nine tenths of a small build's time.

They stand at the seams that the real ones have: `Workers` gets the same jobs, by value, runs the frozen texts in them,
and tells what ran and what was asked for; `memory` is the manifest. Some cases are played with the real ones.
"""

from __future__ import annotations

import ast
import builtins
import os
import shlex
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FrameType, ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

from buildsys import workshop
from buildsys.code.functions import functions
from buildsys.model import Trace
from buildsys.run.traced import UNTOLD, Touch, Touched, Traced
from buildsys.run.workers import Job, JobResult
from buildsys.state.manifest import Manifest
from buildsys.state.stats import Stat
from tests.fuzz.memory import MemoryManifest
from tests.fuzz.model import Who

Modules = Callable[[str], tuple[str, str] | None]
"""Path and text of a first-party module by its name, None where there is none."""


@contextmanager
def in_process(*, workers: bool, manifest: bool) -> Iterator[Counter[Who]]:
    """With `workers`, builds call functions in this process, and count the calls; with `manifest`, theirs is in memory.

    The working folder must be the project.
    """
    called: Counter[Who] = Counter()
    memory: dict[Path, MemoryManifest] = {}

    def opened(state: Path) -> MemoryManifest:
        return memory.setdefault(state, MemoryManifest(state))

    with ExitStack() as stack:
        if workers:
            stack.enter_context(mock.patch.object(workshop, "Workers", partial(InlineWorkers, called)))
        if manifest:
            stack.enter_context(mock.patch.multiple(Manifest, open=opened, read=opened))
        yield called


# ---------------------------------------------------------------- workers


class InlineWorkers:
    """What `run.workers.Workers` is to a build, without processes."""

    def __init__(self, called: Counter[Who], *of_processes: object) -> None:
        self._called = called

    def call(self, job: Job) -> JobResult:
        listener = _Listener(job.sources)

        def text_of(name: str) -> tuple[str, str] | None:
            path = f"{job.folder}/{name}.py"
            return (path, job.sources[path]) if path in job.sources else None

        def work() -> None:
            with listener.listening():
                loaded = {"os": listener.fake_os}
                module = _module(job.script, job.sources[job.script], text_of, loaded, {"open": listener.open})
                getattr(module, job.function)(**job.arguments)

        return self._result(job.log, work, lambda: listener.traced)

    def shell(self, command: str, env: Mapping[str, str], cwd: Path, log: Path, *share: object) -> JobResult:
        """Knows the two kinds of commands that there are: `cat ... > FILE`, and a script of ours."""
        words = shlex.split(command)

        def work() -> None:
            if words[0] == "cat":
                *texts, mark, target = words[1:]
                assert mark == ">"
                Path(target).write_text("".join(Path(path).read_text() for path in texts))
                return
            script = Path(words[1])
            fake_sys = SimpleNamespace(argv=words[1:])
            _module(words[1], script.read_text(), partial(_beside, script), {"sys": fake_sys}, {})

        return self._result(log, work)

    def retire(self, group: str) -> None:
        pass

    def cancel(self) -> None:
        pass

    def kill(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _result(self, log: Path, work: Callable[[], None], told: Callable[[], Traced] = lambda: UNTOLD) -> JobResult:
        rule, shard = log.parent.name, log.stem
        self._called[Who(rule, "" if shard == rule else shard)] += 1
        try:
            work()
        except Exception as error:
            return JobResult(ok=False, error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
        return JobResult(ok=True, trace=told())


class _Listener:
    """What one call runs, and what it asks for by `open`, `os.listdir` and `os.path.exists`: no other ways are heard.

    Of what it reads by other ways all is declared.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._modules: set[str] = set()
        self._functions: set[str] = set()
        self._touches: dict[tuple[str, str], Touch] = {}
        path = SimpleNamespace(exists=partial(self._asked, "exists", os.path.exists))
        self.fake_os = SimpleNamespace(path=path, listdir=partial(self._asked, "folder", os.listdir))
        self.open = partial(self._asked, "file", open)

    @contextmanager
    def listening(self) -> Iterator[None]:
        sys.setprofile(self._heard)
        try:
            yield
        finally:
            sys.setprofile(None)

    @property
    def traced(self) -> Traced:
        trace = Trace(frozenset(self._modules), frozenset(self._functions))
        return Traced(trace, tuple(one for _, one in sorted(self._touches.items())))

    def _heard(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename in self._texts:
            self._modules.add(code.co_filename)
            if name := _names(self._texts[code.co_filename]).get((code.co_firstlineno, code.co_name)):
                self._functions.add(f"{code.co_filename}:{name}")

    def _asked(self, kind: Touched, ask: Callable[[str], Any], path: str) -> Any:
        if (path, kind) not in self._touches:
            self._touches[path, kind] = Touch(kind, path, Stat.of(os.stat(path)) if os.path.exists(path) else None)
        return ask(path)


@lru_cache(256)
def _names(text: str) -> dict[tuple[int, str], str]:
    """The functions of a text by the line in which they begin, and their own name."""
    return {(node.lineno, node.name): name for name, node in functions(ast.parse(text))}


def _module(path: str, text: str, text_of: Modules, loaded: dict[str, Any], builtin: Mapping[str, Any]) -> ModuleType:
    """Run a text as a module. Its first-party imports are run from the texts that `text_of` gives.

    loaded: modules by name, instead of others of this name. builtin: the same of builtins.
    """

    def import_module(name: str, *args: Any) -> object:
        if name not in loaded and (found := text_of(name)) is not None:
            loaded[name] = _module(*found, text_of, loaded, builtin)
        return loaded[name] if name in loaded else builtins.__import__(name, *args)

    module = ModuleType(path.rpartition("/")[2].removesuffix(".py"))
    module.__dict__["__builtins__"] = {**vars(builtins), **builtin, "__import__": import_module}
    exec(_compiled(path, text), module.__dict__)
    return module


@lru_cache(256)
def _compiled(path: str, text: str) -> CodeType:
    return compile(text, path, "exec")


def _beside(script: Path, name: str) -> tuple[str, str] | None:
    path = script.parent / f"{name}.py"
    return (str(path), path.read_text()) if path.is_file() else None
