"""The append-only log of replies: what was paid for is kept, and found again by the key of its request.

Knows nothing of HTTP, rules, rows or retries. A folder of segments; one process writes to the last of them, and packs
those that have ended. Readers need no lock, since bytes once written never change: what is packed is a file of its own,
which takes the other's place at once. A damaged record is skipped and reported, it never hides an intact one and is
never served.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, NamedTuple

import msgspec

from buildsys.digest import digest_of
from buildsys.errors import FAILED, LOCKED, BuildError
from buildsys.run import segments
from buildsys.run.segments import PACKED, REFUSAL, REJECTION, REPLY, At, Found, Gap, Index, Unpacker, supersedes

KEY_FORMAT: Final = 1
SEGMENT_BYTES: Final = 64 * 1024 * 1024
PACKED_BYTES: Final = 128 * 1024 * 1024
"""Packed segments are put together up to this size."""
SYNC_DELAY_S: Final = 0.05
SYNC_RECORDS: Final = 64
_KINDS: Final = {"reply": REPLY, "refusal": REFUSAL}


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

    notices: what people should know of the log's state (torn tails, damaged records), in the order it was seen; of
    segments that have an index only where `thorough`, which reads all there is. Safe to use from several threads.
    """

    def __init__(
        self, folder: Path, *, writable: bool = True, segment_bytes: int = SEGMENT_BYTES, thorough: bool = False
    ) -> None:
        self.notices: list[str] = []
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._thorough = thorough
        self._segments: list[_Segment] = []
        self._retired: list[_Segment] = []
        self._end = 0
        self._waiting: list[_Waiting] = []
        self._pending: dict[bytes, _Waiting] = {}
        lock = threading.RLock()
        self._changed, self._ended = threading.Condition(lock), threading.Condition(lock)
        self._closing = False
        self._broken: BuildError | None = None
        self._flusher: threading.Thread | None = None
        self._packer: threading.Thread | None = None
        self._packing = False
        self._tried: set[tuple[str, ...]] = set()
        self._lock_file = _lock(folder) if writable else -1
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """How many requests are answered."""
        seen: set[bytes] = set()
        n = 0
        for one in reversed(self._segments):
            keys = [key for key in one if key not in seen]
            n += sum(at is not None and at.kind != REJECTION for at in map(one.find, keys))
            seen.update(keys)
        return n

    def __contains__(self, key: str) -> bool:
        found = self._find(bytes.fromhex(key))
        return found is not None and found[1].kind != REJECTION

    def get(self, key: str) -> Reply | None:
        """The durable answer to a request, checked byte for byte; None where there is none, or only a damaged one.

        Raises BuildError where it is packed and the library that unpacks it is missing.
        """
        return self._said(bytes.fromhex(key))[1]

    def answers(self) -> Iterator[tuple[str, Reply, bool]]:
        """All whole answers, in the order in which they came: key, answer, and whether it counts.

        One that was rejected does not, nor does a refusal that a reply has taken the place of. As `get`.
        """
        for one in self._segments:
            for found in segments.records(one.file):
                if isinstance(found, Found) and found.is_answer and (reply := one.reply(found.key, found.at)):
                    yield found.key.hex(), reply, self._find(found.key) == (one, found.at)

    def put(self, key: str, reply: Reply) -> Future[None]:
        """Append an answer; the future resolves once it is on the disk, at most 50 ms later, and counts from then on.

        The first answer to a request wins, except that a reply supersedes a refusal. Raises BuildError where the disk
        takes no more; nothing of the record is left then.
        """
        return self._put(bytes.fromhex(key), _KINDS[reply.kind], msgspec.msgpack.encode(reply))

    def reject(self, key: str, why: str) -> Future[None]:
        """Have a request asked anew: its answer is kept, but counts no more. As `put`."""
        return self._put(bytes.fromhex(key), REJECTION, msgspec.msgpack.encode({"why": why, "at": time.time()}))

    def wait_until_packed(self) -> None:
        """Until there is nothing left to pack; else that is done while the log is open for something else."""
        with self._ended:
            self._ended.wait_for(lambda: not (self._packing or self._to_pack()))

    def close(self) -> None:
        """Make everything durable and let the next writer in. May be called twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._ended.notify_all()
        for thread in (self._flusher, self._packer):
            if thread:
                thread.join()
        for one in (*self._segments, *self._retired):
            one.close()
        if self._lock_file >= 0:
            os.close(self._lock_file)
        self._segments, self._retired = [], []
        self._lock_file = -1

    def __enter__(self) -> ReplyLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _said(self, key: bytes) -> tuple[int | None, Reply | None]:
        """What was said last of a request, and is whole: its kind, and the answer where it is one."""
        while found := self._find(key):
            segment, at = found
            if at.kind == REJECTION:
                return REJECTION, None
            if reply := segment.reply(key, at):
                return at.kind, reply
            segment.lose(key)
            self.notices.append(f"a reply in {segment.name} at byte {at.offset} is damaged; it counts as unanswered")
        return None, None

    def _find(self, key: bytes) -> tuple[_Segment, At] | None:
        """What was said last of a request, and where."""
        for one in reversed(self._segments):
            if at := one.find(key):
                return one, at
        return None

    # ------------------------------------------------------------ opening

    def _open(self) -> None:
        if self._lock_file >= 0:
            segments.sweep(self._folder)
        while True:
            try:
                self._open_all(segments.segments(self._folder))
                return
            except FileNotFoundError:  # Whoever writes has put it into the segment before.
                for one in self._segments:
                    one.close()
                self._segments = []

    def _open_all(self, paths: Sequence[Path]) -> None:
        for n, path in enumerate(paths):
            is_last = n == len(paths) - 1
            file = os.open(path, os.O_RDWR | os.O_APPEND if self._lock_file >= 0 else os.O_RDONLY)
            one = _Segment(path, file)
            self._segments.append(one)
            if is_last or self._thorough or not one.take_index():
                self._scan(one, is_last=is_last)
                if not is_last and self._lock_file >= 0:
                    one.make_index()
        if self._lock_file >= 0 and len(paths) > 1:
            self._start_packer()

    def _scan(self, one: _Segment, *, is_last: bool) -> None:
        size = os.fstat(one.file).st_size
        end = 0
        for found in segments.records(one.file):
            if isinstance(found, Gap):
                is_tail = is_last and found.end == size
                if is_tail and self._lock_file >= 0:
                    self._cut_off(one, found)
                elif not is_tail:
                    self._report(one, found)
                continue
            end = found.end
            if found.is_known:
                one.add(found.key, found.at)
            elif not found.is_dictionary:
                self.notices.append(f"a record in {one.name} is of a newer format; it is kept but not read")
        if is_last:
            self._end = end
        if is_last and self._lock_file >= 0:
            # What a killed writer left in the page cache was found just now; it must not be lost after use.
            os.fsync(one.file)

    def _report(self, one: _Segment, gap: Gap) -> None:
        self.notices.append(
            f"{gap.end - gap.start} bytes of {one.name} at byte {gap.start} are damaged; "
            "the requests answered there count as unanswered"
        )

    def _cut_off(self, one: _Segment, gap: Gap) -> None:
        """Move a torn tail out of the way of the next record, into a file of its own."""
        aside = _fresh(self._folder / f"{one.name}.{gap.start}")
        with aside.open("xb") as out:
            for at in range(gap.start, gap.end, 1 << 20):
                out.write(os.pread(one.file, min(1 << 20, gap.end - at), at))
            out.flush()
            os.fsync(out.fileno())
        os.ftruncate(one.file, gap.start)
        self.notices.append(
            f"the last {gap.end - gap.start} bytes of {one.name} were no whole record, as after a crash; "
            f"they are in {aside.name}"
        )

    # ------------------------------------------------------------ writing

    def _put(self, key: bytes, kind: int, payload: bytes) -> Future[None]:
        with self._changed:
            if self._broken:
                raise self._broken
            if self._lock_file < 0:
                raise ValueError("this log is open for reading only")
            earlier = self._pending.get(key)
            if earlier and not supersedes(kind, earlier.at.kind):
                return earlier.durable
            if not earlier and not supersedes(kind, self._said(key)[0]):
                return _resolved()
            at = self._append(segments.record_of(key, kind, payload), kind)
            waiting = _Waiting(key, self._segments[-1], at, _unresolved())
            self._waiting.append(waiting)
            self._pending[key] = waiting
            self._start_flusher()
            self._changed.notify_all()
            return waiting.durable

    def _append(self, record: bytes, kind: int) -> At:
        if not self._segments or (self._end and self._end + len(record) > self._segment_bytes):
            self._next_segment()
        file, start = self._segments[-1].file, self._end
        try:
            written = os.write(file, record)
            while written < len(record):
                written += os.write(file, record[written:])
        except OSError as error:
            os.ftruncate(file, start)
            raise _disk_error(error, self._folder) from error
        self._end = start + len(record)
        return At(start, len(record), kind)

    def _next_segment(self) -> None:
        last = self._segments[-1] if self._segments else None
        if last:
            os.fsync(last.file)
        path = self._folder / segments.segment_after(last.name if last else None)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        self._segments = [*self._segments, _Segment(path, file)]
        self._end = 0
        # The lock is the folder itself; without this its new entry may be lost with all that is in it.
        os.fsync(self._lock_file)
        if last:
            self._start_packer()

    def _start_flusher(self) -> None:
        if self._flusher is None:
            self._flusher = threading.Thread(target=self._flush_for_ever, name="reply log", daemon=True)
            self._flusher.start()

    def _flush_for_ever(self) -> None:
        synced = 0.0
        while batch := self._next_batch(synced + SYNC_DELAY_S):
            try:
                os.fsync(batch[-1].segment.file)  # Of those before, the segment was synced when it ended.
            except OSError as error:
                self._give_up(batch, _disk_error(error, self._folder))
                return
            synced = time.monotonic()
            with self._changed:
                for waiting in batch:
                    waiting.segment.add(waiting.key, waiting.at)
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

    # ------------------------------------------------------------ packing

    def _start_packer(self) -> None:
        if self._packer is None:
            self._packer = threading.Thread(target=self._pack_all, name="reply packer", daemon=True)
            self._packer.start()
        else:
            self._ended.notify_all()

    def _pack_all(self) -> None:
        """Pack the segments that have ended, and put small ones together; what it can't do, the next writer tries."""
        while True:
            with self._ended:
                self._packing = False
                self._ended.notify_all()
                self._ended.wait_for(lambda: self._closing or self._to_pack())
                if self._closing:
                    return
                chosen, self._packing = self._to_pack(), True
                self._tried.add(tuple(one.name for one in chosen))
            with contextlib.suppress(OSError, ImportError):
                self._pack(chosen)

    def _to_pack(self) -> Sequence[_Segment]:
        """One that is not packed, else two that follow one another and are of about one size; the last still grows."""
        ended = self._segments[:-1]
        found = [[one] for one in ended if not one.is_packed]
        for earlier, later in itertools.pairwise(ended):
            small = earlier.size + later.size <= PACKED_BYTES and earlier.size < 2 * later.size
            if earlier.is_packed and later.is_packed and small:
                found.append([earlier, later])
        return next((some for some in found if tuple(one.name for one in some) not in self._tried), [])

    def _pack(self, chosen: Sequence[_Segment]) -> None:
        if not segments.pack([one.path for one in chosen], [one.file for one in chosen], lambda: not self._closing):
            return
        path = chosen[0].path
        made = _Segment(path, os.open(path, os.O_RDWR | os.O_APPEND))
        for found in segments.records(made.file):
            if isinstance(found, Found) and found.is_known:
                made.add(found.key, found.at)
        made.make_index()
        os.fsync(self._lock_file)
        with self._changed:
            n = self._segments.index(chosen[0])
            self._segments = [*self._segments[:n], made, *self._segments[n + len(chosen) :]]
            self._retired += chosen  # Some may be reading in them now.


class _Segment:
    """One file of the log, and where in it the records are that count."""

    def __init__(self, path: Path, file: int) -> None:
        self.path, self.file = path, file
        self.name = path.name
        self._index: Index | None = None
        self._lost: set[bytes] = set()
        self._places: dict[bytes, int] = {}
        self._unpacker = Unpacker(file)
        self.is_packed = segments.is_packed(file)

    @property
    def size(self) -> int:
        return os.fstat(self.file).st_size

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._index if self._index is not None else list(self._places))

    def find(self, key: bytes) -> At | None:
        if self._index is not None:
            return None if key in self._lost else self._index.find(key)
        packed = self._places.get(key)
        return None if packed is None else _unpack(packed)

    def add(self, key: bytes, at: At) -> None:
        known = self._places.get(key)
        if supersedes(at.kind, None if known is None else _unpack(known).kind):
            self._places[key] = _pack(at)

    def lose(self, key: bytes) -> None:
        """The record of this key turned out to be damaged."""
        if self._places.pop(key, None) is None:
            self._lost.add(key)

    def reply(self, key: bytes, at: At) -> Reply | None:
        """The answer that stands there, None where it is damaged."""
        data = os.pread(self.file, at.length, at.offset)
        record = segments.record_at(data, 0)
        if record is None or record.key != key or not record.is_answer:
            return None
        payload = segments.payload_of(data)
        try:
            whole = self._unpacker.unpack(payload) if record.version == PACKED else payload
            return msgspec.msgpack.decode(whole, type=Reply)
        except (msgspec.DecodeError, ValueError):
            return None
        except ImportError as error:
            raise BuildError(
                "the library that unpacks replies is not installed",
                facts=[("missing", str(error.name))],
                hint="pip install 'buildsys[chat]'",
            ) from error

    def take_index(self) -> bool:
        """Find by the index that stands beside it; whether there is one that is right."""
        with contextlib.suppress(OSError, ValueError):
            self._index = Index(segments.index_path(self.path), self.file)
        return self._index is not None

    def make_index(self) -> None:
        with contextlib.suppress(OSError):  # It only saves time.
            segments.write_index(self.path, self.file, {key: _unpack(at) for key, at in self._places.items()})
            if self.take_index():
                self._places.clear()

    def close(self) -> None:
        os.close(self.file)
        if self._index is not None:
            self._index.close()


class _Waiting(NamedTuple):
    key: bytes
    segment: _Segment
    at: At
    durable: Future[None]


def _pack(at: At) -> int:
    """A place in one int: a million of them are a third of what tuples take."""
    return (at.offset << 32 | at.length) << 2 | at.kind


def _unpack(packed: int) -> At:
    return At(packed >> 34, packed >> 2 & (1 << 32) - 1, packed & 3)


# ---------------------------------------------------------------- taking replies out


def sizes(folder: Path) -> dict[str, int]:
    """The key of every request that was answered, and the bytes that its answers take in the log."""
    found: dict[str, int] = {}
    for path in segments.segments(folder):
        with path.open("rb") as file:
            for record in segments.records(file.fileno()):
                if isinstance(record, Found) and not record.is_dictionary:
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
        for path in segments.segments(folder):
            segments.rewrite(path, lambda one: one.key not in gone)
        os.fsync(lock)
    finally:
        os.close(lock)


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
