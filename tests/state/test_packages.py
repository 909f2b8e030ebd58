"""What is installed here is read once, and again whenever something was installed since."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from buildsys.state import packages
from buildsys.state.installed import installed
from tests.behaviour.installing import write_metadata


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that anything is installed in, beside the state of a project."""
    folder = tmp_path / "site"
    folder.mkdir()
    (tmp_path / ".buildsys").mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    return folder


def put(site: Path, name: str, version: str = "1.0") -> None:
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    write_metadata(site / f"{name}-{version}.dist-info", text, [f"{name}.py"])


def versions(site: Path) -> dict[str, str]:
    cache = site.parent / ".buildsys/cache/packages.json"
    return packages.own_distributions(cache).versions(["one", "two"])


def test_what_is_installed_later_is_found(site: Path) -> None:
    put(site, "one")
    assert versions(site) == {"one": "1.0", "two": "not installed"}
    put(site, "two")
    assert versions(site) == {"one": "1.0", "two": "1.0"}


def test_it_is_read_once(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(site, "one")
    versions(site)
    monkeypatch.setattr(packages, "inventory", lambda: pytest.fail("read again"))
    assert versions(site)["one"] == "1.0"


def test_an_answer_of_another_form_is_no_answer(site: Path) -> None:
    put(site, "one")
    versions(site)
    cache = site.parent / ".buildsys/cache/packages.json"
    kept = json.loads(cache.read_text())
    cache.write_text(json.dumps({"stamp": kept["stamp"], "provided": {}}))
    assert versions(site)["one"] == "1.0"


@pytest.mark.parametrize("name", ["lib.pth", "lib-1.0.dist-info", "lib.egg-info"])
def test_all_that_tells_of_an_install_is_looked_at(site: Path, name: str) -> None:
    before = installed()
    (site / "lib.py").touch()
    assert installed() == before, "a module alone is nothing installed"
    (site / name).touch()
    assert installed() != before


def test_the_head_of_metadata_is_enough(site: Path) -> None:
    text = "Metadata-Version: 2.1\nName: one\nVersion: 1.0\nRequires-Dist: two\n\nName: other\nRequires-Dist: three\n"
    write_metadata(site / "one-1.0.dist-info", text, ["one.py"])
    found = packages.own_distributions(site / "none/none/cache")
    assert [(one.name, one.requires) for one in found.all] == [("one", ("two",))]
