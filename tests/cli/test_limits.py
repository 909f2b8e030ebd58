"""Limits of requests, by the program's own words and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from buildsys.errors import LIMIT, USAGE
from tests.chat.server import Answer, ChatServer, error_body
from tests.cli.conftest import run_in

RULES = """
[rule.replies]
chat     = "ask.py::ask"
inputs   = { prompts = "prompts.jsonl" }
endpoint = "URL"
identity = "test@1"
outputs  = { replies = "build/{profile}/replies.jsonl" }
"""
SCRIPT = """
def ask(record, replies):
    return None if replies else {"model": "m", "messages": [{"role": "user", "content": record["text"]}]}
"""
N = 8


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def asking(tmp_path: Path, server: ChatServer) -> Path:
    """A project with one rule that asks the server N questions."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/ask.toml").write_text(RULES.replace("URL", server.url))
    (tmp_path / "ask.py").write_text(SCRIPT)
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps({"id": n, "text": f"q{n}"}) + "\n" for n in range(N)))
    return tmp_path


def test_a_limit_ends_a_build_with_6_and_says_what_was_spent_and_how_to_go_on(asking: Path, server: ChatServer) -> None:
    done = run_in(asking, "build", "--max-requests", "3")
    assert (done.returncode, len(server.asked)) == (LIMIT, 3)
    lines = done.stderr.splitlines()
    start = lines.index("error: max_requests stopped the build")
    assert lines[start + 1 : start + 6] == [
        "  limit:      3 requests",
        "  spent:      3 requests, 21 output tokens",
        "  kept:       3 replies",
        "  left to do: 5 requests, as far as they are known",
        "hint: build again, for as much again, or raise max_requests: what is kept is not asked for again",
    ]
    assert "3 requests, 21 tokens" in lines[start - 1], "the rule has its line as ever"
    assert run_in(asking, "build").returncode == 0
    assert sorted(server.prompts) == [f"q{n}" for n in range(N)]


def test_a_flag_wins_over_the_file_and_events_tell_the_limit(asking: Path, server: ChatServer) -> None:
    (asking / "rules/limits.toml").write_text("[limits]\nmax_requests = 2\n")
    done = run_in(asking, "build", "--json", "--max-requests", "5")
    assert (done.returncode, len(server.asked)) == (LIMIT, 5)
    *_, told, finished = map(json.loads, done.stdout.splitlines())
    assert (told["event"], told["limit"], told["kept"], told["left"]) == ("LimitReached", "max_requests", 5, 3)
    assert (finished["event"], finished["outcome"]) == ("BuildFinished", "limit")
    assert run_in(asking, "build").returncode == LIMIT
    assert len(server.asked) == 7


def test_a_plan_tells_that_a_build_would_not_send_it_all(asking: Path, server: ChatServer) -> None:
    (asking / "rules/limits.toml").write_text("[limits]\nmax_requests = 2\n")
    told = "max_requests is 2 requests, and up to 8 requests may be needed"
    done = run_in(asking, "plan")
    assert (done.returncode, told in done.stdout) == (0, True)
    assert "may be needed" not in run_in(asking, "plan", "--max-requests", "8").stdout
    assert json.loads(run_in(asking, "plan", "--json").stdout)["limits_passed"] == [
        {"name": "max_requests", "most": 2, "amount": 8}
    ]
    assert server.asked == []


@pytest.mark.parametrize("command", ["build", "plan"])
@pytest.mark.parametrize(
    ("flag", "value", "problem"),
    [
        ("--max-cost", "1", "error: --max-cost has no price to go by"),
        ("--max-cost", "nan", "error: --max-cost has to be at least 0, not nan"),
        ("--max-requests", "-1", "error: invalid value for '--max-requests'"),
        ("--max-output-tokens", "many", "error: invalid value for '--max-output-tokens'"),
    ],
)
def test_a_flag_that_limits_nothing_is_refused(
    asking: Path, server: ChatServer, command: str, flag: str, value: str, problem: str
) -> None:
    done = run_in(asking, command, flag, value)
    assert (done.returncode, server.asked) == (USAGE, [])
    assert problem in done.stderr


def test_a_limit_of_cost_without_a_price_is_refused_with_its_line(asking: Path) -> None:
    (asking / "rules/limits.toml").write_text("[limits]\nmax_cost = 2\n")
    done = run_in(asking, "check")
    assert done.returncode == USAGE
    assert "rules/limits.toml:2:1" in done.stderr
    assert "hint: say what requests cost, for example: [price] output_token = 2.5e-06" in done.stderr


def test_what_was_refused_is_asked_again_though_all_is_up_to_date(asking: Path, server: ChatServer) -> None:
    server.plan = lambda asked: Answer(400, error_body("too long")) if asked.prompt == "q5" else Answer()
    done = run_in(asking, "build")
    told = "refused: 1 request of replies (asked again only by buildsys build --retry-failed)"
    assert (done.returncode, told in done.stderr.splitlines()) == (0, True)
    assert "up to date" in run_in(asking, "build").stderr
    assert "up to date" in run_in(asking, "plan").stdout
    server.plan = lambda asked: Answer()
    planned = run_in(asking, "plan", "--retry-failed").stdout
    assert "some of its requests were refused" in planned
    assert "at most 1 request (7 answered)" in planned
    assert len(server.asked) == N
    assert "1 ran" in run_in(asking, "build", "--retry-failed").stderr
    assert server.prompts[N:] == ["q5"]
    assert run_in(asking, "build", "--retry-failed").stderr.startswith("1 action up to date")
    assert len(server.asked) == N + 1
