"""The fingerprint of one function in a folder, for people and programs that ask for it without a project.

Joins the slice with the folder's files, the installed distributions and the trace of a run. What it says is what
decides whether a build would take an earlier result: the code in reach, or of a traced run that which it used; the
versions of distributions, and what the run asked of the machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from buildsys.code.parse import Broken
from buildsys.code.slice import Slice, parse_once
from buildsys.digest import Digest, digest_of
from buildsys.errors import FAILED, BuildError
from buildsys.model import Discovered, Trace
from buildsys.slicing import Parsed, Slicer
from buildsys.source_tree import SourceTree, holds_distributions
from buildsys.state.discoveries import Discoveries
from buildsys.state.files import Files
from buildsys.state.inventory import distributions
from buildsys.state.looks import Looks
from buildsys.state.packages import own_distributions
from buildsys.state.root import STATE

_FORMAT: Final = 2
_OF_THE_CALL: Final = frozenset(
    "PYTHONHASHSEED PYTHONDONTWRITEBYTECODE PWD OLDPWD SHLVL _ COLUMNS LINES TERM PYTEST_CURRENT_TEST".split()
)
"""Variables that differ from call to call: not counted where a run took or handed on its whole environment."""
_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Kept:
    """What is kept of a run: its code, what it asked for, by kind and name, and the scripts that its programs ran.

    packages: that it imported, of whatever name.
    """

    trace: Trace
    asked: tuple[tuple[str, str], ...]
    scripts: tuple[str, ...]
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fingerprint:
    """digest: equal means that nothing has changed that can decide the result. code: of the entry; used: of the run.

    versions: of the distributions that the code reads. discovered: what the run asked for, as it is now.
    """

    digest: Digest
    code: Slice
    used: Slice | None
    versions: Mapping[str, str]
    discovered: tuple[Discovered, ...]

    @property
    def decides(self) -> Slice:
        return self.used or self.code


def fingerprint(root: Path, module: str, function: str, kept: Kept | None = None) -> Fingerprint:
    """The fingerprint of `module:function` with `root` first on the path, in this environment.

    Raises BuildError (exit 1) where the function is missing or a module in reach does not parse.
    """
    looks = Looks(root)
    tree = SourceTree(looks)
    script = script_of(tree, module)
    cache, within = _cache(root)
    slicer = Slicer(tree, cache, Parsed(cache) if cache else parse_once, within=within)
    code = slicer.slice(script, function, folder="")
    used = slicer.used_slice(script, function, kept.trace, folder="") if kept else None
    parts: list[object] = [_PYTHON, used.fingerprint if used else code.fingerprint]
    if kept and kept.trace.unseen:
        parts.append(code.fingerprint)  # What it did unseen may be anything that it can reach.
    parts += [slicer.slice(path, "").fingerprint for path in kept.scripts if tree.read(path)] if kept else []
    asked = kept.asked if kept else [("variable", name) for name in sorted(code.variables)]
    computed = frozenset(kept.packages if kept else ()) - code.imports
    versions = _versions(root, (used or code).external | computed, cache)
    variables: dict[str, str | None] = {name: os.environ[name] for name in os.environ if name not in _OF_THE_CALL}
    discovered = _answered(looks, asked, variables, cache)
    if kept and kept.trace.unseen:
        parts.append(variables)
    digest = digest_of(*parts, versions, [list(one) for one in discovered])
    return Fingerprint(digest, code, used, versions, discovered)


def _answered(
    looks: Looks, asked: Sequence[tuple[str, str]], variables: Mapping[str, str | None], cache: Path | None
) -> tuple[Discovered, ...]:
    """What was asked for, with what the answer is now."""
    if not asked:
        return ()
    with _clock(cache) as clock:
        answers = Discoveries(Files(looks.root, {}, looks, clock), looks, lambda path: False, all_variables=variables)
        return tuple(Discovered(kind, name, answers.value_now(kind, name)) for kind, name in asked)  # type: ignore[arg-type]


@contextmanager
def _clock(cache: Path | None) -> Iterator[Path]:
    """Where the clock of the file system can be read: the project's `.buildsys`, else a folder that goes again."""
    if cache and os.access(cache.parent, os.W_OK):
        yield cache.parent
        return
    import tempfile  # loads what is needed for nothing else

    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def write(kept: Kept, file: Path) -> None:
    """Keep it in a file, as JSON. Raises OSError."""
    about = {
        "format": _FORMAT,
        "modules": sorted(kept.trace.modules),
        "functions": sorted(kept.trace.functions),
        "unseen": kept.trace.unseen,
        "asked": kept.asked,
        "scripts": kept.scripts,
        "packages": kept.packages,
    }
    file.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def read(file: Path) -> Kept:
    """What was kept in a file. Raises BuildError where it is no trace."""
    hint = f"make it anew: buildsys fingerprint DIR MODULE:FUNCTION --run --trace {file}"
    try:
        about: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if about["format"] != _FORMAT:
            raise ValueError
        trace = Trace(frozenset(about["modules"]), frozenset(about["functions"]), tuple(about["unseen"]))
        asked = tuple((kind, name) for kind, name in about["asked"])
        return Kept(trace, asked, tuple(about["scripts"]), tuple(about["packages"]))
    except FileNotFoundError:
        raise BuildError(f"there is no trace {file}", hint=hint) from None
    except (ValueError, KeyError, TypeError):
        raise BuildError(f"{file} is no trace of a run", hint=hint) from None


def script_of(tree: SourceTree, module: str) -> str:
    """The file of a dotted module. Raises Broken where there is none."""
    stem = module.replace(".", "/")
    for path in (f"{stem}/__init__.py", f"{stem}.py"):
        if tree.read(path) is not None:
            return path
    raise Broken(f"there is no module {module}: neither {stem}.py nor {stem}/__init__.py", exit_code=FAILED)


def _cache(root: Path) -> tuple[Path | None, str]:
    """Where the project that the folder lies in keeps what may be made anew, None where none was built; and its place.

    What is only asked about is left as it is: nothing is kept where no build has been.
    """
    for folder in (root, *root.parents):
        if (folder / STATE).is_dir():
            return folder / STATE / "cache", root.relative_to(folder).as_posix()
    return None, ""


def _versions(root: Path, names: frozenset[str], cache: Path | None) -> dict[str, str]:
    """Of the distributions that provide these names; those in folders below the root come last, as on the path."""
    if not names:
        return {}
    installed = own_distributions((cache or root / STATE / "cache") / "packages.json")
    vendored = [
        str(entry) for entry in sorted(root.iterdir()) if entry.is_dir() and holds_distributions(os.listdir(entry))
    ]
    if vendored:
        installed = installed.before(distributions(vendored))
    found = installed.versions(names)
    return found | {name: version for name in names for version in installed.named(name).values() if name in found}
