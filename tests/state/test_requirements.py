"""Requirements as metadata writes them; what a marker says is compared with what the packaging library says."""

from __future__ import annotations

from itertools import product

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement as Reference

from buildsys.state.requirements import canonical, holds, required

ENVIRONMENT = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "6.18.44-fc-v669",
    "platform_system": "Linux",
    "platform_version": "#1 SMP",
    "python_version": "3.11",
    "python_full_version": "3.11.7",
    "implementation_name": "cpython",
    "implementation_version": "3.11.7",
}
VERSIONS = ["3.11", "3.9", "3.11.0", "3.11.7", "3.12", "3", "4", "3.11.7rc1", "3.11.8.dev2", "3.11.7b1"]
SIGNS = ["==", "!=", "<", "<=", ">", ">=", "~=", "==="]
TEXTS = ["linux", "win32", "Linux", "x86_64"]


def reference(marker: str, extra: str = "") -> bool:
    return Marker(marker).evaluate({**ENVIRONMENT, "extra": extra})


@pytest.mark.parametrize(("sign", "version"), list(product(SIGNS, VERSIONS)))
def test_versions_in_markers_are_ordered_as_the_library_orders_them(sign: str, version: str) -> None:
    if sign == "~=" and "." not in version:
        pytest.skip("not a version of a series")
    for variable in ("python_version", "python_full_version"):
        for marker in (f"{variable} {sign} '{version}'", f"'{ENVIRONMENT[variable]}' {sign} \"{version}\""):
            assert holds(marker, ENVIRONMENT) is Marker(f"{variable} {sign} '{version}'").evaluate(ENVIRONMENT), marker


@pytest.mark.parametrize(("sign", "text"), list(product(["==", "!=", "in", "not in"], TEXTS)))
def test_texts_in_markers_are_compared_as_the_library_does(sign: str, text: str) -> None:
    for variable in ("sys_platform", "platform_system", "platform_machine"):
        marker = f"{variable} {sign} '{text}'"
        assert holds(marker, ENVIRONMENT) is reference(marker)


@pytest.mark.parametrize(
    "marker",
    [
        "python_version < '3.8' or sys_platform == 'linux' and python_version >= '3.11'",
        "(python_version < '3.8' or sys_platform == 'linux') and os_name == 'nt'",
        "python_version == '3.*'",
        "python_version != '3.1.*' and python_version != '3.11.*'",
        "(platform_python_implementation != \"PyPy\") and extra == 'testing'",
        "sys_platform=='linux'and(os_name=='posix')",
        "'linux' in sys_platform",
        "python_full_version < '3.11.0a7'",
        "extra == 'Test_ing' or extra == 'other'",
    ],
)
@pytest.mark.parametrize("extra", ["", "testing", "other", "test-ing"])
def test_a_marker_is_read_as_the_library_reads_it(marker: str, extra: str) -> None:
    assert holds(marker, {**ENVIRONMENT, "extra": extra}) is reference(marker, extra)


@pytest.mark.parametrize(
    "marker", ["python_version <", "weather == 'fine'", "os_name == 'posix' and", "((", "os_name ; 1"]
)
def test_a_marker_that_cannot_be_read_counts_as_true(marker: str) -> None:
    assert holds(marker, ENVIRONMENT)


@pytest.mark.parametrize(
    "line",
    [
        "torch",
        "Torch_Vision>=2.0,<3",
        "uvicorn[standard, Http_Tools] (>=0.12)",
        'importlib-metadata>=3.6; python_version < "3.10"',
        "numpy>=1.21 ; python_version >= '3.10'",
        "mylib @ file:///somewhere/mylib ; sys_platform == 'linux'",
        "mylib[a] @ https://example.org/a;b.zip",
        "pytest ; extra == 'test'",
    ],
)
@pytest.mark.parametrize("extras", [(), ("test",)])
def test_a_requirement_is_read_as_the_library_reads_it(line: str, extras: tuple[str, ...]) -> None:
    told = Reference(line)
    wanted = not told.marker or any(told.marker.evaluate({**ENVIRONMENT, "extra": one}) for one in ("", *extras))
    found = required(line, ENVIRONMENT, extras)
    assert (found is not None) is wanted
    if found:
        assert found.name == canonical(told.name)
        assert found.extras == {canonical(extra) for extra in told.extras}


def test_what_is_no_requirement_asks_for_nothing() -> None:
    assert required("# none", ENVIRONMENT) is None
