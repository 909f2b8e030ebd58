"""Digests: xxh3-128, and an encoding of keyed fields that can't be confused.

Knows nothing of files: bytes in, digests out. Every field is a tag and length-prefixed bytes, so that no two different
sequences of fields encode to the same bytes ("ab"+"c" is not "a"+"bc", 1 is not "1", 1 is not 1.0 or True).
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Mapping, Sequence
from typing import NewType

import xxhash

Digest = NewType("Digest", str)
"""32 lower-case hexadecimal digits of an xxh3-128."""
NO_DIGEST = Digest("")
"""Where there is nothing, or nothing is known of it."""

_HEAD = struct.Struct("<cI")


def digest_bytes(data: bytes) -> Digest:
    """The digest of a file's content."""
    return Digest(xxhash.xxh3_128_hexdigest(data))


class Hasher:
    """A digest over tagged, length-prefixed fields, taken in the order in which they are added."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = xxhash.xxh3_128()

    def copy(self) -> Hasher:
        """An independent hasher that has seen the same fields."""
        other = Hasher.__new__(Hasher)
        other._state = self._state.copy()
        return other

    def field(self, *values: object) -> None:
        """Add one field: a sequence of values, kept apart from every other field.

        Raises TypeError for a value that has no canonical encoding.
        """
        self._state.update(encode(values))

    def digest(self) -> Digest:
        return Digest(self._state.hexdigest())


def digest_of(*values: object) -> Digest:
    """The digest of one sequence of typed values."""
    return digest_bytes(encode(values))


def encode(value: object) -> bytes:
    """Typed value -> bytes, injective: equal bytes mean equal values of equal types.

    Mappings are encoded in the order of their sorted keys, sequences in their own order.
    """
    if isinstance(value, str):
        return _frame(b"s", value.encode("utf-8", "surrogatepass"))  # JSON may hold half a surrogate pair
    if isinstance(value, bool):
        return _frame(b"b", b"\x01" if value else b"\x00")
    if isinstance(value, int):
        return _frame(b"i", str(value).encode())
    if isinstance(value, float):
        return _frame(b"f", struct.pack("<d", value))
    if isinstance(value, bytes):
        return _frame(b"y", value)
    if value is None:
        return _frame(b"n", b"")
    if isinstance(value, Mapping):
        pairs = sorted((str(key), encode(key), encode(part)) for key, part in value.items())
        return _frame(b"m", b"".join(key + part for _, key, part in pairs))
    if isinstance(value, Sequence):
        return _frame(b"l", b"".join(map(encode, value)))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return _frame(b"t", f"{type(value).__name__} {value.isoformat()}".encode())
    raise TypeError(f"no canonical encoding for {type(value).__name__}: {value!r}")


def _frame(tag: bytes, payload: bytes) -> bytes:
    return _HEAD.pack(tag, len(payload)) + payload
