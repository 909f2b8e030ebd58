"""Replies that a user rejects: what is asked anew and what runs again, by the server's own count."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable

import pytest

from buildsys.errors import LOCKED, NO_SUCH_TARGET, BuildError
from buildsys.explain import explain
from buildsys.plan.decide import REJECTED
from buildsys.project import Project
from buildsys.query import sql
from buildsys.reject import Rejection, Which, foreseen, rejecting
from buildsys.request import AS_WRITTEN, Request
from buildsys.run.replies import ReplyLog
from buildsys.state.lock import hold
from buildsys.state.stamp import current
from buildsys.survey import survey
from tests.behaviour.conftest import Space
from tests.behaviour.test_chat_rules import SCRIPT, N, chat, configure, server
from tests.chat.server import GOOD, Answer, Asked, ChatServer, completion

__all__ = ["chat", "server"]
CUT = "finish_reason = 'length'"


def cut_at_first(server: ChatServer, *numbers: int) -> None:
    """The first reply to these questions is cut off, and that alone."""
    cut = {f"question {n}" for n in numbers}

    def plan(asked: Asked) -> Answer:
        if asked.prompt not in cut or asked.tries:
            return GOOD
        return Answer(body=completion(asked).replace(b'"stop"', b'"length"'))

    server.plan = plan


def reject(space: Space, *prefixes: str, where: str = "") -> Rejection:
    with rejecting(Project(space.root), Which(prefixes, where)) as (found, do):
        do()
    return found


def fates(space: Space) -> dict[str, tuple[str, str]]:
    return {str(one.action): (one.fate, one.reason) for one in survey(Project(space.root)).actions}


def id_of(space: Space, n: int) -> str:
    (found,) = sql(space.root, f"SELECT DISTINCT key FROM requests WHERE record_id = 'r{n}'").rows
    return str(found[0])


def prompts(numbers: Iterable[int]) -> list[str]:
    return sorted(f"question {n}" for n in numbers)


def test_what_is_rejected_is_asked_anew_and_nothing_else(chat: Space, server: ChatServer) -> None:
    cut_at_first(server, 3, 20)
    assert chat.build().outcome == "done"
    found = reject(chat, where=CUT)
    assert len(found.ids) == 2
    assert found.n_asked == {"replies": 2}
    assert [(profile, str(action)) for profile, action in found.actions] == [
        ("default", "replies[0]"),
        ("default", "replies[2]"),
    ]
    built = chat.build()
    assert (built.outcome, built.restored) == ("done", [])
    assert built.ran == ["replies[0]", "replies[2]", "samples[0]", "samples[2]"]
    assert sorted(server.prompts[N:]) == prompts([3, 20])
    assert sql(chat.root, "SELECT count(*) FROM replies WHERE contains(replies::VARCHAR, 'length')").rows == [(0,)]
    assert chat.build().ran == []
    assert reject(chat, where=CUT).ids == (), "what came instead is not meant by what was said of the first"
    assert chat.build().ran == []
    assert len(server.asked) == N + 2
    told = sql(
        chat.root, "SELECT run_id, rejected, count(*) FROM requests WHERE record_id IN ('r3', 'r20') GROUP BY ALL"
    )
    assert sorted(told.rows) == [(1, True, 2), (2, False, 2)]


def test_it_is_said_why(chat: Space, server: ChatServer) -> None:
    cut_at_first(server, 3)
    chat.build()
    reject(chat, where=CUT)
    assert fates(chat)["replies[0]"] == ("run", REJECTED)
    assert fates(chat)["samples[0]"] == ("maybe", "inputs: replies, unless equal")
    assert {fates(chat)[f"replies[{n}]"][0] for n in (1, 2, 3)} == {"reuse"}
    (one,) = explain(Project(chat.root), "replies[0]")
    assert (one.planned.reason, [change.line for change in one.changes]) == (REJECTED, [REJECTED])
    estimate = survey(Project(chat.root), jobs=2).estimate
    assert estimate
    assert (estimate.requests, estimate.answered) == (1, N - 1)
    configure(chat, server, temperature=0.9)
    assert fates(chat)["replies[0]"][1] == f"{REJECTED}, and 1 more"


def test_where_the_new_reply_is_the_same_nothing_more_runs(chat: Space, server: ChatServer) -> None:
    chat.build()
    reject(chat, id_of(chat, 9)[:12])
    assert chat.build().ran == ["replies[1]"]
    assert server.prompts[N:] == ["question 9"]


def test_an_earlier_state_that_comes_back_does_not_bring_a_rejected_reply(chat: Space, server: ChatServer) -> None:
    cut_at_first(server, 3)
    chat.build()
    configure(chat, server, temperature=0.9)
    chat.build()
    found = reject(chat, where=f"{CUT} AND run_id = 1")
    assert (len(found.ids), found.actions) == (1, ()), "nothing that holds now rests on it"
    assert chat.build().ran == []
    configure(chat, server)
    built = chat.build()
    assert built.ran == ["replies[0]", "samples[0]"]
    assert server.prompts[2 * N :] == ["question 3"]


def test_all_that_rest_on_a_reply_count_no_more_however_they_are_sharded(chat: Space, server: ChatServer) -> None:
    cut_at_first(server, 3)
    chat.build()
    configure(chat, server, shards=16)
    chat.build()
    assert [str(action) for _, action in reject(chat, where=CUT).actions] == ["replies[0]"]
    assert "replies[0]" in chat.build().ran
    configure(chat, server)
    assert [name for name in chat.build().ran if "replies" in name] == ["replies[0]"]
    assert server.prompts[N:] == ["question 3"]


@pytest.mark.parametrize("is_first", [True, False])
def test_code_that_did_not_run_is_no_way_around_it(chat: Space, server: ChatServer, is_first: bool) -> None:
    script = SCRIPT.replace("reasoning_content", "reasoning").replace(
        "    if replies:\n", "    if replies == 1:\n        return unused()\n    if replies:\n"
    )
    script += "\ndef unused():\n    return 1\n"
    cut_at_first(server, 3)
    chat.write("scripts/gen.py", script)
    chat.build()
    if is_first:
        reject(chat, where=CUT)
    chat.write("scripts/gen.py", script.replace("return 1\n", "return 2\n"))
    if not is_first:
        assert chat.build().ran == []
        reject(chat, where=CUT)
    assert chat.build().ran == ["replies[0]", "samples[0]"]
    assert len(server.asked) == N + 1


def test_what_profiles_share_is_rejected_for_all_of_them(chat: Space, server: ChatServer) -> None:
    cut_at_first(server, 3)
    chat.write("config.other.toml", "temperature = 0.5\n")
    chat.build()
    chat.build(profile="other")
    assert [profile for profile, _ in reject(chat, where=CUT).actions] == ["default", "other"]
    assert chat.build(profile="other").ran == ["replies[0]", "samples[0]"]
    built = chat.build()
    assert (built.ran, built.restored) == ([], ["replies[0]"])
    assert server.prompts[N:] == ["question 3"]


def test_a_refusal_can_be_rejected_too(chat: Space, server: ChatServer) -> None:
    server.plan = lambda asked: Answer(400, b"{}") if asked.number == 0 else GOOD
    chat.build()
    reject(chat, where="status = 400")
    built = chat.build()
    assert (built.outcome, len(server.asked)) == ("done", N + 1)


def test_a_stamp_is_no_way_around_it(chat: Space, server: ChatServer) -> None:
    chat.build()
    chat.build()
    request = Request((), AS_WRITTEN)
    assert current(chat.root, request)
    foreseen(Project(chat.root), Which(where="true"))
    assert current(chat.root, request), "to look changes nothing"
    reject(chat, id_of(chat, 3))
    assert current(chat.root, request) is None
    assert list((chat.root / ".buildsys/stamps").iterdir()) == []


def test_the_first_letters_of_an_id_have_to_be_those_of_one(chat: Space) -> None:
    chat.build()
    for prefix, problem in (("zz", 'no id of a request begins with "zz"'), ("", f'{N} ids begin with ""')):
        with pytest.raises(BuildError) as wrong:
            reject(chat, prefix)
        assert wrong.value.problem.startswith(problem)
        assert wrong.value.exit_code == NO_SUCH_TARGET


@pytest.mark.parametrize(
    ("where", "problem", "place"),
    [
        ("finish = 'length'", 'referenced column "finish" not found', "condition:1:1"),
        ("status = 200\n  AND nope", 'referenced column "nope" not found', "condition:2:7"),
        ("finish_reason =", "syntax error", "condition:2:1"),
        ("true); DROP TABLE recorded.results; SELECT (1", "there is more than one condition", ""),
    ],
)
def test_a_condition_that_is_none_is_told_with_its_place(chat: Space, where: str, problem: str, place: str) -> None:
    chat.build()
    with pytest.raises(BuildError) as wrong:
        reject(chat, where=where)
    assert wrong.value.problem.startswith(problem)
    assert str(wrong.value.place or "") == place
    assert chat.build().ran == []


def test_a_condition_can_ask_what_was_made_of_the_replies(chat: Space) -> None:
    chat.build()
    found = reject(
        chat, where="record_id IN (SELECT record_id FROM samples WHERE reasoning LIKE '%question 11 %') -- why"
    )
    assert found.ids == (sql(chat.root, "SELECT key FROM requests WHERE record_id = 'r11'").rows[0][0],)


def test_while_a_build_runs_nothing_is_rejected(chat: Space) -> None:
    chat.build()
    with hold(chat.root / ".buildsys/lock", "buildsys build"), pytest.raises(BuildError) as wrong:
        reject(chat, where="true")
    assert wrong.value.exit_code == LOCKED


KILLED = """
import os, signal
from pathlib import Path
from unittest import mock
from buildsys.project import Project
from buildsys.reject import Which, rejecting

def die(*args, **more):
    os.kill(os.getpid(), signal.SIGKILL)

with rejecting(Project(Path.cwd()), Which(where="finish_reason = 'length'")) as (found, reject):
    assert found.ids
    with mock.patch("PLACE", die):
        reject()
"""


def killed_at(space: Space, place: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED.replace("PLACE", place)], cwd=space.root, timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_what_was_killed_half_way_can_be_done_again(chat: Space, server: ChatServer) -> None:
    cut_at_first(server, 3, 4)
    chat.build()
    killed_at(chat, "buildsys.run.replies.ReplyLog.reject")
    with ReplyLog(chat.root / ".buildsys/replies") as log:
        log.reject(id_of(chat, 3), "the first of the two").result()
    found = reject(chat, where=CUT)
    assert found.n_asked == {"replies": 1}
    assert [str(action) for _, action in found.actions] == ["replies[0]"]
    assert reject(chat, where=CUT).ids == ()
    chat.build()
    assert sorted(server.prompts[N:]) == prompts([3, 4])


@pytest.mark.parametrize(
    ("place", "n_asked"),
    [
        ("buildsys.state.manifest.Manifest.commit", 0),
        ("buildsys.run.replies.ReplyLog.reject", 0),
        ("buildsys.state.manifest.Manifest.publish", 2),
    ],
)
def test_a_kill_leaves_no_result_that_rests_on_a_rejected_reply(
    chat: Space, server: ChatServer, place: str, n_asked: int
) -> None:
    cut_at_first(server, 3, 4)
    chat.build()
    killed_at(chat, place)
    built = chat.build()
    assert built.outcome == "done"
    assert len(server.asked) == N + n_asked
    with ReplyLog(chat.root / ".buildsys/replies", writable=False) as log:
        held = [log.get(id_of(chat, n)) for n in (3, 4)]
    is_cut = [b'"length"' in one.body for one in held if one]
    assert is_cut == [n_asked == 0] * 2
    assert chat.read("build/default/replies/0.jsonl").count('"length"') == (0 if n_asked else 2)
    reject(chat, where=CUT)
    chat.build()
    assert len(server.asked) == N + 2
    assert '"length"' not in chat.read("build/default/replies/0.jsonl")
