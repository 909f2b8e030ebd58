"""Editable installs: how installers say where the code lies, and by which names and paths it is then found."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest

from buildsys.state import inventory
from buildsys.state.distributions import Distribution, Distributions
from buildsys.state.editable import Editables, Home
from buildsys.state.looks import Looks

SETUPTOOLS = """
from __future__ import annotations
import sys
MAPPING: dict[str, str] = {'flat': '/src/flat', 'one': '/src/one', 'ns.part': '/src/part'}
NAMESPACES: dict[str, list[str]] = {'spread': ['/src/spread', '/more/spread']}
PATH_PLACEHOLDER = '__editable__.flat-1.0.finder' + ".__path_hook__"
"""
HATCHLING = """
from editables.redirector import RedirectingFinder as F
F.install()
F.map_module('deep', '/src/nested/deep/__init__.py')
F.map_module('one', '/src/one.py')"""
SCIKIT_BUILD = "install({'fast': '/src/fast/__init__.py', 'fast.x': '/src/fast/x.py'}, {'fast._core': 'fast/_core.so'})"


def installed(folder: Path, files: Mapping[str, str], url: Mapping[str, object] | None = None) -> metadata.Distribution:
    """A distribution with these files, as an installer leaves it."""
    about = folder / "lib-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lib\nVersion: 1.0\n")
    (about / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    (about / "direct_url.json").write_text(json.dumps(url or {"url": "file:///x", "dir_info": {"editable": True}}))
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return metadata.Distribution.at(about)


@pytest.mark.parametrize(
    ("hook", "places"),
    [
        (
            SETUPTOOLS,
            [
                *(("flat", "/src/flat"), ("ns.part", "/src/part"), ("one", "/src/one")),
                *(("spread", "/more/spread"), ("spread", "/src/spread")),
            ],
        ),
        (HATCHLING, [("deep", "/src/nested/deep"), ("one", "/src/one")]),
        (SCIKIT_BUILD, [("fast", "/src/fast"), ("fast.x", "/src/fast/x")]),
        ("def (", []),
    ],
    ids=["setuptools", "hatchling", "scikit-build", "broken"],
)
def test_a_hook_says_where_modules_lie(tmp_path: Path, hook: str, places: list[tuple[str, str]]) -> None:
    one = installed(tmp_path, {"_editable.pth": "import _editable\n", "_editable.py": hook})
    assert sorted(inventory.places(one)) == places


def test_a_path_file_says_in_which_folders_modules_lie(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    lines = f"# of lib\nimport sys\n{tmp_path / 'src'}\n{tmp_path / 'gone'}\n../elsewhere\n"
    (tmp_path / "elsewhere").mkdir()
    one = installed(tmp_path / "site", {"lib.pth": lines})
    assert inventory.places(one) == {("", str(tmp_path / "src")), ("", str(tmp_path / "elsewhere"))}


def test_a_link_to_a_package_says_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "src/lib").mkdir(parents=True)
    (tmp_path / "src/lib/__init__.py").touch()
    (tmp_path / "site").mkdir()
    (tmp_path / "site/lib").symlink_to(tmp_path / "src/lib")
    one = installed(tmp_path / "site", {"lib/__init__.py": ""})
    assert inventory.is_editable(one, "lib")
    assert inventory.places(one) == {("lib", str(tmp_path / "src/lib"))}


def test_a_link_of_old_tools_says_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "src/lib.egg-info"
    about.mkdir(parents=True)
    (about / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: lib\nVersion: 1.0\n")
    one = metadata.Distribution.at(about)
    assert not inventory.is_editable(one, "lib")
    (tmp_path / "lib.egg-link").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert inventory.is_editable(one, "lib")
    assert inventory.places(one) == {("", str(tmp_path / "src"))}


@pytest.mark.parametrize(
    "url", [{"url": "https://x/y.whl", "archive_info": {}}, {"dir_info": {}}, {"dir_info": {"editable": False}}]
)
def test_what_is_installed_by_copying_is_not_editable(tmp_path: Path, url: dict[str, object]) -> None:
    one = installed(tmp_path, {"lib.pth": f"{tmp_path}\n", "lib.py": "X = {'lib': '/src/lib'}"}, url)
    assert not inventory.is_editable(one, "lib")


# ---------------------------------------------------------------- found by name


def found(root: Path, *distributions: Distribution) -> Editables:
    return Editables(Looks(root), Distributions(distributions, {}), {"json"})


def lib(*places: tuple[str, Path], name: str = "My_Lib", tops: tuple[str, ...] = ()) -> Distribution:
    return Distribution(name, "1.0", tops, (), (), tuple((module, str(path)) for module, path in places))


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """A folder outside the project with a package, a module, a part of a namespace, and something else."""
    for path in (
        "src/pack/__init__.py",
        "src/pack/x.py",
        "src/one.py",
        "src/ns/part.py",
        "src/json.py",
        "src/data/a.txt",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path / "src"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_what_lies_outside_is_named_by_distribution_and_module(root: Path, src: Path) -> None:
    for editables in (found(root, lib(("", src))), found(root, lib(("pack", src / "pack"), ("one", src / "one")))):
        assert editables.elsewhere("pack") == ("<my-lib>/pack",)
        assert editables.elsewhere("one") == ("<my-lib>/one",)
        assert editables.elsewhere("nothing") == ()
        assert editables.locate("<my-lib>/pack/x.py") == f"{src}/pack/x.py"
        assert editables.locate("<my-lib>/one.py") == f"{src}/one.py"
        assert editables.locate("scripts/pack/x.py") == "scripts/pack/x.py"
        homes = {Home("pack", "<my-lib>/pack", f"{src}/pack"), Home("one", "<my-lib>/one", f"{src}/one")}
        assert set(editables.homes_of(["<my-lib>/pack/x.py", "<my-lib>/one.py", "scripts/a.py"])) == homes


def test_what_lies_in_the_project_is_named_by_its_path(src: Path) -> None:
    for root, prefix in ((src, ""), (src.parent, "src/")):
        editables = found(root, lib(("", src), ("pack", src / "pack"), ("mapped", src / "pack")))
        assert editables.elsewhere("pack") == (f"{prefix}pack",)
        assert editables.locate(f"{prefix}pack/x.py") == f"{prefix}pack/x.py"
        assert editables.homes_of([f"{prefix}pack/x.py"]) == (Home("pack", f"{prefix}pack", f"{src}/pack"),)
        assert editables.elsewhere("mapped") == ("<my-lib>/mapped",), "it is no file of that name in the project"
        assert editables.locate("<my-lib>/mapped/x.py") == f"{src}/pack/x.py"


def test_scripts_of_a_project_that_is_installed_are_no_modules(src: Path) -> None:
    assert found(src, lib(("", src))).homes_of(["ns/part.py", "data/x.py"]) == ()


def test_a_project_behind_a_link_is_the_same_project(tmp_path: Path, src: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert found(tmp_path / "link", lib(("", src))).elsewhere("pack") == ("src/pack",)


@pytest.mark.parametrize("name", ["json", "pack"])
def test_the_standard_library_and_plain_installs_come_first(root: Path, src: Path, name: str) -> None:
    plain = Distribution("plain", "1.0", ("pack",))
    assert found(root, lib(("", src)), plain).elsewhere(name) == ()


def test_a_namespace_has_parts_in_several_installs(root: Path, src: Path) -> None:
    plain = Distribution("plain", "1.0", ("ns",), ("ns",))
    mapped = lib(("ns.other", src / "pack"), name="other")
    editables = found(root, plain, lib(("", src)), mapped)
    assert editables.elsewhere("ns") == ("<my-lib>/ns", "<other>/ns")
    assert editables.locate("<other>/ns/other/x.py") == f"{src}/pack/x.py"
    assert editables.parts("<other>/ns") == [("<other>/ns/other", f"{src}/pack")]
    assert set(editables.homes_of(["<my-lib>/ns/part.py", "<other>/ns/other/x.py"])) == {
        Home("ns", "<my-lib>/ns", f"{src}/ns"),
        Home("ns.other", "<other>/ns/other", f"{src}/pack"),
    }


def test_behind_a_distribution_stands_what_it_requires(root: Path, src: Path) -> None:
    outer = Distribution("outer", "1.0", ("outer",), (), ("my-lib",))
    assert set(found(root, outer, lib(("", src))).behind("outer")) == {"<my-lib>/pack", "<my-lib>/one", "<my-lib>/json"}
    (src / "pyproject.toml").touch()
    (src / "my_lib").mkdir()
    (src / "my_lib/__init__.py").touch()
    editables = found(root, outer, lib(("", src)))
    assert editables.behind("outer") == ("<my-lib>/my_lib",)
    assert editables.behind("pack") == ()


def test_compiled_modules_are_found_beside_and_within(root: Path, src: Path) -> None:
    for path in ("pack/fast.cpython-311-x86_64-linux-gnu.so", "pack/deep/more.so", "alone.abi3.so", "other.abi3.so"):
        (src / path).parent.mkdir(exist_ok=True)
        (src / path).touch()
    editables = found(root, lib(("", src)))
    assert editables.compiled(["<my-lib>/pack/x.py"], ["alone", "numpy"]) == {
        "<my-lib>/alone.abi3.so": f"{src}/alone.abi3.so",
        "<my-lib>/pack/deep/more.so": f"{src}/pack/deep/more.so",
        "<my-lib>/pack/fast.cpython-311-x86_64-linux-gnu.so": f"{src}/pack/fast.cpython-311-x86_64-linux-gnu.so",
    }


def test_all_that_is_asked_of_the_disk_is_in_the_looks(root: Path, src: Path) -> None:
    looks = Looks(root)
    Editables(looks, Distributions([lib(("", src))], {}), ()).elsewhere("pack")
    assert str(src) in looks.listings
