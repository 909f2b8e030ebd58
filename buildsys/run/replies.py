"""The append-only log of replies: what was paid for is kept, and found again by the key of its request.

Knows nothing of HTTP, rules, rows or retries. A folder of segment files; a record is a header (magic, version, kind,
payload length, request key), a payload and a CRC over both. One process writes; readers need no lock, since bytes once
written never change. A damaged record is skipped and reported, it never hides an intact one and is never served.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import re
import struct
import threading
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, NamedTuple

import msgspec

from buildsys.digest import digest_of
from buildsys.errors import FAILED, LOCKED, BuildError

KEY_FORMAT: Final = 1
SEGMENT_BYTES: Final = 256 * 1024 * 1024
SYNC_DELAY_S: Final = 0.05
SYNC_RECORDS: Final = 64

# No UTF-8 text holds 0xff or 0xfe, so no reply can contain what looks like the start of a record.
_MAGIC: Final = b"\xffreply\xfe\n"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<8sBB2xI16s")
_CRC: Final = struct.Struct("<I")
_KINDS: Final = {"reply": 0, "refusal": 1}
_REFUSAL: Final = _KINDS["refusal"]
_SEGMENT_NAME: Final = re.compile(r"\d{8}\.log")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer as it was observed. kind "refusal": the server will not answer this request (400, 413, 422).

    request, body: the bytes sent and received, untouched. started, ended: seconds since 1970. endpoint: where it was.
    model, system_fingerprint: what the server says of itself, "" where it says nothing.
    """

    kind: Literal["reply", "refusal"]
    request: bytes
    identity: str
    sample: int
    status: int
    body: bytes
    started: float
    ended: float
    model: str = ""
    system_fingerprint: str = ""
    endpoint: str = ""


def request_key(body: Mapping[str, object], identity: str, sample: int) -> str:
    """The key of a request: digest of its body, of who is to answer, and of which sample it is.

    The fields of the body and of its messages have no order. Below that the order counts: it is content in the schema
    of a tool or of an answer, which servers follow. Raises TypeError or ValueError where the body is not JSON.
    """
    canonical = {name: body[name] for name in sorted(body)}
    if isinstance(messages := body.get("messages"), list):
        canonical["messages"] = [dict(sorted(m.items())) if isinstance(m, dict) else m for m in messages]
    return digest_of("request", KEY_FORMAT, json_bytes(canonical), identity, sample)


def json_bytes(value: object) -> bytes:
    """Compact JSON in the value's own order. Raises TypeError or ValueError where there is none, as for NaN."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half a surrogate pair, as truncated "\ud83d" escapes leave it, has no UTF-8 form; the escape is still JSON.
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


class ReplyLog:
    """The replies of a project, open for reading, and for writing unless another process does (then a BuildError).

    notices: what people should know of the log's state (torn tails, damaged records), in the order it was seen.
    Safe to use from several threads.
    """

    def __init__(self, folder: Path, *, writable: bool = True, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.notices: list[str] = []
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._index: dict[bytes, int] = {}
        self._files: list[int] = []
        self._names: list[str] = []
        self._end = 0
        self._waiting: list[_Waiting] = []
        self._pending: dict[bytes, _Waiting] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._broken: BuildError | None = None
        self._flusher: threading.Thread | None = None
        self._lock_file = _lock(folder) if writable else -1
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._index

    def get(self, key: str) -> Reply | None:
        """The durable answer to a request, checked byte for byte; None where there is none, or only a damaged one."""
        raw = bytes.fromhex(key)
        packed = self._index.get(raw)
        if packed is None:
            return None
        at = _unpack(packed)
        data = os.pread(self._files[at.segment], at.length, at.offset)
        record = _record_at(data, 0)
        if record is not None and record.key == raw:
            with contextlib.suppress(msgspec.DecodeError):
                return msgspec.msgpack.decode(data[_HEAD.size : -_CRC.size], type=Reply)
        self._index.pop(raw, None)
        self.notices.append(
            f"a reply in {self._names[at.segment]} at byte {at.offset} is damaged; it counts as unanswered"
        )
        return None

    def put(self, key: str, reply: Reply) -> Future[None]:
        """Append an answer; the future resolves once it is on the disk, at most 50 ms later, and counts from then on.

        The first answer to a request wins, except that a reply supersedes a refusal. Raises BuildError where the disk
        takes no more; nothing of the record is left then.
        """
        raw = bytes.fromhex(key)
        with self._changed:
            if self._broken:
                raise self._broken
            if self._lock_file < 0:
                raise ValueError("this log is open for reading only")
            known = self._index.get(raw)
            earlier = self._pending.get(raw)
            if earlier and (reply.kind == "refusal" or not earlier.at.refusal):
                return earlier.durable
            if known is not None and (reply.kind == "refusal" or not _unpack(known).refusal):
                return _resolved()
            waiting = _Waiting(raw, self._append(_record(raw, reply), reply.kind == "refusal"), _unresolved())
            self._waiting.append(waiting)
            self._pending[raw] = waiting
            self._start_flusher()
            self._changed.notify_all()
            return waiting.durable

    def close(self) -> None:
        """Make everything durable and let the next writer in. May be called twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._flusher:
            self._flusher.join()
        for file in [*self._files, self._lock_file]:
            if file >= 0:
                os.close(file)
        self._files.clear()
        self._index.clear()
        self._lock_file = -1

    def __enter__(self) -> ReplyLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------ opening

    def _open(self) -> None:
        self._names = [path.name for path in _segments(self._folder)]
        mode = os.O_RDWR | os.O_APPEND if self._lock_file >= 0 else os.O_RDONLY
        for number, name in enumerate(self._names):
            self._files.append(os.open(self._folder / name, mode))
            self._scan(number, last=number == len(self._names) - 1)

    def _scan(self, number: int, *, last: bool) -> None:
        file = self._files[number]
        size = os.fstat(file).st_size
        end = 0
        for found in _records(file, size):
            if isinstance(found, _Gap):
                tail = last and found.end == size
                if tail and self._lock_file >= 0:
                    self._cut_off(number, found)
                elif not tail:
                    self._report(number, found)
                continue
            end = found.end
            if found.version != _VERSION or found.kind not in _KINDS.values():
                self.notices.append(f"a record in {self._names[number]} is of a newer format; it is kept but not read")
                continue
            known = self._index.get(found.key)
            if known is None or (_unpack(known).refusal and found.kind != _REFUSAL):
                at = _At(number, found.start, found.end - found.start, found.kind == _REFUSAL)
                self._index[found.key] = _pack(at)
        self._end = end
        if last and self._lock_file >= 0:
            # What a killed writer left in the page cache was found just now; it must not be lost after use.
            os.fsync(file)

    def _report(self, number: int, gap: _Gap) -> None:
        self.notices.append(
            f"{gap.end - gap.start} bytes of {self._names[number]} at byte {gap.start} are damaged; "
            "the requests answered there count as unanswered"
        )

    def _cut_off(self, number: int, gap: _Gap) -> None:
        """Move a torn tail out of the way of the next record, into a file of its own."""
        file = self._files[number]
        aside = _fresh(self._folder / f"{self._names[number]}.{gap.start}")
        with aside.open("xb") as out:
            for at in range(gap.start, gap.end, 1 << 20):
                out.write(os.pread(file, min(1 << 20, gap.end - at), at))
            out.flush()
            os.fsync(out.fileno())
        os.ftruncate(file, gap.start)
        self.notices.append(
            f"the last {gap.end - gap.start} bytes of {self._names[number]} were no whole record, as after a crash; "
            f"they are in {aside.name}"
        )

    # ------------------------------------------------------------ writing

    def _append(self, record: bytes, refusal: bool) -> _At:
        if not self._files or (self._end and self._end + len(record) > self._segment_bytes):
            self._next_segment()
        file, start = self._files[-1], self._end
        try:
            written = os.write(file, record)
            while written < len(record):
                written += os.write(file, record[written:])
        except OSError as error:
            os.ftruncate(file, start)
            raise _disk_error(error, self._folder) from error
        self._end = start + len(record)
        return _At(len(self._files) - 1, start, len(record), refusal)

    def _next_segment(self) -> None:
        if self._files:
            os.fsync(self._files[-1])
            number = int(self._names[-1].removesuffix(".log")) + 1
        else:
            number = 1
        name = f"{number:08}.log"
        self._files.append(os.open(self._folder / name, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644))
        self._names.append(name)
        self._end = 0
        # The lock is the folder itself; without this its new entry may be lost with all that is in it.
        os.fsync(self._lock_file)

    def _start_flusher(self) -> None:
        if self._flusher is None:
            self._flusher = threading.Thread(target=self._flush_for_ever, name="reply log", daemon=True)
            self._flusher.start()

    def _flush_for_ever(self) -> None:
        synced = 0.0
        while batch := self._next_batch(synced + SYNC_DELAY_S):
            try:
                os.fsync(self._files[-1])
            except OSError as error:
                self._give_up(batch, _disk_error(error, self._folder))
                return
            synced = time.monotonic()
            with self._changed:
                for waiting in batch:
                    self._index[waiting.key] = _pack(waiting.at)
                    if self._pending.get(waiting.key) is waiting:
                        del self._pending[waiting.key]
            for waiting in batch:
                waiting.durable.set_result(None)

    def _next_batch(self, due: float) -> list[_Waiting]:
        """What is to be made durable together; empty once the log is closing and nothing is left.

        A lone reply is due at once; in a stream of them one sync is shared by 64, or by those of 50 ms.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(
                lambda: len(self._waiting) >= SYNC_RECORDS or self._closing, timeout=max(0.0, due - time.monotonic())
            )
            batch, self._waiting = self._waiting, []
            return batch

    def _give_up(self, batch: list[_Waiting], error: BuildError) -> None:
        """After a failed sync nobody knows what is on the disk (Linux drops the pages), so nothing more is taken."""
        with self._changed:
            self._broken = error
            batch += self._waiting
            self._waiting = []
            self._pending.clear()
        for waiting in batch:
            waiting.durable.set_exception(error)


# ---------------------------------------------------------------- taking replies out


def sizes(folder: Path) -> dict[str, int]:
    """The key of every request that was answered, and the bytes that its answers take in the log."""
    found: dict[str, int] = {}
    for path in _segments(folder):
        with path.open("rb") as file:
            for record in _records(file.fileno(), os.fstat(file.fileno()).st_size):
                if isinstance(record, _Found):
                    found[record.key.hex()] = found.get(record.key.hex(), 0) + record.end - record.start
    return found


def forget(folder: Path, keys: Collection[str]) -> None:
    """Take answers out of the log for good; all else in it stays, damage and newer formats too.

    A segment is replaced at once: after a kill it is as it was or as it should be. Raises BuildError while a build
    writes the log.
    """
    gone = {bytes.fromhex(key) for key in keys}
    lock = _lock(folder)
    try:
        for path in _segments(folder):
            _rewrite(path, gone)
        os.fsync(lock)
    finally:
        os.close(lock)


def _segments(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.log") if _SEGMENT_NAME.fullmatch(path.name))


def _rewrite(path: Path, gone: Collection[bytes]) -> None:
    with path.open("rb") as file:
        records = list(_records(file.fileno(), os.fstat(file.fileno()).st_size))
        kept = [one for one in records if isinstance(one, _Gap) or one.version != _VERSION or one.key not in gone]
        if len(kept) == len(records):
            return
        copy = path.with_name(f"{path.name}.rest")
        with copy.open("wb") as out:
            for one in kept:
                out.write(os.pread(file.fileno(), one.end - one.start, one.start))
            out.flush()
            os.fsync(out.fileno())
    os.rename(copy, path)


# ---------------------------------------------------------------- records


class _At(NamedTuple):
    segment: int
    offset: int
    length: int
    refusal: bool


class _Waiting(NamedTuple):
    key: bytes
    at: _At
    durable: Future[None]


class _Found(NamedTuple):
    start: int
    end: int
    version: int
    kind: int
    key: bytes


class _Gap(NamedTuple):
    start: int
    end: int


def _pack(at: _At) -> int:
    """A location in one int: a million of them are a third of what tuples take."""
    return ((at.segment << 40 | at.offset) << 32 | at.length) << 1 | at.refusal


def _unpack(packed: int) -> _At:
    place = packed >> 33
    return _At(place >> 40, place & (1 << 40) - 1, packed >> 1 & (1 << 32) - 1, bool(packed & 1))


def _record(key: bytes, reply: Reply) -> bytes:
    payload = msgspec.msgpack.encode(reply)
    record = _HEAD.pack(_MAGIC, _VERSION, _KINDS[reply.kind], len(payload), key) + payload
    return record + _CRC.pack(zlib.crc32(record))


def _record_at(data: bytes | memoryview, start: int) -> _Found | None:
    """The intact record that starts there, of whatever version."""
    if start + _HEAD.size + _CRC.size > len(data):
        return None
    magic, version, kind, length, key = _HEAD.unpack_from(data, start)
    crc_at = start + _HEAD.size + length
    if magic != _MAGIC or crc_at + _CRC.size > len(data):
        return None
    if zlib.crc32(data[start:crc_at]) != _CRC.unpack_from(data, crc_at)[0]:
        return None
    return _Found(start, crc_at + _CRC.size, version, kind, key)


def _records(file: int, size: int) -> Iterator[_Found | _Gap]:
    """All intact records of a segment and the damage between them, in order."""
    if not size:
        return
    with mmap.mmap(file, size, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        at = 0
        while at < size:
            if found := _record_at(view, at):
                yield found
                at = found.end
                continue
            start = at
            while (at := mapped.find(_MAGIC, at + 1)) >= 0 and not _record_at(view, at):
                pass
            at = at if at >= 0 else size
            yield _Gap(start, at)


# ---------------------------------------------------------------- files


def _lock(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise BuildError(
            "another process writes the log of replies",
            facts=[("log", str(folder))],
            hint="wait for the other build, or end it",
            exit_code=LOCKED,
        ) from None
    return file


def _fresh(path: Path) -> Path:
    """A name with `.torn` that is not taken: a tail may be torn at the same byte again."""
    aside, n = path.with_name(f"{path.name}.torn"), 1
    while aside.exists():
        aside, n = path.with_name(f"{path.name}.{n}.torn"), n + 1
    return aside


def _disk_error(error: OSError, folder: Path) -> BuildError:
    return BuildError(
        "the log of replies can't be written",
        facts=[("log", str(folder)), ("reason", error.strerror or str(error))],
        hint="make room on the disk; all replies logged so far are kept",
        exit_code=FAILED,
    )


def _unresolved() -> Future[None]:
    future: Future[None] = Future()
    # From here on it can't be cancelled: a waiter that goes away must not keep the flusher from resolving it.
    future.set_running_or_notify_cancel()
    return future


def _resolved() -> Future[None]:
    future = _unresolved()
    future.set_result(None)
    return future
