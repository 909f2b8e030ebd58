"""`buildsys fingerprint`: the same where nothing has changed that can decide the result, told with what decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from buildsys.cli.group import buildsys

SCRIPT = """\
import os
import helper

def f():
    if os.environ.get("MODE") == "loud":
        return helper.loud("x")
    return helper.quiet("x")
"""
HELPER = "def loud(x):\n    return x.upper()\n\ndef quiet(x):\n    return open('word.txt').read() + x\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "src"
    place.mkdir()
    (place / "m.py").write_text(SCRIPT)
    (place / "helper.py").write_text(HELPER)
    (place / "word.txt").write_text("w")
    return place


def ask(folder: Path, *options: str, entry: str = "m:f") -> Result:
    return CliRunner().invoke(buildsys, ["fingerprint", str(folder), entry, *options])


def digest(folder: Path, *options: str) -> str:
    result = ask(folder, *options)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def test_without_a_trace_all_that_is_in_reach_counts(folder: Path) -> None:
    before = digest(folder)
    edit(folder, "helper.py", "def loud", "# a comment\ndef loud")
    assert digest(folder) == before
    edit(folder, "helper.py", "upper", "lower")
    assert digest(folder) != before


def test_with_a_trace_only_what_ran_counts_and_what_it_read(folder: Path, tmp_path: Path) -> None:
    trace = str(tmp_path / "trace")
    before = digest(folder, "--run", "--trace", trace)
    assert digest(folder, "--trace", trace) == before
    edit(folder, "helper.py", "upper", "lower")
    assert digest(folder, "--trace", trace) == before
    (folder / "word.txt").write_text("v")
    after = digest(folder, "--trace", trace)
    assert after != before
    edit(folder, "helper.py", "+ x", "+ x + x")
    assert digest(folder, "--trace", trace) not in (before, after)


def test_a_variable_that_is_read_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(folder)
    monkeypatch.setenv("ANOTHER", "loud")
    assert digest(folder) == before
    monkeypatch.setenv("MODE", "soft")
    assert digest(folder) != before


def test_nothing_is_written_into_the_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    before = sorted(folder.rglob("*"))
    digest(folder, "--run", "--trace", str(tmp_path / "trace"))
    assert sorted(folder.rglob("*")) == before


def test_the_slice_is_told_by_its_symbols_and_the_way_to_each(folder: Path) -> None:
    lines = digest(folder, "--slice").splitlines()
    assert [line.split()[:2] for line in lines][:3] == [
        ["loud", "helper.py:1"],
        ["quiet", "helper.py:4"],
        ["f", "m.py:4"],
    ]
    assert lines[0].endswith("f → loud")


def test_all_of_it_can_be_had_as_json(folder: Path) -> None:
    told = json.loads(digest(folder, "--json"))
    assert told["digest"] == digest(folder).strip()
    assert [one[1] for one in told["code"]["symbols"]][:2] == ["loud", "quiet"]


@pytest.mark.parametrize(
    ("entry", "exit_code", "says"),
    [
        ("m:g", 1, 'm.py defines no "g"'),
        ("n:f", 1, "there is no module n"),
        ("broken:f", 1, "broken.py:1:"),
        ("m", 2, "m is no MODULE:FUNCTION"),
    ],
)
def test_what_can_not_be_had_is_said(folder: Path, entry: str, exit_code: int, says: str) -> None:
    (folder / "broken.py").write_text("def f(:\n")
    result = ask(folder, entry=entry)
    assert (result.exit_code, says in result.stderr or says in str(result.exception)) == (exit_code, True)


def test_a_file_that_is_no_trace_is_refused(folder: Path, tmp_path: Path) -> None:
    for name, text in (("none", None), ("other", "{}")):
        if text is not None:
            (tmp_path / name).write_text(text)
        result = ask(folder, "--trace", str(tmp_path / name))
        assert result.exit_code == 2 or "trace" in str(result.exception)
