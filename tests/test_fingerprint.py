"""`buildsys fingerprint`: the same where nothing has changed that can decide the result, told with what decides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from buildsys import slicing
from buildsys.cli.group import buildsys
from buildsys.code.parse import Module
from buildsys.state.looks import Looks

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


def test_a_package_that_a_run_imported_by_a_computed_name_counts_by_its_version(folder: Path, tmp_path: Path) -> None:
    for name in ("plug", "beside"):
        (folder / f"lib/{name}-1.0.dist-info").mkdir(parents=True)
        (folder / f"lib/{name}-1.0.dist-info/METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
        (folder / f"lib/{name}-1.0.dist-info/RECORD").write_text(f"{name}.py,,\n")
        (folder / f"lib/{name}.py").write_text("")
    (folder / "m.py").write_text("import importlib\n\ndef f():\n    importlib.import_module('pl' + 'ug')\n")
    trace = str(tmp_path / "trace")
    before = digest(folder, "--run", "--trace", trace)
    edit(folder, "lib/beside-1.0.dist-info/METADATA", "Version: 1.0", "Version: 2.0")
    assert digest(folder, "--trace", trace) == before
    edit(folder, "lib/plug-1.0.dist-info/METADATA", "Version: 1.0", "Version: 2.0")
    assert digest(folder, "--trace", trace) != before


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


class Counts:
    """How often each file was read, and how many texts were parsed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads: Counter[str] = Counter()
        self.n_parsed = 0
        read, parse = Looks.read, slicing.parse

        def counted_read(looks: Looks, path: str) -> bytes:
            data = read(looks, path)
            self.reads[path] += 1
            return data

        def counted_parse(path: str, text: str) -> Module:
            self.n_parsed += 1
            return parse(path, text)

        monkeypatch.setattr(Looks, "read", counted_read)
        monkeypatch.setattr(slicing, "parse", counted_parse)

    def of(self, folder: Path, *options: str) -> tuple[Counter[str], int]:
        self.reads, self.n_parsed = Counter(), 0
        digest(folder, *options)
        return self.reads, self.n_parsed


@pytest.mark.parametrize("state", ["src/.buildsys", ".buildsys"], ids=["in the folder", "above it"])
def test_where_a_build_has_been_what_is_unchanged_is_read_once_and_never_parsed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    cold = digest(folder)
    (folder.parent / state).mkdir()
    counts = Counts(monkeypatch)
    once = {"m.py": 1, "helper.py": 1}
    assert counts.of(folder) == (once, 2)
    assert counts.of(folder) == (once, 0)
    assert digest(folder) == cold
    edit(folder, "helper.py", "upper", "lower")
    assert counts.of(folder) == (once, 1)
    assert digest(folder) != cold


def test_with_a_trace_nothing_unchanged_is_parsed_again_either(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".buildsys").mkdir()
    trace = ["--trace", str(tmp_path / "trace")]
    digest(folder, "--run", *trace)
    counts = Counts(monkeypatch)
    assert counts.of(folder, *trace) == ({"m.py": 1, "helper.py": 1}, 0)


def test_folders_of_one_project_keep_apart_what_they_call_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / ".buildsys").mkdir()
    other = folder.parent / "other"
    other.mkdir()
    (other / "m.py").write_text("def f():\n    return 1\n")
    before = digest(folder), digest(other)
    counts = Counts(monkeypatch)
    assert [counts.of(place)[1] for place in (folder, other)] == [0, 0]
    assert (digest(folder), digest(other)) == before


def test_asking_without_a_run_loads_nothing_that_only_runs_need() -> None:
    unneeded = ["socket", "subprocess", "pickle", "tomllib", "email", "zipfile", "csv"]
    code = f"import sys, buildsys.cli.fingerprint; print([name for name in {unneeded} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
