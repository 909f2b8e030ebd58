"""What of the code a traced run has used."""

from __future__ import annotations

import pytest

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


def used(script: str, *ran: str) -> str:
    trace = Trace(frozenset({SCRIPT}), frozenset(f"{SCRIPT}:{name}" for name in ran))
    return used_of(SCRIPT, "f", texts(script), trace).fingerprint


CLOSES = """
def outer():
    a = b = 1
    def inner():
        return a + 1
    return inner
def other():
    return 1
def f():
    return outer().__closure__, outer().__code__.co_flags
"""


def test_what_a_closure_keeps_shows_without_calling_it_and_nothing_else_of_bodies() -> None:
    before = used(CLOSES, "f", "outer")
    assert used(CLOSES.replace("return a + 1", "return b + 1"), "f", "outer") != before
    assert used(CLOSES.replace("return a + 1", "return a + 2"), "f", "outer") == before
    assert used(CLOSES.replace("    return 1\n", "    return 2\n"), "f", "outer") == before


def test_a_method_that_asks_for_its_class_keeps_it_in_its_closure() -> None:
    script = "class A:\n    def go(self):\n        return 1\ndef f():\n    return A.go.__closure__\n"
    assert used(script.replace("return 1", "return super()"), "f") != used(script, "f")
    assert used(script.replace("return 1", "return 2"), "f") == used(script, "f")


def test_code_that_is_looked_at_as_a_whole_counts_with_all_bodies() -> None:
    script = "def h():\n    return 1\ndef f():\n    return hash(h.__code__)\n"
    assert used(script.replace("return 1", "return 2"), "f") != used(script, "f")


HANDS_ON = """
import types
def one(x):
    return x + 1
def two(x):
    return x * 2
def copied(function):
    return types.FunctionType(function.__code__, function.__globals__, "copy")
def f():
    two.__code__ = one.__code__
    return copied(one)(3), copied(two)
"""


def test_code_that_becomes_that_of_another_function_is_not_looked_at() -> None:
    before = used(HANDS_ON, "f", "copied", "one")
    assert used(HANDS_ON.replace("x * 2", "x * 3"), "f", "copied", "one") == before
    assert used(HANDS_ON.replace("x + 1", "x + 2"), "f", "copied", "one") != before
    looks = HANDS_ON.replace("(two)", "(two), one.__code__ == two.__code__")
    assert used(looks.replace("x * 2", "x * 3"), "f", "copied", "one") != used(looks, "f", "copied", "one")


MARKS = """
OWN = set()
def own(function):
    OWN.add(function.__code__)
    return function
@own
def one():
    return 1
@own
def two():
    return 2
def f():
    return one.__code__ in OWN, one()
"""


def test_code_that_is_put_into_a_set_is_not_looked_at_by_that() -> None:
    marks = MARKS.replace("one.__code__ in OWN, ", "")
    assert used(marks.replace("return 2", "return 3"), "own", "f", "one") == used(marks, "own", "f", "one")
    assert used(MARKS.replace("return 2", "return 3"), "own", "f", "one") != used(MARKS, "own", "f", "one")


@pytest.mark.parametrize(("call", "counts"), [("inspect.stack()[0]", True), ("inspect.signature(f) or g", False)])
def test_lines_count_where_inspect_gives_frames(call: str, counts: bool) -> None:
    head = "import inspect\n"
    script = f"{head}def g():\n    return 1\ndef f(node=None):\n    return getattr({call}, 'lineno', 0), g.lineno\n"
    assert (used(script.replace(head, f"{head}\n"), "f", "g") != used(script, "f", "g")) == counts
