"""Ruff and other interpreters, asked about texts: real processes, one for all texts, and none that can fail a build."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from buildsys.code.findings import Fault
from buildsys.run import diagnose
from buildsys.run.diagnose import ask_ruff, compile_elsewhere


def names(text: str, name: str = "one.py") -> list[tuple[str, int, int]]:
    found = ask_ruff([(name, text)])
    assert found is not None
    return [(one.code, one.line, one.column) for one in found[0]]


def test_each_text_gets_its_own_answer() -> None:
    found = ask_ruff([("a.py", "x = y\n"), ("b.py", "x = 1\n"), ("b.py", "x = (\n")])
    assert found is not None
    assert [[one.code for one in said] for said in found] == [["F821"], [], ["invalid-syntax"]]


def test_columns_are_of_characters_and_lines_end_as_in_python() -> None:
    assert names("ä = 'ü'; b = typo\n") == [("F821", 1, 14)]
    assert names("x = '\x0c\u2028'\ny = typo\n") == [("F821", 2, 5)]


def test_a_package_has_a_path_and_a_module_has_none() -> None:
    assert names("print(__path__)\n", "__init__.py") == []
    assert names("print(__path__)\n") == [("F821", 1, 7)]


def test_an_encoding_that_the_text_declares_is_of_no_concern() -> None:
    assert names("# -*- coding: latin-1 -*-\n# \xe9\nx = '\xe9'\n") == []


def test_noqa_counts_and_settings_of_the_user_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ruff.toml").write_text("builtins = ['typo']\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUFF_OUTPUT_FORMAT", "full")
    monkeypatch.setenv("RUFF_CONFIG", "nowhere.toml")
    assert names("x = typo\n") == [("F821", 1, 5)]
    assert names("x = typo  # noqa: F821\n") == []
    assert names("# ruff: noqa\nx = typo\n") == []


@pytest.mark.parametrize("says", ["", "echo no JSON", "echo '[]'; exit 2", "sleep 5"])
def test_a_ruff_that_can_not_be_used_is_no_answer(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ruff"
    if says:
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(diagnose, "ruff", lambda: str(program))
    monkeypatch.setattr(diagnose, "_TIMEOUT_S", 0.5)
    assert ask_ruff([("one.py", "x = 1\n")]) is None


def test_another_interpreter_says_what_it_can_not_compile() -> None:
    texts = ["x = 1\n", "x = (\n", "\0", "(" * 9000 + ")" * 9000]
    found = compile_elsewhere(sys.executable, dict(os.environ), texts)
    assert found is not None
    assert found[0] is None
    assert found[1] == Fault("`(` is never closed", "", 1, 5, 1)
    assert found[2] is not None


@pytest.mark.parametrize("path", ["/bin/true", "/nowhere/python"])
def test_what_is_no_python_gives_no_answer(path: str) -> None:
    assert compile_elsewhere(path, dict(os.environ), ["x = 1\n"]) is None
