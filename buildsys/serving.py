"""Services by a user's word, outside of a build: how they stand, and how they are brought up and down.

Joins the survey, which says what a build would start a server with, the launcher, which starts it, and the records of
those that stay. Has no opinion on what a key holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from typing import Final, Literal

from buildsys.assess import Served
from buildsys.errors import FAILED, NO_SUCH_TARGET, BuildError, nearest
from buildsys.handover import Handover
from buildsys.launch import Launcher
from buildsys.model import Service
from buildsys.project import Project
from buildsys.readers import output_tables
from buildsys.run.kept import KEPT, Kept, all_kept
from buildsys.run.services import Services, answer_of
from buildsys.spec.graph import FromRule, Graph, Wanted
from buildsys.state.files import Files
from buildsys.state.lock import hold
from buildsys.state.manifest import Manifest
from buildsys.state.rows import FileRow
from buildsys.state.store import Store
from buildsys.survey import Surveyor, surveyed

_MEANWHILE_S: Final = 0.2
_DECLARE: Final = "declare it: [service.NAME] with shell and ready"

State = Literal["ready", "not ready", "ended", "down"]
KeyState = Literal["current", "stale", "unknown", "undeclared", ""]


@dataclass(frozen=True)
class Standing:
    """How a service stands.

    state: "ready" where it answers; "ended" where it went without being asked to. since: seconds since 1970. key:
    whether a build would use the server that runs, "unknown" where that rests on outputs that are not up to date; ""
    where none runs. keep: what the rule file says. ended: how it ended, "" for exit code 0.
    """

    name: str
    state: State
    url: str = ""
    pid: int = 0
    since: float = 0.0
    key: KeyState = ""
    keep: bool = False
    log: str = ""
    ended: str = ""


def standings(project: Project, names: Sequence[str] = ()) -> list[Standing]:
    """How the services stand, all of them without names; those that run though no rule file declares them as well."""
    graph = project.graph()
    kept = {one.name: one for one in all_kept(project.state / KEPT) if one.name in graph.services or not one.gone}
    chosen = _chosen(names, [*graph.services, *(name for name in kept if name not in graph.services)])
    up = [graph.services[name] for name in chosen if name in graph.services and name in kept and kept[name].up]
    keys = _instances(project, graph, up)
    return [_standing(name, graph.services.get(name), kept.get(name), keys.get(name)) for name in chosen]


def _standing(name: str, service: Service | None, kept: Kept | None, instance: str | None) -> Standing:
    """instance: the key that a build would look for, None where it is not known."""
    keep = service is not None and service.keep
    if kept is None:
        return Standing(name, "down", keep=keep)
    if not kept.up:
        return Standing(name, "ended", keep=keep, log=kept.log, ended=_how(kept))
    key: KeyState = "undeclared"
    answers = False
    if service:
        key = "unknown" if instance is None else "current" if instance == kept.key else "stale"
        answers = answer_of(service.ready.replace("{port}", str(kept.port))) == "200"
    state: State = "ready" if answers else "not ready"
    return Standing(name, state, kept.url, kept.server.pid, kept.since, key, keep, kept.log)


def _how(kept: Kept) -> str:
    return "killed with the process that stood by it" if kept.ended is None else kept.ended


def _instances(project: Project, graph: Graph, services: Sequence[Service]) -> dict[str, str]:
    """The keys that a build would look for, as far as they are known."""
    found: dict[str, str] = {}
    if services:
        try:
            with _surveyed(project, graph, services) as surveyor:
                for service in services:
                    found |= _instance(surveyor, service)
        except BuildError:  # It is told by what builds; here it says that no key is known.
            return found
    return found


def _instance(surveyor: Surveyor, service: Service) -> dict[str, str]:
    try:
        return {service.name: surveyor.served(service).instance}
    except BuildError:
        return {}


def bring_up(
    project: Project, names: Sequence[str], command: str, meanwhile: Callable[[], None]
) -> dict[str, Kept | BuildError]:
    """Start services, all of them without names, and wait until they answer: how each stands then.

    They stay until they are brought down, and builds use them. One that is up already stays as it is, where its key is
    what a build would look for. meanwhile: called a few times a second. A KeyboardInterrupt leaves those that are
    loading. Raises BuildError before anything starts; exit 4 where a build would first make what they read.
    """
    graph = project.graph()
    services = [graph.services[name] for name in _chosen(names, list(graph.services))]
    if not services:
        raise BuildError("no rule file declares a service", hint=_DECLARE)
    with hold(project.state / "lock", command):
        with project.excerpts(), _surveyed(project, graph, services) as surveyor:
            served = [surveyor.served(service) for service in services]
        _remember(project, graph, surveyor.files)
        failed = _start(project, surveyor, served, meanwhile)
    kept = {one.name: one for one in all_kept(project.state / KEPT)}
    return {service.name: failed.get(service.name) or kept[service.name] for service in services}


def _start(
    project: Project, surveyor: Surveyor, served: Sequence[Served], meanwhile: Callable[[], None]
) -> dict[str, BuildError]:
    """Start them side by side; what went wrong, by name."""
    failed: dict[str, BuildError] = {}
    servers = Services(project.root, project.state / "logs", project.state / KEPT)
    handover = Handover(project, Store(project.state), surveyor.ephemeral)
    launcher = Launcher(surveyor.assessor.preparer, handover, servers, lambda event: None)
    with closing(servers), ThreadPoolExecutor(len(served)) as pool:
        starting = {
            one.service.name: pool.submit(launcher.launch, replace(one, service=replace(one.service, keep=True)))
            for one in served
        }
        try:
            while wait(starting.values(), timeout=_MEANWHILE_S).not_done:
                meanwhile()
        except BaseException:
            servers.cancel()
            raise
        for name, done in starting.items():
            if error := _error_of(done):
                failed[name] = error
    return failed


def _error_of(done: Future[str]) -> BuildError | None:
    error = done.exception()
    if error is None or isinstance(error, BuildError):
        return error
    raise error


def bring_down(project: Project, names: Sequence[str]) -> list[Kept]:
    """End servers that stay, all of them without names, with all that they started: those that ran.

    Reads no rule file for those. Raises BuildError where one does not end, or nobody knows its name.
    """
    kept = {one.name: one for one in all_kept(project.state / KEPT) if not one.gone}
    if unknown := [name for name in names if name not in kept]:
        _chosen(unknown, list(project.graph().services))
    ending = [kept[name] for name in dict.fromkeys(names or kept) if name in kept]
    with ThreadPoolExecutor(max(1, len(ending))) as pool:
        ended = list(pool.map(Kept.end, ending))
    for one, is_gone in zip(ending, ended, strict=True):
        if not is_gone:
            raise BuildError(
                f'service "{one.name}" does not end',
                facts=[("process", str(one.server.pid)), ("command", one.command)],
                hint="it has been sent SIGKILL; ask `buildsys service` again in a while",
                exit_code=FAILED,
            )
    return ending


def _chosen(names: Sequence[str], valid: Sequence[str]) -> list[str]:
    """The names without repetition, or all that are valid. Raises BuildError, exit 3, for one that is not."""
    for name in names:
        if name not in valid:
            hint = nearest(name, valid) or _DECLARE
            raise BuildError(f'there is no service "{name}"', hint=hint, exit_code=NO_SUCH_TARGET)
    return list(dict.fromkeys(names or valid))


def _surveyed(project: Project, graph: Graph, services: Sequence[Service]) -> AbstractContextManager[Surveyor]:
    makers = [source.rule for source in graph.service_sources(*services) if isinstance(source, FromRule)]
    return surveyed(project, graph, graph.wanted(makers) if makers else Wanted({}), makers)


def _remember(project: Project, graph: Graph, files: Files) -> None:
    """A model of hundreds of gigabytes is read once; whoever calls holds the lock."""
    if learned := [FileRow(*row) for row in files.learned()]:
        with closing(Manifest.open(project.state)) as manifest:
            manifest.commit(learned)
            manifest.publish(output_tables(graph))
