"""Small distributions, installed into an environment as an installer leaves them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path


def site(environment: Path) -> Path:
    """The folder of packages of an environment."""
    (folder,) = environment.glob("lib/python*/site-packages")
    return folder


def install(
    environment: Path,
    name: str,
    version: str,
    source: str = "",
    *,
    files: Mapping[str, str] | None = None,
    requires: Sequence[str] = (),
) -> None:
    """A distribution with one module of its name, or with these files; another version of it goes.

    version: "" for one that does not tell. requires: lines of requirements.
    """
    packages = site(environment)
    for old in packages.glob(f"{name}-*.dist-info"):
        shutil.rmtree(old)
    files = {f"{name}.py": source} if files is None else files
    for path, text in files.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_text(text)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", *([f"Version: {version}"] if version else [])]
    lines += [f"Requires-Dist: {line}" for line in requires]
    write_metadata(packages / f"{name}-{version}.dist-info", "\n".join(lines) + "\n", files)


def write_metadata(folder: Path, metadata: str, files: Mapping[str, str] | Sequence[str]) -> None:
    """The metadata of a distribution with these files."""
    folder.mkdir()
    (folder / "METADATA").write_text(metadata)
    listed = [*files, f"{folder.name}/METADATA", f"{folder.name}/RECORD"]
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in listed))


HOOK = """
import sys
from importlib.util import spec_from_file_location
from pathlib import Path

MAPPING: dict[str, str] = {mapping!r}


class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        for file in ("__init__.py", ".py"):
            place = MAPPING.get(name, "") + ("/" if file[0] == "_" else "") + file
            if name in MAPPING and Path(place).is_file():
                return spec_from_file_location(name, place)


def install():
    sys.meta_path.append(Finder)
"""
"""As setuptools writes it, but for parts of namespaces."""


def install_editable(
    environment: Path,
    name: str,
    folder: Path,
    mapping: Mapping[str, Path] | None = None,
    *,
    requires: Sequence[str] = (),
) -> None:
    """An editable install: of all modules in a folder, by a path, or by a hook that maps modules to where they are."""
    packages = site(environment)
    for old in packages.glob(f"{name}-*.dist-info"):
        shutil.rmtree(old)
    stem = f"__editable__{name}"
    if mapping is None:
        files = {f"{stem}.pth": f"{folder}\n"}
    else:
        hook = HOOK.replace("{mapping!r}", repr({module: str(place) for module, place in mapping.items()}))
        files = {f"{stem}.pth": f"import {stem}_finder; {stem}_finder.install()", f"{stem}_finder.py": hook}
    for path, text in files.items():
        (packages / path).write_text(text)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {line}" for line in requires)]
    metadata = packages / f"{name}-1.0.dist-info"
    write_metadata(metadata, "\n".join(lines) + "\n", [*files, f"{metadata.name}/direct_url.json"])
    (metadata / "direct_url.json").write_text(json.dumps({"url": f"file://{folder}", "dir_info": {"editable": True}}))
