"""Scripts of shell commands: every edit is seen however the command names them; what can't be followed is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from buildsys.code.slice import Slice
from buildsys.commands import scripts_of
from buildsys.digest import Digest
from buildsys.errors import Place
from buildsys.events import ActionStarted, Event
from buildsys.freezing import freeze
from buildsys.state.looks import Looks
from tests.behaviour.conftest import Space


def command(space: Space, text: str, more: str = "") -> None:
    space.write("rules/r.toml", f"[rule.a]\nshell = '''{text}'''\noutputs = {{ o = \"build/a.txt\" }}\n{more}")


@pytest.mark.parametrize(
    "text",
    [
        "{python} ./scripts/a.py>{outputs.o}",
        "sh -c \"sh -c '{python} scripts/a.py>{outputs.o}'\"",
        "{python} 'scripts/a b.py' > {outputs.o}",
        "{python} scripts/{params.name}.py > {outputs.o}",
        "{python} {settings.path} > {outputs.o}",
        "{python} scripts/app > {outputs.o}",
    ],
)
def test_an_edit_of_a_script_is_seen_however_a_command_names_it(space: Space, text: str) -> None:
    command(space, text, 'params = { name = "a" }\nsettings = { path = "scripts/a.py" }\n')
    paths = ["scripts/a.py", "scripts/a b.py", "scripts/app/__main__.py"]
    for path in paths:
        space.write(path, "print('old', __file__)\n")
    built = space.build()
    assert built.ran == ["a"], (built.errors, built.error)
    word, place = space.read("build/a.txt").split(maxsplit=1)
    assert word == "old"
    assert "/.buildsys/frozen/" in place, "what runs is the copy that was fingerprinted"

    for path in paths:
        space.write(path, "print('new')\n")
    assert space.build().ran == ["a"]
    assert space.read("build/a.txt") == "new\n"


@pytest.mark.parametrize(
    "text",
    [
        "{python} scripts/a.py {inputs.x} > {outputs.o}",
        "({python} scripts/a.py)>{outputs.o}",
        "true;{python} scripts/a.py|cat",
        "{python} 'scripts/a.py'",
        "{python} scripts//a.py",
        'echo "$({python} scripts/a.py)"',
        "`{python} scripts/a.py`",
        "cat <({python} scripts/a.py)",
        "eval '{python} scripts/a.py'",
        "timeout 5 env -i {python} -u -X dev scripts/a.py",
        "{python} \\\n  scripts/a.py \\\n  > {outputs.o}",
        "{python} -m pytest scripts/a.py::test",
        "run --script=scripts/a.py",
        "{python} -c \"exec(open('scripts/a.py').read())\"",
        "{python} - <<END\nexec(open('scripts/a.py').read())\nEND",
        "{python} {params.path}",
        "{python} {params.paths}",
    ],
)
def test_a_script_is_found_wherever_a_command_names_it(space: Space, text: str) -> None:
    space.write("scripts/a.py", "")
    values = {"params.path": "scripts/a.py", "params.paths": ["-u", "scripts/a.py"]}
    assert scripts_of(text, values, Looks(space.root), Place("rules/r.toml")) == ["scripts/a.py"]


FOLLOWED = "the command names a script in a way that can't be followed: "


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cd scripts && {python} a.py", FOLLOWED + "a.py"),
        ("cd {outputs.o} && {python} scripts/a.py", "the command changes its folder, and names a script by its path"),
        ("{python} $PWD/scripts/a.py", FOLLOWED + "$PWD/scripts/a.py"),
        ('{python} "$PWD/scripts/a.py"', FOLLOWED + "$PWD/scripts/a.py"),
        ("{python} $(dirname x)/scripts/a.py", FOLLOWED + "$/scripts/a.py"),
        ("{python} scripts/*.py", FOLLOWED + "scripts/*.py"),
        ("{python} scripts/../scripts/a.py", FOLLOWED + "scripts/../scripts/a.py"),
        ("{python} scripts/none.py", FOLLOWED + "scripts/none.py"),
        ("{python} ROOT/scripts/a.py", FOLLOWED),
        ("sh -c \"cd scripts; {python} 'a.py'\"", FOLLOWED + "a.py"),
        ("sh -c {params.command}", "a value holds a command: python scripts/a.py"),
        ("run {params.option}", "a value holds the path of a script: scripts/a.py"),
        ("{python} -m scripts.a", "the command runs a module of the project by its name: -m scripts.a"),
        ("{python} -um scripts.a", "the command runs a module of the project by its name: -m scripts.a"),
        ("{python} -mscripts.a", "the command runs a module of the project by its name: -m scripts.a"),
        ("cd scripts && {python} -m a", "the command runs a module of the project by its name: -m a"),
        ("{python} -c 'import json, scripts.a'", "the command imports a module of the project: scripts.a"),
        ("{python} -c 'from scripts import a'", "the command imports a module of the project: scripts.a"),
        ("PYTHONPATH=scripts {python} -c 'import a'", "the command imports a module of the project: a"),
        ("PYTHONPATH=scripts {python} x/a.py", "the command sets PYTHONPATH"),
        ("cat<data/x.txt", "the command reads a file that is no input: data/x.txt"),
        ("cat --file=data/x.txt", "the command reads a file that is no input: data/x.txt"),
        ("cat ROOT/data/x.txt", "the command reads a file that is no input: "),
        ("cat {params.data}", "the command reads a file that is no input: data/x.txt"),
        ("cat 'data/x.txt", "the command is not a shell command: a quote is not closed"),
    ],
)
def test_a_command_whose_code_can_not_be_followed_is_refused(space: Space, text: str, problem: str) -> None:
    values = {"command": "python scripts/a.py", "option": "--script=scripts/a.py", "data": "data/x.txt"}
    more = "".join(f'params.{name} = "{value}"\n' for name, value in values.items())
    command(space, text.replace("ROOT", str(space.root)), more)
    space.write("scripts/a.py", "")
    space.write("data/x.txt", "")
    error = space.build().error
    assert error is not None
    assert error.problem.startswith(problem)
    assert str(error.place).startswith("rules/r.toml:")
    assert error.hint or "quote" in problem


@pytest.mark.parametrize(
    "text",
    [
        "{python} -m json.tool --help > {outputs.o}",
        "{python} -c 'import json; print(1)' > {outputs.o}",
        "mkdir {outputs.o}; {python} -c 'print(1)' > {outputs.o}/made.py",
        "{python} {inputs.folder}/given.py > {outputs.o}",
        "echo {params.pattern} > {outputs.o}",
        "echo /elsewhere/a.py > {outputs.o} # and not scripts/gone.py",
    ],
)
def test_what_is_no_script_of_the_project_is_none_of_the_build_s(space: Space, text: str) -> None:
    command(space, text, 'params = { pattern = "*.py" }\ninputs = { folder = "data" }\n')
    space.write("data/given.py", "print(1)\n")
    built = space.build()
    assert built.ran == ["a"], (built.errors, built.error)


def test_a_value_that_tells_of_a_script_is_passed_on_as_it_is(space: Space) -> None:
    command(
        space,
        "{python} scripts/a.py > {outputs.o}; echo {params.about} >> {outputs.o}",
        'params = { about = "made by scripts/a.py, twice" }\n',
    )
    space.write("scripts/a.py", "print('A')\n")
    assert space.build().outcome == "done"
    assert space.read("build/a.txt") == "A\nmade by scripts/a.py, twice\n"


def test_a_script_edited_before_its_command_comes_to_it_runs_as_it_was(space: Space) -> None:
    command(space, "touch waits; until [ -e go ]; do sleep 0.01; done; {python} ./scripts/a.py > {outputs.o}")
    space.write("scripts/a.py", "print('old')\n")

    def edit(event: Event) -> None:
        if isinstance(event, ActionStarted):
            space.write("scripts/a.py", "print('new')\n")
            space.write("go", "")

    assert space.build(on_event=edit).ran == ["a"]
    assert space.read("build/a.txt") == "old\n"


def test_copies_that_several_threads_make_at_once_are_whole(tmp_path: Path) -> None:
    sources = {f"scripts/m{n}.py": f"X = {n}\n" for n in range(200)}
    code = Slice(Digest("0"), sources, (), frozenset(), frozenset())
    together = Barrier(4)

    def copy(_: int) -> Path:
        together.wait()
        return freeze(code, tmp_path / "frozen")

    with ThreadPoolExecutor(4) as pool:
        (frozen,) = set(pool.map(copy, range(4)))
    assert {path: (frozen / path).read_text() for path in sources} == sources
    assert list((tmp_path / "frozen").iterdir()) == [frozen], "nothing is left of those that came later"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-8-sig"])
def test_a_frozen_script_is_in_the_encoding_that_it_declares(space: Space, encoding: str) -> None:
    command(space, "{python} scripts/a.py > {outputs.o}")
    text = f"# -*- coding: {encoding.removesuffix('-sig')} -*-\r\nprint(ascii('é'))\r\n"
    script = space.write("scripts/a.py", "")
    script.write_bytes(text.encode(encoding))
    assert space.build().outcome == "done"
    assert space.read("build/a.txt") == "'\\xe9'\n"
    assert script.read_bytes() == text.encode(encoding), "nobody writes to a user's own script"


def test_sets_of_strings_come_in_one_order_in_every_command(space: Space) -> None:
    command(space, "{python} scripts/a.py > {outputs.o}")
    space.write("scripts/a.py", "print(hash('a'), hash('b'))\n")
    space.build()
    first = space.read("build/a.txt")
    space.remove(".buildsys")
    space.build()
    assert space.read("build/a.txt") == first


def test_the_script_of_a_service_is_frozen_too(space: Space, tmp_path: Path) -> None:
    space.write(
        "rules/r.toml",
        """
        [service.place]
        shell = "{python} ./scripts/serve.py {port}"
        ready = "http://127.0.0.1:{port}/"
        [rule.a]
        run      = "scripts/ask.py::ask"
        services = ["place"]
        outputs  = { o = "build/a.txt" }
        """,
    )
    space.write(
        "scripts/serve.py",
        """
        import http.server, sys

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(__file__.encode())

        http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
        """,
    )
    space.write(
        "scripts/ask.py",
        """
        import urllib.request

        def ask(o, services):
            with urllib.request.urlopen(services["place"]) as reply:
                o.write_bytes(reply.read())
        """,
    )
    built = space.build()
    assert built.ran == ["a"], (built.errors, built.error)
    assert "/.buildsys/frozen/" in space.read("build/a.txt")
