"""Segments that have ended are packed and put together: less on the disk, found as fast, and no less safe."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from concurrent.futures import wait
from pathlib import Path

import pytest

from buildsys.errors import BuildError
from buildsys.run import segments
from buildsys.run.replies import Reply, ReplyLog, forget, sizes
from buildsys.run.segments import Found
from tests.chat.test_reply_log import found, key_of, reply_to

N = 600
SEGMENT_BYTES = 60_000
WORDS = "the a of verifier draft token shard reply prompt because which accepts rejects length speculative".split()


def long_reply(n: int, kind: str = "reply") -> Reply:
    text = " ".join(random.Random(n).choices(WORDS, k=60))
    return reply_to(n, kind=kind, text=f"{text} ")


def has(log: ReplyLog, n: int, what: Reply | None = None) -> bool:
    """Whether there is an answer; it must be the right one."""
    answer = log.get(key_of(n))
    assert answer in (None, what or long_reply(n))
    return answer is not None


def packed(log: ReplyLog) -> bool:
    return all(one.is_packed for one in log._segments[:-1])


def fill(folder: Path, numbers: range = range(N)) -> None:
    with ReplyLog(folder, segment_bytes=SEGMENT_BYTES) as log:
        wait([log.put(key_of(n), long_reply(n)) for n in numbers])
        log.wait_until_packed()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    fill(folder)
    return folder


@pytest.fixture
def log_folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "log"))


def test_what_is_packed_is_found_byte_for_byte_and_takes_less(log_folder: Path, tmp_path: Path) -> None:
    with ReplyLog(log_folder) as log:
        assert packed(log)
        assert len(log) == N
        assert all(has(log, n) for n in range(N))
        assert not has(log, N)
        assert log.notices == []
    with ReplyLog(tmp_path / "plain", segment_bytes=1 << 30) as log:
        wait([log.put(key_of(n), long_reply(n)) for n in range(N)])
    assert sum(sizes(log_folder).values()) < 0.5 * sum(sizes(tmp_path / "plain").values())


def test_small_segments_are_put_together(log_folder: Path) -> None:
    assert 1 < len(segments.segments(log_folder)) <= 4
    assert [path.name for path in log_folder.glob("*.rest")] == []


def test_ended_segments_are_opened_by_their_index_alone(log_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned, real = [], segments.records
    monkeypatch.setattr(segments, "records", lambda file: (scanned.append(file), real(file))[1])
    with ReplyLog(log_folder, writable=False) as log:
        assert len(scanned) == 1
        assert len(log) == N


def test_an_index_that_is_gone_or_damaged_or_of_another_time_is_made_anew(log_folder: Path) -> None:
    one, two = sorted(log_folder.glob("*.index"))[:2]
    right = {path: path.read_bytes() for path in (one, two)}
    one.unlink()
    two.write_bytes(right[one])
    with ReplyLog(log_folder) as log:
        assert all(has(log, n) for n in range(N))
    assert {path: path.read_bytes() for path in right} == right
    for damage in (b"", right[one][:-1], right[one][:20], right[one][:-9] + b"\x00" + right[one][-8:]):
        one.write_bytes(damage)
        with ReplyLog(log_folder, writable=False) as log:
            assert all(has(log, n) for n in range(N))


def test_a_reply_in_a_later_segment_takes_the_place_of_a_packed_refusal(tmp_path: Path) -> None:
    with ReplyLog(tmp_path, segment_bytes=SEGMENT_BYTES) as log:
        wait([log.put(key_of(n), long_reply(n, "refusal")) for n in range(0, N, 5)])
        wait([log.put(key_of(n), long_reply(n)) for n in range(N) if n % 5])
        log.wait_until_packed()
        wait([log.put(key_of(n), long_reply(n)) for n in range(0, N, 10)])
        assert all(has(log, n, long_reply(n, "refusal" if n % 10 == 5 else "reply")) for n in range(N))
        wait([log.put(key_of(n), long_reply(n + 1)) for n in range(N, 2 * N)])
        log.wait_until_packed()
        assert all(has(log, n, long_reply(n, "refusal" if n % 10 == 5 else "reply")) for n in range(N))
        assert len(log) == 2 * N


def test_a_rejected_reply_is_kept_and_its_request_is_unanswered(log_folder: Path) -> None:
    with ReplyLog(log_folder, segment_bytes=SEGMENT_BYTES) as log:
        log.reject(key_of(3), "an empty answer").result()
        log.reject(key_of(N + 1), "what is not there").result()
        assert key_of(3) not in log
        assert log.get(key_of(3)) is None
        assert len(log) == N - 1
        log.put(key_of(4), long_reply(5)).result()
        assert has(log, 4)
    with ReplyLog(log_folder, segment_bytes=SEGMENT_BYTES) as log:
        assert log.get(key_of(3)) is None
        log.put(key_of(3), reply_to(7)).result()
        assert log.get(key_of(3)) == reply_to(7)
        before = sizes(log_folder)[key_of(3)]
        wait([log.put(key_of(n), long_reply(n)) for n in range(N, 4 * N)])
        log.wait_until_packed()
        assert log.get(key_of(3)) == reply_to(7)
        assert before > 0, "what was rejected is there still"
    assert sum(record.key.hex() == key_of(3) for record in all_records(log_folder)) == 3


def all_records(folder: Path) -> list[Found]:
    found = []
    for path in segments.segments(folder):
        with path.open("rb") as file:
            found += [one for one in segments.records(file.fileno()) if isinstance(one, Found)]
    return found


def test_what_is_forgotten_is_gone_from_packed_segments_too(log_folder: Path) -> None:
    forget(log_folder, [key_of(n) for n in range(0, N, 3)])
    with ReplyLog(log_folder) as log:
        assert [n for n in range(N) if has(log, n)] == [n for n in range(N) if n % 3]
        assert log.notices == []


def test_a_kill_between_two_steps_of_putting_together_doubles_nothing(log_folder: Path, tmp_path: Path) -> None:
    """The later segment is still there, though all of it stands in the earlier one."""
    later = sorted(segments.segments(log_folder))[0]
    shutil.copy(later, log_folder / "00000000.log")
    with ReplyLog(log_folder) as log:
        assert len(log) == N
        assert all(has(log, n) for n in range(N))


def test_readers_go_on_while_it_is_packed(tmp_path: Path) -> None:
    with ReplyLog(tmp_path, segment_bytes=1 << 30) as log:
        wait([log.put(key_of(n), long_reply(n)) for n in range(N)])
    with ReplyLog(tmp_path, writable=False) as reader:
        with ReplyLog(tmp_path, segment_bytes=SEGMENT_BYTES) as log:
            log.put(key_of(N), long_reply(N)).result()
            for n in range(20 * N):
                assert has(log, n % N)
                if packed(log):
                    break
            log.wait_until_packed()
            assert all(has(log, n) for n in range(N + 1))
        assert all(has(reader, n) for n in range(N))


WRITES = """
import sys
from pathlib import Path
from tests.chat.test_packed_log import *
with ReplyLog(Path(sys.argv[1]), segment_bytes=SEGMENT_BYTES) as log:
    for n in range(int(sys.argv[2]), 20 * N, 8):
        wait([log.put(key_of(m), long_reply(m)) for m in range(n, n + 8)])
        print(n + 7, flush=True)
"""


def test_whenever_it_is_killed_all_that_was_acknowledged_is_there(tmp_path: Path) -> None:
    dice, acknowledged = random.Random(3), -1
    for _ in range(int(os.environ.get("LOG_KILLS", "4"))):
        arguments = [sys.executable, "-c", WRITES, str(tmp_path / "log"), str(acknowledged + 1)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            for _ in range(dice.randrange(2, 40)):
                acknowledged = int(writer.stdout.readline() or acknowledged)
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                acknowledged = int(line)
    with ReplyLog(tmp_path / "log", segment_bytes=SEGMENT_BYTES) as log:
        log.wait_until_packed()
        assert all(has(log, n) for n in range(acknowledged + 1))


@pytest.mark.parametrize("seed", range(int(os.environ.get("LOG_CASES", "25"))))
def test_whatever_bytes_are_torn_or_flipped_all_that_is_whole_is_found(log_folder: Path, seed: int) -> None:
    """Of a log with packed segments, plain ones and indexes."""
    dice = random.Random(seed)
    paths = segments.segments(log_folder)
    spoilt = dice.choice([*paths, *paths, *log_folder.glob("*.index")])
    data = bytearray(spoilt.read_bytes())
    cut = dice.randrange(len(data)) if dice.random() < 0.3 else len(data)
    spots = [dice.randrange(len(data)) for _ in range(dice.choice((0, 1, 1, 3)))]
    if spoilt.suffix == ".log" and dice.random() < 0.4:
        spots += [dice.choice(records_in(spoilt)).start + dice.randrange(32)]
    whole = set(range(N)) - hit_by(spoilt, spots, cut)
    for spot in spots:
        data[spot] ^= 1 << dice.randrange(8)
    spoilt.write_bytes(data[:cut])
    for options in ({"writable": False}, {"writable": False, "thorough": True}, {}):
        with ReplyLog(log_folder, **options) as log:
            assert {n for n in range(N) if has(log, n)} == whole
    with ReplyLog(log_folder) as log:
        wait([log.put(key_of(n), long_reply(n)) for n in set(range(N)) - whole])
        assert all(has(log, n) for n in range(N))


def records_in(path: Path) -> list[Found]:
    with path.open("rb") as file:
        return [one for one in segments.records(file.fileno()) if isinstance(one, Found)]


def hit_by(path: Path, spots: list[int], cut: int) -> set[int]:
    """The replies that the damage takes: those it touches, and all of a segment where it takes both dictionaries."""
    if path.suffix != ".log":
        return set()
    numbers = {bytes.fromhex(key_of(n)): n for n in range(N)}
    found = records_in(path)
    touched = [one for one in found if one.end > cut or any(one.start <= spot < one.end for spot in spots)]
    if found[0].is_dictionary and all(one in touched for one in found if one.is_dictionary):
        touched = found
    return {numbers[one.key] for one in touched if not one.is_dictionary}


def test_without_the_library_that_unpacks_it_says_what_to_install(
    log_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with ReplyLog(log_folder) as log, pytest.raises(BuildError, match="not installed") as raised:
        found(log, N)
    assert raised.value.hint == "pip install 'buildsys[chat]'"
