"""A process that is killed while it asks: the next one goes on where it ended."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from buildsys.run.chat import ChatEngine, Endpoint
from buildsys.run.replies import ReplyLog
from tests.chat.asking import one_turn, records
from tests.chat.server import Answer, ChatServer

N = 100
IN_FLIGHT = 8

ASK = """
import sys
from pathlib import Path
from tests.chat.asking import one_turn, records
from buildsys.run.chat import ChatEngine, Endpoint
from buildsys.run.replies import ReplyLog
folder, url, n, in_flight = sys.argv[1:]
engine = ChatEngine(ReplyLog(Path(folder)), in_flight=int(in_flight))
engine.answer(records(*range(int(n))), one_turn, Endpoint(url, "m"))
"""


def rows(folder: Path, url: str) -> list[bytes]:
    with ReplyLog(folder) as log:
        engine = ChatEngine(log, in_flight=IN_FLIGHT)
        answered = engine.answer(records(*range(N)), one_turn, Endpoint(url, "m"))
        engine.close()
    return [row.line() for row in answered.rows]


def test_nothing_is_paid_twice_but_what_was_in_flight_and_the_rows_are_the_same(tmp_path):
    with ChatServer(lambda asked: Answer(delay_s=0.02)) as server:
        undisturbed = rows(tmp_path / "undisturbed", server.url)
    with ChatServer(lambda asked: Answer(delay_s=0.02)) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", ASK, str(tmp_path / "killed"), server.url, str(N), str(IN_FLIGHT)],
            cwd=Path(__file__).parents[2],
        )
        while len(server.asked) < N // 2:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(server.answered) < N
        resumed = rows(tmp_path / "killed", server.url)
    assert resumed == undisturbed
    assert set(server.answered) == {f"q{n}" for n in range(N)}
    assert sum(server.answered.values()) - N <= IN_FLIGHT
