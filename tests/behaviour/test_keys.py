"""What decides outputs is in their key: changes that are easy to forget."""

from __future__ import annotations

import pytest

from buildsys.events import ActionStarted, Event, ServiceReady
from buildsys.project import Project
from buildsys.survey import survey
from tests.behaviour.conftest import Space


def rule(name: str, **lines: str) -> str:
    return f"[rule.{name}]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())


def test_another_script_of_the_same_code_runs(space: Space) -> None:
    space.write("rules/r.toml", rule("a", run='"scripts/a.py::f"', outputs='{ o = "build/a.txt" }'))
    space.write("scripts/a.py", "import b\ndef f(o):\n    o.write_text('A')\n")
    space.write("scripts/b.py", "import a\ndef f(o):\n    o.write_text('B')\n")
    space.build()
    space.replace("rules/r.toml", "scripts/a.py", "scripts/b.py")
    assert space.build().ran == ["a"]
    assert space.read("build/a.txt") == "B"


def test_an_empty_variable_is_not_an_unset_one(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUILDSYS_TEST_X", raising=False)
    space.write(
        "rules/r.toml", rule("a", run='"scripts/a.py::f"', env='["BUILDSYS_TEST_X"]', outputs='{ o = "build/a.txt" }')
    )
    space.write("scripts/a.py", "import os\ndef f(o):\n    o.write_text(repr(os.environ.get('BUILDSYS_TEST_X')))\n")
    space.build()
    assert space.read("build/a.txt") == "None"
    monkeypatch.setenv("BUILDSYS_TEST_X", "")
    assert space.build().ran == ["a"]
    assert space.read("build/a.txt") == "''"
    monkeypatch.delenv("BUILDSYS_TEST_X")
    assert space.build().restored == ["a"]


def test_a_list_of_one_is_not_a_single_path(space: Space) -> None:
    space.write("data/a.txt", "data")
    space.write(
        "rules/r.toml",
        rule("a", run='"scripts/a.py::f"', inputs='{ x = "data/a.txt" }', outputs='{ o = "build/a.txt" }'),
    )
    space.write("scripts/a.py", "def f(x, o):\n    o.write_text(type(x).__name__)\n")
    space.build()
    space.replace("rules/r.toml", "data/a.txt", "data/*.txt")
    (planned,) = survey(Project(space.root)).actions
    assert planned.reason == "how its inputs and outputs are handed to it changed"
    assert space.build().ran == ["a"]
    assert space.read("build/a.txt") == "list"


def test_a_folder_of_shards_is_not_a_file_of_that_name(space: Space) -> None:
    space.write("rules/r.toml", rule("a", run='"scripts/a.py::f"', outputs='{ o = "build/x/out.txt" }'))
    space.write(
        "scripts/a.py",
        """
        def f(o):
            if o.is_dir():
                (o / "one").mkdir()
                o = o / "one/out.txt"
            o.write_text("same")
        """,
    )
    space.build()
    space.replace("rules/r.toml", "build/x/", "build/{shard}/")
    assert space.build().ran == ["a"]
    assert space.read("build/one/out.txt") == "same"
    assert not (space.root / "build/x/out.txt").exists()


def test_shards_of_equal_inputs_are_not_mixed_up_by_their_names(space: Space) -> None:
    for name in ("one", "two"):
        space.write(f"data/{name}/in.txt", "equal")
    space.write(
        "rules/r.toml",
        rule(
            "a",
            each='{ shard = "data/{shard}/in.txt" }',
            run='"scripts/a.py::f"',
            inputs='{ x = "data/{shard}/in.txt" }',
            outputs='{ o = "build/{shard}.txt" }',
        ),
    )
    space.write("scripts/a.py", "def f(x, o):\n    o.write_text(o.stem)\n")
    assert space.build(jobs=1).ran == ["a[one]", "a[two]"]
    assert (space.read("build/one.txt"), space.read("build/two.txt")) == ("one", "two")


def test_the_order_of_inputs_and_outputs_in_a_rule_file_runs_nothing(space: Space) -> None:
    space.write("data/x.txt", "x")
    text = rule(
        "a",
        run='"scripts/a.py::f"',
        inputs='{ x = "data/x.txt", y = "data/x.txt" }',
        outputs='{ o = "b/o", p = "b/p" }',
    )
    space.write("rules/r.toml", text)
    space.write("scripts/a.py", "def f(x, y, o, p):\n    o.write_text('')\n    p.write_text('')\n")
    space.build()
    space.replace("rules/r.toml", 'x = "data/x.txt", y = "data/x.txt"', 'y = "data/x.txt", x = "data/x.txt"')
    space.replace("rules/r.toml", 'o = "b/o", p = "b/p"', 'p = "b/p", o = "b/o"')
    assert space.build().actions("reused") == ["a"]


def test_what_a_worker_kept_of_an_input_that_moved_is_not_trusted(space: Space) -> None:
    space.write("data/1.txt", "old")
    space.write(
        "rules/r.toml",
        rule(
            "a",
            each='{ shard = "data/{shard}.txt" }',
            run='"scripts/a.py::f"',
            inputs='{ x = "data/{shard}.txt" }',
            outputs='{ o = "build/{shard}.txt" }',
        ),
    )
    space.write(
        "scripts/a.py",
        """
        import functools, time
        from pathlib import Path

        @functools.cache
        def load(path):
            return path.read_text()

        def f(x, o):
            text = load(x)
            Path("waits").touch()
            for _ in range(1000):
                if Path("go").exists():
                    break
                time.sleep(0.01)
            o.write_text(text)
        """,
    )
    starts = []

    def edit(event: Event) -> None:
        if isinstance(event, ActionStarted):
            starts.append(event)
            if len(starts) == 1:
                import threading
                import time

                def later() -> None:
                    while not (space.root / "waits").exists():
                        time.sleep(0.01)
                    space.write("data/1.txt", "new")
                    space.write("go", "")

                threading.Thread(target=later).start()

    assert space.build(on_event=edit).outcome == "done"
    assert len(starts) == 2
    assert space.read("build/1.txt") == "new"


SERVER = """
import http.server, sys
from pathlib import Path
text = (Path(sys.argv[1]) / "w.txt").read_text()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"""


def test_a_service_whose_model_is_edited_while_it_runs_answers_for_no_key(space: Space) -> None:
    space.write("model/w.txt", "v1")
    space.write("scripts/server.py", SERVER)
    space.write(
        "rules/r.toml",
        """
        [service.v]
        shell  = "{python} scripts/server.py {inputs.model} {port}"
        inputs = { model = "model" }
        ready  = "http://127.0.0.1:{port}/health"
        [rule.a]
        run      = "scripts/a.py::f"
        services = ["v"]
        outputs  = { o = "build/a.txt" }
        """,
    )
    space.write(
        "scripts/a.py",
        """
        import time, urllib.request
        def f(o, services):
            time.sleep(0.3)
            o.write_text(urllib.request.urlopen(services["v"]).read().decode())
        """,
    )
    edits = iter(["v2"])

    def edit(event: Event) -> None:
        if isinstance(event, ServiceReady) and (text := next(edits, None)):
            space.write("model/w.txt", text)

    built = space.build(on_event=edit)
    assert built.outcome == "done", built.errors
    assert space.read("build/a.txt") == "v2"
    assert survey(Project(space.root)).up_to_date
    space.write("model/w.txt", "v1")
    assert space.build().ran == ["a"]
    assert space.read("build/a.txt") == "v1"


def test_a_folder_output_that_becomes_a_file_in_it_and_back_loses_nothing(space: Space) -> None:
    folder = rule("a", run='"scripts/a.py::f"', outputs='{ o = "build/x" }')
    file = rule("a", run='"scripts/a.py::g"', outputs='{ o = "build/x/a.txt" }')
    space.write("rules/r.toml", folder)
    space.write(
        "scripts/a.py",
        """
        def f(o):
            o.mkdir()
            for name in "ab":
                (o / f"{name}.txt").write_text("text")
        def g(o):
            o.write_text("text")
        """,
    )
    space.build()
    space.write("rules/r.toml", file)
    assert space.build().ran == ["a"]
    assert space.read("build/x/a.txt") == "text"
    space.write("rules/r.toml", folder)
    assert space.build().outcome == "done"
    assert sorted(path.name for path in (space.root / "build/x").iterdir()) == ["a.txt", "b.txt"]


def test_what_a_failed_build_made_obsolete_is_removed_by_the_next_good_one(space: Space) -> None:
    space.write("config.toml", "n = 3\n")
    space.write(
        "rules/r.toml",
        """
        config = "config.toml"
        [rule.split]
        run     = "scripts/a.py::split"
        params  = { n = "$n" }
        outputs = { parts = "build/parts/{shard}.txt" }
        [rule.whole]
        run     = "scripts/b.py::all_of"
        inputs  = { parts = "@split[*]" }
        outputs = { o = "build/all.txt" }
        """,
    )
    space.write(
        "scripts/a.py", "def split(parts, *, n):\n    [(parts / f'{i}.txt').write_text('') for i in range(n)]\n"
    )
    good = "def all_of(parts, o):\n    o.write_text('')\n"
    space.write("scripts/b.py", good)
    space.build()
    space.write("config.toml", "n = 2\n")
    space.write("scripts/b.py", good + "    1 / 0\n")
    built = space.build()
    assert built.failed == ["whole"]
    assert (space.root / "build/parts/2.txt").exists()
    space.write("scripts/b.py", good)
    assert space.build().outcome == "done"
    assert not (space.root / "build/parts/2.txt").exists()


def test_a_shard_that_does_not_exist_is_refused_before_anything_runs_where_shards_are_known(space: Space) -> None:
    space.write("data/1.txt", "")
    space.write(
        "rules/r.toml",
        rule("first", run='"scripts/a.py::g"', outputs='{ o = "out/first.txt" }')
        + rule(
            "a",
            each='{ shard = "data/{shard}.txt" }',
            run='"scripts/a.py::f"',
            inputs='{ x = "data/{shard}.txt", y = "@first" }',
            outputs='{ o = "build/{shard}.txt" }',
        ),
    )
    space.write("scripts/a.py", "def f(x, y, o):\n    o.write_text('')\ndef g(o):\n    o.write_text('')\n")
    built = space.build("a[7]")
    assert built.error is not None
    assert (built.error.exit_code, built.error.hint, built.ran) == (3, "its shards: 1", [])


def test_a_path_in_or_above_an_output_names_what_makes_it(space: Space) -> None:
    space.write("data/1.txt", "")
    space.write(
        "rules/r.toml",
        rule("model", run='"scripts/a.py::f"', outputs='{ o = "build/{profile}/model" }')
        + rule(
            "two",
            run='"scripts/a.py::g"',
            outputs='{ p = "build/{profile}/two/p.txt", q = "build/{profile}/two/q.txt" }',
        )
        + rule(
            "part",
            each='{ shard = "data/{shard}.txt" }',
            run='"scripts/a.py::h"',
            inputs='{ x = "data/{shard}.txt" }',
            outputs='{ o = "build/{profile}/part/{shard}.txt" }',
        ),
    )
    space.write(
        "scripts/a.py",
        """
        def f(o):
            o.mkdir()
            (o / "config.json").write_text("{}")
        def g(p, q):
            p.write_text("")
            q.write_text("")
        def h(x, o):
            o.write_text("")
        """,
    )
    assert space.build("build/default/model/config.json").ran == ["model"]
    assert space.build("build/default/two").ran == ["two"]
    assert space.build("build/default/part/").ran == ["part[1]"]
    everything = space.build("build/default").error
    assert everything is not None
    assert everything.exit_code == 3


def test_a_failed_check_tells_where_the_rows_are(space: Space) -> None:
    text = rule("a", run='"scripts/a.py::f"', outputs='{ rows = "build/rows.jsonl" }')
    space.write("rules/r.toml", text + "[rule.a.checks]\nfew = 'SELECT count(*) < 2 FROM rows'\n")
    space.write("scripts/a.py", 'def f(rows):\n    rows.write_text(\'{"n": 1}\\n{"n": 2}\\n\')\n')
    errors = space.build().errors
    (told,) = [line.split()[-1] for line in errors.splitlines() if line.strip().startswith("rows:")]
    assert space.read(told) == '{"n": 1}\n{"n": 2}\n'
