"""What a run asks of the machine: files it opens, folders it lists, paths and variables it asks for, child processes.

Run in the workers' interpreters, so it imports nothing but the standard library; knows nothing of calls. What the run
has made itself by then is left out. From the first fork on, all processes of the worker find together.
"""

from __future__ import annotations

import _collections_abc
import genericpath
import importlib.util
import opcode
import os
import posix
import posixpath
import re
import shlex
import stat as modes
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from . import hooks, imports
from .hooks import Hooks
from .places import Places, whole
from .together import Together

if TYPE_CHECKING:
    Args = tuple[Any, ...]
    Options = Mapping[str, Any]
    Stat = tuple[int, int, int, int, int] | None  # Size, mtime_ns, ctime_ns, inode, mode; None where nothing is.

_WRITES = os.O_WRONLY | os.O_RDWR
_OF_THE_MACHINE = ("uname", "ldconfig")
"""Programs that the standard library itself starts, in `platform` and `ctypes.util`."""
_TRACKER = "from multiprocessing.resource_tracker import main"
_SURELY = ()
"""In place of what was there before: no stat is equal to it."""
_MOST_WORDS = 100
_MOST_COMMANDS = 100
_LONGEST_WORD = 10_000
_PIECE = re.compile(r"[\s=:,;|&<>()'\"]+")
"""What parts the words of a shell, and files from what is said beside them in one word."""
_MOST_FOREIGN_ASKS = 1000
"""Who asks for a variable is looked up so often: it takes ten times as long as to ask."""
_MOST_QUICK = 100_000
_IMPORTS = ("<frozen importlib", "<frozen zipimport")
_IMPORTERS = frozenset({"importlib", "importlib.metadata", "pkgutil", "runpy", imports.__name__})
"""Modules that import what they are told to."""
_SEEK_INSTALLED = frozenset({"importlib.metadata", "importlib_metadata", "pkg_resources"})
"""Who lists all folders of the path, to find what is installed."""
_SEEK_SOURCES = _SEEK_INSTALLED | {"inspect", "linecache"}
_OURS = frozenset({hooks.__file__, __file__})
_OF_PATHS = frozenset({"<frozen posixpath>", "<frozen genericpath>", posixpath.__file__, genericpath.__file__})
_OF_ENVIRONMENTS = frozenset({"<frozen os>", "<frozen _collections_abc>", os.__file__, _collections_abc.__file__})
"""Files of code that hands a question on."""
_ENVIRONS = frozenset({"environ", "environb", "getenv", "getenvb"})
_MEASURES = frozenset({"getsize", "getmtime", "getatime", "getctime", "stat", "lstat"})
"""Functions of `os.path` and `pathlib` that tell more of a file than whether it is there, and what it is."""
_EXPANDS = frozenset({"expanduser", "expandvars"})
"""Functions of `os.path` that put what variables hold into paths."""
_COMPARES = frozenset({"filecmp"})
"""Modules that take files of equal stats for equal, unread."""
_CACHE = 0
_POP = opcode.opmap["POP_TOP"]
NAMES_OF_ALL = "=names"
VALUES_OF_ALL = "=values"
"""Variables that can't be: the names of all that there are, and all with their values."""


class Touches:
    """Listens to one worker. is_ours: whether a file, as a code object names it, is first-party.

    Found, and not told yet: touches (kind, path, stat), own (paths that the run wrote), variables (name, or what is
    asked of all of them; whether first-party code asked), packages (top-level modules from outside that first-party
    code imports, if it is the first to), commands, problems.
    """

    def __init__(self, hooks: Hooks, places: Places, is_ours: Callable[[str], bool]) -> None:
        self.hooks, self.places, self.is_ours = hooks, places, is_ours
        self.tell_anew()
        self._seen: set[tuple[Any, ...]] = set()
        # What was there before, of paths that this action has made or removed, or tried to.
        self._made: dict[str, Stat | tuple[()]] = {}
        self._set: set[str] = set()
        self._stays_set: set[str] = set()
        self._read: set[str] = set()  # Paths as they were given, of which nothing more can be found by reading them.
        self._foreign_asks: dict[str, int] = {}  # Of a variable: how often it was seen who asks for it.
        self._copying: list[str] = []
        self._copied = 0
        self._copier: CodeType | None = None
        self._folder: str | None = None
        self._together: Together | None = None

    def tell_anew(self) -> None:
        """What was found by now is told."""
        self.touches: list[tuple[str, str, Stat]] = []
        self.own: list[str] = []
        self.variables: list[tuple[str, bool]] = []
        self.packages: list[str] = []
        self.commands: list[list[str]] = []
        self.problems: list[str] = []

    def listen(self) -> None:
        os.register_at_fork(before=self._before_fork)
        hooks = self.hooks
        hooks.looked, hooks.asked, hooks.set_, hooks.listed = self._looked, self._asked, self._was_set, self._listed
        hooks.scans, hooks.whole, hooks.problem = self._scans, self._asked_of_all, self._failed
        hooks.acts.update(
            {
                "io.open": self._opens,
                "_io.open_code": lambda args, _: self._reads(args[0]),
                "os.open": self._opens_by_flags,
                "os.listdir": self._lists,
                "os.scandir": self._lists,
                "os.chdir": self._moves,
                "os.fchdir": self._moves,
                "os.mkdir": self._makes,
                "os.rmdir": self._makes,
                "os.remove": self._makes,
                "os.unlink": self._makes,
                "os.rename": self._renames,
                "os.replace": self._renames,
                "os.link": self._links,
                "os.symlink": self._links_softly,
                "os.truncate": self._writes,
                "os.chmod": self._writes,
                "os.utime": self._writes,
                "os.system": lambda args, options: self._started([_given(args, options, 0, "command")]),
                "os.execv": lambda args, options: self._started(_given(args, options, 1, "argv")),
                "os.execve": lambda args, options: self._started(_given(args, options, 1, "argv")),
                "os.posix_spawn": lambda args, options: self._started(_given(args, options, 1, "argv")),
                "os.posix_spawnp": lambda args, options: self._started(_given(args, options, 1, "argv")),
                "_posixsubprocess.fork_exec": lambda args, _: self._started(args[0], args[4]),
            }
        )

    def fresh(self) -> None:
        """Another action begins: what the last one made is there for this one as anything else."""
        self._hear()
        self._seen.clear()
        self._made.clear()
        self._set = set(self._stays_set)
        self._forget_quick()
        self._copying, self._folder = [], None
        self.hooks.copying = False

    def keep_set(self) -> None:
        """What is set by now stays so for the actions that follow."""
        self._stays_set |= self._set

    def settle(self) -> None:
        """Have all that was found by now where it can be told."""
        self._stop_copying()
        self._hear()
        if self._together and self._together.lost:
            self.problem("a forked process")

    def problem(self, said: str) -> None:
        self._find(("problem", said))

    # ------------------------------------------------------------ files and folders

    def _opens(self, args: Args, options: Options) -> None:
        """`open`: what it has an opener for, the opener opens."""
        path, mode = _given(args, options, 0, "file"), _given(args, options, 1, "mode", "r")
        opener = options.get("opener") or (args[7] if len(args) > 7 else None)
        if not opener and isinstance(mode, str):
            self._opens_with(path, _flags(mode))

    def _opens_by_flags(self, args: Args, options: Options) -> None:
        flags = _given(args, options, 1, "flags")
        if isinstance(flags, int):
            self._opens_with(_given(args, options, 0, "path"), flags, options.get("dir_fd"))

    def _opens_with(self, path: Any, flags: int, dir_fd: int | None = None) -> None:
        if not flags & _WRITES:
            self._reads(path, dir_fd)
            return
        full, name = self._counted(path, dir_fd)
        if name is None or _is_importing(_caller()):
            return
        before = stat_of(full)
        if flags & os.O_CREAT and (before is None or flags & os.O_TRUNC):
            self._find(("made", full, name, before))
            return
        if flags & os.O_RDWR or before is None or flags & os.O_EXCL:
            self._touch("exists" if flags & os.O_EXCL else "file", full, name, before)
        self._find(("own", name))

    def _reads(self, path: Any, dir_fd: int | None = None) -> None:
        if path.__class__ is str and path in self._read and dir_fd is None:
            return
        full, name = self._counted(path, dir_fd)
        if name is not None and full.endswith(".pyc") and _is_importing(_caller()):
            full = _source_of(full)
            name = self.places.name(full) or name
        known = bool(full) and (name is None or self._touch("file", full, name))
        if known and path.__class__ is str and dir_fd is None and len(self._read) < _MOST_QUICK:
            self._read.add(path)

    def connects(self, database: Any, *, as_uri: bool) -> None:
        """sqlite3 opens a file by itself."""
        if isinstance(database, (str, bytes, os.PathLike)):
            path = os.fsdecode(database)
            if as_uri and path.startswith("file:"):
                path = path[5:].partition("?")[0]
            if path not in ("", ":memory:"):
                self._opens_with(path, os.O_RDWR | os.O_CREAT)

    def _lists(self, args: Args, options: Options) -> None:
        path = _given(args, options, 0, "path", ".")
        if isinstance(path, int):
            path = _folder_behind(path)
        full, name = self._counted("." if path is None else path)
        if name is not None and not _seeks(_caller(), _SEEK_INSTALLED):
            self._touch("folder", full, name)

    def _scans(self) -> bool:
        """Whether first-party code itself takes the entries of a folder, and may ask them for more than their names."""
        return self._is_by_us(_caller())

    def _looked(self, path: Any, dir_fd: int | None, answer: Any, measures: bool) -> None:
        full = self._full(path, dir_fd)
        if full is None:
            return
        name, known_to = self.places.name(full), self.hooks.known_paths
        if name is not None:
            found = stat_of(full) if answer is True else _plain(answer)
            is_file = found is not None and modes.S_ISREG(found[4])
            as_file = is_file and measures and self._measures(_caller())
            if not self._touch("file" if as_file else "exists", full, name, found):
                return
            if is_file and ("file", name) not in self._seen:
                known_to = self.hooks.known_to_be
        if type(path) is str and dir_fd is None and len(known_to) < _MOST_QUICK:
            known_to.add(path)

    def _measures(self, frame: FrameType | None) -> bool:
        """Whether first-party code itself asks for a stat, and uses more of it than what kind of file it is."""
        while frame and (frame.f_code.co_filename in _OF_PATHS or _is_of(frame, "pathlib")):
            if frame.f_code.co_name not in _MEASURES:
                return False
            frame = frame.f_back
        if frame is None or not self._is_by_us(frame):
            return _seeks(frame, _COMPARES)
        parts = {name for name in frame.f_code.co_names if name.startswith("st_")}
        return parts != {"st_mode"} and not _drops_result(frame)

    def _is_by_us(self, frame: FrameType | None) -> bool:
        return frame is not None and self.is_ours(frame.f_code.co_filename)

    def _touch(self, kind: str, full: str, name: str, *found: Stat) -> bool:
        """Note what is there, unless the run has made it; whether the same need never be asked again."""
        known = (kind, name) in self._seen or (kind == "exists" and self._needs_no_asking(full, name))
        if not known:
            self._hear()
            found = found or (stat_of(full),)
            if self._has_made(full, found[0]):
                return False
            if kind == "file" and found[0] and not modes.S_ISREG(found[0][4]):
                # A folder is opened to be a point of reference, or to be flushed; a pipe or socket has no content.
                return modes.S_ISDIR(found[0][4]) and self._touch("exists", full, name, *found)
            self._find(("touch", kind, name, found[0]))
        return True

    def _needs_no_asking(self, full: str, name: str) -> bool:
        """What a file or a listing says says more; and who looks for modules and their sources asks for code."""
        return (
            not self._seen.isdisjoint((("file", name), ("folder", name)))
            or self.places.is_given(full)
            or _seeks(_beyond_paths(_caller()), _SEEK_SOURCES)
        )

    def _has_made(self, full: str, now: Stat) -> bool:
        """Whether this action has made or removed what is there, or a folder that it lies in; tried is not done."""
        folder = full
        while self._made and folder:
            if folder in self._made and self._made[folder] != (now if folder is full else stat_of(folder)):
                return True
            folder = folder.rpartition("/")[0]
        return False

    def _makes(self, args: Args, options: Options) -> None:
        self._is_made(_given(args, options, 0, "path"), options.get("dir_fd"))

    def _writes(self, args: Args, options: Options) -> None:
        _, name = self._counted(_given(args, options, 0, "path"), options.get("dir_fd"))
        if name is not None:
            self._find(("own", name))

    def _renames(self, args: Args, options: Options) -> None:
        source, source_fd = _given(args, options, 0, "src"), options.get("src_dir_fd")
        self._takes(source, source_fd)
        self._is_made(source, source_fd)
        self._is_made(_given(args, options, 1, "dst"), options.get("dst_dir_fd"))

    def _links(self, args: Args, options: Options) -> None:
        self._takes(_given(args, options, 0, "src"), options.get("src_dir_fd"))
        self._is_made(_given(args, options, 1, "dst"), options.get("dst_dir_fd"))

    def _links_softly(self, args: Args, options: Options) -> None:
        """What is read through a link of the run's own is not its own."""
        _, name = self._counted(_given(args, options, 1, "dst"), options.get("dir_fd"))
        if name is not None:
            self._find(("own", name))

    def _is_made(self, path: Any, dir_fd: int | None) -> None:
        full, name = self._counted(path, dir_fd)
        if name is not None:
            self._find(("made", full, name, stat_of(full)))

    def _takes(self, path: Any, dir_fd: int | None) -> None:
        """Its content gets another name, without being read."""
        full, name = self._counted(path, dir_fd)
        if name is not None:
            self._touch("file", full, name)

    def _forget_quick(self) -> None:
        self.hooks.known_paths.clear()
        self.hooks.known_to_be.clear()
        self._read.clear()

    def _moves(self, *_: object) -> None:
        self._folder = None
        self._forget_quick()

    def _counted(self, path: Any, dir_fd: int | None = None) -> tuple[str, str | None]:
        """A path as text from the root, "" for what is none, and the name under which it counts, if it does."""
        full = self._full(path, dir_fd)
        return full or "", None if full is None else self.places.name(full)

    def _full(self, path: Any, dir_fd: int | None = None) -> str | None:
        """A path as text from the root; None for what is none: a descriptor, or nothing."""
        if type(path) is not str:
            if not isinstance(path, (str, bytes, os.PathLike)):
                return None
            path = str.__str__(os.fsdecode(path))  # Whatever a subclass makes of it.
        if not path or "\0" in path:
            return None
        if path[0] == "/":
            return whole(path, "/")
        if dir_fd is not None:
            return whole(path, _folder_behind(dir_fd) or "/")
        if self._folder is None:
            self._folder = posix.getcwd()
        return whole(path, self._folder)

    # ------------------------------------------------------------ variables

    def _asked(self, key: Any) -> None:
        if not isinstance(key, (str, bytes)):
            return
        name = os.fsdecode(key)
        if self._copied < len(self._copying) and self._copying[self._copied] == name:
            self._copied += 1
            self.hooks.copying = self._copied < len(self._copying)
            if not self.hooks.copying:
                self._asked_of_all("values", self._copier)
            return
        self._stop_copying()
        self._asked_for(name)

    def _asked_for(self, name: str, asker: CodeType | None = None) -> None:
        if name in self._set:
            return
        asks = self._foreign_asks[name] = self._foreign_asks.get(name, 0) + 1
        if asks > _MOST_FOREIGN_ASKS or ("variable", name, True) in self._seen:
            self.hooks.known_variables.add(name)
            return
        ours = _names(asker, name) and self.is_ours(asker.co_filename) if asker else self._is_asked_by_us(name)
        if ours or ("variable", name, False) not in self._seen:
            self._find(("variable", name, ours))

    def _is_asked_by_us(self, name: str) -> bool:
        """Whether first-party code asks, or has a path with variables in it filled in."""
        frame = _beyond_environments(_caller())
        if frame and frame.f_code.co_name in _EXPANDS and frame.f_code.co_filename in _OF_PATHS:
            while frame and (frame.f_code.co_filename in _OF_PATHS or _is_of(frame, "pathlib")):
                frame = frame.f_back
            return self._is_by_us(frame)
        return frame is not None and self._is_by_us(frame) and _names(frame.f_code, name)

    def _asked_of_all(self, what: str, asker: CodeType | None = None) -> None:
        """What libraries take all of, first-party code has not asked for."""
        code = asker or _asker(_caller())
        if code is not None and self.is_ours(code.co_filename):
            self._find(("variable", VALUES_OF_ALL if what == "values" else NAMES_OF_ALL, True))

    def _listed(self, keys: list[Any]) -> None:
        """All names are given: who takes all values in this order has made a copy, and asked for no single one."""
        self._stop_copying()
        self._copying, self._copied = [os.fsdecode(key) for key in keys], 0
        self.hooks.copying = True
        self._copier = _asker(_caller())
        self._asked_of_all("names", self._copier)

    def _stop_copying(self) -> None:
        """Where a copy broke off, what was taken by then was asked for."""
        asked = self._copying[: self._copied] if self._copied < len(self._copying) else []
        self._copying, self._copied = [], 0
        self.hooks.copying = False
        for name in asked:
            self._asked_for(name, self._copier)

    def _was_set(self, key: Any) -> None:
        self._set.add(os.fsdecode(key))

    # ------------------------------------------------------------ modules

    def imports(self, name: str) -> None:
        """A module is looked for: what a package imports in turn is part of the package."""
        frame = _caller()
        while frame and (frame.f_code.co_filename.startswith(_IMPORTS) or _seeks(frame, _IMPORTERS)):
            frame = frame.f_back
        if self._is_by_us(frame) and not imports.is_standard(name):
            self._find(("package", name))

    # ------------------------------------------------------------ what runs elsewhere

    def _started(self, words: Any, folder: Any = None) -> None:
        if isinstance(words, (str, bytes)):
            words = [words]
        said = [os.fsdecode(word) for word in words or ()]
        if said and not (said[-1].startswith(_TRACKER) or os.path.basename(said[0]) in _OF_THE_MACHINE):
            self._find(("command", *said))
            self._named_to_child(said, "." if folder is None else os.fsdecode(folder))

    def _named_to_child(self, words: list[str], folder: str) -> None:
        """Files that the words of a command name: whoever runs may read them. Scripts count by what they do."""
        pieces = [piece for word in words[1:] if len(word) < _LONGEST_WORD for piece in _PIECE.split(word)]
        for piece in dict.fromkeys(pieces):
            full, name = self._counted(os.path.join(folder, piece)) if piece and "\0" not in piece else ("", None)
            found = None if name is None or piece.endswith(".py") else stat_of(full)
            if name is not None and found and modes.S_ISREG(found[4]):
                self._touch("file", full, name, found)

    def _failed(self, error: BaseException) -> None:
        self.problem(f"an error of the trace: {type(error).__name__}: {error}")

    # ------------------------------------------------------------ what all processes find

    def _before_fork(self) -> None:
        self.hooks.hear(self._share)

    def _share(self) -> None:
        if self._together is None:
            self._together = Together()

    def _find(self, found: tuple[Any, ...]) -> None:
        if self._together is None:
            self._take(found)
        elif found not in self._seen:
            self._together.tell(found)
            self._hear()

    def _hear(self) -> None:
        if self._together is not None:
            for found in self._together.heard():
                self._take(found)

    def _take(self, found: tuple[Any, ...]) -> None:
        what, *rest = found
        if what == "made":
            full, name, before = rest
            made = full in self._made and self._made[full] != before
            self._made[full] = _SURELY if made else self._made.get(full, before)
            for path in (name, name.rpartition("/")[0]):
                self._take(("own", path))
            return
        key = (rest[0], rest[1]) if what == "touch" else found
        if key in self._seen:
            return
        self._seen.add(key)
        if what == "touch":
            self.touches.append((rest[0], rest[1], rest[2]))
        elif what == "own":
            self.own.append(rest[0])
        elif what == "variable":
            self.variables.append((rest[0], rest[1]))
        elif what == "package":
            self.packages.append(rest[0])
        elif what == "problem":
            self.problems.append(rest[0])
        elif len(self.commands) < _MOST_COMMANDS:
            self.commands.append(rest)
            self._take(("problem", f"a child process: {_shortened(shlex.join(rest))}"))


def stat_of(full: str) -> Stat:
    try:
        return _plain(posix.stat(full))
    except OSError:
        return None


def _plain(found: os.stat_result | None) -> Stat:
    return found and (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)


def _given(args: Args, options: Options, n: int, name: str, default: Any = None) -> Any:
    """An argument, however it was given."""
    return args[n] if len(args) > n else options.get(name, default)


def _flags(mode: str) -> int:
    """What `open` makes of a mode."""
    access = os.O_RDWR if "+" in mode else os.O_WRONLY
    if "w" in mode:
        return access | os.O_CREAT | os.O_TRUNC
    if "x" in mode:
        return access | os.O_CREAT | os.O_EXCL
    return access | os.O_CREAT if "a" in mode else access if "+" in mode else os.O_RDONLY


def _folder_behind(fd: int) -> str | None:
    """The folder that a descriptor means, where the system tells."""
    for place in ("/proc/self/fd", "/dev/fd"):
        try:
            return posix.readlink(f"{place}/{fd}")
        except OSError:
            continue
    return None


def _caller() -> FrameType | None:
    """The frame that asks, past this program."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename in _OURS:
        frame = frame.f_back
    return frame


def _is_importing(frame: FrameType | None) -> bool:
    """Whether Python's own machinery asks, for an import rather than for data beside a module."""
    above = frame and frame.f_back
    return bool(
        frame
        and frame.f_code.co_filename.startswith(_IMPORTS)
        and (frame.f_code.co_name != "get_data" or (above and above.f_code.co_filename.startswith(_IMPORTS)))
    )


def _seeks(frame: FrameType | None, modules: frozenset[str]) -> bool:
    return frame is not None and frame.f_globals.get("__name__") in modules


def _beyond_paths(frame: FrameType | None) -> FrameType | None:
    """The frame that asks, past the parts of the library that take paths apart."""
    while frame and frame.f_code.co_filename in _OF_PATHS:
        frame = frame.f_back
    return frame


def _is_of(frame: FrameType, package: str) -> bool:
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.partition(".")[0] == package


def _drops_result(frame: FrameType) -> bool:
    """Whether the code makes nothing of what the call gives that it is in: it only minds whether it fails."""
    code, n = frame.f_code.co_code, frame.f_lasti + 2
    while n < len(code) and code[n] == _CACHE:
        n += 2
    return n < len(code) and code[n] == _POP


def _source_of(cached: str) -> str:
    """What an import that reads a file of bytecode has imported."""
    try:
        source = importlib.util.source_from_cache(cached)
    except ValueError:
        return cached
    return source if stat_of(source) else cached


def _beyond_environments(frame: FrameType | None) -> FrameType | None:
    """The frame that asks for a variable, past the parts of the library that hand it on."""
    while frame and frame.f_code.co_filename in _OF_ENVIRONMENTS:
        frame = frame.f_back
    return frame


def _asker(frame: FrameType | None) -> CodeType | None:
    frame = _beyond_environments(frame)
    return frame and frame.f_code


def _names(code: CodeType, variable: str) -> bool:
    """Whether code itself asks for a variable, and no native code that it has called."""
    return variable in code.co_consts or not _ENVIRONS.isdisjoint(code.co_names)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1] + "…"
