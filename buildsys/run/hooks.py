"""Where a run is overheard: an audit hook, and wrappers around what has no audit event.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of what is made of it.
Put in place once, in the zygote, before the modules of others are imported, which keep what they import by name; until
something listens, all goes through. Whoever listens may fail: that is told to `problem`, and never reaches the code.

There is no way to unhook: an interpreter has this for its life.
"""

from __future__ import annotations

import contextlib
import os
import posix
import sys
import threading
from collections.abc import Callable, Iterator
from types import MethodType, ModuleType
from typing import Any

LOOKS = ("stat", "lstat", "access", "readlink")
_LIBRARIES = ("pathlib",)
"""Of 3.9 and 3.10, which keep these functions in a class."""


class Hooks:
    """What listens. events: by name of the audit event, called with its arguments.

    looked: called with the path, its `dir_fd` and the answer: a stat, None where nothing is there, else True.
    started: with the words of a child process. asked, set_: with the name of a variable; listed: with all names.
    quiet: the thread that is not listened to.
    """

    def __init__(self) -> None:
        self.events: dict[str, Callable[[tuple[Any, ...]], None]] = {}
        self.looked: Callable[[Any, int | None, Any], None] | None = None
        self.started: Callable[[Any], None] | None = None
        self.asked: Callable[[Any], None] | None = None
        self.set_: Callable[[Any], None] | None = None
        self.listed: Callable[[list[Any]], None] | None = None
        self.quiet = 0
        self.base: dict[int, int] = {}  # Of a thread that opens something relative to a folder: its descriptor.
        self.problem: Callable[[BaseException], None] = lambda _: None

    def install(self) -> None:
        sys.addaudithook(self._audit_hook())
        for name in LOOKS:
            self._wrap(os, name, self._looking(getattr(posix, name)))
        self._wrap(os, "open", self._opening(posix.open))
        self._wrap_children()
        self._wrap_environment()

    def hear(self, listener: Callable[..., None] | None, *args: Any) -> None:
        if listener is not None and self.quiet != threading.get_ident():
            try:
                listener(*args)
            except Exception as error:
                with contextlib.suppress(Exception):
                    self.problem(error)

    def _audit_hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        get, hear = self.events.get, self.hear

        def hook(event: str, args: tuple[Any, ...]) -> None:
            listener = get(event)
            if listener is not None:
                hear(listener, args)

        return hook

    def _looking(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        follows, hear = ask is posix.stat, self.hear

        def look(_: object, path: Any, *args: Any, **options: Any) -> Any:
            if self.looked is None:
                return ask(path, *args, **options)
            try:
                answer = ask(path, *args, **options)
            except OSError:
                hear(self.looked, path, options.get("dir_fd"), None)
                raise
            plain = follows and options.get("follow_symlinks", True)
            hear(self.looked, path, options.get("dir_fd"), answer if plain else True)
            return answer

        return look

    def _opening(self, ask: Callable[..., int]) -> Callable[..., int]:
        """Its audit event does not say to which folder a path is relative."""

        def opening(_: object, *args: Any, dir_fd: int | None = None, **options: Any) -> int:
            if dir_fd is None:
                return ask(*args, **options)
            thread = threading.get_ident()
            self.base[thread] = dir_fd
            try:
                return ask(*args, dir_fd=dir_fd, **options)
            finally:
                self.base.pop(thread, None)

        return opening

    def _wrap_children(self) -> None:
        """multiprocessing starts processes past `subprocess`."""
        import _posixsubprocess

        start = _posixsubprocess.fork_exec

        def fork_exec(_: object, *args: Any) -> int:
            self.hear(self.started, args[0] if args else ())
            return start(*args)

        self._wrap(_posixsubprocess, "fork_exec", fork_exec)

    def _wrap(self, module: ModuleType, name: str, around: Callable[..., Any]) -> None:
        """Put a wrapper where a built-in function is: no method where a class holds it, and pickled by its name."""
        old = getattr(module, name)
        around.__name__ = around.__qualname__ = name
        around.__module__, around.__doc__ = module.__name__, old.__doc__
        new = MethodType(around, _Named(module.__name__))
        for able in (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks):
            if old in able:
                able.add(new)
        setattr(module, name, new)
        for library in map(sys.modules.get, _LIBRARIES):
            accessor = getattr(library, "_NormalAccessor", None)
            if getattr(accessor, name, None) is old:
                setattr(accessor, name, new)

    def _wrap_environment(self) -> None:
        environ: Any = type(os.environ)
        get, put, drop, names = environ.__getitem__, environ.__setitem__, environ.__delitem__, environ.__iter__

        def looking_up(self_: Any, key: Any) -> Any:
            self.hear(self.asked, key)
            return get(self_, key)

        def setting(self_: Any, key: Any, value: Any) -> None:
            put(self_, key, value)
            self.hear(self.set_, key)

        def dropping(self_: Any, key: Any) -> None:
            try:
                drop(self_, key)
            except KeyError:
                self.hear(self.asked, key)
                raise
            self.hear(self.set_, key)

        def listing(self_: Any) -> Iterator[Any]:
            found = list(names(self_))
            self.hear(self.listed, found)
            return iter(found)

        around = {"getitem": looking_up, "setitem": setting, "delitem": dropping, "iter": listing}
        for name, method in around.items():
            method.__name__ = f"__{name}__"
            method.__qualname__ = f"_Environ.{method.__name__}"
            setattr(environ, method.__name__, method)


class _Named:
    """What the wrappers of a module are bound to: found again by the module's name."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return __import__, (self.module,)
