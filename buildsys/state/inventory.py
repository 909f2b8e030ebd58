"""The program by which an interpreter tells what it is and what is installed for it, as JSON.

Run by path in any Python from 3.9 on, so it imports nothing but the standard library. What it tells is read in
`distributions`.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]  # This folder is no place to import from.

import ast
import json
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import all_suffixes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib import metadata

FORMAT = 3
"""Of what is told; raised with each change of it, since answers are kept."""
_SUFFIXES = tuple(all_suffixes())
_INITS = tuple(f"__init__{suffix}" for suffix in _SUFFIXES)


def inventory() -> dict[str, object]:
    """All that is told."""
    return {
        "format": FORMAT,
        "version": list(sys.version_info[:2]),
        "folders": sys.path,
        "own": own_folders(),
        "stdlib": sorted(getattr(sys, "stdlib_module_names", ())),
        "environment": environment(),
        "distributions": distributions(),
    }


def own_folders() -> list[str]:
    """Where the interpreter lies with its library and environment, and all that is installed for it by copying."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    parts = ("bin", "lib", "lib32", "lib64", "libexec", "include", "share", "etc", "ssl", "conda-meta", "pyvenv.cfg")
    found = {os.path.join(prefix, part) for prefix in prefixes for part in parts}
    for folder in sys.path:
        with suppress(OSError):
            found.update(folder for name in os.listdir(folder or ".") if folder and name.endswith(".dist-info"))
    return sorted(path for path in found if os.path.exists(path))


def distributions(folders: list[str] | None = None) -> list[dict[str, object]]:
    """All distributions, those of earlier folders first, as imports find them; what they hide left out.

    folders: where to look, None for `sys.path`.
    """
    from email import message_from_string  # These take longer to import than a kept answer does to be read.
    from importlib import metadata

    found: list[dict[str, object]] = []
    seen: set[str] = set()
    for one in metadata.distributions() if folders is None else metadata.distributions(path=folders):
        text = one.read_text("METADATA")
        # Of the text only the head: it is long, and reading it is most of the time that all of this takes.
        about = message_from_string((text or one.read_text("PKG-INFO") or "").partition("\n\n")[0])
        name = about.get("Name", "")
        if not name or name.lower() in seen:
            continue  # hidden by one of an earlier folder, or half removed
        seen.add(name.lower())
        files = _files(one)
        tops, spaces = _tops(one, files)
        editable = is_editable(one, name)
        found.append(
            {
                "name": name,
                "version": about.get("Version", ""),
                "tops": sorted(tops),
                "spaces": sorted(spaces),
                "requires": about.get_all("Requires-Dist", []) if text is not None else one.requires or [],
                "editable": editable,
                "places": sorted(places(one)) if editable else [],
            }
        )
    return found


def environment() -> dict[str, str]:
    """The variables of the markers in requirements."""
    version = sys.implementation.version
    stage = "" if version.releaselevel == "final" else f"{version.releaselevel[0]}{version.serial}"
    return {
        "os_name": os.name,
        "sys_platform": sys.platform,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_version": "{}.{}".format(*sys.version_info),
        "python_full_version": platform.python_version(),
        "implementation_name": sys.implementation.name,
        "implementation_version": f"{version.major}.{version.minor}.{version.micro}{stage}",
    }


def _files(one: metadata.Distribution) -> list[list[str]]:
    """The parts of the paths of all its files, from the folder that it is installed in."""
    import csv

    record = one.read_text("RECORD")
    if record is None:
        return [list(file.parts) for file in one.files or ()]
    return [row[0].split("/") for row in csv.reader(record.splitlines()) if row]


def _tops(one: metadata.Distribution, files: list[list[str]]) -> tuple[set[str], set[str]]:
    """The top-level names that it provides; and those of them that are only namespaces, which others may share."""
    modules = {parts[0].partition(".")[0] for parts in files if len(parts) == 1 and parts[0].endswith(_SUFFIXES)}
    packages = {parts[0] for parts in files if len(parts) == 2 and parts[1].endswith(_INITS)}
    folders = {parts[0] for parts in files if len(parts) > 1 and parts[-1].endswith(_SUFFIXES)} - {"__pycache__"}
    found = {name for name in modules | packages | folders if name.isidentifier()}
    tops = set((one.read_text("top_level.txt") or "").split()) or found
    return tops, {top for top in tops & folders if top not in modules | packages}


# ---------------------------------------------------------------- editable installs


def is_editable(one: metadata.Distribution, name: str) -> bool:
    """Whether it was installed without copying its code, so that edits of that show at once."""
    if _is_developed(one, name):
        return True
    try:
        about = json.loads(one.read_text("direct_url.json") or "{}")
    except ValueError:
        return False
    return isinstance(about, dict) and bool(about.get("dir_info", {}).get("editable"))


def places(one: metadata.Distribution) -> set[tuple[str, str]]:
    """Where the code of an editable install lies: (module, the folder or file that it is without its suffix).

    Module "" stands for whatever is found in the folder. Empty where no file tells in a way that is known.
    """
    if one.read_text("RECORD") is None:
        return {("", str(one.locate_file("")))}  # its metadata lie beside its code
    found: set[tuple[str, str]] = set()
    files = _files(one)
    for name, *deeper in files:
        path = str(one.locate_file(name))
        if not deeper and name.endswith(".pth"):
            found.update(("", folder) for folder in _folders(path))
        elif not deeper and name.endswith(".py"):
            found.update(_mapped(path))
    linked = {(top, str(one.locate_file(top))) for top in _tops(one, files)[0]}
    found.update((top, os.path.realpath(path)) for top, path in linked if os.path.islink(path))
    return found


def _is_developed(one: metadata.Distribution, name: str) -> bool:
    """Installed by `setup.py develop`, which leaves a link of this name beside the distributions."""
    folder = str(one.locate_file(""))
    links = (os.path.join(path, f"{name}.egg-link") for path in sys.path if path != folder)
    return any(map(os.path.isfile, links))


def _folders(pth: str) -> Iterator[str]:
    """The folders that a `.pth` file adds to `sys.path`."""
    for line in _text(pth).splitlines():
        folder = os.path.join(os.path.dirname(pth), line.strip())
        if line.strip() and not line.startswith(("import ", "import\t", "#")) and os.path.isdir(folder):
            yield os.path.abspath(folder)


def _mapped(hook: str) -> Iterator[tuple[str, str]]:
    """What an import hook that an installer wrote maps modules to: its literal dicts, and calls of `map_module`."""
    try:
        nodes = list(ast.walk(ast.parse(_text(hook))))
    except (SyntaxError, ValueError):
        return
    pairs: list[tuple[object, object]] = []
    for node in nodes:
        if isinstance(node, ast.Dict):
            pairs += [(_literal(key), _literal(node.values[n])) for n, key in enumerate(node.keys)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "map_module" and len(node.args) == 2:
            pairs.append((_literal(node.args[0]), _literal(node.args[1])))
    for module, paths in pairs:
        for path in paths if isinstance(paths, list) else [paths]:
            if isinstance(module, str) and isinstance(path, str) and os.path.isabs(path):
                stem = path[:-3] if path.endswith(".py") else path
                yield module, stem[: -len("/__init__")] if stem.endswith("/__init__") else stem


def _literal(node: ast.AST | None) -> object:
    try:
        return ast.literal_eval(node) if node else None
    except ValueError:
        return None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    print(json.dumps(inventory()))
