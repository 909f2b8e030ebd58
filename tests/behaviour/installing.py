"""Small distributions, installed into an environment as an installer leaves them."""

from __future__ import annotations

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
