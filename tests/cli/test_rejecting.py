"""`buildsys replies reject`: what it says before it does anything, and when it does nothing."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from buildsys.errors import INTERRUPTED, LOCKED, NO_SUCH_TARGET, USAGE
from buildsys.state.lock import hold
from tests.chat.server import GOOD, Answer, Asked, ChatServer, completion
from tests.cli.conftest import PROGRAM, environment, run_in
from tests.cli.test_limits import RULES, SCRIPT, N

WHERE = ("--where", "finish_reason = 'length'")


def cut_two(asked: Asked) -> Answer:
    if asked.prompt not in ("q1", "q5") or asked.tries:
        return GOOD
    return Answer(body=completion(asked).replace(b'"stop"', b'"length"'))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(cut_two) as running:
        yield running


@pytest.fixture
def asked(tmp_path: Path, server: ChatServer) -> Path:
    """A project that is up to date; two of its replies were cut off."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/ask.toml").write_text(RULES.replace("URL", server.url))
    (tmp_path / "ask.py").write_text(SCRIPT)
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps({"id": n, "text": f"q{n}"}) + "\n" for n in range(N)))
    assert run_in(tmp_path, "build").returncode == 0
    return tmp_path


def up_to_date(folder: Path) -> bool:
    return run_in(folder, "status", "--exit-code").returncode == 0


def test_it_says_what_it_comes_to_and_the_next_build_asks_anew(asked: Path, server: ChatServer) -> None:
    assert up_to_date(asked)
    done = run_in(asked, "replies", "reject", *WHERE, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "  replies        2 replies",
        "1 action will run again: replies",
        "2 replies to be asked for anew, and paid for",
        "2 replies rejected · the next build asks for them anew",
    ]
    assert not up_to_date(asked)
    assert "replies were rejected" in run_in(asked, "plan").stdout
    assert "at most 2 requests (6 answered)" in run_in(asked, "plan").stdout
    assert run_in(asked, "why", "replies").stdout.splitlines()[0] == "replies will run: replies were rejected"
    assert "rejected or superseded" in run_in(asked, "replies").stdout
    assert run_in(asked, "build").returncode == 0
    assert sorted(server.prompts[N:]) == ["q1", "q5"]
    assert up_to_date(asked)
    done = run_in(asked, "replies", "reject", *WHERE)
    assert (done.returncode, done.stdout) == (0, "no reply that counts fits: there is nothing to reject\n")


def test_a_dry_run_changes_nothing(asked: Path) -> None:
    with hold(asked / ".buildsys/lock", "buildsys build"):
        done = run_in(asked, "replies", "reject", *WHERE, "--dry-run")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == ["2 replies to be asked for anew, and paid for", "nothing was rejected"]
    assert up_to_date(asked)


def test_without_a_terminal_it_has_to_be_told_yes(asked: Path) -> None:
    done = run_in(asked, "replies", "reject", *WHERE)
    assert done.returncode == USAGE
    assert done.stderr.splitlines() == ["error: 2 replies would have to be paid for again", "hint: say so with --yes"]
    assert up_to_date(asked)


@pytest.mark.parametrize(("typed", "code"), [(b"n\n", INTERRUPTED), (b"y\n", 0)])
def test_on_a_terminal_it_asks(asked: Path, typed: bytes, code: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    command, env = [*PROGRAM, "replies", "reject", *WHERE], environment()
    done = subprocess.run(command, cwd=asked, stdin=theirs, capture_output=True, text=True, env=env, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert "ask for 2 replies anew, and pay for them? [y/N]" in done.stderr
    assert up_to_date(asked) == (code != 0)


def test_as_json_it_gives_the_ids(asked: Path) -> None:
    told = json.loads(run_in(asked, "replies", "reject", *WHERE, "--json", "--dry-run").stdout)
    assert (told["rejected"], told["rules"]) == (False, {"replies": 2})
    assert told["actions"] == [{"profile": "default", "action": "replies"}]
    ids = told["ids"]
    done = run_in(asked, "replies", "reject", ids[0][:10], ids[1], "--json", "--yes")
    assert json.loads(done.stdout) == {**told, "rejected": True}
    none = json.loads(run_in(asked, "replies", "reject", *ids, "--json", "--yes").stdout)
    assert none == {"rejected": False, "ids": [], "rules": {}, "actions": []}


def test_while_a_build_runs_it_ends_with_5(asked: Path) -> None:
    with hold(asked / ".buildsys/lock", "buildsys build"):
        done = run_in(asked, "replies", "reject", *WHERE, "--yes")
    assert done.returncode == LOCKED
    assert up_to_date(asked)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), USAGE, "error: say which replies: their ids, or a condition\n"),
        (("4f", *WHERE), USAGE, "error: say which replies: their ids, or a condition\n"),
        (("--where", "finish = 'length'"), USAGE, 'error: referenced column "finish" not found'),
        (("--where", "finish_reason = length'"), USAGE, "condition:1:"),
        (("zz",), NO_SUCH_TARGET, 'error: no id of a request begins with "zz"'),
    ],
)
def test_what_is_wrong_is_told_and_nothing_done(asked: Path, words: tuple[str, ...], code: int, says: str) -> None:
    done = run_in(asked, "replies", "reject", *words, "--yes")
    assert done.returncode == code
    assert says in done.stderr
    assert up_to_date(asked)
