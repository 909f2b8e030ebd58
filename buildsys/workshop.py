"""What a build needs once there is anything to do: a run in the manifest, workers, services, the request engine.

Opened at the first action that is not up to date: a build with nothing to do starts nothing and records nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from buildsys.assess import Assessor
from buildsys.deliver import Delivery
from buildsys.ephemeral import Ephemeral
from buildsys.events import Event
from buildsys.execute import Executor
from buildsys.handover import Handover
from buildsys.launch import Launcher
from buildsys.plan.estimate import CHAT_SLOTS
from buildsys.project import Project
from buildsys.run import machine
from buildsys.run.kept import KEPT
from buildsys.run.services import Services
from buildsys.run.workers import Workers
from buildsys.state.files import Files
from buildsys.state.logs import folder_of
from buildsys.state.recorder import Recorder
from buildsys.state.scratch import Scratch
from buildsys.state.store import Store

_WORKERS_A_JOB = 2
"""So that actions of two rules that take turns do not load their models anew each time."""
_DELIVERY_THREADS = 2


@dataclass(frozen=True)
class Workshop:
    """The effects of one run.

    pool: threads that carry out actions. chat_pool: those that await replies. delivery_pool: those that check and
    publish, so that no outputs wait behind actions that have not begun.
    """

    run_id: int
    executor: Executor
    delivery: Delivery
    pool: ThreadPoolExecutor
    chat_pool: ThreadPoolExecutor
    delivery_pool: ThreadPoolExecutor
    workers: Workers
    services: Services
    launcher: Launcher

    @classmethod
    def open(
        cls,
        project: Project,
        assessor: Assessor,
        files: Files,
        store: Store,
        recorder: Recorder,
        ephemeral: Ephemeral,
        run_id: int,
        jobs: int,
        emit: Callable[[Event], None],
        failed: Callable[[BaseException], None],
    ) -> Workshop:
        """Starts no process yet. What killed builds left in staging is removed."""
        staging = project.state / "staging"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        store.sweep()
        workers = Workers(project.root, _WORKERS_A_JOB * jobs, machine.memory())
        logs = folder_of(project.state / "logs", run_id, assessor.graph.profile)
        services = Services(project.root, logs, project.state / KEPT)
        handover = Handover(project, store, ephemeral)
        launcher = Launcher(assessor.preparer, handover, services, emit)
        scratch = Scratch(project.state)
        scratch.sweep()
        delivery_pool = ThreadPoolExecutor(_DELIVERY_THREADS, thread_name_prefix="delivery")
        return cls(
            run_id=run_id,
            executor=Executor(project, run_id, assessor, files, store, handover, workers, launcher, scratch, emit),
            delivery=Delivery(
                run_id,
                assessor.graph.profile,
                files,
                ephemeral,
                store,
                recorder,
                delivery_pool,
                emit,
                failed,
                staging,
                scratch,
            ),
            pool=ThreadPoolExecutor(jobs, thread_name_prefix="action"),
            chat_pool=ThreadPoolExecutor(CHAT_SLOTS, thread_name_prefix="chat"),
            delivery_pool=delivery_pool,
            workers=workers,
            services=services,
            launcher=launcher,
        )

    def cancel(self) -> None:
        """End what runs; calls in flight return as cancelled. Takes as long as SIGTERM is given, two seconds."""
        self.executor.cancel()
        self.services.cancel()
        self.workers.cancel()
        self.delivery.cancel()

    def kill(self) -> None:
        """End all processes now."""
        self.executor.cancel()
        self.workers.kill()
        self.services.kill()

    def close(self) -> None:
        """Leave nothing behind: no thread, no process, no staged file. What still runs, after a bug, is cancelled."""
        pools = (self.pool, self.chat_pool, self.delivery_pool)
        try:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)
            self.cancel()
            for pool in pools:
                pool.shutdown(wait=True)
            self.executor.close()
            self.workers.close()
            self.services.close()
        except KeyboardInterrupt:
            self.kill()
            raise
