"""`buildsys replies`: what it prints, what it takes out and brings in, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buildsys.run.replies import Reply, ReplyLog, request_key
from tests.cli.conftest import Run, run_in, write_project


def body_to(n: int) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": f"why {n}? …"}], "temperature": 1.0}


def key_of(n: int) -> str:
    return request_key(body_to(n), "m@1", 0)


def reply_to(n: int, kind: str = "reply") -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": f"because {n}"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    content = {"choices": [choice], "usage": usage} if kind == "reply" else {"error": {"message": "too long"}}
    return Reply(
        kind=kind,  # type: ignore[arg-type]
        request=json.dumps(body_to(n), ensure_ascii=False, separators=(",", ":")).encode(),
        identity="m@1",
        sample=0,
        status=200 if kind == "reply" else 400,
        body=json.dumps(content).encode(),
        started=1_700_000_000.0,
        ended=1_700_000_002.5,
        model="m" if kind == "reply" else "",
        endpoint="http://127.0.0.1:1/v1",
    )


@pytest.fixture
def kept(project: Path) -> Path:
    """The log of a project: replies 0 to 4, of which 1 was refused at first, and 3 was rejected; 5 was refused."""
    folder = project / ".buildsys" / "replies"
    with ReplyLog(folder) as log:
        log.put(key_of(1), reply_to(1, "refusal")).result()
        for n in range(5):
            log.put(key_of(n), reply_to(n)).result()
        log.put(key_of(5), reply_to(5, "refusal")).result()
        log.reject(key_of(3), "not a reason").result()
    return folder


def found(folder: Path) -> dict[int, Reply]:
    with ReplyLog(folder, writable=False) as log:
        return {n: reply for n in range(9) if (reply := log.get(key_of(n)))}


def test_it_counts_them(run: Run, kept: Path) -> None:
    done = run("replies")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == "4 replies, 20 tokens of output".split()
    assert ["model", "m", "4"] in lines
    assert ["finish", "reason", "stop", "4"] in lines
    assert ["refused", "1"] in lines
    assert ["rejected", "or", "superseded", "2"] in lines
    counts = json.loads(run("replies", "stats", "--json").stdout)
    assert (counts["replies"], counts["refusals"], counts["not_counting"]) == (4, 1, 2)


def test_it_shows_one_by_the_first_letters_of_its_id(run: Run, kept: Path) -> None:
    told = run("replies", "show", key_of(2)[:12]).stdout
    assert told.startswith(key_of(2))
    assert '"content": "because 2"' in told
    assert '"content": "why 2? …"' in told
    row = json.loads(run("replies", "show", key_of(2), "--json").stdout)
    assert row["body"].encode() == reply_to(2).body
    rejected = run("replies", "show", key_of(3)).stdout
    assert rejected.splitlines()[0] == f"{key_of(3)}  counts no more"


def test_an_id_that_is_none_ends_with_3(run: Run, kept: Path) -> None:
    done = run("replies", "show", "zz")
    assert done.returncode == 3
    assert 'no id of a request begins with "zz"' in done.stderr
    done = run("replies", "show", "")
    assert done.returncode == 3
    assert "6 ids begin with" in done.stderr


def test_what_is_exported_is_all_that_counts_and_can_be_brought_in_elsewhere(
    run: Run, kept: Path, tmp_path: Path
) -> None:
    file = tmp_path / "all.jsonl"
    assert run("replies", "export", str(file)).stderr == "5 replies written\n"
    assert len(file.read_text().splitlines()) == 5
    other = write_project(tmp_path / "other") / ".buildsys" / "replies"
    assert run("replies", "import", str(file), cwd=tmp_path / "other").stderr == "5 replies taken, 0 were there\n"
    assert found(other) == found(kept)
    assert run("replies", "import", str(file), cwd=tmp_path / "other").stderr == "0 replies taken, 5 were there\n"


def test_through_pipes_it_is_data_alone(kept: Path, project: Path) -> None:
    out = run_in(project, "replies", "export", "-")
    assert [json.loads(line)["id"] for line in out.stdout.splitlines()] == [key_of(n) for n in (0, 1, 2, 4, 5)]
    assert run_in(project, "replies", "import", "-", stdin=out.stdout).stderr == "0 replies taken, 5 were there\n"


def test_a_reply_that_was_rejected_here_can_be_brought_in(run: Run, kept: Path, tmp_path: Path) -> None:
    with ReplyLog(tmp_path / "there") as log:
        log.put(key_of(3), reply_to(3)).result()
    (write_project(tmp_path / "other") / ".buildsys").mkdir()
    (tmp_path / "there").rename(tmp_path / "other" / ".buildsys" / "replies")
    file = tmp_path / "one.jsonl"
    run("replies", "export", str(file), cwd=tmp_path / "other")
    assert run("replies", "import", str(file)).stderr == "1 reply taken, 0 were there\n"
    assert found(kept)[3] == reply_to(3)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda row: row.update(body=7), "int"),
        (lambda row: row.update(sample=1), "its id is not that of its request"),
        (lambda row: row.update(request='{"model": "other"}'), "its id is not that of its request"),
        (lambda row: row.pop("endpoint"), "endpoint"),
        (lambda row: row.update(status="200"), "status"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_those_before_it_are_taken(
    run: Run, kept: Path, tmp_path: Path, spoil: object, says: str
) -> None:
    file = tmp_path / "all.jsonl"
    run("replies", "export", str(file))
    first, second, *_ = map(json.loads, file.read_text().splitlines())
    spoil(second)  # type: ignore[operator]
    file.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    write_project(tmp_path / "other")
    done = run("replies", "import", str(file), cwd=tmp_path / "other")
    assert done.returncode == 2
    assert says in done.stderr
    assert f"{file}:2" in done.stderr
    assert found(tmp_path / "other" / ".buildsys" / "replies").keys() == {0}


def test_damage_is_told_and_ends_with_1(run: Run, kept: Path) -> None:
    assert run("replies", "verify").returncode == 0
    (segment,) = kept.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    done = run("replies", "verify")
    assert done.returncode == 1
    assert "are damaged" in done.stdout
    assert json.loads(run("replies", "verify", "--json").stdout)["damaged"]


def test_where_nothing_was_ever_asked_it_says_so(run: Run) -> None:
    done = run("replies")
    assert done.returncode == 2
    assert "no reply was ever kept here" in done.stderr
