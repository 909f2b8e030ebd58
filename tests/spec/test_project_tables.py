"""The tables that hold for the whole project, the sizes in them, and the resources that rules take."""

from __future__ import annotations

import pytest

from buildsys.errors import BuildError
from buildsys.model import NO_LIMITS, Keeping, Limits, Prices, RuleName
from buildsys.spec.declared import Declared
from buildsys.spec.project_tables import limited
from buildsys.spec.rulefile import read_rules
from buildsys.spec.sizes import bytes_of, size_text

CONFIG = "gpus = 2\nmemory = '1.5GB'\n"


def read(*texts: str) -> Declared:
    files = {f"rules/{n}.toml": text for n, text in enumerate(texts)}
    return read_rules(files, {"c.toml": CONFIG}.get)


def rule(text: str) -> str:
    return f'config = "c.toml"\n[rule.a]\nrun = "s.py::f"\noutputs = {{ a = "a.json", b = "b.txt" }}\n{text}\n'


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64_000_000), ("1.5 GiB", 1_610_612_736), ("10B", 10), ("2kB", 2000), ("2KiB", 2048), ("0B", 0)],
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["64", "MB", "1iB", "-1MB", "1e3MB", "1 mb"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        bytes_of(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (56_123_456, "56 MB"), (999_999, "1.0 MB")]
)
def test_sizes_are_shown_with_the_digits_that_count(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_project_without_tables_has_the_defaults() -> None:
    declared = read(rule(""))
    assert (declared.keeping, declared.prices, declared.pools) == (Keeping(), None, {})
    assert declared.limits == NO_LIMITS


def test_the_tables_may_stand_in_any_rule_file() -> None:
    declared = read(
        rule(""),
        "[store]\nephemeral_budget = '2GB'\nkeep_logs = 3\n[price]\ngpu_hour = 2\ncurrency = 'EUR'\n[pools]\ndisk = 2",
    )
    assert declared.keeping == Keeping(ephemeral_budget=2_000_000_000, keep_logs=3)
    assert declared.prices == Prices(gpu_hour=2, currency="EUR")
    assert declared.pools == {"disk": 2}


def test_limits_may_stand_in_another_rule_file_than_the_prices_that_one_of_them_needs() -> None:
    declared = read(rule(""), "[price]\noutput_token = 1e-6", "[limits]\nmax_requests = 0\nmax_cost = 2")
    assert declared.limits == Limits(max_requests=0, max_cost=2.0)


def test_limits_that_are_given_win_over_those_of_the_file_one_by_one() -> None:
    declared = read(rule(""), "[price]\nrequest = 1\n[limits]\nmax_requests = 10\nmax_cost = 2")
    assert limited(declared, Limits(max_requests=0)).limits == Limits(max_requests=0, max_cost=2.0)
    assert limited(declared, Limits(max_cost=9.0, max_output_tokens=5)).limits == Limits(10, 9.0, 5)
    assert limited(declared, NO_LIMITS) == declared


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Limits(max_requests=-1), "--max-requests has to be at least 0, not -1"),
        (Limits(max_cost=float("nan")), "--max-cost has to be at least 0, not nan"),
        (Limits(max_cost=1.0), "--max-cost has no price to go by"),
    ],
)
def test_limits_that_are_given_and_mean_nothing_are_refused(given: Limits, problem: str) -> None:
    with pytest.raises(BuildError) as caught:
        limited(read(rule("")), given)
    assert caught.value.problem == problem


@pytest.mark.parametrize("prices", ["", "[price]\ngpu_hour = 2\n"])
def test_a_limit_of_cost_without_a_price_of_requests_is_refused_with_its_place(prices: str) -> None:
    with pytest.raises(BuildError) as caught:
        read(rule(""), f"{prices}[limits]\nmax_requests = 3\nmax_cost = 1.5\n")
    error = caught.value
    assert error.problem == "max_cost in [limits] has no price to go by"
    assert str(error.place) == f"rules/1.toml:{5 if prices else 3}:1"
    assert "max_cost = 1.5" in error.excerpt
    assert "[price]" in error.hint


def test_limits_in_two_rule_files_are_refused_with_both_places() -> None:
    with pytest.raises(BuildError, match=r"two rule files have \[limits\]") as caught:
        read(rule("") + "[limits]\nmax_requests = 3\n", "[limits]\nmax_output_tokens = 3\n")
    assert [place for _, place in caught.value.facts] == ["rules/0.toml:6:2", "rules/1.toml:1:2"]


def test_a_table_in_two_rule_files_is_refused_with_both_places() -> None:
    with pytest.raises(BuildError) as caught:
        read(rule("") + "[store]\nkeep_logs = 3\n", "[store]\nkeep_logs = 3\n")
    assert caught.value.problem == "two rule files have [store]"
    assert [place for _, place in caught.value.facts] == ["rules/0.toml:6:2", "rules/1.toml:1:2"]


def test_resources_are_numbers_memory_a_size_and_both_may_come_from_the_config() -> None:
    declared = read(rule('resources = { gpu = "$gpus", memory = "$memory", disk = 1 }\n[pools]\ndisk = 1'))
    assert declared.rules[RuleName("a")].resources == (("gpu", 2), ("memory", 1_500_000_000), ("disk", 1))


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ('resources = { memory = "much" }', 'resources.memory in [rule.a] is "much", which is no size', '"4GB"'),
        ("resources = { gpu = -1 }", "resources.gpu in [rule.a] is -1", "whole number"),
        ("resources = { gqu = 1 }", 'resources of [rule.a] name "gqu", which is no pool', 'did you mean "gpu"?'),
        ("resources = { disk = 3 }\n[pools]\ndisk = 2", "[rule.a] takes 3 of disk, which has 2", "raise disk"),
        ('metrics = ["c"]', 'metrics.0 in [rule.a] is "c", which is no output', "valid here: a, b"),
        ('metrics = ["b"]', 'metrics.0 in [rule.a] is "b", which is no JSON file', ".json"),
        ("[store]\nlink_above = '64'", 'link_above in [store] is "64", which is not a size', '"1GB"'),
        ("[price]\nrequest = -1", "request in [price] has to be at least 0, not -1", ""),
        ("[price]\nrequst = 1", 'unknown key "requst" in [price]', 'did you mean "request"?'),
        ("[[limits]]\nmax_requests = 1", "limits has to be a table, not an array", ""),
        ("[limits]\nmax_requests = -1", "max_requests in [limits] has to be at least 0, not -1", "max_requests = 1000"),
        ("[limits]\nmax_requests = 1.5", "max_requests in [limits] has to be an integer, not a number", ""),
        ("[limits]\nmax_cost = '5 EUR'", "max_cost in [limits] has to be a number, not a string", "max_cost = 25.0"),
        ("[limits]\nmax_tokens = 5", 'unknown key "max_tokens" in [limits]', "max_output_tokens"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_write(text: str, problem: str, hint: str) -> None:
    with pytest.raises(BuildError) as caught:
        read(rule(text))
    assert problem in caught.value.problem
    assert hint in caught.value.hint


@pytest.mark.parametrize("key", ["scratch = true", "ephemeral = true", 'python = "x"'])
def test_a_chat_rule_has_nothing_that_only_code_can_use(key: str) -> None:
    text = (
        '[rule.a]\nchat = "s.py::f"\ninputs = { p = "p" }\noutputs = { a = "a" }\nendpoint = "http://x"\nidentity = "m"'
    )
    with pytest.raises(BuildError, match="does not go with chat"):
        read(f"{text}\n{key}\n")
