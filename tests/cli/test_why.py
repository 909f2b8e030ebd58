"""why: every reason with what was and what is, and what was compared where there is none."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from buildsys.cli.why import basis_lines, discovered_texts
from buildsys.digest import NO_DIGEST, Digest, digest_bytes
from buildsys.explain import Basis
from buildsys.model import ActionKey, Alias, Discovered
from buildsys.terminal import painted
from tests.cli.conftest import run_in

RULES = """
config = "configs/texts.yaml"

[rule.marked]
each    = { shard = "data/{shard}.txt" }
run     = "scripts/texts.py::mark"
inputs  = { text = "data/{shard}.txt" }
params  = { mark = "$style.mark", times = 2 }
env     = ["LOUD"]
outputs = { marked = "build/{profile}/marked/{shard}.txt" }

[rule.book]
run     = "scripts/texts.py::bind"
inputs  = { marked = "@marked[*]" }
outputs = { book = "build/{profile}/book.txt" }
"""
SCRIPT = '''\
"""Marks texts."""

import os

from signs import sign

END = "."


def mark(text, marked, mark, times):
    """Write the text with its mark."""
    loud = os.environ.get("LOUD")
    marked.write_text(_signed(text.read_text().strip(), mark * times))


def _signed(text, mark):
    # Before the end.
    return text + sign(mark) + END


def bind(marked, book):
    book.write_text(" ".join(one.read_text() for one in marked))
'''
SIGNS = """\
def sign(mark):
    return f"({mark})"


class Signs:
    def other(self):
        return 1
"""


@pytest.fixture(scope="module")
def built_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("texts") / "project"
    files = {
        "rules/texts.toml": RULES,
        "configs/texts.yaml": "# How texts look.\nstyle:\n  # One character.\n  mark: '!'\n",
        "scripts/texts.py": SCRIPT,
        "scripts/signs.py": SIGNS,
        "data/one.txt": "one\n",
        "data/two.txt": "two\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    done = run_in(root, "build", "-j", "2", LOUD="yes")
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def texts(built_texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project, built."""
    monkeypatch.setenv("LOUD", "yes")
    return Path(shutil.copytree(built_texts, tmp_path / "texts"))


@pytest.fixture
def why(run, texts):
    def ask(*args: str) -> list[str]:
        done = run("why", *args, cwd=texts)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return ask


def edit(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text()
    assert text.count(old) == 1, old
    (root / path).write_text(text.replace(old, new))


def test_a_changed_symbol_is_told_with_its_way_and_a_diff_with_the_numbers_of_the_file(why, texts):
    edit(texts, "scripts/texts.py", '"""Marks texts."""\n', '"""Marks texts."""\n# Now\n# so.\n')
    edit(texts, "scripts/texts.py", "sign(mark) + END", "END + sign(mark)")
    assert why("marked") == [
        "marked (2 actions) will run: its code changed: _signed (scripts/texts.py:18)",
        "    reached by mark → _signed",
        "    @@ scripts/texts.py:20 @@",
        "     def _signed(text, mark):",
        "         # Before the end.",
        "    -    return text + sign(mark) + END",
        "    +    return text + END + sign(mark)",
    ]


def test_a_helper_in_another_file_is_told_of_there(why, texts):
    edit(texts, "scripts/signs.py", 'f"({mark})"', 'f"[{mark}]"')
    assert why("marked[one]") == [
        "marked[one] will run: its code changed: sign (scripts/signs.py:1)",
        "    reached by mark → _signed → sign",
        "    @@ scripts/signs.py:2 @@",
        "     def sign(mark):",
        '    -    return f"({mark})"',
        '    +    return f"[{mark}]"',
    ]


def test_a_symbol_that_is_new_is_told_with_all_of_it_and_one_that_is_gone_too(why, texts):
    edit(texts, "scripts/texts.py", "sign(mark) + END", "again(mark)")
    edit(texts, "scripts/texts.py", "from signs import sign\n", "")
    edit(texts, "scripts/texts.py", "def bind(", "def again(mark):\n    return 2 * mark\n\n\ndef bind(")
    told = why("marked[one]")
    assert told[0] == "marked[one] will run: its code changed: _signed (scripts/texts.py:15), and 4 more"
    start = told.index("  its code is new: again (scripts/texts.py:20)")
    assert told[start + 1 : start + 5] == [
        "    reached by mark → _signed → again",
        "    @@ scripts/texts.py:20 @@",
        "    +def again(mark):",
        "    +    return 2 * mark",
    ]
    start = told.index("  its code is gone: sign (scripts/signs.py)")
    assert told[start + 1 : start + 4] == [
        "    @@ scripts/signs.py @@",
        "    -def sign(mark):",
        '    -    return f"({mark})"',
    ]
    assert "  its code is gone: END (scripts/texts.py)" in told


def test_of_an_order_it_tells_what_changed_places_and_of_docstrings_that_they_count(why, texts):
    edit(texts, "scripts/texts.py", 'END = "."\n', 'END = ["."]\nEND.append("!")\nEND.append("?")\n')
    edit(texts, "scripts/texts.py", "sign(mark) + END", "sign(mark) + str(END)")
    assert run_in(texts, "build", LOUD="yes").returncode == 0
    edit(texts, "scripts/texts.py", 'END.append("!")\nEND.append("?")\n', 'END.append("?")\nEND.append("!")\n')
    assert why("marked") == [
        "marked (2 actions) will run: its code changed: order of END (scripts/texts.py:7)",
        "    @@ scripts/texts.py:8 @@",
        '     END = ["."]',
        '    +END.append("?")',
        '     END.append("!")',
        '    -END.append("?")',
    ]
    edit(texts, "scripts/texts.py", "str(END)", "str(END) + mark.__doc__")
    told = why("marked")
    assert (
        "    its text is the same; what counts of it is not"
        in told[told.index("  its code changed: mark (scripts/texts.py:12)") + 1]
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    # Before the end.\n", ""),
        ('"""Write the text with its mark."""', '"""Write it."""'),
        ("def _signed(text, mark):", "def _signed(text: str, mark: str) -> str:"),
        ("def bind(marked, book):\n", "def bind(marked, book):\n    book = book\n"),
    ],
    ids=["a comment", "a docstring", "type hints", "another function"],
)
def test_of_what_counts_for_nothing_it_says_up_to_date(why, texts, old, new):
    edit(texts, "scripts/texts.py", old, new)
    assert why("marked") == ["marked (2 actions) are up to date"]


def test_a_long_diff_is_cut_and_says_how_to_see_all_of_it(why, texts):
    edit(
        texts,
        "scripts/texts.py",
        "    return text +",
        "".join(f"    n{n} = {n}\n" for n in range(60)) + "    return text +",
    )
    cut, whole = why("marked[one]"), why("marked[one]", "--full")
    assert cut[-1] == "    … 24 more lines; all of it: --full"
    added = [line for line in whole if line.startswith("    +")]
    assert added == [f"    +    n{n} = {n}" for n in range(60)]
    assert cut[:-1] == whole[: len(cut) - 1]


def test_a_diff_has_colour_on_a_terminal_alone(why, texts, monkeypatch):
    edit(texts, "scripts/signs.py", 'f"({mark})"', 'f"[{mark}]"')
    assert not any("\x1b" in line for line in why("marked"))
    monkeypatch.setattr("buildsys.terminal.wants_region", lambda stream: True)
    assert "\x1b[32m    +    return" in "\n".join(why("marked"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any("\x1b" in line for line in why("marked"))


def test_a_param_is_told_with_types_and_where_it_is_written(why, texts):
    edit(texts, "configs/texts.yaml", "mark: '!'", "mark: 12")
    edit(texts, "rules/texts.toml", "times = 2", "times = 2.0")
    assert why("marked") == [
        "marked (2 actions) will run: param mark changed: '!' (str) → 12 (int) (style.mark), and 1 more",
        "  param mark changed: '!' (str) → 12 (int) (style.mark)",
        "    configs/texts.yaml:4",
        "  param times changed: 2 (int) → 2.0 (float)",
        "    rules/texts.toml:8",
    ]


def test_a_param_of_an_overlay_or_the_command_line_is_told_from_there(why, texts):
    (texts / "configs/texts.loud.yaml").write_text("style:\n  mark: '!!'\n")
    assert why("marked", "--set", "style.mark=?")[1:] == ["    --set style.mark"]
    assert run_in(texts, "build", "--profile", "loud", LOUD="yes").returncode == 0
    (texts / "configs/texts.loud.yaml").write_text("style:\n\n  mark: '??'\n")
    assert why("marked", "--profile", "loud")[1:] == ["    configs/texts.loud.yaml:3"]


def test_an_input_is_told_with_both_digests(why, texts):
    before = digest_bytes((texts / "data/one.txt").read_bytes())
    (texts / "data/one.txt").write_text("uno\n")
    after = digest_bytes(b"uno\n")
    assert why("marked[one]") == [
        "marked[one] will run: input text changed (data/one.txt)",
        f"    {before[:12]} → {after[:12]}",
    ]
    assert why("marked[one]", "--full")[1] == f"    {before} → {after}"


def test_a_variable_is_told_with_both_values(why, monkeypatch):
    monkeypatch.delenv("LOUD")
    assert why("marked") == ["marked (2 actions) will run: variable LOUD changed: 'yes' → unset"]


def test_a_command_is_told_with_both_texts(run, project):
    rules = project / "rules/book.toml"
    rules.write_text(rules.read_text().replace("tr a-z A-Z", "tr A-Z a-z"))
    assert run("why", "words").stdout.splitlines() == [
        "words (2 actions) will run: the rule's command changed",
        "    - echo shouting; tr a-z A-Z < {inputs.text} > {outputs.words}",
        "    + echo shouting; tr A-Z a-z < {inputs.text} > {outputs.words}",
    ]


def test_what_waits_tells_what_it_waits_for(why, texts):
    edit(texts, "scripts/signs.py", 'f"({mark})"', 'f"[{mark}]"')
    assert why("book") == [
        "book may run: inputs: marked, unless equal",
        "  before it, marked[one], marked[two] will run: its code changed: sign (scripts/signs.py:1)",
    ]


def test_actions_that_wait_are_told_together_with_all_that_they_wait_for(why, texts):
    rules = texts / "rules/texts.toml"
    rules.write_text(
        rules.read_text()
        + '[rule.copied]\neach = { shard = "@marked[*]" }\nshell = "cp {inputs.marked} {outputs.copied}"\n'
        'inputs = { marked = "@marked" }\noutputs = { copied = "build/{profile}/copied/{shard}.txt" }\n'
    )
    assert run_in(texts, "build", LOUD="yes").returncode == 0
    edit(texts, "scripts/signs.py", 'f"({mark})"', 'f"[{mark}]"')
    assert why("copied") == [
        "copied (2 actions) may run: inputs: marked, unless equal",
        "  before it, marked[one], marked[two] will run: its code changed: sign (scripts/signs.py:1)",
    ]


def test_an_action_that_is_up_to_date_tells_what_was_compared(why, texts):
    head, made, compared, *rows, hint = why("marked[one]")
    assert (head, hint) == ("marked[one] is up to date", "  each of them: --full")
    assert compared == "  compared with what there is now, all of it is equal:"
    assert re.fullmatch(r"  made by run 1, \d{4}-\d\d-\d\d \d\d:\d\d, key [0-9a-f]{12}", made)
    told = {row[:11].strip(): row[11:].strip() for row in rows}
    assert told["code"] == "6 symbols in scripts/signs.py (1), scripts/texts.py (5)"
    assert told["param"] == "mark '!' (str), times 2 (int)"
    assert told["env"] == "LOUD 'yes'"
    assert told["input"] == f"text data/one.txt {digest_bytes(b'one' + bytes([10]))[:12]}"
    made = digest_bytes((texts / "build/default/marked/one.txt").read_bytes())
    assert told["in place"] == f"build/default/marked/one.txt {made[:12]}"


def test_in_full_it_tells_each_part(why):
    told = why("marked[one]", "--full")
    symbols = [line.split()[1:3] for line in told if line.startswith("  code")]
    assert ["_signed", "scripts/texts.py:16"] in symbols
    assert len(symbols) == 6
    assert not any("--full" in line for line in told)


def test_as_json_it_tells_both_texts_and_the_diff(run, texts):
    edit(texts, "scripts/signs.py", 'f"({mark})"', 'f"[{mark}]"')
    edit(texts, "configs/texts.yaml", "mark: '!'", "mark: '?'")
    (found,) = json.loads(run("why", "marked[one]", "--json", cwd=texts).stdout)
    code, param = found["changes"]
    assert code["line"] == found["planned"]["changes"][0]
    assert (code["group"], code["name"], code["place"]) == ("code", "signs.py:sign", "scripts/signs.py:1")
    assert code["via"] == ["mark", "_signed", "sign"]
    assert code["before"] == 'def sign(mark):\n    return f"({mark})"'
    assert code["after"] == 'def sign(mark):\n    return f"[{mark}]"'
    assert code["diff"][0] == "@@ scripts/signs.py:2 @@"
    assert (param["old"], param["new"], param["place"]) == ("'!' (str)", "'?' (str)", "configs/texts.yaml:4")
    assert (found["basis"]["run_id"], found["key"]) == (1, found["key"])
    assert found["basis"]["key"] != found["key"]


def test_after_an_edit_is_built_it_is_compared_with_that(why, texts):
    edit(texts, "scripts/signs.py", 'f"({mark})"', 'f"[{mark}]"')
    assert run_in(texts, "build", LOUD="yes").returncode == 0
    edit(texts, "scripts/signs.py", 'f"[{mark}]"', 'f"<{mark}>"')
    assert why("marked[one]")[-2:] == ['    -    return f"[{mark}]"', '    +    return f"<{mark}>"']
    edit(texts, "scripts/signs.py", 'f"<{mark}>"', 'f"({mark})"')
    told = why("marked[one]")
    assert told[0] == "marked[one] will be restored: made before under the same key"
    assert told[-2:] == ['    -    return f"[{mark}]"', '    +    return f"({mark})"']


# ---------------------------------------------------------------- what a run found out


def test_of_an_edit_that_no_run_came_by_it_tells_that_the_result_holds(why, texts):
    edit(
        texts,
        "scripts/texts.py",
        "    return text + sign",
        "    if not text:\n        return nothing()\n    return text + sign",
    )
    edit(texts, "scripts/texts.py", "def bind(", "def nothing():\n    return '-'\n\n\ndef bind(")
    assert run_in(texts, "build", LOUD="yes").returncode == 0
    edit(texts, "scripts/texts.py", "return '-'", "return '--'")
    changed = [
        "  changed since, and its result holds all the same:",
        "  its code changed: nothing (scripts/texts.py:23)",
    ]
    head, *told = why("marked[one]")
    assert head == "marked[one] is up to date: what changed in its code did not run"
    assert told[:2] == changed
    assert told[2].startswith("  made by run 2, ")
    assert told[3] == "  compared with what there is now, all else is equal:"
    assert run_in(texts, "build", LOUD="yes").returncode == 0
    head, *told = why("marked[one]")
    assert (head, told[:2]) == ("marked[one] is up to date", changed)
    assert told[3].startswith("  counts as it is now: what changed in its code did not run, key ")
    full = why("marked[one]", "--full")
    assert [line for line in full if line.startswith(("    -", "    +"))] == [
        "    -    return '-'",
        "    +    return '--'",
    ]


def test_a_file_that_was_read_undeclared_is_told_of(why, texts):
    edit(texts, "scripts/texts.py", "    loud = ", "    open('data/more.json').close()\n    loud = ")
    (texts / "data/more.json").write_text("1")
    assert run_in(texts, "build", LOUD="yes").returncode == 0
    told = why("marked[one]")
    assert [line for line in told if line.startswith("  discovered")] == ["  discovered  1 file read"]
    (texts / "data/more.json").write_text("2")
    head, values = why("marked[one]")
    assert head.startswith("marked[one] will run: file data/more.json changed")
    assert values == f"    {digest_bytes(b'1')[:12]} → {digest_bytes(b'2')[:12]}"
    (texts / "data/more.json").unlink()
    assert why("marked[one]")[1] == f"    {digest_bytes(b'1')[:12]} → absent"


KEY = ActionKey(digest_bytes(b"then"))
NOW = ActionKey(digest_bytes(b"now"))


def basis(said_by, reason="") -> Basis:
    return Basis(KEY, 3, None, alias=Alias(NOW, NO_DIGEST, said_by, reason))


@pytest.mark.parametrize(
    ("said_by", "said"),
    [
        ("narrowed", [f"  counts as it is now: 2 symbols, key {NOW[:12]}"]),
        ("accepted", [f"  accepted by a user: 2 symbols, key {NOW[:12]}", "  undone by: buildsys accept r --undo"]),
    ],
)
def test_why_a_result_holds_under_another_key_is_told(said_by, said):
    lines = [painted(line, colour=False) for line in basis_lines(basis(said_by, "2 symbols"), "r")]
    assert lines == [f"  made by run 3, key {KEY[:12]}", *said]


def test_what_a_run_asked_for_is_counted_by_kind_and_in_full_each():
    found = [
        Discovered("file", "data/vocab.json", digest_bytes(b"v")),
        Discovered("exists", "data/a", ""),
        Discovered("exists", "data/b", Digest("file")),
        Discovered("variable", "HOME", "x"),
        Discovered("folder", "data", digest_bytes(b"d")),
    ]
    assert list(discovered_texts(found)) == ["1 file read, 2 paths looked for, 1 variable asked for, 1 folder listed"]
    assert list(discovered_texts(found, full=True))[1:3] == ["exists  data/a  absent", "exists  data/b  file"]
    assert list(discovered_texts([])) == []


# ---------------------------------------------------------------- services

SERVED = """
[service.v]
shell  = "exec {python} scripts/server.py {inputs.model} {params.mark} {port}"
inputs = { model = "data/model.txt" }
params = { mark = "!" }
ready  = "http://127.0.0.1:{port}/health"

[rule.said]
run      = "scripts/ask.py::ask"
services = ["v"]
outputs  = { said = "build/said.txt" }
"""
ASK = """
import urllib.request

def ask(said, services):
    with urllib.request.urlopen(services["v"]) as answer:
        said.write_bytes(answer.read())
"""
SERVER = """
import http.server, sys

def answer(model):
    return model + sys.argv[2]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = answer(open(sys.argv[1]).read())
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

http.server.HTTPServer(("127.0.0.1", int(sys.argv[3])), Handler).serve_forever()
"""


def test_of_a_service_it_tells_what_of_it_changed(run, tmp_path):
    root = tmp_path / "served"
    files = {
        "rules/r.toml": SERVED,
        "scripts/ask.py": ASK,
        "scripts/server.py": SERVER,
        "data/model.txt": "small",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    done = run_in(root, "build")
    assert done.returncode == 0, done.stderr
    edit(root, "scripts/server.py", "model + sys.argv[2]", "sys.argv[2] + model")
    edit(root, "rules/r.toml", 'mark = "!"', 'mark = "?"')
    (root / "data/model.txt").write_text("large")
    head, *told = run("why", "said", cwd=root).stdout.splitlines()
    assert re.fullmatch(r"said will run: service v changed: [0-9a-f]{32} → [0-9a-f]{32}", head)
    assert told == [
        "    its code changed: answer (scripts/server.py:4)",
        "      reached by http.server.HTTPServer(('127.0.0.1', in… → Handler.do_GET → answer",
        "      @@ scripts/server.py:5 @@",
        "       def answer(model):",
        "      -    return model + sys.argv[2]",
        "      +    return sys.argv[2] + model",
        "    param mark changed: '!' (str) → '?' (str)",
        "      rules/r.toml:5",
        "    input model changed (data/model.txt)",
        f"      {digest_bytes(b'small')[:12]} → {digest_bytes(b'large')[:12]}",
    ]
