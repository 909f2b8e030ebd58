"""Servers that actions need: started once, waited for until they answer, ended with the build however it ends.

A kept one stays (`kept`, `keeper`), and is taken over by the next build that needs a server of its key.

Knows nothing of rules or of what a server is asked; the key that says when one must be started anew comes from outside.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from buildsys.errors import FAILED, INTERRUPTED, BuildError
from buildsys.run import keeper
from buildsys.run.kept import END_S, Kept, KeptServer, find, log_path
from buildsys.run.process import COMMANDS, Child, Ended, Zygote, kill_together, last_lines

FIRST_POLL_S, LAST_POLL_S = 0.01, 0.25
ANSWER_S = 2.0
LOG_LINES = 15

# Straight to loopback, whatever proxy the environment names.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class _Service:
    """One server: its process once there is one, and in time its address or why there is none.

    keep: it stays when the build ends. again: it stands in for one of the same key that ended.
    """

    def __init__(self, name: str, key: str, *, keep: bool, again: bool) -> None:
        self.name = name
        self.key = key
        self.keep = keep
        self.again = again
        self.command = ""
        self.child: Child | KeptServer | None = None
        self.url: Future[str] = Future()
        self._lock = threading.Lock()

    def ended(self) -> Ended | None:
        """How its process ended; None while it runs, or where there is none."""
        with self._lock:
            return self.child.wait(0) if self.child else None

    @property
    def stays(self) -> bool:
        """It is up to the user to end it."""
        return isinstance(self.child, KeptServer)

    def was_up(self) -> bool:
        return self.url.done() and self.url.exception() is None

    def signal(self, number: int) -> None:
        if self.child:
            self.child.signal(number)

    def end(self, by: float) -> None:
        """Wait until then for its end, and kill it where it takes longer."""
        while self.child and not self.ended():
            if time.monotonic() > by:
                self.child.signal(signal.SIGKILL)
            time.sleep(FIRST_POLL_S)


class Services:
    """The servers of one build. Thread-safe.

    root: their working folder. logs: where `NAME.log` of each goes. kept: the folder of those that stay: records, logs.
    """

    def __init__(self, root: Path, logs: Path, kept: Path) -> None:
        self._root = root.resolve()
        self._logs = logs.resolve()
        self._kept = kept.resolve()
        self._lock = threading.Lock()
        self._services: dict[str, _Service] = {}
        self._all: list[_Service] = []
        self._zygote: Zygote | None = None
        self._closed = False
        self._end_by = 0.0

    def start(
        self,
        name: str,
        key: str,
        command: Callable[[int], str] | str,
        env: Mapping[str, str],
        ready: str,
        timeout_s: float,
        *,
        keep: bool = False,
    ) -> str:
        """The base URL of a server that is ready, `http://127.0.0.1:PORT`.

        Started by the first caller with this key, while the others wait; one of this name with another key is ended
        first. One that was ready and has ended is started again, once. command: a shell text with `{port}`, or a
        function of the port. ready: a URL with `{port}` that answers 200 once the server is up. keep: it stays when
        these services are closed. One that was left running is used, if it has this key, and stays in any case, as
        does what takes its place. Raises BuildError, for every caller, where the server dies or does not come up;
        after `cancel` with the exit code INTERRUPTED.
        """
        with self._lock:
            previous = self._services.get(name)
            same = previous is not None and previous.key == key
            again = previous is not None and same and previous.was_up() and previous.ended() is not None
            if previous and same and (not again or previous.again):
                service, mine = previous, False
            else:
                service, mine = _Service(name, key, keep=keep or bool(previous and previous.keep), again=again), True
                self._services[name] = service
                self._all.append(service)
        if mine:
            try:
                if previous:
                    previous.url.exception()
                    _end([previous], time.monotonic() + END_S)
                service.url.set_result(self._launch(service, command, env, ready, timeout_s))
            except BaseException as error:
                service.url.set_exception(error)
        url = service.url.result()
        if gone := self.gone(url):
            raise gone
        return url

    def gone(self, url: str) -> BuildError | None:
        """Why the server that had this address has ended; None while it runs."""
        for service in self._all:
            if service.was_up() and service.url.result() == url and (ended := service.ended()):
                problem = f'service "{service.name}" ended while it was needed'
                return self._error(problem, service, ended, "its log says why")
        return None

    def cancel(self) -> None:
        """Ask all servers to end, but for those that stay, without waiting for it; no more are started."""
        with self._lock:
            self._end_by = self._end_by or time.monotonic() + END_S
            self._closed = True
        for service in self._passing():
            service.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End all servers now, but for those that stay."""
        with self._lock:
            self._closed = True
            zygotes = [self._zygote] if self._zygote else []
        kill_together(zygotes, [child for service in self._all if isinstance(child := service.child, Child)])

    def close(self) -> None:
        """End all servers, but for those that stay: SIGTERM to their process groups, SIGKILL three seconds later."""
        self.cancel()
        for service in self._all:
            service.url.exception()
        _end(self._passing(), self._end_by)
        if self._zygote:
            self._zygote.close()

    def _passing(self) -> list[_Service]:
        return [service for service in self._all if not service.stays]

    def _launch(
        self,
        service: _Service,
        command: Callable[[int], str] | str,
        env: Mapping[str, str],
        ready: str,
        timeout_s: float,
    ) -> str:
        if (kept := find(self._kept, service.name)) and not kept.gone:
            service.keep = True
            if self._takes_over(service, kept, ready, timeout_s):
                return kept.url
            self._end_kept(kept)
        port = _free_port()
        service.command = command(port) if callable(command) else command.replace("{port}", str(port))
        log = self._log(service)
        log.parent.mkdir(parents=True, exist_ok=True)
        if not service.again:
            log.write_bytes(b"")
        service.child = self._execute(service, port, env)
        if isinstance(service.child, KeptServer):
            port = service.child.port
        try:
            self._wait_until_ready(service, ready.replace("{port}", str(port)), timeout_s)
        except BaseException:
            if not (service.stays and self._closed):
                _end([service], self._end_by or time.monotonic() + END_S)
            raise
        return f"http://127.0.0.1:{port}"

    def _takes_over(self, service: _Service, kept: Kept, ready: str, timeout_s: float) -> bool:
        """Whether a server that was left running serves; one that was still loading gets the rest of its time."""
        if kept.key != service.key or not kept.up:
            return False
        service.command = kept.command
        service.child = KeptServer(self._kept, kept)
        left_s = max(kept.since + timeout_s - time.time(), ANSWER_S)
        try:
            self._wait_until_ready(service, ready.replace("{port}", str(kept.port)), left_s)
        except BuildError as error:
            if error.exit_code == INTERRUPTED:
                raise
            return False
        return True

    def _end_kept(self, kept: Kept) -> None:
        if not kept.end():
            raise BuildError(
                f'the server of service "{kept.name}" that was left running does not end',
                facts=[("process", str(kept.server.pid)), ("command", kept.command), ("log", kept.log)],
                hint="it has been sent SIGKILL; the next build starts another one when it is gone",
                exit_code=FAILED,
            )

    def _log(self, service: _Service) -> Path:
        return log_path(self._kept, service.name) if service.keep else self._logs / f"{service.name}.log"

    def _execute(self, service: _Service, port: int, env: Mapping[str, str]) -> Child | KeptServer:
        argv = ["/bin/sh", "-c", service.command]
        with self._lock:
            if self._closed:
                raise _cancelled()
            if service.keep:
                name, key = service.name, service.key
                kept = keeper.start(name, key, port, service.command, argv, env, self._root, self._kept)
                return KeptServer(self._kept, kept)
            if self._zygote is None:
                self._zygote = Zygote(sys.executable, os.environ, self._root, COMMANDS)
            return self._zygote.execute(argv, env, self._root, self._log(service))

    def _wait_until_ready(self, service: _Service, url: str, timeout_s: float) -> None:
        assert service.child
        deadline = time.monotonic() + timeout_s
        pause_s = FIRST_POLL_S
        while True:
            answer = answer_of(url)
            # In this order: were our server dead, then another one would have answered on its port.
            ended = service.child.wait(0 if answer == "200" else pause_s)
            if self._closed:
                raise _cancelled()
            if ended:
                hint = "its log says why; the command must stay in the foreground and listen on the port it is given"
                raise self._error(f'service "{service.name}" ended before it was ready', service, ended, hint)
            if answer == "200":
                return
            if time.monotonic() > deadline:
                raise BuildError(
                    f'service "{service.name}" was not ready after {timeout_s:g} s',
                    facts=[("asked", url), ("answer", answer), *self._facts(service)],
                    excerpt=last_lines(self._log(service), LOG_LINES),
                    hint="if it only needs longer, raise `ready_timeout_s`; else its log says why",
                    exit_code=FAILED,
                )
            pause_s = min(LAST_POLL_S, pause_s * 1.5)

    def _error(self, problem: str, service: _Service, ended: Ended, hint: str) -> BuildError:
        if self._closed:
            return _cancelled()
        return BuildError(
            problem,
            facts=[("ended with", ended.exit or "exit code 0"), *self._facts(service)],
            excerpt=last_lines(self._log(service), LOG_LINES),
            hint=hint,
            exit_code=FAILED,
        )

    def _facts(self, service: _Service) -> list[tuple[str, str]]:
        return [("command", service.command), ("log", os.path.relpath(self._log(service), self._root))]


def _cancelled() -> BuildError:
    return BuildError("cancelled", exit_code=INTERRUPTED)


def _end(services: Sequence[_Service], by: float) -> None:
    """Ask all for their end, and kill those that are still there by then."""
    for service in services:
        service.signal(signal.SIGTERM)
    for service in services:
        service.end(by)


def answer_of(url: str) -> str:
    """What a GET of `url` brings: "200", another status, or why there is none."""
    try:
        with _open(url, timeout=ANSWER_S) as answer:
            return str(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return f"{error.code} {error.reason}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
