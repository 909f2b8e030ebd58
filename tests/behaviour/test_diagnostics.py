"""What is wrong with a script is told before anything runs, blocks what it can break and nothing else."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from unittest import mock

import pytest

from buildsys import proofreader
from buildsys.cli.check import check_lines
from buildsys.diagnostics import check
from buildsys.doctor import examine
from buildsys.events import ActionFinished, ActionStarted, Diagnosed
from buildsys.explain import explain
from buildsys.model import Diagnostic
from buildsys.prepare import Preparer
from buildsys.project import Project
from buildsys.run import diagnose
from buildsys.survey import survey
from buildsys.terminal import painted
from tests.behaviour.conftest import Built, Space
from tests.behaviour.test_interpreters import python

ROOT = Path(__file__).parents[2]
RULES = """
[rule.one]
run     = "scripts/work.py::one"
outputs = { o = "build/{profile}/one.txt" }

[rule.two]
run     = "scripts/work.py::two"
inputs  = { i = "@one" }
outputs = { o = "build/{profile}/two.txt" }

[rule.three]
run     = "scripts/more.py::three"
inputs  = { i = "@two" }
outputs = { o = "build/{profile}/three.txt" }

[rule.other]
run     = "scripts/more.py::other"
outputs = { o = "build/{profile}/other.txt" }
"""
WORK = """
import json
from helpers import shout

def one(o):
    try:
        text = json.loads("1")
    except ValueError:
        text = 2
    o.write_text(shout(str(text)))

def two(i, o):
    o.write_text(i.read_text() + "two")
"""
MORE = """
def three(i, o):
    o.write_text(i.read_text() + "three")

def other(o):
    o.write_text("other")
"""
HELPERS = """
def shout(text):
    return text.upper()

def whisper(text):
    return text.lower()
"""
TOLD = """\
error: try block without except or finally
  scripts/work.py:8:5
       6 │     try:
       7 │         text = json.loads("1")
    →  8 │     o.write_text(shout(str(text)))
         │     ^
       9 │
      10 │ def two(i, o):
hint: the `try` is in line 6: give it its `except` back, or its lines their indentation"""


@pytest.fixture
def fresh(space: Space) -> Space:
    """The project before its first build."""
    space.write("rules/r.toml", RULES)
    space.write("scripts/work.py", WORK)
    space.write("scripts/more.py", MORE)
    space.write("scripts/helpers.py", HELPERS)
    return space


@pytest.fixture
def built(fresh: Space) -> Space:
    assert fresh.build().ran == ["one", "other", "three", "two"]
    return fresh


def diagnosed(done: Built) -> list[Diagnostic]:
    return [event.diagnostic for event in done.events if isinstance(event, Diagnosed)]


def checked(space: Space) -> tuple[Diagnostic, ...]:
    project = Project(space.root)
    graph = project.graph()
    return check(project, graph, Preparer(project, graph))[0]


def problems(space: Space, level: str = "error") -> list[str]:
    return [one.problem for one in checked(space) if one.level == level]


# ---------------------------------------------------------------- texts that do not parse


def test_two_lines_that_fell_out_of_a_try_are_told_and_invalidate_nothing(built: Space) -> None:
    built.replace("scripts/work.py", "    except ValueError:\n        text = 2\n", "")
    built.replace("scripts/more.py", '"other"', '"changed"')
    done = built.build()
    (found,) = diagnosed(done)
    assert found.render() == TOLD
    assert done.outcome == "failed"
    assert done.actions("blocked") == ["one", "two"]
    assert done.actions("skipped") == ["three"]
    assert done.ran == ["other"]
    assert built.read("build/default/two.txt") == "1two", "the last good output stays"

    built.write("scripts/work.py", WORK)
    mended = built.build()
    assert mended.ran == []
    assert diagnosed(mended) == []


def test_it_is_told_before_anything_runs_also_of_rules_that_wait_for_others(built: Space) -> None:
    built.write("scripts/more.py", MORE.replace("    o.write_text(i.", "  o.write_text(i.") + "x = (\n")
    built.replace("scripts/work.py", '"two"', '"2"')
    done = built.build()
    kinds = [type(event) for event in done.events if isinstance(event, (Diagnosed, ActionStarted, ActionFinished))]
    assert kinds[0] is Diagnosed
    assert kinds.count(Diagnosed) == 1
    assert done.ran == ["two"]
    assert done.actions("blocked") == ["other", "three"]


def test_plan_status_and_why_say_blocked_too(built: Space) -> None:
    built.replace("scripts/work.py", "text = 2\n", "text = tex\n")
    fates = {str(one.action): one.fate for one in survey(Project(built.root)).actions}
    assert fates == {"one": "blocked", "two": "skipped", "three": "skipped", "other": "reuse"}
    (explained,) = explain(Project(built.root), "one")
    assert explained.planned.reason == "`tex` is not defined"
    assert "scripts/work.py:9:16" in explained.planned.error


def test_a_script_that_only_the_compiler_refuses_is_broken_too(built: Space) -> None:
    built.write("scripts/helpers.py", HELPERS + "return 1\n")
    (found,) = diagnosed(built.build())
    assert (found.problem, found.rules) == ("`return` outside function", ("one", "two"))


def test_what_python_runs_is_never_broken(built: Space) -> None:
    odd = "# -*- coding: latin-1 -*-\n# caf\xe9\n" + MORE.replace('"other"', '"\xe9"')
    (built.root / "scripts/more.py").write_bytes(odd.encode("latin-1"))
    done = built.build()
    assert diagnosed(done) == []
    assert done.ran == ["other", "three"] or done.ran == ["other"]
    assert built.read("build/default/other.txt") == "\xe9"


def test_the_script_of_a_service_blocks_only_what_needs_the_service(built: Space) -> None:
    built.write("scripts/serve.py", "def main(:\n")
    service = '[service.s]\nshell = "{python} scripts/serve.py --port {port}"\nready = "http://127.0.0.1:{port}/"\n'
    built.write("rules/r.toml", RULES.replace("[rule.other]", '[rule.other]\nservices = ["s"]') + service)
    done = built.build()
    assert done.actions("blocked") == ["other"]
    assert done.actions("reused") == ["one", "three", "two"]


# ---------------------------------------------------------------- names


def test_an_undefined_name_blocks_the_rules_that_can_reach_it(built: Space) -> None:
    built.replace("scripts/work.py", 'i.read_text() + "two"', 'j.read_text() + "two"')
    done = built.build()
    (found,) = diagnosed(done)
    assert (found.level, found.problem, str(found.place)) == ("error", "`j` is not defined", "scripts/work.py:13:18")
    assert done.actions("blocked") == ["two"]
    assert done.actions("skipped") == ["three"]
    assert done.actions("reused") == ["one", "other"]
    assert done.errors == found.render()


def test_one_that_no_rule_can_reach_is_a_warning_that_is_told_once(built: Space) -> None:
    built.replace("scripts/helpers.py", "text.lower()", "txt.lower()")
    done = built.build()
    assert [(one.level, one.problem, one.hint) for one in diagnosed(done)] == [
        ("warning", "`txt` is not defined", 'did you mean "text"?')
    ]
    assert (done.outcome, done.ran) == ("done", [])
    assert diagnosed(built.build()) == []
    assert problems(built, "warning") == ["`txt` is not defined"]


def test_what_runs_at_import_blocks_all_that_import_it(built: Space) -> None:
    built.write("scripts/helpers.py", HELPERS + "LIMIT = limit\n")
    assert built.build().actions("blocked") == ["one", "two"], "though nothing reads it"


def test_noqa_is_honoured(built: Space) -> None:
    built.write("scripts/helpers.py", HELPERS.replace("text.upper()", "txt.upper()  # noqa: F821"))
    done = built.build()
    assert diagnosed(done) == []
    assert done.failed == ["one"]
    assert "NameError" in done.errors


@pytest.mark.parametrize(
    "more",
    [
        "from helpers import *\n\ndef x():\n    return SHOUT\n",
        "from helpers import *\n\ndef x():\n    return shout, whisper\n",
        "from os.path import *\n\ndef x():\n    return nowhere\n",
        "globals().update(y=1)\n\ndef x():\n    return y\n",
        "import gettext\ngettext.install('x')\n\ndef x():\n    return y\n",
    ],
)
def test_what_may_be_there_raises_no_alarm(fresh: Space, more: str) -> None:
    if "SHOUT" in more:
        fresh.write("scripts/helpers.py", HELPERS + "from string import *\n")
    fresh.write("scripts/more.py", more + MORE)
    assert checked(fresh) == ()


@pytest.mark.parametrize(
    "text", ["helpers.y = 1\n", "setattr(helpers, 'y', 1)\n", "import sys\nsys.modules[x].y = 1\n"]
)
def test_a_name_that_another_module_sets_is_no_mistake_where_that_is_in_reach(fresh: Space, text: str) -> None:
    fresh.write("scripts/helpers.py", HELPERS.replace("text.upper()", "y"))
    fresh.write(
        "scripts/more.py",
        MORE.replace('"other"', "helpers.shout('other')").replace("\n", f"\nimport helpers\n{text}", 1),
    )
    (found,) = checked(fresh)
    assert found.rules == ("one",), "whose modules set nothing"


def test_a_name_that_some_module_may_set_may_be_imported(fresh: Space) -> None:
    fresh.write("scripts/helpers.py", HELPERS + "import sys\nsetattr(sys.modules['more'], 'made', 1)\n")
    fresh.write("scripts/made.py", "x = 1\n")
    fresh.write("scripts/more.py", "import helpers\nfrom made import y\n" + MORE)
    assert checked(fresh) == ()


def test_a_star_import_of_our_own_that_lacks_a_name_is_a_mistake(fresh: Space) -> None:
    fresh.write("scripts/more.py", "from helpers import *\n" + MORE.replace('"other"', "shuot('other')"))
    assert problems(fresh) == ["`shuot` is not defined"]


def test_a_name_that_is_used_too_early_is_told_with_the_line_that_assigns_it(fresh: Space) -> None:
    text = "count = 0\n" + MORE.replace('    o.write_text("other")', "    o.write_text(str(count))\n    count = 1")
    fresh.write("scripts/more.py", text)
    assert problems(fresh) == ["`count` is used before it is assigned in line 8"]


# ---------------------------------------------------------------- imports


def test_a_package_that_is_not_installed_is_a_note_that_blocks_nothing(built: Space) -> None:
    built.write("scripts/helpers.py", "import flash_attention_9\n" + HELPERS)
    found = checked(built)
    assert [(one.level, one.problem) for one in found] == [
        ("note", "flash_attention_9 is not installed here; one, two need it to run")
    ]
    assert found[0].hint == "pip install flash_attention_9"
    done = built.build(force=["one"])
    assert diagnosed(done) == list(found)
    assert done.actions("blocked") == []
    assert done.failed == ["one"]
    assert "packages" in [one.about for one in examine(Project(built.root), deep=False) if one.level == "note"]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import nowhere_9\nexcept ImportError:\n    nowhere_9 = None\n",
        "import sys\nif sys.platform == 'win32':\n    import nowhere_9\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import nowhere_9\n",
        "import sys\nsys.path.insert(0, '/opt/there')\nimport nowhere_9\n",
        "def unused():\n    import nowhere_9\n",
        "if __name__ == '__main__':\n    import nowhere_9\n",
        "import nowhere_9  # noqa\n",
    ],
)
def test_what_the_script_can_do_without_is_no_lack(fresh: Space, text: str) -> None:
    fresh.write("scripts/more.py", text + MORE)
    assert checked(fresh) == ()


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (
            "from helper import shout\n",
            'there is no module "helper", and no package of this name is installed',
            'did you mean "helpers"?',
        ),
        ("from helpers import shuot\n", 'scripts/helpers.py defines no "shuot"', 'did you mean "shout"?'),
        ("import lib.sbu\n", 'there is no module "lib.sbu"', 'did you mean "sub"?'),
        ("from lib import sbu\n", 'scripts/lib/__init__.py defines no "sbu"', ""),
        ("from lib.sub import y\n", 'scripts/lib/sub.py defines no "y"', ""),
        ("import lib.sub.deep\n", 'there is no module "lib.sub.deep"', ""),
    ],
)
def test_a_module_or_name_of_ours_that_is_not_there_is_a_mistake(
    fresh: Space, text: str, problem: str, hint: str
) -> None:
    fresh.write("scripts/lib/__init__.py", "from .sub import x\n")
    fresh.write("scripts/lib/sub.py", "x = 1\n")
    fresh.write("scripts/more.py", text + MORE)
    (found,) = checked(fresh)
    assert (found.level, found.problem, found.hint) == ("error", problem, hint)
    assert found.rules == ("three", "other")


@pytest.mark.parametrize(
    "text",
    [
        "import lib.sub, lib\n",
        "from lib import sub, x, made, there\n",
        "from lib.open import anything\n",
        "from lib.compiled import anything\n",
        "from space.inner import z\n",
        "import space.inner as inner\n",
        "from lib.stars import x, y\n",
    ],
)
def test_what_is_there_is_no_mistake(fresh: Space, text: str) -> None:
    fresh.write("scripts/lib/__init__.py", "from .sub import x\nimport lib.sub\nlib.there = 1\nsub.y = 1\n")
    fresh.write("scripts/lib/sub.py", "x = 1\n")
    fresh.write("scripts/lib/open.py", "def __getattr__(name): ...\n")
    fresh.write("scripts/lib/stars.py", "from .sub import *\nfrom string import *\n")
    fresh.write("scripts/lib/compiled.cpython-311-x86_64-linux-gnu.so", "")
    fresh.write("scripts/space/inner.py", "z = 1\n")
    fresh.write(
        "rules/made.toml",
        '[rule.made]\nrun = "scripts/helpers.py::shout"\noutputs = { text = "scripts/lib/made.py" }\ndefault = false\n',
    )
    fresh.write("scripts/more.py", text + MORE)
    assert checked(fresh) == ()


# ---------------------------------------------------------------- what it costs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts ruff was asked about, a number for each process."""
    counts: list[int] = []
    ask = diagnose.ask_ruff

    def counting(texts: list[tuple[str, str]]) -> object:
        counts.append(len(texts))
        return ask(texts)

    monkeypatch.setattr(proofreader, "ask_ruff", counting)
    return counts


def test_only_texts_that_changed_are_looked_at_and_all_of_them_at_once(built: Space, asked: list[int]) -> None:
    built.build()
    assert asked == [], "a build with nothing to do asks nothing"
    built.write("scripts/work.py", "# said\n" + WORK)
    built.write("scripts/more.py", "# said\n" + MORE)
    built.build()
    assert asked == [2]
    built.write("scripts/more.py", MORE)
    built.build()
    assert asked == [2], "what was looked at once is known"
    built.remove(".buildsys/cache/diagnostics.json")
    built.build()
    assert asked == [2, 3]


def test_what_another_version_found_is_looked_for_anew(built: Space, asked: list[int]) -> None:
    built.write("scripts/more.py", "# said\n" + MORE)
    built.build()
    built.write("scripts/more.py", MORE)
    with mock.patch.object(proofreader, "maker", return_value="another"):
        built.build()
    assert asked == [1, 3], "at all texts, though none is new"


def test_reading_commands_write_nothing(built: Space, asked: list[int]) -> None:
    built.write("scripts/more.py", "# said\n" + MORE)
    kept = built.read(".buildsys/cache/diagnostics.json")
    checked(built)
    survey(Project(built.root))
    assert asked == [1, 1]
    assert built.read(".buildsys/cache/diagnostics.json") == kept


@pytest.mark.parametrize("text", ["", "{", '{"stamp": 1}', '{"stamp": null, "findings": 7}'])
def test_what_is_kept_may_be_damaged(built: Space, text: str) -> None:
    built.write(".buildsys/cache/diagnostics.json", text)
    built.replace("scripts/work.py", '"two"', "too")
    assert built.build().actions("blocked") == ["two"]


def test_without_ruff_broken_texts_are_told_and_names_are_said_to_go_unseen(
    built: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofreader, "ruff", lambda: "")
    built.replace("scripts/work.py", '"two"', "too")
    built.write("scripts/more.py", "x = (\n")
    done = built.build()
    told = [getattr(event, "text", "") for event in done.events]
    assert "ruff is not installed: names in scripts are not looked at" in told
    assert done.actions("blocked") == ["other", "three"]
    assert done.failed == ["two"]


# ---------------------------------------------------------------- other interpreters


PYTHONS = RULES.replace('run     = "scripts/more', 'python  = "{python}"\nrun     = "scripts/more')


def test_what_the_interpreter_of_a_rule_can_not_compile_blocks_it(fresh: Space) -> None:
    fresh.write("rules/r.toml", PYTHONS.replace("{python}", python("3.9")))
    fresh.write("scripts/more.py", MORE + "\nmatch 1:\n    case _: pass\n")
    (found,) = checked(fresh)
    assert (found.problem, found.rules) == ("invalid syntax, for Python 3.9", ("three", "other"))
    fresh.write("scripts/more.py", "x = (\n" + MORE)
    assert problems(fresh) == ["`(` is never closed"], "older Pythons know less of what is wrong"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it is no newer syntax there")
def test_newer_syntax_is_not_called_broken_where_the_rule_has_a_newer_python(fresh: Space) -> None:
    fresh.write("rules/r.toml", PYTHONS.replace("{python}", python("3.12")))
    fresh.write("scripts/more.py", MORE + "\ntype X = int\n")
    (found,) = checked(fresh)
    assert found.problem.startswith(f"buildsys runs in Python 3.{sys.version_info[1]}, which can't read it: ")
    assert found.hint == "run buildsys in Python 3.12, as the rule is"
    assert found.rules == ("three", "other")


def test_another_interpreter_is_asked_once_for_all_texts_that_changed(
    fresh: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    there = diagnose.compile_elsewhere

    def counting(path: str, env: dict[str, str], texts: list[str]) -> object:
        counts.append(len(texts))
        return there(path, env, texts)

    monkeypatch.setattr(proofreader, "compile_elsewhere", counting)
    fresh.write("rules/r.toml", PYTHONS.replace("{python}", python("3.9")))
    fresh.write("scripts/more.py", "import helpers\n" + MORE)
    assert fresh.build().ran == ["one", "other", "three", "two"]
    assert counts == [2]
    fresh.build()
    assert counts == [2]


def test_what_is_missing_is_looked_for_where_the_rule_runs(fresh: Space) -> None:
    fresh.write("rules/r.toml", PYTHONS.replace("{python}", python("3.9")))
    fresh.write("scripts/more.py", "import tomllib, distutils, click\n" + MORE)
    (found,) = checked(fresh)
    assert found.problem.startswith("click, tomllib are not installed for ")
    assert found.hint.endswith(" -m pip install click tomllib")


# ---------------------------------------------------------------- the shipped pipeline

SAMPLES = """
[rule.samples]
run     = "scripts/01b_generate_synthetic.py::extract"
inputs  = { replies = "replies.jsonl" }
outputs = { samples = "build/samples.parquet" }

[rule.asked]
run     = "scripts/other.py::other"
outputs = { o = "build/other.txt" }
"""
WHOLE = """\
    try:
        message = choice["message"]
    except KeyError:
        message = {}
    return message"""


def test_the_script_that_takes_replies_apart_may_lose_lines_of_a_try(space: Space) -> None:
    space.write("rules/r.toml", SAMPLES)
    space.write("scripts/transformers.py", "AutoTokenizer = PreTrainedTokenizerBase = object\n")
    space.write("scripts/other.py", "def other(o):\n    o.write_text('1')\n")
    script = "scripts/01b_generate_synthetic.py"
    shutil.copyfile(ROOT / "workspace" / script, space.root / script)
    space.replace(script, '    message = choice.get("message") or {}\n    return message', WHOLE)
    reply = {"choices": [{"message": {"content": "4", "reasoning": "2 + 2"}, "finish_reason": "stop"}]}
    record = {"messages": [{"role": "user", "content": "2 + 2?"}]}
    row = {"id": "a", "record": record, "sample": 0, "replies": [reply], "error": None}
    space.write("replies.jsonl", json.dumps(row) + "\n")
    assert space.build().ran == ["asked", "samples"]

    whole = space.read(script)
    space.replace(script, "    except KeyError:\n        message = {}\n", "")
    space.replace("scripts/other.py", "'1'", "'2'")
    done = space.build()
    (found,) = diagnosed(done)
    assert (found.problem, found.rules) == ("try block without except or finally", ("samples",))
    line = whole.split("\n").index("    except KeyError:") + 1
    assert str(found.place) == f"{script}:{line}:5"
    assert f"→ {line:>3} │     return message.get(" in found.excerpt
    assert (done.ran, done.actions("blocked")) == (["asked"], ["samples"])

    space.write(script, whole)
    assert space.build().ran == []


def test_nothing_is_wrong_with_what_ships() -> None:
    project = Project(ROOT)
    graph = project.graph()
    found, diagnosis = check(project, graph, Preparer(project, graph))
    assert [one for one in found if one.level != "note"] == []
    assert (diagnosis.n_scripts, diagnosis.n_modules) == (8, 6)
    lines = [painted(line, colour=False) for line in check_lines((), 8, 6)]
    assert lines == ["8 scripts, 6 modules: nothing found"]
