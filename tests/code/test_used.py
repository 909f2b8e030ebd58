"""What of the code a traced run has used."""

from __future__ import annotations

from buildsys.code.slice import used_of
from buildsys.model import Trace
from tests.code.texts import SCRIPT, texts

LOADS = """
import importlib
def load(name):
    return importlib.import_module(f"plug_{name}")
def f():
    return load("a").go()
"""


def test_code_that_reaches_itself_by_a_computed_name_has_a_way_that_ends() -> None:
    tree = texts(LOADS, {"plug_a.py": "def go():\n    return 1\n"})
    ran = frozenset({f"{SCRIPT}:f", f"{SCRIPT}:load", "scripts/plug_a.py:go"})
    used = used_of(SCRIPT, "f", tree, Trace(frozenset({SCRIPT, "scripts/plug_a.py"}), ran))
    assert {(path, name) for path, name, *_ in used.symbols} >= {(SCRIPT, "f"), ("scripts/plug_a.py", "go")}
