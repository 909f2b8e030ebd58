"""Names that seem undefined: what is sure blocks a rule, so each case here is one that Python itself decides."""

from __future__ import annotations

import ast

import pytest

from buildsys.code.undefined import Names, Verdict


def verdict(text: str, name: str = "typo") -> Verdict | None:
    """The verdict on the last place that reads the name."""
    tree = ast.parse(text)
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    last = max(
        (node for node in named if not isinstance(node.ctx, ast.Store)), key=lambda node: (node.lineno, node.col_offset)
    )
    return Names(tree).judge(name, (last.lineno, last.col_offset))


def body(*lines: str) -> str:
    """A function with these lines."""
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines)


SURE = {
    "in a function": body("return typo"),
    "under a condition in a function": body("if x:", "    return typo"),
    "in a loop": body("while True:", "    x += typo"),
    "in a comprehension": body("return [typo for y in x if y]"),
    "in a lambda": "f = lambda x: typo\n",
    "in a method": "class A:\n    def m(self):\n        return typo\n",
    "a name of the class, in its method": "class A:\n    typo = 1\n    def m(self):\n        return typo\n",
    "a name of another function": "def g():\n    typo = 1\n" + body("return typo"),
    "in a handler": body("try:", "    pass", "except ValueError:", "    return typo"),
    "where all is caught": body("try:", "    return typo", "except Exception:", "    return None"),
    "at import": "x = typo\n",
    "as a decorator": "@typo\n" + body("pass"),
    "as a default": "def f(x=typo): ...\n",
    "as a base": "class A(typo): ...\n",
    "changed in place": body("typo.x = 1"),
    "deleted": body("del typo"),
    "in an f-string": body('return f"{x} {typo!r:>{x}}"'),
    "in an f-string of several lines": body('return f"""', "    {x}", '    {typo}"""'),
    "an annotation that is evaluated": "def f(x: typo): ...\n",
    "after what leaves another block": body("if x:", "    return 1", "return typo"),
    "in the branch that always runs": "if True:\n    x = typo\n",
}

UNSURE = {
    "a variable of another function that makes it global": "def g():\n    global typo\n    typo = 1\n"
    + body("return typo"),
    "a variable of an outer function": "def g():\n    def f():\n        return typo\n    typo = 1\n    return f\n",
    "a variable that an inner function sets": "def g():\n    def f():\n        nonlocal typo\n        typo = 1\n"
    "    f()\n    print(typo)\n    del typo\n",
    "under a version": body("import sys", "if sys.version_info > (3,):", "    return typo"),
    "in a function that one platform has": "import os\nif os.name == 'nt':\n    def f():\n        return typo\n",
    "in one branch of an expression": body("return typo if PY2 else x"),
    "under a condition at import": "import x\nif x.there:\n    y = typo\n",
    "tried at import": "try:\n    y = typo\nexcept Exception:\n    y = None\n",
    "tried for its name": body("try:", "    return typo", "except NameError:", "    return None"),
    "asked for before": body("try:", "    typo", "except NameError:", "    return None", "return typo"),
    "suppressed": body("with suppress(NameError):", "    return typo"),
    "in a handler at import": "try:\n    import x\nexcept ImportError:\n    x = typo\n",
    "behind what leaves": body("return x", "return typo"),
    "where it never runs": body("if False:", "    return typo"),
    "in a loop at import": "for y in x():\n    typo\n",
    "deleted somewhere": "typo = 1\n" + body("return typo") + "del typo\n",
}


@pytest.mark.parametrize("text", SURE.values(), ids=list(SURE))
def test_what_raises_where_it_runs_is_sure(text: str) -> None:
    found = verdict(text)
    assert found is not None
    assert found.sure
    assert found.kind == "undefined"


@pytest.mark.parametrize("text", UNSURE.values(), ids=list(UNSURE))
def test_what_may_be_bound_or_may_not_be_meant_to_run_is_not_sure(text: str) -> None:
    found = verdict(text)
    assert found is not None
    assert not found.sure


@pytest.mark.parametrize("name", ["unicode", "get_ipython", "_"])
def test_what_other_surroundings_bring_is_sure_only_where_nothing_asks_for_them(name: str) -> None:
    asked = verdict(body("if x:", f"    return {name}"), name)
    assert asked is not None
    assert not asked.sure
    plain = verdict(body(f"return {name}"), name)
    assert plain is not None
    assert plain.sure


NEVER = {
    "quoted": 'def f(x: "typo"): ...\n',
    "postponed": "from __future__ import annotations\ndef f(x: typo): ...\n",
    "of a local variable": body("y: typo = 1", "return y"),
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    x = typo\n",
}


@pytest.mark.parametrize("text", NEVER.values(), ids=list(NEVER))
def test_what_is_never_evaluated_is_nothing(text: str) -> None:
    tree = ast.parse(text)
    line = next(n for n, one in enumerate(text.split("\n"), 1) if "typo" in one)
    assert Names(tree).judge("typo", (line, text.split("\n")[line - 1].index("typo"))) is None


def test_the_word_within_a_text_is_nothing() -> None:
    text = 'def f(x: Literal["typo"]): ...\n'
    assert Names(ast.parse(text)).judge("typo", (1, text.index("typo"))) is None


EARLY = {
    "assigned below": body("y = typo", "typo = 1"),
    "assigned from itself": body("typo = typo + 1"),
    "added to": body("typo += 1"),
    "added to, where the module has it": "typo = 0\n" + body("typo += 1"),
    "first in a loop that assigns it": body("for y in x:", "    y = typo", "    typo = 1"),
    "at import": "x = typo\ntypo = 1\n",
    "declared only": body("typo: int", "return typo"),
}
LATER = {
    "in a later round of a loop": body("for y in x:", "    if y:", "        print(typo)", "    typo = 1"),
    "in a branch of a loop": body("while x:", "    y = x and typo", "    typo = 1"),
    "in a try of a loop": body("for y in x:", "    try:", "        y = typo", "    finally:", "        typo = 1"),
    "assigned above, in a branch": body("if x:", "    typo = 1", "return typo"),
    "made global by a function that was called": "def g():\n    global typo\n    typo = 1\ng()\nx = typo\ntypo = 2\n",
}


@pytest.mark.parametrize("text", EARLY.values(), ids=list(EARLY))
def test_what_is_read_before_anything_is_assigned_is_sure(text: str) -> None:
    tree = ast.parse(text)
    reads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "typo"]
    judged = [Names(tree).judge("typo", (node.lineno, node.col_offset)) for node in reads]
    assert any(one and one.sure and one.kind == "early" for one in judged)


@pytest.mark.parametrize("text", LATER.values(), ids=list(LATER))
def test_what_may_be_assigned_by_then_is_not_sure(text: str) -> None:
    tree = ast.parse(text)
    reads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "typo"]
    judged = [Names(tree).judge("typo", (node.lineno, node.col_offset)) for node in reads]
    assert not any(one and one.sure for one in judged)


def test_the_name_of_an_exception_is_gone_after_its_block() -> None:
    text = body("try:", "    pass", "except ValueError as typo:", "    pass", "return typo")
    found = verdict(text)
    assert found is not None
    assert (found.kind, found.sure) == ("gone", True)
    within = verdict(body("try:", "    pass", "except ValueError as typo:", "    print(typo)"))
    assert within is not None
    assert not within.sure


def test_a_verdict_says_when_the_line_runs() -> None:
    def found(text: str) -> Verdict:
        judged = verdict(text)
        assert judged is not None
        return judged

    assert not found("x = typo\n").called
    assert found(body("return typo")).called
    assert found("def f(x: typo): ...\n").annotation
    assert found("if __name__ == '__main__':\n    typo()\n").main
    assert not found(body("return typo")).main


def test_names_that_are_there_are_told_for_hints() -> None:
    found = verdict("import json\n" + body("message = 1", "return typo"))
    assert found is not None
    assert found.visible == ("f", "json", "message", "x")
