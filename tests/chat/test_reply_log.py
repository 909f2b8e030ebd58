"""The log of replies: what was put is found, byte for byte, and nothing else is, whatever happens to its files."""

import os
import random
import struct
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from buildsys.errors import LOCKED, BuildError
from buildsys.run.replies import Reply, ReplyLog, forget, request_key, sizes

BODY = {"model": "m", "messages": [{"role": "user", "content": "why?"}], "temperature": 1}


def key_of(n: int) -> str:
    return request_key({**BODY, "n": n}, "m@1", 0)


def reply_to(n: int, *, kind: str = "reply", text: str = "because …") -> Reply:
    return Reply(
        kind=kind,
        request=b'{"n":%d}' % n,
        identity="m@1",
        sample=0,
        status=200 if kind == "reply" else 400,
        body=f'{{"n": {n}, "choices": ["{text * (n % 7)}"]}}'.encode(),
        started=1000.0 + n,
        ended=1001.0 + n,
        model="m",
        endpoint="http://127.0.0.1:1/v1",
    )


def fill(folder: Path, n: int, **options: int) -> None:
    with ReplyLog(folder, **options) as log:
        wait([log.put(key_of(i), reply_to(i)) for i in range(n)])


def segment(folder: Path) -> Path:
    (path,) = folder.glob("*.log")
    return path


def bounds(folder: Path) -> list[tuple[int, int]]:
    """Where each record begins and ends, in the one segment there is, in the order in which they were put."""
    data, starts, at = segment(folder).read_bytes(), [], 0
    while at >= 0:
        starts.append(at)
        at = data.find(data[:8], at + 1)
    return list(zip(starts, [*starts[1:], len(data)], strict=True))


def found(log: ReplyLog, n: int) -> set[int]:
    """Which of the first n are there. Each of them must be the right one."""
    answers = {i: log.get(key_of(i)) for i in range(n)}
    for i, answer in answers.items():
        assert answer is None or answer == reply_to(i)
    return {i for i, answer in answers.items() if answer}


def test_a_reply_is_found_again_byte_for_byte_after_reopening(tmp_path):
    odd = Reply(
        kind="reply",
        request=b"\x00\xff",
        identity="",
        sample=7,
        status=200,
        body=b" \r\n{\xf0\x9f\x98\x80} ",
        started=0.1,
        ended=1e9,
    )
    with ReplyLog(tmp_path / "deep" / "replies") as log:
        log.put(key_of(0), odd).result()
        assert log.get(key_of(0)) == odd
    with ReplyLog(tmp_path / "deep" / "replies") as log:
        assert log.get(key_of(0)) == odd
        assert key_of(0) in log
        assert key_of(1) not in log
        assert log.get(key_of(1)) is None
        assert len(log) == 1
        assert log.notices == []


def test_a_reply_counts_only_once_it_is_on_the_disk(tmp_path, monkeypatch):
    may_sync, real = threading.Event(), os.fsync
    with ReplyLog(tmp_path) as log:
        log.put(key_of(0), reply_to(0)).result()
        monkeypatch.setattr(os, "fsync", lambda file: (may_sync.wait(10), real(file)))
        durable = log.put(key_of(1), reply_to(1))
        again = log.put(key_of(1), reply_to(2))
        assert not durable.done()
        assert key_of(1) not in log
        may_sync.set()
        durable.result(10)
        assert again.done()
        assert log.get(key_of(1)) == reply_to(1)


def test_many_replies_share_a_sync(tmp_path, monkeypatch):
    synced, real = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), real(file)))
    with ReplyLog(tmp_path) as log, ThreadPoolExecutor(4) as threads:
        wait([*threads.map(lambda i: log.put(key_of(i), reply_to(i)), range(1280))])
        assert len(log) == 1280
    assert len(synced) <= 1280 / 64 + 5


def test_the_first_answer_wins_but_a_reply_supersedes_a_refusal(tmp_path):
    with ReplyLog(tmp_path) as log:
        log.put(key_of(0), reply_to(0)).result()
        log.put(key_of(0), reply_to(1)).result()
        log.put(key_of(0), reply_to(1, kind="refusal")).result()
        log.put(key_of(1), reply_to(1, kind="refusal")).result()
        log.put(key_of(1), reply_to(2, kind="refusal")).result()
        assert log.get(key_of(1)) == reply_to(1, kind="refusal")
        log.put(key_of(2), reply_to(2, kind="refusal"))
        log.put(key_of(2), reply_to(3)).result()
        log.put(key_of(1), reply_to(3)).result()
    with ReplyLog(tmp_path) as log:
        assert [log.get(key_of(i)) for i in range(3)] == [reply_to(0), reply_to(3), reply_to(3)]
        assert len(log) == 3


def test_there_is_one_writer_and_any_number_of_readers(tmp_path):
    fill(tmp_path, 3)
    with ReplyLog(tmp_path) as writer:
        with pytest.raises(BuildError, match="another process writes") as refused:
            ReplyLog(tmp_path)
        assert refused.value.exit_code == LOCKED
        with ReplyLog(tmp_path, writable=False) as reader:
            writer.put(key_of(3), reply_to(3)).result()
            assert found(reader, 4) == {0, 1, 2}
            with pytest.raises(ValueError, match="reading only"):
                reader.put(key_of(4), reply_to(4))
    with ReplyLog(tmp_path) as log:
        assert found(log, 4) == {0, 1, 2, 3}


def test_a_reader_leaves_a_half_written_record_alone(tmp_path):
    fill(tmp_path, 3)
    whole = segment(tmp_path).read_bytes()
    segment(tmp_path).write_bytes(whole[:-5])
    with ReplyLog(tmp_path, writable=False) as reader:
        assert found(reader, 3) == {0, 1}
        assert reader.notices == []
    assert segment(tmp_path).read_bytes() == whole[:-5]
    assert list(tmp_path.glob("*.torn")) == []


def test_the_log_goes_on_in_new_segments(tmp_path):
    fill(tmp_path, 40, segment_bytes=2000)
    assert len(list(tmp_path.glob("*.log"))) > 3
    with ReplyLog(tmp_path, segment_bytes=2000) as log:
        assert found(log, 40) == set(range(40))
        log.put(key_of(40), reply_to(40)).result()
    with ReplyLog(tmp_path) as log:
        assert found(log, 41) == set(range(41))


def test_a_torn_tail_is_put_aside_and_all_before_it_is_found(tmp_path):
    fill(tmp_path, 3)
    whole = segment(tmp_path).read_bytes()
    start, end = bounds(tmp_path)[-1]
    # In the header, in the payload, and at each byte of the CRC.
    for cut in [*range(start + 1, start + 33, 3), *range(start + 33, end - 5, 17), *range(end - 5, end)]:
        segment(tmp_path).write_bytes(whole[:cut])
        with ReplyLog(tmp_path) as log:
            assert found(log, 3) == {0, 1}
            (notice,) = log.notices
            assert f"the last {cut - start} bytes" in notice
            log.put(key_of(2), reply_to(2)).result()
        assert segment(tmp_path).read_bytes() == whole
        (torn,) = tmp_path.glob("*.torn")
        assert torn.read_bytes() == whole[start:cut]
        torn.unlink()


def test_a_tail_torn_twice_at_the_same_byte_is_kept_twice(tmp_path):
    fill(tmp_path, 1)
    whole = segment(tmp_path).read_bytes()
    for rest in (b"one", b"\x00" * 4096):
        segment(tmp_path).write_bytes(whole + rest)
        with ReplyLog(tmp_path) as log:
            assert found(log, 1) == {0}
    assert sorted(len(path.read_bytes()) for path in tmp_path.glob("*.torn")) == [3, 4096]


def test_a_flipped_byte_anywhere_hides_its_own_record_and_no_other(tmp_path):
    n = 30
    fill(tmp_path, n)
    whole = segment(tmp_path).read_bytes()
    places = bounds(tmp_path)
    assert len(places) == n
    dice = random.Random(11)
    # Headers are where a wrong length or key would do most harm, so half of the places are there.
    spots = [dice.randrange(len(whole)) for _ in range(100)]
    spots += [dice.choice(places)[0] + dice.randrange(32) for _ in range(100)]
    for spot in spots:
        damaged = bytearray(whole)
        damaged[spot] ^= 1 << dice.randrange(8)
        segment(tmp_path).write_bytes(damaged)
        hit = next(i for i, (start, end) in enumerate(places) if start <= spot < end)
        with ReplyLog(tmp_path) as log:
            assert found(log, n) == set(range(n)) - {hit}
            assert len(log.notices) == 1
        for torn in tmp_path.glob("*.torn"):
            torn.unlink()


def test_a_hole_in_the_middle_is_skipped_and_left_in_place(tmp_path):
    fill(tmp_path, 30, segment_bytes=1500)
    first = min(tmp_path.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[10:-10] = bytes(len(data) - 20)
    first.write_bytes(data)
    with ReplyLog(tmp_path, segment_bytes=1500) as log:
        left = found(log, 30)
        assert 20 < len(left) < 30
        assert [first.name in notice for notice in log.notices] == [True]
        for i in set(range(30)) - left:
            log.put(key_of(i), reply_to(i)).result()
        assert found(log, 30) == set(range(30))
    assert first.read_bytes() == data


def test_what_is_damaged_while_the_log_is_open_counts_as_unanswered(tmp_path):
    with ReplyLog(tmp_path) as log:
        wait([log.put(key_of(i), reply_to(i)) for i in range(3)])
        start, end = bounds(tmp_path)[1]
        with segment(tmp_path).open("r+b") as file:
            file.seek((start + end) // 2)
            file.write(b"\x00")
        assert found(log, 3) == {0, 2}
        assert key_of(1) not in log
        assert "damaged" in log.notices[0]
        log.put(key_of(1), reply_to(1)).result()
        assert found(log, 3) == {0, 1, 2}


def test_a_record_of_a_newer_format_is_neither_read_nor_lost(tmp_path):
    fill(tmp_path, 2)
    data = bytearray(segment(tmp_path).read_bytes())
    start, _ = bounds(tmp_path)[-1]
    data[start + 8] = 9
    data[-4:] = struct.pack("<I", zlib.crc32(data[start:-4]))
    segment(tmp_path).write_bytes(data)
    with ReplyLog(tmp_path) as log:
        assert found(log, 2) == {0}
        assert "newer format" in log.notices[0]
        log.put(key_of(2), reply_to(2)).result()
    assert segment(tmp_path).read_bytes().startswith(data)


def test_a_full_disk_is_an_error_for_people_and_leaves_no_half_record(tmp_path):
    script = """
import resource, sys
from pathlib import Path
from test_reply_log import ReplyLog, key_of, reply_to
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
log = ReplyLog(Path(sys.argv[1]))
for i in range(1000):
    log.put(key_of(i), reply_to(i)).result()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the log of replies can't be written" in ended.stderr
    with ReplyLog(tmp_path) as log:
        assert log.notices == []
        assert len(log) > 5
        assert found(log, len(log)) == set(range(len(log)))


def test_after_a_failed_sync_nothing_more_is_taken(tmp_path, monkeypatch):
    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    with ReplyLog(tmp_path) as log:
        log.put(key_of(0), reply_to(0)).result()
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(BuildError, match="Input/output error"):
            log.put(key_of(1), reply_to(1)).result()
        assert key_of(1) not in log
        with pytest.raises(BuildError, match="Input/output error"):
            log.put(key_of(2), reply_to(2))


def test_the_key_holds_all_that_decides_a_reply():
    same = request_key(BODY, "m@1", 0)
    assert request_key(dict(reversed(BODY.items())), "m@1", 0) == same
    assert request_key({**BODY, "messages": [{"content": "why?", "role": "user"}]}, "m@1", 0) == same
    others = [
        request_key({**BODY, "temperature": 1.0}, "m@1", 0),
        request_key({**BODY, "temperature": "1"}, "m@1", 0),
        request_key({**BODY, "x": None}, "m@1", 0),
        request_key({**BODY, "messages": [{"role": "user", "content": "why? "}]}, "m@1", 0),
        request_key(BODY, "m@2", 0),
        request_key(BODY, "m@1", 1),
    ]
    assert len({same, *others}) == 7


def test_the_order_of_a_schema_is_content():
    forth = {**BODY, "response_format": {"reasoning": {}, "answer": {}}}
    back = {**BODY, "response_format": {"answer": {}, "reasoning": {}}}
    assert request_key(forth, "m", 0) != request_key(back, "m", 0)


def test_what_is_forgotten_is_gone_and_nothing_else_is(tmp_path: Path) -> None:
    fill(tmp_path, 20, segment_bytes=600)
    first = min(tmp_path.glob("*.log"))
    before = sizes(tmp_path)
    with first.open("r+b") as file:
        file.seek(12)
        file.write(b"damage")
    (tmp_path / "00000001.log.rest").write_bytes(b"left by a kill")
    forget(tmp_path, [key_of(n) for n in range(0, 20, 3)])
    kept = {n for n in range(1, 20) if n % 3}
    assert sizes(tmp_path) == {key_of(n): before[key_of(n)] for n in kept}
    assert b"damage" in first.read_bytes()
    with ReplyLog(tmp_path) as log:
        assert found(log, 20) == kept
        log.put(key_of(0), reply_to(0)).result()
        assert found(log, 20) == {0, *kept}


def test_nothing_is_forgotten_while_a_build_writes(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    with ReplyLog(tmp_path), pytest.raises(BuildError) as raised:
        forget(tmp_path, [key_of(0)])
    assert raised.value.exit_code == LOCKED
    assert len(sizes(tmp_path)) == 2
