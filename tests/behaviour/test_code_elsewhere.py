"""Code that no import finds from the script's folder: every edit of it is seen."""

from __future__ import annotations

import pytest

from tests.behaviour.conftest import Space

RULE = '[rule.a]\nrun = "scripts/a.py::f"\noutputs = { o = "build/{profile}/a.txt" }\n'
FILE = "build/default/a.txt"


def scripted(space: Space, text: str, rule: str = RULE) -> None:
    space.write("rules/r.toml", rule)
    space.write("scripts/a.py", f"{text}\ndef f(o):\n    o.write_text(WORD)\n")
    space.write("lib/helper.py", "WORD = 'old'\n")


PATH = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n"
SPEC = """
import importlib.util
spec = importlib.util.spec_from_file_location("helper", "lib/helper.py")
helper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(helper)
WORD = helper.WORD
"""


@pytest.mark.parametrize(
    "text",
    [
        PATH + "from helper import WORD\n",
        SPEC,
        "import runpy\nWORD = runpy.run_path('lib/helper.py')['WORD']\n",
        "exec(open('lib/' + 'helper.py').read())\n",
        "import subprocess, sys\n"
        "code = [sys.executable, '-c', 'exec(open(\"lib/helper.py\").read()); print(WORD, end=\"\")']\n"
        "WORD = subprocess.run(code, capture_output=True, text=True).stdout\n",
    ],
    ids=["sys.path", "spec", "run_path", "exec", "subprocess"],
)
def test_an_edit_of_code_in_another_folder_is_seen(space: Space, text: str) -> None:
    scripted(space, text)
    built = space.build()
    assert built.ran == ["a"], (built.errors, built.error)
    assert space.read(FILE) == "old"
    space.replace("lib/helper.py", "old", "new")
    assert space.build().ran == ["a"]
    assert space.read(FILE) == "new"
    space.replace("lib/helper.py", "\n", "  # said\n")
    is_read = "run_path" in text or text.startswith("exec")
    assert space.build().ran == (["a"] if is_read else []), "a file that is opened counts as a whole"


def test_code_that_rules_make_and_environments_are_no_code_of_the_project(space: Space) -> None:
    scripted(
        space,
        PATH + "from helper import WORD\n",
        RULE + '[rule.model]\nrun = "scripts/model.py::make"\noutputs = { folder = "build/{profile}/model" }\n',
    )
    space.write(
        "scripts/model.py",
        """
        import time

        def make(folder):
            folder.mkdir()
            (folder / "modeling.py").write_text(f"made_at = {time.time()}")
        """,
    )
    space.write("env/pyvenv.cfg", "")
    space.write("env/lib/installed.py", "")
    assert space.build().ran == ["a", "model"]
    space.write("env/lib/installed.py", "x = 1")
    assert space.build().ran == []
