"""A server to be kept waiting for: a script, how it is called, and which processes it had."""

from __future__ import annotations

import sys

from tests.run.conftest import Space, within

SERVER = """
    import http.server, os, signal, sys, time

    port, stubborn, status = int(sys.argv[1]), sys.argv[2] == "stubborn", int(sys.argv[3])
    with open("pids.txt", "a") as file:
        file.write(f"{os.getpid()}\\n")
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.argv[2] == "slow":
        time.sleep(1)
    print("loading", os.environ.get("WORD"), flush=True)
    born = time.monotonic()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            ready = time.monotonic() > born + 0.1
            self.send_response(status if ready else 503)
            self.end_headers()

        def log_message(self, *args): pass

    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
READY = "http://127.0.0.1:{port}/health"
ENV = {"PATH": "/usr/bin:/bin", "WORD": "weights"}


def command(kind: str = "meek", status: int = 200) -> str:
    return f"{sys.executable} server.py {{port}} {kind} {status}"


def pids(space: Space) -> list[int]:
    """Of all servers that were started, in that order; waits for the first."""
    told = space.root / "pids.txt"
    assert within(10, lambda: told.exists() and told.read_text() != "")
    return [int(line) for line in told.read_text().split()]
