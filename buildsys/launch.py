"""A service brought up with what its rule file says: its command filled in, its inputs linked, its environment.

Joins what is known of a service with the servers that run. Has no opinion on whether one that runs may be used: that is
the key it is given.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from buildsys.assess import Served
from buildsys.commands import command_values, fill_command
from buildsys.errors import BuildError
from buildsys.events import Event, ServiceReady
from buildsys.handover import Handover
from buildsys.prepare import Preparer
from buildsys.run.services import Services


class Launcher:
    """Brings up the services of one run. Thread-safe."""

    def __init__(
        self, preparer: Preparer, handover: Handover, services: Services, emit: Callable[[Event], None]
    ) -> None:
        self._preparer = preparer
        self._handover = handover
        self._services = services
        self._emit = emit
        self._lock = threading.Lock()
        self._up: dict[str, tuple[str, float]] = {}

    def launch(self, served: Served) -> str:
        """The URL of a service that is up. Raises BuildError where it does not come up."""
        service = served.service
        values: dict[str, str | Sequence[str]] = {"python": sys.executable, "port": "{port}"}
        values |= {f"inputs.{bound.name}": self._handover.words(bound) for bound in served.inputs}
        values |= command_values(service.params)
        code = self._preparer.service_code(service)
        homes = self._preparer.installed().homes(code) if code else ()
        command = fill_command(service.command, values, code, partial(self._handover.freeze, homes=homes))
        began, started = time.monotonic(), time.time()
        url = self._services.start(
            service.name,
            served.instance,
            command.replace("'{port}'", "{port}"),
            self._handover.environment(code, homes, self._preparer.service_environment(service)),
            service.ready,
            service.ready_timeout_s,
            keep=service.keep,
        )
        with self._lock:
            is_new = url not in self._up
            self._up.setdefault(url, (service.name, started))
        if is_new:
            self._emit(ServiceReady(service.name, url, time.monotonic() - began))
        return url

    def gone(self, url: str) -> BuildError | None:
        """Why the server that had this address has ended; None while it runs."""
        return self._services.gone(url)

    def launched(self) -> list[tuple[str, float]]:
        """The name of each server that was started or used, and since when this run has had it."""
        with self._lock:
            return list(self._up.values())
