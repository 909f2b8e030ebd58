"""Workers and a manifest in this process: real ones take nine tenths of a small build's time.

They stand at the seams that the real ones have: `Workers` gets the same jobs, by value, and runs the frozen texts in
them; `MemoryManifest` gets the same rows and answers the same questions. Some cases are played with the real ones.
"""

from __future__ import annotations

import builtins
import shlex
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

from buildsys import workshop
from buildsys.digest import Digest
from buildsys.model import ActionId, ActionKey, Evidence, Part, Result, Shard
from buildsys.run.workers import Job, JobResult
from buildsys.state.files import Row as KnownRow
from buildsys.state.manifest import Manifest, short_key
from buildsys.state.rows import CheckRow, Context, FileRow, Hold, ResultRow, Row
from buildsys.state.snapshot import published_path, snapshot_path
from tests.fuzz.model import Who

Modules = Callable[[str], str | None]
"""The text of a first-party module by its name, None where there is none."""


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
        def text_of(name: str) -> str | None:
            return job.sources.get(f"{job.folder}/{name}.py")

        def work() -> None:
            module = _module(job.script, job.sources[job.script], text_of, {})
            getattr(module, job.function)(**job.arguments)

        return self._result(job.log, work)

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
            _module(words[1], script.read_text(), lambda name: _text(script.parent / f"{name}.py"), {"sys": fake_sys})

        return self._result(log, work)

    def retire(self, group: str) -> None:
        pass

    def cancel(self) -> None:
        pass

    def kill(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _result(self, log: Path, work: Callable[[], None]) -> JobResult:
        rule, shard = log.parent.name, log.stem
        self._called[Who(rule, "" if shard == rule else shard)] += 1
        try:
            work()
        except Exception as error:
            return JobResult(ok=False, error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
        return JobResult(ok=True)


def _module(path: str, text: str, text_of: Modules, loaded: dict[str, Any]) -> ModuleType:
    """Run a text as a module. Its first-party imports are run from the texts that `text_of` gives."""

    def import_module(name: str, *args: Any) -> object:
        if name not in loaded and (found := text_of(name)) is not None:
            loaded[name] = _module(f"{name}.py", found, text_of, loaded)
        return loaded[name] if name in loaded else builtins.__import__(name, *args)

    module = ModuleType(path.rpartition("/")[2].removesuffix(".py"))
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_module}
    exec(_compiled(path, text), module.__dict__)
    return module


@lru_cache(256)
def _compiled(path: str, text: str) -> CodeType:
    return compile(text, path, "exec")


def _text(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


# ---------------------------------------------------------------- the manifest


class MemoryManifest:
    """What `state.manifest.Manifest` is to a build and to those that read, without a database."""

    def __init__(self, state: Path) -> None:
        self.notices: list[str] = []
        self._state = state
        self._n_runs = 0
        self._results: dict[ActionKey, ResultRow] = {}
        self._holds: dict[tuple[str, ActionId], Hold] = {}
        self._places: dict[str, dict[str, set[Digest]]] = {}
        self._contexts: dict[Digest, tuple[Part, ...]] = {}
        self._verdicts: dict[Digest, bool] = {}
        self._files: dict[str, KnownRow] = {}
        self._is_published = False

    def begin_run(self, **said: object) -> int:
        self._n_runs += 1
        return self._n_runs

    def finish_run(self, run_id: int, outcome: str) -> None:
        pass

    def newest(self, profile: str) -> dict[ActionId, Result]:
        holds = [hold for (held_under, _), hold in self._holds.items() if held_under == profile]
        return {hold.action: self._result(hold.key, hold.action, hold.outputs) for hold in holds}

    def find(self, keys: Sequence[ActionKey]) -> dict[ActionKey, list[Result]]:
        found = [self._results[key] for key in keys if key in self._results]
        return {row.key: [self._result(row.key, row.action, row.outputs)] for row in found}

    def akin(self, rests: Sequence[Digest]) -> dict[Digest, list[Result]]:
        """None: what runs in this process is not traced."""
        return {}

    def evidence_of(self, script: str) -> list[tuple[Digest, Evidence]]:
        return []

    def short_keys(self) -> set[int]:
        return {short_key(key) for key in self._results}

    def places(self, profile: str) -> dict[str, set[Digest]]:
        others = [hold for (held_under, _), hold in self._holds.items() if held_under != profile]
        taken = {made.artifact.path for hold in others for made in hold.outputs}
        return {path: digests for path, digests in self._places.get(profile, {}).items() if path not in taken}

    def published(self) -> dict[str, set[Digest]]:
        return {path: digests for places in self._places.values() for path, digests in places.items()}

    def profiles(self) -> list[str]:
        return sorted({profile for profile, _ in self._holds})

    def context(self, context: Digest) -> tuple[Part, ...]:
        return self._contexts.get(context, ())

    def shards_made(self, context: Digest) -> set[Shard]:
        return {row.action.shard for row in self._results.values() if row.context == context}

    def inputs(self, keys: Sequence[ActionKey]) -> dict[ActionKey, tuple[Part, ...]]:
        return {
            key: tuple(Part("input", row.name, row.digest, row.path) for row in self._results[key].inputs)
            for key in keys
            if key in self._results
        }

    def known_files(self) -> dict[str, KnownRow]:
        return dict(self._files)

    def verdicts(self, keys: Sequence[Digest]) -> dict[Digest, bool]:
        return {key: self._verdicts[key] for key in keys if key in self._verdicts}

    def sql_flaw(self, sql: str) -> str:
        return ""

    def commit(self, rows: Iterable[Row]) -> None:
        for row in rows:
            match row:
                case ResultRow():
                    self._results[row.key] = row
                case Hold():
                    self._holds[row.profile, row.action] = row
                    places = self._places.setdefault(row.profile, {})
                    for made in row.outputs:
                        places.setdefault(made.artifact.path, set()).add(made.artifact.digest)
                case Context():
                    self._contexts[row.context] = row.parts
                case CheckRow(verdict=verdict):
                    self._verdicts[verdict.key] = verdict.passed
                case FileRow():
                    self._files[row.path] = (row.stat, row.digest)
        self._is_published = False

    def release(self, profile: str, actions: Iterable[ActionId]) -> None:
        for action in actions:
            del self._holds[profile, action]

    def publish(self, tables: object = ()) -> None:
        for path in (snapshot_path(self._state), published_path(self._state)):
            path.parent.mkdir(exist_ok=True)
            path.write_text(str(self._n_runs))
        self._is_published = True

    def is_published(self) -> bool:
        return self._is_published

    def close(self) -> None:
        pass

    def _result(self, key: ActionKey, action: ActionId, outputs: tuple[Any, ...]) -> Result:
        row = self._results[key]
        return Result(key, action, row.run_id, outputs, row.context)
