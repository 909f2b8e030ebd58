"""What the engine asks and what it gives, counted by the server: once each, exactly as keyed, in the records' order."""

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from buildsys.errors import BuildError
from buildsys.events import RequestCounts
from buildsys.run.chat import Cancelled, Endpoint, Listener
from tests.chat.asking import one_turn, records, request
from tests.chat.server import GOOD, Answer, ChatServer, completion, error_body


class Told(Listener):
    """Keeps what it is told of progress, and in which threads."""

    def __init__(self):
        self.counts, self.threads = [], []

    def progress(self, counts):
        self.counts.append(counts)
        self.threads.append(threading.current_thread())


def lines(answered):
    return [row.line() for row in answered.rows]


def test_every_prompt_is_answered_once_and_rows_keep_the_order_of_the_records(engine):
    with ChatServer(lambda asked: Answer(delay_s=asked.number * 7 % 5 / 100)) as server:
        answered = engine().answer(records(*range(100)), one_turn, Endpoint(server.url, "m"))
    assert sorted(server.prompts) == sorted(f"q{n}" for n in range(100))
    assert [row.record_id for row in answered.rows] == [f"r{n}" for n in range(100)]
    for n, line in enumerate(lines(answered)):
        row = json.loads(line)
        assert list(row) == ["id", "record", "sample", "replies", "error"]
        assert row["record"] == {"id": f"r{n}", "question": f"q{n}"}
        assert row["replies"][0]["choices"][0]["message"]["content"] == f"answer to q{n}"
        assert row["error"] is None
    assert (answered.n_sent, answered.n_reused) == (100, 0)


def test_replies_are_kept_as_the_bytes_that_came(engine, log):
    odd = b'{ "choices":\r\n[{"message":{"content":null,\t"new":1e2}}], "big":12345678901234567890123}\n'
    with ChatServer(lambda asked: Answer(body=odd)) as server:
        answered = engine().answer(records(1), one_turn, Endpoint(server.url, "m"))
    assert answered.rows[0].replies == (odd,)
    assert log.get(answered.requests[0].key).body == odd
    (line,) = lines(answered)
    assert odd.replace(b"\r", b" ").replace(b"\n", b" ") in line
    assert b"\n" not in line
    assert json.loads(line)["replies"] == [json.loads(odd)]


def test_a_second_run_sends_nothing_and_gives_the_same_bytes(engine):
    with ChatServer() as server:
        first = engine().answer(records(1, 2, 3), one_turn, Endpoint(server.url, "m"))
        second = engine().answer(records(3, 1, 2), one_turn, Endpoint(server.url, "m"))
    assert len(server.asked) == 3
    assert (second.n_sent, second.n_reused) == (0, 3)
    assert sorted(lines(second)) == sorted(lines(first))
    assert [asked.output_tokens for asked in second.requests] == [7, 7, 7]


def test_the_body_goes_out_exactly_as_it_was_built(engine, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    body = {
        "messages": [{"content": "ü \ud83d", "role": "user"}],
        "model": "m",
        "temperature": 1.0,
        "return_token_ids": True,
        "unheard_of": {"b": [1, None], "a": 1e-5},
        "stream": False,
    }
    with ChatServer() as server:
        engine().answer(
            records(1), lambda turns: [None if replies else body for _, replies in turns], Endpoint(server.url, "m")
        )
    (asked,) = server.asked
    assert json.loads(asked.raw) == body
    assert list(asked.body) == list(body)
    assert b'"temperature":1.0' in asked.raw
    assert "authorization" not in asked.headers


def test_an_endpoint_is_known_with_and_without_its_version(engine):
    with ChatServer() as server:
        for n, url in enumerate(
            [server.url, server.url + "/", server.url + "/v1", server.url + "/v1/chat/completions"]
        ):
            engine().answer(records(n), one_turn, Endpoint(url, "m"))
    assert server.prompts == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://host/v1", "http://", "http://host:port", "http://u:p@host", ""])
def test_an_endpoint_that_is_no_plain_address_is_refused(url):
    with pytest.raises(BuildError, match="an endpoint"):
        Endpoint(url, "m")


def test_the_api_key_reaches_the_server_and_no_file(engine, log, tmp_path):
    secret = "sk-very-secret-123"
    plan = {"q1": GOOD, "q2": Answer(400, error_body(f"{secret} may not ask this"))}
    with ChatServer(lambda asked: plan[asked.prompt]) as server:
        endpoint = Endpoint(server.url, "m", api_key=secret)
        answered = engine().answer(records(1, 2), one_turn, endpoint)
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {secret}"}
    assert secret not in repr(endpoint)
    log.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in files) + b"".join(lines(answered))
    assert b"answer to q1" in written
    assert b"[api key] may not ask this" in written
    assert secret.encode() not in written


def test_another_url_asks_nothing_again_and_another_temperature_or_identity_asks_all(engine):
    def warm(turns):
        return [None if replies else request(record, temperature=0.7) for record, replies in turns]

    with ChatServer() as first, ChatServer() as second:
        engine().answer(records(1, 2), one_turn, Endpoint(first.url, "m@1"))
        engine().answer(records(1, 2), one_turn, Endpoint(second.url, "m@1"))
        assert second.asked == []
        engine().answer(records(1, 2), warm, Endpoint(second.url, "m@1"))
        assert len(second.asked) == 2
        engine().answer(records(1, 2), one_turn, Endpoint(second.url, "m@2"))
        assert len(second.asked) == 4


def test_samples_of_one_prompt_are_asked_apart(engine):
    with ChatServer() as server:
        three = engine().answer(records(1, 2), one_turn, Endpoint(server.url, "m"), samples=3)
        assert sorted(server.prompts) == ["q1"] * 3 + ["q2"] * 3
        assert [(row.record_id, row.sample) for row in three.rows] == [(r, s) for r in ("r1", "r2") for s in range(3)]
        four = engine().answer(records(1, 2), one_turn, Endpoint(server.url, "m"), samples=4)
    assert (four.n_sent, four.n_reused) == (2, 6)


def test_equal_questions_in_flight_are_sent_once(engine):
    twins = [{"question": "q", "n": n} for n in range(50)]
    with ChatServer(lambda asked: Answer(delay_s=0.1)) as server:
        answered = engine().answer(twins, one_turn, Endpoint(server.url, "m"))
    assert server.prompts == ["q"]
    assert (answered.n_sent, answered.n_reused) == (1, 49)
    assert len({row.record_id for row in answered.rows}) == 50
    assert len({row.replies for row in answered.rows}) == 1


def test_threads_share_one_budget_and_one_log(engine):
    shared = engine(in_flight=5)
    with ChatServer(lambda asked: Answer(delay_s=0.01)) as server, ThreadPoolExecutor(3) as threads:
        shards = [records(*range(start, start + 60)) for start in (0, 20, 40)]
        calls = [threads.submit(shared.answer, shard, one_turn, Endpoint(server.url, "m")) for shard in shards]
        answered = [call.result() for call in calls]
    assert sorted(server.prompts) == sorted(f"q{n}" for n in range(100))
    assert server.max_in_flight == 5
    assert sum(one.n_sent for one in answered) == 100
    assert sum(one.n_reused for one in answered) == 80


def test_a_conversation_goes_on_until_the_script_has_enough(engine):
    def two_turns(turns):
        bodies = []
        for record, replies in turns:
            said = [reply["choices"][0]["message"]["content"] for reply in replies]
            body = request(record)
            body["messages"] += [{"role": "user", "content": f"{text}, really?"} for text in said]
            bodies.append(body if len(replies) < (2 if record["id"] == "r1" else 1) else None)
        return bodies

    listener = Told()
    with ChatServer() as server:
        answered = engine().answer(records(1, 2), two_turns, Endpoint(server.url, "m"), listener=listener)
        again = engine().answer(records(1, 2), two_turns, Endpoint(server.url, "m"))
    assert server.prompts == ["q1", "q2", "answer to q1, really?"]
    assert [len(row.replies) for row in answered.rows] == [2, 1]
    assert [(asked.record_id, asked.turn) for asked in answered.requests] == [("r1", 0), ("r1", 1), ("r2", 0)]
    assert listener.counts[0] == RequestCounts(total=2)
    assert listener.counts[-1] == RequestCounts(3, 3, 3, 21, 9, finish_reasons={"stop": 3})
    assert lines(again) == lines(answered)


def test_what_is_wrong_with_replies_is_counted_by_kind_whoever_asked_for_them(engine):
    body = b'{"choices": [{"message": {"content": "a", "reasoning": null}, "finish_reason": "length"}]}'
    plan = {"q1": GOOD, "q2": Answer(body=body), "q3": Answer(400, error_body("too long"))}
    first, again = Told(), Told()
    with ChatServer(lambda asked: plan[asked.prompt]) as server:
        engine().answer(records(1, 2), one_turn, Endpoint(server.url, "m"), listener=first)
        answered = engine().answer(records(1, 2, 3), one_turn, Endpoint(server.url, "m"), listener=again)
    bad = {"truncated": 1, "empty reasoning": 1}
    assert (first.counts[-1].finish_reasons, first.counts[-1].bad) == ({"stop": 1, "length": 1}, bad)
    assert again.counts[-1].finish_reasons == {"stop": 1, "length": 1}
    assert (again.counts[-1].bad, again.counts[-1].sent) == (bad | {"refused": 1}, 1)
    assert (first.counts[-1].refused, again.counts[-1].refused) == (0, 1)
    assert [asked.bad for asked in answered.requests] == [(), ("truncated", "empty reasoning"), ("refused",)]


def test_a_record_that_the_script_asks_nothing_of_is_a_row_without_replies(engine):
    with ChatServer() as server:
        answered = engine().answer(records(1), lambda turns: [None], Endpoint(server.url, "m"))
    assert answered.rows[0].replies == ()
    assert server.asked == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("text", "no dict but str"),
        ({"model": "m"}, 'no "messages"'),
        ({"messages": []}, 'no "model"'),
        (request({"question": "q"}, stream=True), "asks for a stream"),
        (request({"question": "q"}, temperature=float("nan")), "is not JSON"),
        (request({"question": "q"}, tools={1, 2}), "is not JSON"),
    ],
)
def test_a_request_that_can_not_be_sent_names_its_record(engine, body, problem):
    with ChatServer() as server, pytest.raises(BuildError, match=problem) as refused:
        engine().answer(records(7), lambda turns: [body], Endpoint(server.url, "m"))
    assert ("record", "r7") in refused.value.facts
    assert server.asked == []


def test_a_script_that_never_has_enough_is_told_so(engine):
    with ChatServer() as server, pytest.raises(BuildError, match="asked again after its reply") as refused:
        engine().answer(records(7), lambda turns: [request(record) for record, _ in turns], Endpoint(server.url, "m"))
    assert "return None" in refused.value.hint
    assert server.prompts == ["q7"]


def test_progress_is_told_in_the_callers_thread(engine):
    listener = Told()
    with ChatServer(lambda asked: Answer(delay_s=0.3)) as server:
        engine(in_flight=2).answer(
            records(1, 2, 3, 4),
            one_turn,
            Endpoint(server.url, "m"),
            listener=listener,
        )
    assert set(listener.threads) == {threading.current_thread()}
    counts = [(c.done, c.total, c.sent, c.output_tokens, c.input_tokens) for c in listener.counts]
    assert counts == sorted(counts)
    assert {(0, 4, 0, 0, 0), (2, 4, 2, 14, 6), (4, 4, 4, 28, 12)} <= set(counts)
    assert {c.in_flight for c in listener.counts} == {0, 2}


def test_cancel_ends_what_runs_and_keeps_what_came(engine):
    one = engine(in_flight=4)
    with ChatServer(lambda asked: GOOD if asked.number < 3 else Answer(delay_s=60)) as server:
        with ThreadPoolExecutor(1) as threads:
            call = threads.submit(one.answer, records(*range(20)), one_turn, Endpoint(server.url, "m"))
            while len(server.asked) < 7:
                time.sleep(0.005)
            one.cancel()
            with pytest.raises(Cancelled):
                call.result(5)
        server.plan = lambda asked: GOOD
        with pytest.raises(Cancelled):
            one.answer(records(0), one_turn, Endpoint(server.url, "m"))
        answered = engine().answer(records(*range(20)), one_turn, Endpoint(server.url, "m"))
    assert (answered.n_sent, answered.n_reused) == (17, 3)


def test_closing_an_engine_ends_its_calls(engine):
    one = engine()
    with ChatServer(lambda asked: Answer(delay_s=60)) as server, ThreadPoolExecutor(1) as threads:
        call = threads.submit(one.answer, records(1), one_turn, Endpoint(server.url, "m"))
        while not server.asked:
            time.sleep(0.005)
        one.close()
        with pytest.raises(Cancelled):
            call.result(5)
        with pytest.raises(Cancelled):
            one.answer(records(1), one_turn, Endpoint(server.url, "m"))


def test_a_request_outlives_the_call_that_began_it_while_another_waits_for_it(engine):
    plan = {"q1": Answer(delay_s=0.5), "q2": Answer(401, error_body("no"), delay_s=0.2)}
    one = engine()
    with ChatServer(lambda asked: plan[asked.prompt]) as server, ThreadPoolExecutor(2) as threads:
        failing = threads.submit(one.answer, records(1, 2), one_turn, Endpoint(server.url, "m"))
        while len(server.asked) < 2:
            time.sleep(0.005)
        waiting = threads.submit(one.answer, records(1), one_turn, Endpoint(server.url, "m"))
        with pytest.raises(BuildError):
            failing.result()
        assert waiting.result().n_reused == 1
    assert sorted(server.prompts) == ["q1", "q2"]


def test_a_client_is_loaded_only_where_something_is_asked():
    script = """
import sys
from buildsys.run.chat import ChatEngine, Endpoint
from buildsys.run.replies import ReplyLog
ChatEngine, ReplyLog, Endpoint("http://127.0.0.1:1", "m")
print([name for name in ("openai", "aiohttp", "httpx2") if name in sys.modules])
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_the_server_of_these_tests_gives_the_same_answer_to_the_same_body(engine):
    with ChatServer() as server:
        answered = engine().answer(records(1), one_turn, Endpoint(server.url, "m"))
        assert answered.rows[0].replies[0] == completion(server.asked[0])
