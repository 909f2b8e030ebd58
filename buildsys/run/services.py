"""Servers that actions need: started once, waited for until they answer, ended with the build however it ends.

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
from buildsys.run.process import COMMANDS, Child, Ended, Zygote, kill_together

END_S = 3.0
"""From SIGTERM to SIGKILL."""
FIRST_POLL_S, LAST_POLL_S = 0.01, 0.25
ANSWER_S = 2.0
LOG_LINES = 15

# Straight to loopback, whatever proxy the environment names.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class _Service:
    """One server: its process once there is one, and in time its address or why there is none.

    again: it stands in for one of the same key that ended.
    """

    def __init__(self, name: str, key: str, *, again: bool) -> None:
        self.name = name
        self.key = key
        self.again = again
        self.command = ""
        self.child: Child | None = None
        self.url: Future[str] = Future()
        self._lock = threading.Lock()

    def ended(self) -> Ended | None:
        """How its process ended; None while it runs, or where there is none."""
        with self._lock:
            return self.child.wait(0) if self.child else None

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
    """The servers of one build. Thread-safe. root: their working folder. logs: where `NAME.log` of each goes."""

    def __init__(self, root: Path, logs: Path) -> None:
        self._root = root.resolve()
        self._logs = logs.resolve()
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
    ) -> str:
        """The base URL of a server that is ready, `http://127.0.0.1:PORT`.

        Started by the first caller with this key, while the others wait; one of this name with another key is ended
        first. One that was ready and has ended is started again, once. command: a shell text with `{port}`, or a
        function of the port. ready: a URL with `{port}` that answers 200 once the server is up. Raises BuildError, for
        every caller, where the server dies or does not come up; after `cancel` with the exit code INTERRUPTED.
        """
        with self._lock:
            previous = self._services.get(name)
            same = previous is not None and previous.key == key
            again = previous is not None and same and previous.was_up() and previous.ended() is not None
            if previous and same and (not again or previous.again):
                service, mine = previous, False
            else:
                service, mine = _Service(name, key, again=again), True
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
        """Ask all servers to end, without waiting for it; no more are started."""
        with self._lock:
            self._end_by = self._end_by or time.monotonic() + END_S
            self._closed = True
        for service in self._all:
            service.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End all servers now."""
        with self._lock:
            self._closed = True
            zygotes = [self._zygote] if self._zygote else []
        kill_together(zygotes, [service.child for service in self._all if service.child])

    def close(self) -> None:
        """End all servers: SIGTERM to their process groups, SIGKILL three seconds later."""
        self.cancel()
        for service in self._all:
            service.url.exception()
        _end(self._all, self._end_by)
        if self._zygote:
            self._zygote.close()

    def _launch(
        self,
        service: _Service,
        command: Callable[[int], str] | str,
        env: Mapping[str, str],
        ready: str,
        timeout_s: float,
    ) -> str:
        port = _free_port()
        service.command = command(port) if callable(command) else command.replace("{port}", str(port))
        log = self._log(service)
        log.parent.mkdir(parents=True, exist_ok=True)
        if not service.again:
            log.write_bytes(b"")
        service.child = self._execute(service.command, env, log)
        try:
            self._wait_until_ready(service, ready.replace("{port}", str(port)), timeout_s)
        except BaseException:
            _end([service], self._end_by or time.monotonic() + END_S)
            raise
        return f"http://127.0.0.1:{port}"

    def _log(self, service: _Service) -> Path:
        return self._logs / f"{service.name}.log"

    def _execute(self, command: str, env: Mapping[str, str], log: Path) -> Child:
        with self._lock:
            if self._closed:
                raise _cancelled()
            if self._zygote is None:
                self._zygote = Zygote(sys.executable, os.environ, self._root, COMMANDS)
            return self._zygote.execute(["/bin/sh", "-c", command], env, self._root, log)

    def _wait_until_ready(self, service: _Service, url: str, timeout_s: float) -> None:
        assert service.child
        deadline = time.monotonic() + timeout_s
        pause_s = FIRST_POLL_S
        while True:
            answer = _ask(url)
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
                    excerpt=self._last_lines(service),
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
            excerpt=self._last_lines(service),
            hint=hint,
            exit_code=FAILED,
        )

    def _facts(self, service: _Service) -> list[tuple[str, str]]:
        return [("command", service.command), ("log", os.path.relpath(self._log(service), self._root))]

    def _last_lines(self, service: _Service) -> str:
        return "\n".join(self._log(service).read_text(errors="replace").splitlines()[-LOG_LINES:])


def _cancelled() -> BuildError:
    return BuildError("cancelled", exit_code=INTERRUPTED)


def _end(services: Sequence[_Service], by: float) -> None:
    """Ask all for their end, and kill those that are still there by then."""
    for service in services:
        service.signal(signal.SIGTERM)
    for service in services:
        service.end(by)


def _ask(url: str) -> str:
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
