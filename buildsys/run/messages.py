"""Messages between the builder and its workers: length-prefixed pickles, some with descriptors.

Read in the workers' interpreters too, so it imports nothing but the standard library; knows nothing of what is said.
"""

from __future__ import annotations

import datetime
import io
import os
import pickle
import socket
import struct
import traceback
from collections.abc import Callable, Sequence
from typing import Any

PID = struct.Struct("<i")
ENDED = struct.Struct("<idq")
"""How a child ended: wait status, CPU seconds with its waited children, peak resident bytes."""
_SIZE = struct.Struct("<Q")
_JOINED = 1 << 16
_PLAIN: dict[type, Callable[[Any], object]] = {kind: kind for kind in (dict, list, tuple, set, bytes, int, float)}
_PLAIN[str] = str.__str__  # An enumeration's own `__str__` would tell its name.
_TIMES = (datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone)

Message = dict[str, Any]


def send(conn: socket.socket, data: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send one frame; descriptors travel with its first bytes."""
    head = _SIZE.pack(len(data))
    if descriptors:
        socket.send_fds(conn, [head], descriptors)
    elif len(data) < _JOINED:
        data = head + data
    else:
        conn.sendall(head)
    conn.sendall(data)


def receive(conn: socket.socket) -> Message:
    """The next message; EOFError where the other side is gone."""
    return dict(pickle.loads(_exactly(conn, _SIZE.unpack(_exactly(conn, _SIZE.size))[0])))


def receive_request(conn: socket.socket) -> tuple[Message, list[int]]:
    head, descriptors, _, _ = socket.recv_fds(conn, _SIZE.size, 2)
    if not head:
        raise EOFError
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return dict(pickle.loads(_exactly(conn, _SIZE.unpack(head)[0]))), descriptors


def _exactly(conn: socket.socket, n: int) -> bytearray:
    data = bytearray(n)
    view = memoryview(data)
    while view:
        got = conn.recv_into(view)
        if not got:
            raise EOFError
        view = view[got:]
    return data


def encoded(reply: Message, *, strict: bool) -> bytes:
    """The reply as bytes. Only plain values travel: the builder must not import what users' values are made of.

    strict: raises TypeError for another value; else it is left out.
    """
    buffer = io.BytesIO()
    try:
        _PlainPickler(buffer, protocol=4).dump(reply)
    except pickle.PicklingError as error:
        if strict:
            raise TypeError(f"returned a value that is not plain, of type {error}") from None
        return encoded(reply | {"value": None}, strict=True)
    return buffer.getvalue()


class _PlainPickler(pickle.Pickler):
    """Lets plain values through, subclasses of them as their base; nothing whose unpickling imports users' code."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) in _TIMES or any(value is known for known in (*_PLAIN, *_TIMES)):
            return NotImplemented
        for kind, plain in _PLAIN.items():
            if isinstance(value, kind):
                return kind, (plain(value),)
        raise pickle.PicklingError(type(value).__name__)


def error_line(error: BaseException) -> str:
    """What went wrong in one line."""
    if isinstance(error, SystemExit):
        return f"SystemExit: the code called sys.exit({error.code!r})"
    lines = "".join(traceback.format_exception_only(type(error), error)).splitlines()
    return next((line for line in lines if line[:1].strip()), type(error).__name__)
