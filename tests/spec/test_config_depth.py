"""Configs that are nested without end, or nearly, are mistakes in the config and no bugs."""

from __future__ import annotations

import pytest

from buildsys.errors import BuildError, Place
from buildsys.spec.config import parse_config


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("c.yaml", "x: &a [*a]\n"),
        ("c.yaml", "x: &a {b: {c: *a}}\n"),
        ("c.yaml", "x: &a [*a, *a, *a]\n"),
        ("c.yaml", f"x: {nested(120)}\n"),
        ("c.json", f'{{"x": {nested(120)}}}'),
        ("c.json", f'{{"x": {nested(3_000)}}}'),
        ("c.json", '{"x":' * 3_000 + "1" + "}" * 3_000),
        ("c.toml", f"x = {nested(120)}\n"),
    ],
)
def test_values_nested_too_deeply_or_in_themselves_are_refused(path: str, text: str) -> None:
    with pytest.raises(BuildError) as caught:
        parse_config(path, text)
    assert caught.value.problem == "values nested more than 100 levels deep, or in themselves"
    assert caught.value.place == Place(path)


def test_values_nested_as_deeply_as_anybody_writes_them_are_read() -> None:
    value = parse_config("c.json", f'{{"x": {nested(90)}}}').get("x")
    assert str(value) == nested(90)


def test_an_alias_of_yaml_that_stands_beside_its_anchor_is_a_value_like_others() -> None:
    assert parse_config("c.yaml", "a: &a [1]\nb: [*a, *a]\n").get("b") == [[1], [1]]
