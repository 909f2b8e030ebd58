"""What made something that is kept is another once its files are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from buildsys import makers


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's files, which are what counts from now on."""
    copy = tmp_path / "buildsys"
    shutil.copytree(Path(makers.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(makers, "_HOME", str(copy))
    return copy


def now() -> str:
    makers.maker.cache_clear()
    return makers.maker("code", "run/diagnose.py")


@pytest.mark.parametrize(
    ("edited", "same"), [("code/undefined.py", False), ("run/diagnose.py", False), ("run/worker.py", True)]
)
def test_an_edit_of_a_file_that_decides_makes_another(home: Path, edited: str, same: bool) -> None:
    before = now()
    assert now() == before
    with (home / edited).open("a") as file:
        file.write("# edited\n")
    assert (now() == before) is same


def test_so_does_another_version(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = now()
    monkeypatch.setattr(makers, "__version__", "9")
    assert now() != before


def test_a_place_that_is_missing_is_a_mistake() -> None:
    with pytest.raises(FileNotFoundError):
        makers.maker("code", "no_such.py")
