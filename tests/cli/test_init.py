"""`buildsys init`: a project that builds at once, and that never takes the place of anything of the user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from buildsys.template import files_of
from tests.cli.conftest import environment, run_in

ROOT = Path(__file__).parent.parent.parent


def test_a_new_project_builds_and_what_it_says_to_try_runs_one_shard(tmp_path: Path) -> None:
    made = run_in(tmp_path, "init", "demo")
    assert made.returncode == 0, made.stderr
    assert "try: cd demo && buildsys build" in made.stderr
    demo = tmp_path / "demo"
    built = run_in(demo, "build")
    assert "3 actions: 3 ran" in built.stderr
    assert json.loads((demo / "workspace/build/default/lengths.json").read_text())["texts"] == 4

    prompts = demo / "workspace/data/prompts/0001.jsonl"
    prompts.write_text(prompts.read_text().replace("yeast", "leaven"))
    assert "input prompts changed (workspace/data/prompts/0001.jsonl)" in run_in(demo, "plan").stdout
    assert "3 actions: 1 reused, 2 ran" in run_in(demo, "build").stderr

    subprocess.run(["git", "init", "-q", demo], check=True)
    listing = ["git", "-C", demo, "ls-files", "--others", "--exclude-standard"]
    seen = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    assert set(seen) == {*files_of("first"), ".gitignore"}


@pytest.mark.parametrize("taken", ["workspace/scripts/texts.py", "workspace", "workspace/configs"])
def test_a_file_in_the_way_stays_and_nothing_is_written(tmp_path: Path, taken: str) -> None:
    mine = tmp_path / taken
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    made = run_in(tmp_path, "init")
    assert made.returncode == 2
    assert taken in made.stderr
    assert mine.read_text() == "mine"
    assert not (tmp_path / "rules").exists()


def test_a_link_to_nowhere_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "workspace").symlink_to("gone")
    assert run_in(tmp_path, "init").returncode == 2
    assert not (tmp_path / "gone").exists()
    assert not (tmp_path / "rules").exists()


def test_a_project_is_not_made_one_again(tmp_path: Path) -> None:
    run_in(tmp_path, "init")
    again = run_in(tmp_path, "init", "--template", "eagle3")
    assert again.returncode == 2
    assert "this is a project already" in again.stderr
    assert not (tmp_path / "workspace/verifier").exists()


def test_your_gitignore_is_left_and_what_it_lacks_is_told(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("/.buildsys\n")
    made = run_in(tmp_path, "init")
    assert made.returncode == 0
    assert "add to it: workspace/build/ __pycache__/" in made.stderr
    assert (tmp_path / ".gitignore").read_text() == "/.buildsys\n"


def test_an_installed_buildsys_has_the_pipeline_too(tmp_path: Path) -> None:
    """The package as the build configuration lays it out, in a place of its own."""
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site = tmp_path / "site"
    shutil.copytree(ROOT / "buildsys", site / "buildsys", ignore=shutil.ignore_patterns("__pycache__"))
    for source, target in included["force-include"].items():
        shutil.copytree(ROOT / source, site / target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    program = [sys.executable, "-m", "buildsys.cli"]
    env = environment(PYTHONPATH=os.fspath(site))
    subprocess.run([*program, "init", "--template", "eagle3", "draft"], cwd=tmp_path, env=env, check=True)
    made = tmp_path / "draft"
    assert {path: (made / path).read_bytes() for path in files_of("eagle3")} == {
        path: file.read_bytes() for path, file in files_of("eagle3").items()
    }
    planned = subprocess.run([*program, "plan", "--json"], cwd=made, env=env, capture_output=True, text=True)
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["actions"][0]["fate"] == "run"
