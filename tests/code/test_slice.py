"""What changes the fingerprint of an action's code, and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from buildsys.code.parse import Broken
from buildsys.code.slice import Slice, merge, slice_of
from buildsys.digest import Digest, digest_bytes
from buildsys.errors import FAILED, USAGE, BuildError, Place
from tests.code.texts import SCRIPT, Texts, texts

BROKEN = "try:\n"


def sliced(script: str, beside: str | Mapping[str, str] = "", function: str = "f") -> Slice:
    return slice_of(SCRIPT, function, texts(script, beside))


ONE = "import a\nLIMIT = 3\ndef f(x):\n    return a.g(x)[:LIMIT]\ndef other():\n    return 1\n"
BESIDE = {
    "a.py": "def g(x):\n    return [x, 'b']\n",
    "apart.py": "x = 1\n",
    "broken.py": BROKEN,
    "acting.py": "import a\na.g = 1",
}


def edited(name: str, old: str, new: str) -> tuple[str, dict[str, str]]:
    """The script and the files beside it, after one edit of one of them."""
    tree = {"one.py": ONE, **BESIDE}
    assert old in tree[name]
    tree[name] = tree[name].replace(old, new, 1)
    return tree.pop("one.py"), tree


# ---------------------------------------------------------------- the truth table

SAME = {
    "a comment": ("one.py", "LIMIT = 3", "LIMIT = 3  # records"),
    "a comment elsewhere": ("a.py", "def g", "# what it gives\ndef g"),
    "blank lines": ("one.py", "def f", "\n\n\ndef f"),
    "another layout": ("one.py", "a.g(x)[:LIMIT]", "(\n        a.g( x, )[ : LIMIT ]\n    )"),
    "other quotes": ("a.py", "'b'", '"b"'),
    "another notation": ("one.py", "3", "0x3"),
    "line ends": ("a.py", "\n", "\r\n"),
    "a module out of reach": ("apart.py", "1", "2"),
    "a broken module out of reach": ("broken.py", BROKEN, "def f(:"),
    "another function of the script": ("one.py", "return 1", "return 2"),
    "the name of another function": ("one.py", "def other", "def another"),
    "the order of statements": ("one.py", "import a\nLIMIT = 3\n", "LIMIT = 3\nimport a\n"),
    "a docstring": ("one.py", "    return a", "    '''What it gives.'''\n    return a"),
    "an annotation": ("one.py", "f(x)", "f(x: int)"),
    "the code of the program alone": ("one.py", "def f", "if __name__ == '__main__':\n    print()\ndef f"),
    "one import more": ("one.py", "import a", "import a, apart"),
    "one distribution more": ("one.py", "import a", "import a, torch"),
    "a print at import": ("a.py", "def g", "print()\ndef g"),
}
DIFFERENT = {
    "the function": ("one.py", "(x)[", "(x + 1)["),
    "a constant": ("one.py", "3", "4"),
    "the type of a constant": ("one.py", "3", "3.0"),
    "a constant bound once more": ("one.py", "LIMIT = 3", "LIMIT = 3\nLIMIT = 4"),
    "a module in reach": ("a.py", "'b'", "'c'"),
    "a decorator": ("one.py", "def f", "@a.g\ndef f"),
    "an effect at import": ("a.py", "def g", "random.seed(1)\ndef g"),
    "an effect of a module that nothing is read of": ("one.py", "import a", "import a, acting"),
    "one import less": ("one.py", "import a\n", ""),
}


@pytest.mark.parametrize("edit", SAME.values(), ids=SAME)
def test_an_edit_that_changes_no_code_in_reach_leaves_the_fingerprint(edit: tuple[str, str, str]) -> None:
    assert sliced(*edited(*edit)).fingerprint == sliced(ONE, BESIDE).fingerprint


@pytest.mark.parametrize("edit", DIFFERENT.values(), ids=DIFFERENT)
def test_an_edit_of_any_code_in_reach_changes_the_fingerprint(edit: tuple[str, str, str]) -> None:
    assert sliced(*edited(*edit)).fingerprint != sliced(ONE, BESIDE).fingerprint


def test_another_function_of_the_same_code_is_another_fingerprint() -> None:
    prints = {sliced(ONE, BESIDE, function).fingerprint for function in ("f", "other", "a", "LIMIT", "")}
    assert len(prints) == 5


def test_another_script_of_the_same_code_is_another_fingerprint() -> None:
    text = {"one.py": "import two\ndef f(): ...", "two.py": "import one\ndef f(): ..."}
    tree = texts(text["one.py"], {"two.py": text["two.py"]})
    one, two = (slice_of(f"scripts/{name}", "f", tree) for name in text)
    assert one.fingerprint != two.fingerprint


def test_the_same_code_in_another_module_is_another_fingerprint() -> None:
    text = "import a\ndef f():\n    return a.b.x"
    one = sliced(text, {"a.py": "import b", "b.py": "x = 1", "c.py": ""})
    two = sliced(text, {"a.py": "import b", "b/__init__.py": "x = 1", "c.py": ""})
    assert one.fingerprint != two.fingerprint


def test_a_module_that_comes_to_shadow_an_installed_one_changes_the_fingerprint() -> None:
    text = "import json\ndef f():\n    return json.dumps(1)"
    assert sliced(text).fingerprint != sliced(text, {"json.py": "dumps = repr"}).fingerprint
    assert sliced(text, "xml.py").fingerprint == sliced(text).fingerprint


@pytest.mark.parametrize("folder", ["elsewhere", "scripts/deep/er", "a", ""])
@pytest.mark.parametrize(
    "text", [ONE, "import importlib\nimportlib.import_module(ONE)\n" + ONE], ids=["plain", "computed"]
)
def test_moving_the_script_s_folder_changes_nothing(folder: str, text: str) -> None:
    here = sliced(text, BESIDE)
    path = f"{folder}/one.py" if folder else "one.py"
    there = slice_of(path, "f", texts(text, BESIDE, folder=folder))
    assert there.fingerprint == here.fingerprint
    assert there.sources.keys() == {key.replace("scripts", folder, 1).removeprefix("/") for key in here.sources}


@pytest.mark.parametrize(
    ("edit", "same"),
    [
        (("apart.py", "1", "2"), False),
        (("apart.py", "1", "1  # one"), True),
        (("broken.py", BROKEN, "def f(:\n"), False),
        (("broken.py", BROKEN, BROKEN + "# only a comment\n"), False),
    ],
)
def test_a_computed_import_takes_all_modules_and_broken_ones_by_their_text(
    edit: tuple[str, str, str], same: bool
) -> None:
    computed = "import importlib\nimportlib.import_module(NAME)\n"
    before = sliced(computed + ONE, BESIDE)
    script, beside = edited(*edit)
    assert (sliced(computed + script, beside).fingerprint == before.fingerprint) is same


# ---------------------------------------------------------------- what a slice holds


def test_a_slice_holds_sources_symbols_and_names_from_outside() -> None:
    text = """\
import json, torch.nn, unread
from numpy import ones
import a
def f():
    import datasets
    return json.loads(torch.nn.x + ones(datasets) + a.g())
def other():
    import jax
    return jax
"""
    tree = texts(
        text, {"a.py": "import tokenizers, os.path\ndef g():\n    return tokenizers\n", "b.py": "import gguf\n"}
    )
    found = slice_of(SCRIPT, "f", tree)
    assert found.sources == {path: tree[path] for path in (SCRIPT, "scripts/a.py")}
    assert [(one.path.rpartition("/")[2], one.name) for one in found.symbols] == [
        *(("a.py", name) for name in ("g", "tokenizers")),
        *(("one.py", name) for name in ("a", "f", "json", "ones", "torch")),
    ]
    assert found.external == {"torch", "numpy", "datasets", "tokenizers"}
    assert found.preload == {"torch.nn", "unread", "numpy:ones", "tokenizers"}


def test_a_symbol_tells_its_lines_and_the_way_to_it() -> None:
    text = "import a\ndef f():\n    return g()\n\n@deco\ndef g():\n    return a.X\n"
    found = {one.name: one for one in sliced(text, {"a.py": "X = Y = 1\n"}).symbols}
    assert (found["g"].line, found["g"].end, found["g"].via) == (5, 7, ("f", "g"))
    assert found["X"].via == ("f", "g", "X")


def test_the_text_of_a_symbol_is_of_its_lines_of_all_statements_that_bind_it() -> None:
    text = "def f():\n    return g()\nL = 0\n@deco\ndef g(): return N\nN = 1\nM = 2\nN = (\n  3)"
    found = sliced(text)
    shown = {one.name: found.text(one) for one in found.symbols if one.name in "fgN"}
    assert shown == {
        "f": [(1, "def f():"), (2, "    return g()")],
        "g": [(4, "@deco"), (5, "def g(): return N")],
        "N": [(6, "N = 1"), (8, "N = ("), (9, "  3)")],
    }
    order = [(6, "N = 1"), (8, "N = ("), (9, "  3)")]
    assert [found.text(one) for one in found.symbols if one.name == "order of N"] == [order]


def test_the_text_of_a_class_leaves_the_bodies_of_its_methods_to_them() -> None:
    text = """\
def f():
    return C().m()


class C(Base):
    x: int = 0

    @property
    def m(self):
        return 1

    async def other(
        self,
    ):
        return 2

    y = 3
"""
    found = sliced(text)
    shown = {one.name: [n for n, _ in found.text(one)] for one in found.symbols}
    assert (shown["C"], shown["C.m"], shown["C.y"]) == ([5, 6, 7, 8, 9, 11, 12, 16, 17], [8, 9, 10], [17])


def test_an_edit_changes_the_digest_of_its_module_alone() -> None:
    before, after = sliced(ONE, BESIDE), sliced(*edited("a.py", "'b'", "'c'"))
    assert [one[:2] for one in sorted({*before.symbols} ^ {*after.symbols})] == [("scripts/a.py", "g")] * 2


def test_a_broken_module_is_among_the_symbols_with_the_digest_of_its_text() -> None:
    found = sliced("import importlib\ndef f():\n    importlib.import_module(x)", {"b.py": BROKEN})
    assert ("scripts/b.py", "*", digest_bytes(BROKEN.encode())) in [one[:3] for one in found.symbols]
    assert found.sources["scripts/b.py"] == BROKEN


# ---------------------------------------------------------------- the function


@pytest.mark.parametrize(
    "text",
    [
        "def f(): ...",
        "async def f(): ...",
        "f = lambda: 1",
        "from a import f",
        "from a import g as f",
        "from a import *",
        "if x:\n    def f(): ...",
        "try:\n    from a import f\nexcept ImportError:\n    f = None",
        "class f: ...",
    ],
)
def test_a_function_may_come_from_any_binding_of_its_name(text: str) -> None:
    assert sliced(text, "a.py").sources[SCRIPT] == text


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("def extracted(): ...\ndef tokenize(): ...", 'did you mean "extracted"?'),
        ("def build(): ...\nimport os", "valid here: build, os"),
        ("def build():\n    def extract(): ...", "valid here: build"),
        ("class C:\n    def extract(self): ...", "valid here: C"),
        ("import extract.deep as deep", "valid here: deep"),
        ("", ""),
    ],
)
def test_a_missing_function_blocks_its_rules_and_names_what_there_is(text: str, hint: str) -> None:
    with pytest.raises(Broken) as caught:
        sliced(text, function="extract")
    error = caught.value
    assert error.problem == f'{SCRIPT} defines no "extract"'
    assert (error.place, error.hint, error.exit_code) == (Place(SCRIPT), hint, FAILED)


def test_a_script_that_is_run_as_a_program_needs_no_function() -> None:
    assert sliced("print()", function="").sources == {SCRIPT: "print()"}


def test_a_missing_script_is_a_mistake_in_the_rule_file() -> None:
    with pytest.raises(BuildError, match=r"there is no script scripts/two\.py") as caught:
        slice_of("scripts/two.py", "f", texts(""))
    assert caught.value.exit_code == USAGE
    assert not isinstance(caught.value, Broken)


# ---------------------------------------------------------------- several scripts of one command


def merged(**scripts: str) -> Slice:
    tree = texts("", {f"{name}.py": text for name, text in scripts.items()} | {"a.py": "import torch"})
    return merge([slice_of(f"scripts/{name}.py", "", tree) for name in scripts])


def test_a_merged_slice_holds_all_that_its_parts_hold_once() -> None:
    both = merged(x="import a\nprint(a.torch)", y="import a\nfrom numpy import ones\nprint(a.torch.x, ones)")
    assert sorted(both.sources) == ["scripts/a.py", "scripts/x.py", "scripts/y.py"]
    assert sorted({one.path for one in both.symbols}) == sorted(both.sources)
    assert len({one[:2] for one in both.symbols}) == len(both.symbols)
    assert (both.external, both.preload) == ({"torch", "numpy"}, {"torch", "numpy:ones"})


def test_a_merged_fingerprint_changes_with_each_of_its_parts_and_with_nothing_else() -> None:
    before = merged(x="print(1)", y="print(2)").fingerprint
    assert merged(x="print(1)", y="print(2)  # two").fingerprint == before
    assert merged(x="print(1)", y="print(3)").fingerprint != before
    assert merged(x="", y="print(2)").fingerprint != before
    assert merged(x="print(1)").fingerprint != before


def test_one_slice_is_merged_to_itself() -> None:
    alone = sliced(ONE, BESIDE)
    assert merge([alone]) is alone


# ---------------------------------------------------------------- what is installed as editable


def editable(script: str, files: Mapping[str, str], needs: Mapping[str, Sequence[str]] = {}) -> Digest:
    tree = Texts(texts(script) | files)
    tree.needs = needs
    return slice_of(SCRIPT, "f", tree).fingerprint


@pytest.mark.parametrize(
    ("script", "needs"),
    [
        ("import lib.x\ndef f(): return lib.x.X()", {}),
        ("import lib\ndef f(): return lib.named('x')", {}),
        ("import outside\ndef f(): return outside.call()", {"outside": ["<lib>/lib"]}),
        ("from outside import call\ndef f(): return call()", {"outside": ["<lib>/lib"]}),
    ],
    ids=["imported", "computed", "behind a module", "behind a name"],
)
def test_an_edit_of_editable_code_changes_the_fingerprint(script: str, needs: Mapping[str, Sequence[str]]) -> None:
    package = "import importlib\ndef named(name): return importlib.import_module(f'lib.{name}')"
    files = {"<lib>/lib/__init__.py": package, "<lib>/lib/x.py": "def X(): return 1", "<lib>/tests.py": "1"}
    before = editable(script, files, needs)
    assert editable(script, files | {"<lib>/lib/x.py": "def X(): return 2"}, needs) != before
    assert editable(script, files | {"<lib>/lib/x.py": "def X():\n    return 1  # one"}, needs) == before
    assert editable(script, files | {"<lib>/tests.py": "2"}, needs) == before


def test_editable_code_behind_a_distribution_that_nothing_uses_is_out_of_reach() -> None:
    script = "import outside\ndef f(): return 1\ndef g(): return outside.call()"
    needs = {"outside": ["<lib>/lib"]}
    before = editable(script, {"<lib>/lib.py": "X = 1"}, needs)
    assert editable(script, {"<lib>/lib.py": "X = 2"}, needs) == before
