"""A project in a scratch folder, and time that passes on its file system."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from buildsys.state.files import Files
from buildsys.state.manifest import Manifest
from tests.state import small


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".buildsys").mkdir()
    return tmp_path


@pytest.fixture
def write(root: Path) -> Callable[..., Path]:
    """Write a file of the project; gives its path."""

    def write(path: str, content: str | bytes = "content") -> Path:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    return write


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project after its three runs, to be copied."""
    folder = tmp_path_factory.mktemp("built")
    small.build(folder).close()
    return folder


@pytest.fixture
def project(root: Path, built: Path) -> Path:
    """A project of its own as `small` describes it, its manifest closed."""
    shutil.copytree(built, root, dirs_exist_ok=True)
    return root


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State folders as they were after opening, and after the first run of the small project."""
    root = tmp_path_factory.mktemp("templates")
    for name, is_filled in (("empty", False), ("filled", True)):
        manifest = Manifest.open(root / name)
        if is_filled:
            run_id = manifest.begin_run(command="buildsys build", profile="default", targets=["draft"])
            manifest.commit(small.first_run(run_id))
            manifest.finish_run(run_id, "done")
        manifest.close()
    return root


@pytest.fixture
def manifest(root: Path, templates: Path) -> Iterator[Manifest]:
    shutil.copytree(templates / "empty", root / ".buildsys", dirs_exist_ok=True)
    manifest = Manifest.open(root / ".buildsys")
    yield manifest
    manifest.close()


@pytest.fixture
def filled(root: Path, templates: Path) -> Iterator[Manifest]:
    """With the first run of the small project."""
    shutil.copytree(templates / "filled", root / ".buildsys", dirs_exist_ok=True)
    manifest = Manifest.open(root / ".buildsys")
    yield manifest
    manifest.close()


def tick(root: Path) -> None:
    """Wait until the file system's clock has moved on, so that what was written so far is older than it."""
    probe = root / ".buildsys" / "probe"
    probe.write_bytes(b"")
    before = probe.stat().st_ctime_ns
    while True:
        os.utime(probe)
        if probe.stat().st_ctime_ns > before + 1_000_000:
            return
        time.sleep(0.001)


def again(files: Files) -> Files:
    """A later scan, which knows what the earlier one learned."""
    rows = {path: (stat, digest) for path, stat, digest in files.learned()}
    return Files(files.root, {**files._known, **rows})
