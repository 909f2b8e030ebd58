"""Which versions imported names mean, and what they require: over distributions that are told, not installed."""

from __future__ import annotations

import pytest

from buildsys.state.distributions import ABSENT, Distribution, Distributions

ENVIRONMENT = {"sys_platform": "linux", "python_version": "3.11"}


def of(*found: Distribution) -> Distributions:
    return Distributions(found, ENVIRONMENT)


def one(name: str, *requires: str, version: str = "1.0", tops: str = "") -> Distribution:
    return Distribution(name, version, tuple((tops or name.lower()).split()), (), requires)


EDITABLE = Distribution("Lib", "1.0", ("lib",), (), ("tool",), (("lib", "/somewhere/lib"),))


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("2.9.0+cu128", "2.9.0+cu128"),
        ("1.4.dev3+g1a2b3c4.d20251201", "1.4.dev3+g1a2b3c4.d20251201"),
        ("", "without a version"),
    ],
)
def test_a_version_is_told_as_its_metadata_has_it(version: str, told: str) -> None:
    assert of(one("Torch", version=version)).versions(["torch"]) == {"Torch": told}


def test_a_name_that_several_distributions_share_is_of_them_all() -> None:
    installed = of(one("protobuf", tops="google"), one("google-auth", tops="google", version="2.0"))
    assert installed.versions(["google"]) == {"protobuf": "1.0", "google-auth": "2.0"}


def test_a_name_that_nothing_provides_is_told_too() -> None:
    assert of().versions(["flash_attn"]) == {"flash_attn": ABSENT}


def test_a_closure_holds_what_is_required_of_what_is_required() -> None:
    installed = of(one("a", "B>=1"), one("B", "c"), one("c"), one("d"))
    assert installed.versions(["a"]) == {"a": "1.0"}
    assert installed.closure(["a"]) == {"a": "1.0", "B": "1.0", "c": "1.0"}


def test_a_circle_of_requirements_ends() -> None:
    assert set(of(one("a", "b"), one("b", "a")).closure(["a"])) == {"a", "b"}


@pytest.mark.parametrize(
    ("requires", "also"),
    [
        ("b ; sys_platform == 'win32'", set()),
        ("b ; python_version >= '3.11'", {"b"}),
        ("b ; extra == 'more'", set()),
        ("b[more]", {"b", "c"}),
        ("b[other]", {"b"}),
        ("gone", {"gone"}),
    ],
)
def test_a_requirement_counts_where_it_holds_here(requires: str, also: set[str]) -> None:
    installed = of(one("a", requires), one("b", "c ; extra == 'more'"), one("c"))
    assert set(installed.closure(["a"])) == {"a"} | also


def test_an_extra_counts_also_where_it_is_asked_for_later() -> None:
    installed = of(one("a", "b", "d"), one("d", "b[more]"), one("b", "c ; extra == 'more'"), one("c"))
    assert set(installed.closure(["a"])) == {"a", "b", "c", "d"}


def test_a_requirement_that_is_not_installed_is_told() -> None:
    assert of(one("a", "gone")).closure(["a"]) == {"a": "1.0", "gone": ABSENT}


def test_an_editable_install_is_code_and_no_version() -> None:
    installed = of(one("outside", "lib"), EDITABLE, one("tool"))
    assert installed.versions(["lib"]) == {}
    assert installed.closure(["outside"]) == {"outside": "1.0", "tool": "1.0"}
    assert installed.behind("outside") == [EDITABLE]
    assert installed.behind("tool") == []


@pytest.mark.parametrize("name", ["Scikit-Learn", "scikit_learn", "sklearn"])
def test_a_distribution_is_named_as_one_likes(name: str) -> None:
    assert of(one("scikit-learn", tops="sklearn")).named(name) == {"scikit-learn": "1.0"}


def test_what_is_hidden_by_an_earlier_folder_is_never_named() -> None:
    assert of(one("a", version="2.0"), one("a", version="1.0")).named("a") == {"a": "2.0"}
