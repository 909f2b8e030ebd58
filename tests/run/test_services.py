"""Servers: up once for all who need them, told plainly when not, and gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from buildsys.errors import FAILED, INTERRUPTED, BuildError
from buildsys.run.services import Services
from tests.run.conftest import Space, alive, within
from tests.run.servers import ENV, READY, SERVER, command, pids

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def services(space: Space) -> Iterator[Services]:
    space.write("server.py", SERVER)
    services = Services(space.root, space.root / "logs", space.root / "kept")
    yield services
    services.close()


def test_a_service_is_up_when_it_is_handed_out(space: Space, services: Services) -> None:
    url = services.start("model", "key", command(), ENV, READY, 20)
    with urllib.request.urlopen(f"{url}/health") as answer:
        assert answer.status == 200
    assert (space.root / "logs" / "model.log").read_text() == "loading weights\n"


def test_a_command_may_be_a_function_of_the_port(services: Services) -> None:
    url = services.start("model", "key", lambda port: command().replace("{port}", str(port)), ENV, READY, 20)
    assert url.startswith("http://127.0.0.1:")


def test_callers_at_the_same_time_share_one_server(space: Space, services: Services) -> None:
    with ThreadPoolExecutor(6) as pool:
        urls = list(pool.map(lambda _: services.start("model", "key", command(), ENV, READY, 20), range(6)))
    assert len(set(urls)) == 1
    assert len(pids(space)) == 1


def test_another_key_ends_the_old_server_before_the_new_one_starts(space: Space, services: Services) -> None:
    services.start("model", "old", command(), ENV, READY, 20)
    services.start("model", "new", command(), ENV, READY, 20)
    old, new = pids(space)
    assert alive(new)
    assert within(1, lambda: not alive(old))


def test_a_proxy_in_the_environment_is_not_asked(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert services.start("model", "key", command(), ENV, READY, 20)


def test_a_server_that_dies_at_start_is_told_with_the_end_of_its_log(space: Space, services: Services) -> None:
    broken = "for n in $(seq 30); do echo line $n; done; exit 3; # {port}"
    with pytest.raises(BuildError) as caught:
        services.start("model", "key", broken, ENV, READY, 20)
    error = caught.value
    assert error.problem == 'service "model" ended before it was ready'
    assert error.exit_code == FAILED
    assert ("ended with", "exit code 3") in error.facts
    assert ("log", "logs/model.log") in error.facts
    assert error.excerpt.splitlines() == [f"line {n}" for n in range(16, 31)]
    assert error.hint


def test_a_server_that_is_never_ready_is_told_and_ended(space: Space, services: Services) -> None:
    with pytest.raises(BuildError) as caught:
        services.start("model", "key", command(status=500), ENV, READY, 1)
    assert caught.value.problem == 'service "model" was not ready after 1 s'
    assert ("answer", "500 Internal Server Error") in caught.value.facts
    assert "loading weights" in caught.value.excerpt
    assert within(1, lambda: not any(map(alive, pids(space))))


def test_a_failed_start_is_told_to_all_and_not_tried_again(space: Space, services: Services) -> None:
    for _ in range(2):
        with pytest.raises(BuildError, match="ended before"):
            services.start("model", "key", "echo x >> tries; exit 1", ENV, READY, 20)
    assert (space.root / "tries").read_text() == "x\n"


def test_a_server_that_ended_is_told_by_its_address(space: Space, services: Services) -> None:
    url = services.start("model", "key", f"exec {command()}", ENV, READY, 20)
    assert services.gone(url) is None
    os.kill(pids(space)[0], signal.SIGKILL)
    assert within(5, lambda: services.gone(url) is not None)
    gone = services.gone(url)
    assert gone
    assert (gone.problem, gone.exit_code) == ('service "model" ended while it was needed', FAILED)
    assert ("ended with", "signal 9 (SIGKILL: killed; out of memory?)") in gone.facts
    assert ("log", "logs/model.log") in gone.facts
    assert gone.excerpt == "loading weights"


def test_a_server_that_ended_is_started_again_once(space: Space, services: Services) -> None:
    def start() -> str:
        return services.start("model", "key", f"exec {command()}", ENV, READY, 20)

    first = start()
    os.kill(pids(space)[0], signal.SIGKILL)
    assert within(5, lambda: services.gone(first) is not None)
    with ThreadPoolExecutor(4) as pool:
        (second,) = {future.result() for future in [pool.submit(start) for _ in range(4)]}
    with urllib.request.urlopen(f"{second}/health") as answer:
        assert answer.status == 200
    assert services.gone(first) is not None
    assert services.gone(second) is None
    assert (space.root / "logs" / "model.log").read_text() == "loading weights\n" * 2
    os.kill(pids(space)[1], signal.SIGKILL)
    assert within(5, lambda: services.gone(second) is not None)
    with pytest.raises(BuildError, match="ended while it was needed"):
        start()
    assert len(pids(space)) == 2


def test_kill_ends_every_server_at_once(space: Space, services: Services) -> None:
    services.start("a", "key", command("stubborn"), ENV, READY, 20)
    began = time.monotonic()
    services.kill()
    services.close()
    assert time.monotonic() - began < 2
    assert not any(map(alive, pids(space)))


def test_cancel_lets_nobody_wait_for_a_server(space: Space, services: Services) -> None:
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(services.start, "model", "key", command(status=503), ENV, READY, 60)
        (pid,) = pids(space)
        services.cancel()
        error = starting.exception(timeout=5)
    assert isinstance(error, BuildError)
    assert error.exit_code == INTERRUPTED
    assert within(1, lambda: not alive(pid))


@pytest.mark.parametrize("kind", ["meek", "stubborn"])
def test_close_ends_every_server(space: Space, services: Services, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildsys.run.services.END_S", 0.5)
    services.start("a", "key", command(kind), ENV, READY, 20)
    services.start("b", "key", f"true; {command(kind)}; true", ENV, READY, 20)
    services.close()
    assert within(1, lambda: not any(map(alive, pids(space))))


def test_close_does_not_wait_for_a_server_that_is_starting(space: Space, services: Services) -> None:
    errors: list[BuildError] = []

    def start() -> None:
        try:
            services.start("model", "key", command(status=503), ENV, READY, 60)
        except BuildError as error:
            errors.append(error)

    starting = threading.Thread(target=start)
    starting.start()
    (pid,) = pids(space)
    began = time.monotonic()
    services.close()
    starting.join()
    assert time.monotonic() - began < 3
    assert [error.exit_code for error in errors] == [INTERRUPTED]
    assert within(1, lambda: not alive(pid))


BUILDER = """
    import sys, time
    from pathlib import Path
    from buildsys.run.services import Services

    root = Path(sys.argv[1])
    ready = "http://127.0.0.1:{port}/health"
    services = Services(root, root / "logs", root / "kept")
    services.start("model", "key", sys.argv[2], {"PATH": "/usr/bin:/bin"}, ready, 20)
    (root / "up").touch()
    time.sleep(1000)
"""


@pytest.mark.parametrize("kind", ["meek", "stubborn"])
def test_servers_end_when_the_builder_is_killed(space: Space, kind: str) -> None:
    space.write("server.py", SERVER)
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(BUILDER), str(space.root), command(kind)]) as builder:
        up = within(20, (space.root / "up").exists)
        (pid,) = pids(space)
        up = up and alive(pid)
        builder.kill()
    assert up
    assert within(2.5, lambda: not alive(pid))
