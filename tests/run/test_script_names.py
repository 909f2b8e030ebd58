"""Scripts that are called like other modules, and code that is found in other ways than from the script's folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.run.conftest import Space

pytestmark = pytest.mark.timeout(60)


def call(space: Space, target: str) -> object:
    result = space.workers().call(space.job(target))
    assert result.ok, result.error + result.traceback
    return result.value


@pytest.mark.parametrize("name", ["stat", "time", "os", "json", "random", "worker", "a.b", "01_a", "class"])
def test_a_script_may_have_any_name(space: Space, name: str) -> None:
    space.write(f"scripts/{name}.py", "import stat, time\n\ndef f(): return [stat.S_IFREG, time.sleep(0), __file__]\n")
    place = str(space.root / f"scripts/{name}.py")
    assert call(space, f"scripts/{name}.py::f") == [0o100000, None, place]


def test_a_script_with_a_dot_in_its_name_is_not_taken_for_its_neighbour(space: Space) -> None:
    space.write("scripts/a.b.py", "import a_b\nX = 'script'\n\ndef f(): return [a_b.X, X]\n")
    space.write("scripts/a_b.py", "X = 'neighbour'\n")
    workers = space.workers()
    for _ in ("first", "again in the same worker"):
        assert workers.call(space.job("scripts/a.b.py::f")).value == ["neighbour", "script"]


def test_a_script_beside_a_package_of_its_name_is_still_itself(space: Space) -> None:
    space.write("scripts/a.py", "import a\n\ndef f(): return a.X\n")
    space.write("scripts/a/__init__.py", "X = 'package'\n")
    assert call(space, "scripts/a.py::f") == "package"


def test_a_class_of_such_a_script_can_be_pickled(space: Space) -> None:
    space.write(
        "scripts/a.b.py",
        """
        import pickle
        from dataclasses import dataclass

        @dataclass
        class One:
            x: int

        def f(): return pickle.loads(pickle.dumps(One(1))).x
        """,
    )
    assert call(space, "scripts/a.b.py::f") == 1


FOUND = {
    "sys.path": "import sys\nsys.path.insert(0, 'scripts/../lib')\nimport helper\n",
    "spec": "from importlib import util\n"
    "spec = util.spec_from_file_location('helper', 'lib/helper.py')\n"
    "helper = util.module_from_spec(spec)\nspec.loader.exec_module(helper)\n",
}


@pytest.mark.parametrize("how", FOUND)
def test_code_found_in_another_folder_runs_as_it_was_frozen(space: Space, how: str) -> None:
    space.write("scripts/a.py", FOUND[how] + "\ndef f(): return helper.X\n")
    helper = space.write("lib/helper.py", "X = 'old'\n")
    job = space.job("scripts/a.py::f")
    job = replace(job, sources={**job.sources, "lib/helper.py": helper.read_text()})
    helper.write_text("X = 'new'\n")
    assert space.workers().call(job).value == "old"
    assert not list(space.root.rglob("*.pyc"))
