"""Files of records: what one looks like, how it is found among damage, and how it is found by its key.

Knows nothing of what is in a record but its key and kind. A record is a header (magic, version, kind, payload length,
key), a payload and a CRC over both. A segment is a file of nothing but records; once another follows, it never grows
again. Beside such a one stands an index, which is worth nothing but time: it is made anew where it is not right.
"""

from __future__ import annotations

import itertools
import mmap
import os
import re
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import zstandard

PLAIN: Final = 1
PACKED: Final = 2
"""Versions of records: the payload as it is, or compressed with the dictionary of its segment."""
REPLY: Final = 0
REFUSAL: Final = 1
DICTIONARY: Final = 2
REJECTION: Final = 3
"""Kinds of records. A rejection says of its key that what was said of it before counts no more."""
_KNOWN: Final = {(PLAIN, REPLY), (PLAIN, REFUSAL), (PLAIN, REJECTION), (PACKED, REPLY), (PACKED, REFUSAL)}

# No UTF-8 text holds 0xff or 0xfe, so no plain reply can contain what looks like the start of a record.
MAGIC: Final = b"\xffreply\xfe\n"
_HEAD: Final = struct.Struct("<8sBB2xI16s")
_CRC: Final = struct.Struct("<I")
_SEGMENT_NAME: Final = re.compile(r"\d{8}\.log")

_INDEX_MAGIC: Final = b"replies\x01"
_INDEX_HEAD: Final = struct.Struct("<8sQBQII")
_FENCE: Final = struct.Struct("<I")
_KEY_BYTES: Final = 16
_PLACE: Final = struct.Struct("<QI")
_TAIL_BYTES: Final = 4096

_LEVEL: Final = 3
_DICTIONARY_BYTES: Final = 64 * 1024
_MOST_SAMPLES: Final = 4000
_MOST_SAMPLED_BYTES: Final = 8 * 1024 * 1024


class At(NamedTuple):
    """Where in its segment a record is."""

    offset: int
    length: int
    kind: int


class Found(NamedTuple):
    """An intact record, from byte `start` to before `end` of its segment."""

    start: int
    end: int
    version: int
    kind: int
    key: bytes

    @property
    def at(self) -> At:
        return At(self.start, self.end - self.start, self.kind)

    @property
    def is_known(self) -> bool:
        """Whether this program can say what it means."""
        return (self.version, self.kind) in _KNOWN

    @property
    def is_dictionary(self) -> bool:
        return (self.version, self.kind) == (PACKED, DICTIONARY)

    @property
    def is_answer(self) -> bool:
        """Whether it is a reply or a refusal, packed or not."""
        return self.is_known and self.kind in (REPLY, REFUSAL)


class Gap(NamedTuple):
    """Bytes between records that are none."""

    start: int
    end: int


def record_of(key: bytes, kind: int, payload: bytes, version: int = PLAIN) -> bytes:
    record = _HEAD.pack(MAGIC, version, kind, len(payload), key) + payload
    return record + _CRC.pack(zlib.crc32(record))


def payload_of(record: bytes) -> bytes:
    return record[_HEAD.size : -_CRC.size]


def record_at(data: bytes | memoryview, start: int) -> Found | None:
    """The intact record that starts there, of whatever version."""
    if start + _HEAD.size + _CRC.size > len(data):
        return None
    magic, version, kind, length, key = _HEAD.unpack_from(data, start)
    crc_at = start + _HEAD.size + length
    if magic != MAGIC or crc_at + _CRC.size > len(data):
        return None
    if zlib.crc32(data[start:crc_at]) != _CRC.unpack_from(data, crc_at)[0]:
        return None
    return Found(start, crc_at + _CRC.size, version, kind, key)


def records(file: int) -> Iterator[Found | Gap]:
    """All intact records of a segment and the damage between them, in order."""
    size = os.fstat(file).st_size
    if not size:
        return
    with mmap.mmap(file, size, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        at = 0
        while at < size:
            if found := record_at(view, at):
                yield found
                at = found.end
                continue
            start = at
            while (at := mapped.find(MAGIC, at + 1)) >= 0 and not record_at(view, at):
                pass
            at = at if at >= 0 else size
            yield Gap(start, at)


def segments(folder: Path) -> list[Path]:
    """In the order in which they were written."""
    return sorted(path for path in folder.glob("*.log") if _SEGMENT_NAME.fullmatch(path.name))


def sweep(folder: Path) -> None:
    """Remove what a kill has left of files that were not whole yet."""
    for path in folder.glob("*.rest"):
        path.unlink()


def segment_after(name: str | None) -> str:
    return f"{int(name.removesuffix('.log')) + 1 if name else 1:08}.log"


def supersedes(later: int, earlier: int | None) -> bool:
    """Of two records of one key, whether the later one, by its kind, takes the place of the other.

    The first answer wins, but a reply takes the place of a refusal, and anything that of what was rejected.
    """
    return earlier is None or later == REJECTION or earlier == REJECTION or (earlier == REFUSAL and later == REPLY)


# ---------------------------------------------------------------- indexes


class Index:
    """The places of the records of a segment that count, by key.

    It is looked into where it lies, so that a million keys take no memory worth speaking of: sorted keys, then their
    places in the same order; before both where the keys begin that have the same first bits, of which there are few.
    """

    def __init__(self, path: Path, segment: int) -> None:
        """segment: an open file. Raises ValueError or OSError where the index is not that of this segment."""
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            magic, n, bits, *identity, crc = _INDEX_HEAD.unpack_from(self._map)
            self._n: int = n
            self._bits: int = bits
            self._keys = _INDEX_HEAD.size + _FENCE.size * ((1 << self._bits) + 1)
            self._places = self._keys + _KEY_BYTES * self._n
            whole = len(self._map) == self._places + _PLACE.size * self._n
        except struct.error as error:
            raise ValueError("cut off") from error
        with memoryview(self._map) as view:
            if magic != _INDEX_MAGIC or not whole or zlib.crc32(view[_INDEX_HEAD.size :]) != crc:
                raise ValueError("damaged")
        if identity != _identity(segment):
            raise ValueError("of another segment")

    def __iter__(self) -> Iterator[bytes]:
        return (self._map[at : at + _KEY_BYTES] for at in range(self._keys, self._places, _KEY_BYTES))

    def find(self, key: bytes) -> At | None:
        fence = _INDEX_HEAD.size + _FENCE.size * _first_bits(key, self._bits)
        (first,), (last,) = _FENCE.unpack_from(self._map, fence), _FENCE.unpack_from(self._map, fence + _FENCE.size)
        at, end = self._keys + _KEY_BYTES * first, self._keys + _KEY_BYTES * last
        while (at := self._map.find(key, at, end)) >= 0:
            n, within = divmod(at - self._keys, _KEY_BYTES)
            if not within:
                place, length = _PLACE.unpack_from(self._map, self._places + _PLACE.size * n)
                return At(place >> 2, length, place & 3)
            at += 1
        return None

    def close(self) -> None:
        self._map.close()


def index_path(segment: Path) -> Path:
    return segment.with_suffix(".index")


def write_index(segment: Path, file: int, places: Mapping[bytes, At]) -> None:
    """Raises OSError."""
    keys = sorted(places)
    bits = max(0, len(keys).bit_length() - 3)
    counts = [0] * ((1 << bits) + 1)
    for key in keys:
        counts[_first_bits(key, bits) + 1] += 1
    parts = [_FENCE.pack(n) for n in itertools.accumulate(counts)]
    parts += keys
    parts += (_PLACE.pack(at.offset << 2 | at.kind, at.length) for at in map(places.__getitem__, keys))
    rest = b"".join(parts)
    head = _INDEX_HEAD.pack(_INDEX_MAGIC, len(keys), bits, *_identity(file), zlib.crc32(rest))
    _replace(index_path(segment), [head, rest])


def _first_bits(key: bytes, bits: int) -> int:
    return int.from_bytes(key[:4], "big") >> (32 - bits)


def _identity(file: int) -> list[int]:
    """What tells a segment from what it was before it was written anew: how long it is, and how it ends."""
    size = os.fstat(file).st_size
    return [size, zlib.crc32(os.pread(file, _TAIL_BYTES, max(0, size - _TAIL_BYTES)))]


# ---------------------------------------------------------------- writing segments anew


def rewrite(segment: Path, keep: Callable[[Found], bool]) -> None:
    """Leave records out. Damage and records of newer formats stay as they are.

    After a kill the segment is as it was or as it should be. Raises OSError.
    """
    with segment.open("rb") as file:
        found = list(records(file.fileno()))
        kept = [one for one in found if isinstance(one, Gap) or not one.is_known or keep(one)]
        if len(kept) < len(found):
            _replace(segment, (_bytes(file.fileno(), one) for one in kept))


def pack(paths: Sequence[Path], files: Sequence[int], goes_on: Callable[[], bool]) -> bool:
    """Put segments that follow one another into the first of them, their records compressed, each by itself.

    So damage to one costs no other. What they have in common is in a dictionary, which stands at both ends. What counts
    no more is left out, but for rejected replies: they were paid for. goes_on: asked now and then; False leaves
    everything as it was. Whether it was done: also not where there are too few records to learn from. Raises OSError.
    """
    import zstandard

    found = [(file, one) for file in files for one in records(file)]
    going, unpackers = _superseded(found), {file: Unpacker(file) for file in files}
    kept = [one for one in found if one not in going and not _is_dictionary(one[1])]

    def payload(file: int, one: Found) -> bytes:
        data = payload_of(_bytes(file, one))
        return unpackers[file].unpack(data) if one.version == PACKED else data

    def packed(dictionary: zstandard.ZstdCompressionDict) -> Iterator[bytes]:
        compress = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary).compress
        ends = record_of(bytes(_KEY_BYTES), DICTIONARY, dictionary.as_bytes(), PACKED)
        yield ends
        for file, one in kept:
            if not goes_on():
                raise _Stopped
            if isinstance(one, Found) and one.is_answer:
                yield record_of(one.key, one.kind, compress(payload(file, one)), PACKED)
            else:
                yield _bytes(file, one)
        yield ends

    try:
        answers = [(file, one) for file, one in kept if isinstance(one, Found) and one.is_answer]
        dictionary = _dictionary(payload(file, one) for file, one in answers[:: max(1, len(answers) // _MOST_SAMPLES)])
        if dictionary is None:
            return False
        _replace(paths[0], packed(dictionary))
    except (_Stopped, ValueError):
        return False
    for path in paths[1:]:
        path.unlink()
        index_path(path).unlink(missing_ok=True)
    return True


class Unpacker:
    """Reads packed records of one segment, from several threads at once."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()

    def unpack(self, payload: bytes) -> bytes:
        """Raises ValueError where it is not what was packed, as where both copies of the dictionary are damaged."""
        import zstandard

        with self._lock:
            try:
                return self._decompressor.decompress(payload)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from error

    @cached_property
    def _decompressor(self) -> zstandard.ZstdDecompressor:
        import zstandard

        first = next(filter(_is_dictionary, records(self._file)), None)
        if not isinstance(first, Found):
            raise ValueError("both copies of its dictionary are damaged")
        data = payload_of(_bytes(self._file, first))
        return zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(data))


class _Stopped(Exception):
    pass


def is_packed(file: int) -> bool:
    """Whether the records of a segment are compressed: such a one begins with its dictionary, damaged or not."""
    head = os.pread(file, _HEAD.size, 0)
    return len(head) == _HEAD.size and _HEAD.unpack(head)[1:3] == (PACKED, DICTIONARY)


def _is_dictionary(one: Found | Gap) -> bool:
    return isinstance(one, Found) and one.is_dictionary


def _superseded(found: Iterable[tuple[int, Found | Gap]]) -> set[tuple[int, Found | Gap]]:
    """Refusals in whose place something is, and answers that came when there was one."""
    going: set[tuple[int, Found | Gap]] = set()
    last: dict[bytes, tuple[int, Found]] = {}
    for file, one in found:
        if not isinstance(one, Found) or not one.is_known:
            continue
        earlier = last.get(one.key)
        if not supersedes(one.kind, earlier[1].kind if earlier else None):
            going.add((file, one))
            continue
        if earlier and earlier[1].kind == REFUSAL:
            going.add(earlier)
        last[one.key] = file, one
    return going


def _dictionary(payloads: Iterable[bytes]) -> zstandard.ZstdCompressionDict | None:
    """What they have in common; None where there are too few of them to tell."""
    import zstandard

    samples: list[bytes | bytearray | memoryview[int]] = []
    size = 0
    for payload in payloads:
        samples.append(payload[:_DICTIONARY_BYTES])
        size += len(samples[-1])
        if size > _MOST_SAMPLED_BYTES:
            break
    try:
        return zstandard.train_dictionary(_DICTIONARY_BYTES, samples, level=_LEVEL)
    except (zstandard.ZstdError, ValueError):
        return None


def _bytes(file: int, one: Found | Gap) -> bytes:
    return os.pread(file, one.end - one.start, one.start)


def _replace(path: Path, parts: Iterable[bytes]) -> None:
    """Put a whole file into the place of another, or nothing at all."""
    copy = path.with_name(f"{path.name}.rest")
    try:
        with copy.open("wb") as out:
            for part in parts:
                out.write(part)
            out.flush()
            os.fsync(out.fileno())
        os.rename(copy, path)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
