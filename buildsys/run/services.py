"""Servers that actions need: started once, waited for until they answer, ended with the build however it ends.

Knows nothing of rules or of what a server is asked; the key that says when one must be started anew comes from outside.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

from buildsys.errors import FAILED, INTERRUPTED, BuildError
from buildsys.run.process import COMMANDS, Child, Zygote, end_together

END_S = 3.0
"""From SIGTERM to SIGKILL."""
FIRST_POLL_S, LAST_POLL_S = 0.01, 0.25
ANSWER_S = 2.0
LOG_LINES = 15

# Straight to loopback, whatever proxy the environment names.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class _Service:
    """One server: its key, its process once there is one, and in time its address or why there is none."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.child: Child | None = None
        self.url: Future[str] = Future()

    def end(self) -> None:
        if self.child:
            end_together([self.child], END_S)


class Services:
    """The servers of one build. Thread-safe. root: their working folder. logs: where `NAME.log` of each goes."""

    def __init__(self, root: Path, logs: Path) -> None:
        self._root = root.resolve()
        self._logs = logs.resolve()
        self._lock = threading.Lock()
        self._services: dict[str, _Service] = {}
        self._zygote: Zygote | None = None
        self._closed = False

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
        first. command: a shell text with `{port}`, or a function of the port. ready: a URL with `{port}` that answers
        200 once the server is up. Raises BuildError, for every caller, where the server dies or does not come up.
        """
        with self._lock:
            previous = self._services.get(name)
            if previous and previous.key == key:
                service, mine = previous, False
            else:
                service, mine = _Service(key), True
                self._services[name] = service
        if mine:
            try:
                if previous:
                    previous.url.exception()
                    previous.end()
                service.url.set_result(self._launch(name, service, command, env, ready, timeout_s))
            except BaseException as error:
                service.url.set_exception(error)
        return service.url.result()

    def close(self) -> None:
        """End all servers: SIGTERM to their process groups, SIGKILL three seconds later."""
        with self._lock:
            self._closed = True
            services = list(self._services.values())
        for service in services:
            service.url.exception()
        end_together([service.child for service in services if service.child], END_S)
        if self._zygote:
            self._zygote.close()

    def _launch(
        self,
        name: str,
        service: _Service,
        command: Callable[[int], str] | str,
        env: Mapping[str, str],
        ready: str,
        timeout_s: float,
    ) -> str:
        port = _free_port()
        text = command(port) if callable(command) else command.replace("{port}", str(port))
        log = self._logs / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        service.child = child = self._execute(text, env, log)
        try:
            self._wait_until_ready(name, child, ready.replace("{port}", str(port)), timeout_s)
        except BuildError as error:
            service.end()
            error.facts += (("command", text), ("log", os.path.relpath(log, self._root)))
            error.excerpt = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
            raise
        return f"http://127.0.0.1:{port}"

    def _execute(self, command: str, env: Mapping[str, str], log: Path) -> Child:
        with self._lock:
            if self._closed:
                raise BuildError("cancelled", exit_code=INTERRUPTED)
            if self._zygote is None:
                self._zygote = Zygote(sys.executable, os.environ, self._root, COMMANDS)
            return self._zygote.execute(["/bin/sh", "-c", command], env, self._root, log)

    def _wait_until_ready(self, name: str, child: Child, url: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        pause_s = FIRST_POLL_S
        while True:
            answer = _ask(url)
            # In this order: were our server dead, then another one would have answered on its port.
            if ended := child.wait(0 if answer == "200" else pause_s):
                raise BuildError(
                    f'service "{name}" ended before it was ready',
                    facts=[("ended with", ended.exit or "exit code 0")],
                    hint="its log says why; the command must stay in the foreground and listen on the port it is given",
                    exit_code=FAILED,
                )
            if answer == "200":
                return
            if self._closed:
                raise BuildError("cancelled", exit_code=INTERRUPTED)
            if time.monotonic() > deadline:
                raise BuildError(
                    f'service "{name}" was not ready after {timeout_s:g} s',
                    facts=[("asked", url), ("answer", answer)],
                    hint="if it only needs longer, raise `ready_timeout_s`; else its log says why",
                    exit_code=FAILED,
                )
            pause_s = min(LAST_POLL_S, pause_s * 1.5)


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
