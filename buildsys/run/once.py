"""The program that calls one function of a project once, and tells of it what workers tell of their calls.

Run by path (`python once.py FD`) in the interpreter and environment of whoever asks, so it imports nothing but the
standard library. Nothing is frozen: sources are read as they are imported, and told with the trace.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]  # This folder is no place to import from.
    # But for the files of this program, in a package that no import of users' code can mean.
    __package__ = "buildsys worker"
    sys.modules[__package__] = type(sys)(__package__)
    sys.modules[__package__].__path__ = [__file__.rpartition("/")[0]]

import importlib
import importlib.util
import os
import socket
import types
from importlib.machinery import SourceFileLoader

from .frozen import load_by
from .hooks import Hooks
from .imports import AfterImport
from .messages import Message, encoded, error_line, receive, send
from .places import foreign_folders
from .tracing import Tracer


def perform(start: Message) -> Message:
    """Call the function; how it went, what is told of it, and the texts that were imported."""
    root: str = start["root"]
    most: dict[str, int] = start["most"]
    texts: dict[str, str] = {}
    hooks = Hooks()
    hooks.install()
    names = {path: os.path.relpath(path, root) for path in most}
    tracer = Tracer(hooks, root, [*foreign_folders(), *start["foreign"]], most, names)

    def text_of(path: str, loader: SourceFileLoader) -> str | None:
        if path not in most:
            return None
        with tracer.quiet():
            text: str = importlib.util.decode_source(loader.get_data(path))
            tracer.look_at(names[path], text)
        texts[names[path]] = text
        return text

    load_by(text_of, tracer.compiled)
    AfterImport(tracer.importing, tracer.after_import).install(0)
    sys.path[:] = [root, *sys.path, *start["foreign"]]
    sys.argv = [start["module"]]
    error = ""
    try:
        found: object = importlib.import_module(start["module"])
        for name in start["function"].split("."):
            found = getattr(found, name)
        found()  # type: ignore[operator]
    except BaseException as raised:
        with tracer.quiet():
            error = error_line(raised)
    with tracer.quiet():
        tops = {name.partition("/")[0].removesuffix(".py") for name in texts}
        return {"error": error, "told": tracer.news(tops), "texts": texts}


def main() -> None:
    conn = socket.socket(fileno=int(sys.argv[1]))
    conn.set_inheritable(False)
    # A child that is left must not hold the connection open.
    os.register_at_fork(after_in_child=conn.close)
    # A module of its own, so that nothing (pickle, multiprocessing) takes this program for the user's.
    sys.modules["__main__"] = types.ModuleType("__main__")
    send(conn, encoded(perform(receive(conn)), strict=True))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)  # Without waiting for threads that the call has left.


if __name__ == "__main__":
    main()
