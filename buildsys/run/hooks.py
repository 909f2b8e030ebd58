"""Where a run is overheard: wrappers around what asks the machine for something, and around the environment.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of what is made of it.
Put in place once, in the zygote, before the modules of others are imported, which keep what they import by name; until
something listens, all goes through. Whoever listens may fail: that is told to `problem`, and never reaches the code.

Python's audit hooks would overhear the same and more, but make every `id()` take six times as long, of which
`copy.deepcopy` does little else.
"""

from __future__ import annotations

import _io
import _posixsubprocess  # noqa: F401  # Has to be there to be wrapped.
import builtins
import contextlib
import genericpath
import io
import marshal
import os
import posix
import posixpath
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MethodType, ModuleType
from typing import Any

LOOKS = ("stat", "lstat", "access", "readlink")
ACTS = (
    *("open", "listdir", "scandir", "chdir", "fchdir", "mkdir", "rmdir", "remove", "unlink", "rename", "replace"),
    *("link", "symlink", "truncate", "chmod", "utime", "system", "execv", "execve", "posix_spawn", "posix_spawnp"),
)
"""Functions of `os` that are told of before they do what they do."""
OTHERS = (("io", "open"), ("_io", "open_code"), ("_posixsubprocess", "fork_exec"))
"""multiprocessing starts processes past `subprocess`."""
_OWN = __name__.rpartition(".")[0]
_ONLY_WHETHER = frozenset(
    getattr(function, "__code__", None)
    for function in (genericpath.exists, genericpath.isfile, genericpath.isdir, posixpath.islink, posixpath.lexists)
)
"""Code that asks the system for a stat, and tells only whether something is there, or what it is."""

Given = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Arguments of a call, by position and by name."""


class Hooks:
    """What listens. acts: by the name of a function ("os.open"; "io.open" is the built-in), called with its arguments.

    looked: called with the path, its `dir_fd`, the answer, which is a stat, None where nothing is there, else True; and
    whether more was asked than that, as of `os.stat`. scans: whether to tell of the entries that a folder gives.
    asked, set_: with the name of a variable; listed: with all names. whole: with "names" where only those of all
    variables were asked, else "values".
    writes: with what marshal is given, whose first may be exchanged; has_read: with what it has read.
    quiet: the thread that is not listened to. known_paths, known_variables: of which nothing more is to be told;
    known_to_be: files of which nothing is to be told where only their being there is asked. copying: while all of the
    environment is being taken, each is.
    """

    def __init__(self) -> None:
        self.acts: dict[str, Callable[[tuple[Any, ...], Mapping[str, Any]], None]] = {}
        self.looked: Callable[[Any, int | None, Any, bool], None] | None = None
        self.scans: Callable[[], bool] | None = None
        self.asked: Callable[[Any], None] | None = None
        self.set_: Callable[[Any], None] | None = None
        self.listed: Callable[[list[Any]], None] | None = None
        self.whole: Callable[[str], None] | None = None
        self.known_paths: set[str] = set()
        self.known_to_be: set[str] = set()
        self.known_variables: set[str] = set()
        self.copying = False
        self.writes: Callable[[list[Any]], None] | None = None
        self.has_read: Callable[[Any], None] | None = None
        self.quiet = 0
        self.problem: Callable[[BaseException], None] = lambda _: None

    def install(self) -> None:
        wrapped: list[tuple[Any, Any]] = [(io.FileIO, _file_io(self))]
        for module, name in (*(("os", name) for name in (*LOOKS, *ACTS)), *OTHERS):
            ask = getattr(sys.modules[module], name, None)
            if ask is not None:
                around = self._looking(ask) if name in LOOKS else self._acting(f"{module}.{name}", ask)
                around = self._scanning(around) if name == "scandir" else around
                wrapped.append((ask, _in_place_of(ask, module, name, around)))
        for name in marshal.__dict__.keys() & {"dump", "dumps", "load", "loads"}:
            ask = getattr(marshal, name)
            around = self._writing(ask) if name.startswith("dump") else self._reading(ask)
            wrapped.append((ask, _in_place_of(ask, "marshal", name, around)))
        _put_in_place(wrapped)
        self._wrap_environment()

    def hear(self, listener: Callable[..., None] | None, *args: Any) -> None:
        if listener is not None and self.quiet != threading.get_ident():
            try:
                listener(*args)
            except Exception as error:
                with contextlib.suppress(Exception):
                    self.problem(error)

    def _looking(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        follows, measures, hear = ask is posix.stat, ask in (posix.stat, posix.lstat), self.hear
        known, known_to_be = self.known_paths, self.known_to_be

        def look(_: object, path: Any, *args: Any, **options: Any) -> Any:
            if self.looked is None or (
                path.__class__ is str
                and not options
                and (path in known or (path in known_to_be and sys._getframe(1).f_code in _ONLY_WHETHER))
            ):
                return ask(path, *args, **options)
            try:
                answer = ask(path, *args, **options)
            except OSError:
                hear(self.looked, path, options.get("dir_fd"), None, measures)
                raise
            plain = follows and options.get("follow_symlinks", True)
            hear(self.looked, path, options.get("dir_fd"), answer if plain else True, measures)
            return answer

        return look

    def _acting(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        listener, hear = self.acts.get, self.hear

        def act(_: object, *args: Any, **options: Any) -> Any:
            hear(listener(name), args, options)
            return ask(*args, **options)

        return act

    def _writing(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def writing(_: object, *args: Any, **options: Any) -> Any:
            given = [*args]
            self.hear(self.writes, given)
            return write(*given, **options)

        return writing

    def _reading(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(_: object, *args: Any, **options: Any) -> Any:
            found = read(*args, **options)
            self.hear(self.has_read, found)
            return found

        return reading

    def _scanning(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def scan(self_: object, *args: Any, **options: Any) -> Any:
            found = ask(self_, *args, **options)
            return _Entries(self, found) if self.scans and self.scans() else found

        return scan

    def _wrap_environment(self) -> None:
        environ: Any = type(os.environ)
        known = self.known_variables
        get, put, drop, names = environ.__getitem__, environ.__setitem__, environ.__delitem__, environ.__iter__
        count, show = environ.__len__, environ.__repr__

        def looking_up(self_: Any, key: Any) -> Any:
            if key.__class__ is not str or key not in known or self.copying:
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

        def counting(self_: Any) -> int:
            self.hear(self.whole, "names")
            return int(count(self_))

        def showing(self_: Any) -> str:
            self.hear(self.whole, "values")
            return str(show(self_))

        around = {"getitem": looking_up, "setitem": setting, "delitem": dropping, "iter": listing}
        around |= {"len": counting, "repr": showing}
        for name, method in around.items():
            method.__name__ = f"__{name}__"
            method.__qualname__ = f"_Environ.{method.__name__}"
            setattr(environ, method.__name__, method)


def _in_place_of(old: Any, module: str, name: str, around: Callable[..., Any]) -> Any:
    """A wrapper that is no method where a class holds it, and is pickled by the name of what it is around."""
    around.__name__ = around.__qualname__ = name
    around.__module__, around.__doc__ = module, old.__doc__
    return MethodType(around, _Named(module))


class _Named:
    """What the wrappers of a module are bound to: found again by the module's name."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return __import__, (self.module,)


class _Entries:
    """What `os.scandir` gives, with entries that tell what is asked of them."""

    def __init__(self, hooks: Hooks, found: Any) -> None:
        self._hooks, self._found = hooks, found

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> _Entry:
        return _Entry(self._hooks, next(self._found))

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: object) -> None:
        self._found.close()

    def close(self) -> None:
        self._found.close()


class _Entry:
    """An `os.DirEntry`, as far as can be told."""

    __class__ = os.DirEntry  # type: ignore[assignment]

    def __init__(self, hooks: Hooks, entry: Any) -> None:
        self._hooks, self._entry = hooks, entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> Any:
        return self._entry.__fspath__()

    def __repr__(self) -> str:
        return repr(self._entry)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found: os.stat_result = self._entry.stat(follow_symlinks=follow_symlinks)
        self._hooks.hear(self._hooks.looked, self._entry.path, None, found if follow_symlinks else True, True)
        return found


def _file_io(hooks: Hooks) -> type:
    """`io.FileIO` for who calls it by that name. What `open` makes is of the old one, and is taken for one of this."""
    real = io.FileIO

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real) if cls is FileIO else type.__instancecheck__(cls, instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real) if cls is FileIO else type.__subclasscheck__(cls, subclass)

    class FileIO(real, metaclass=Kind):  # type: ignore[misc, valid-type]
        __doc__ = real.__doc__

        def __init__(self, *args: Any, **options: Any) -> None:
            hooks.hear(hooks.acts.get("io.open"), args, options)
            super().__init__(*args, **options)

    FileIO.__module__, FileIO.__qualname__ = real.__module__, real.__qualname__
    return FileIO


def _put_in_place(wrapped: list[tuple[Any, Any]]) -> None:
    """Put each wrapper where a module that is loaded has the function, by whatever name, and where `os` tells of it.

    But for the modules in C, which are asked by the wrappers and by Python's own import.
    """
    new_of = {id(old): new for old, new in wrapped}
    modules = [module for name, module in list(sys.modules.items()) if _may_hold(name, module)]
    # Of 3.9 and 3.10, which keep functions in a class.
    accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
    for place in [*modules, *([accessor] if accessor else [])]:
        for name, value in list(vars(place).items()):
            new = new_of.get(id(value))
            if new is not None:
                setattr(place, name, new)
    _io.open, _io.open_code = builtins.open, new_of[id(_io.open_code)]
    for able in (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks):
        able.update(new for old, new in wrapped if callable(old) and old in able)


def _may_hold(name: str, module: object) -> bool:
    return (
        isinstance(module, ModuleType)
        and name not in ("posix", "_io")
        and not name.startswith(("importlib._bootstrap", "_frozen_importlib"))
        and not (_OWN and name.startswith(_OWN))
    )
