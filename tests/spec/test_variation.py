"""Which files are overlays of which profile, and what a variation changes."""

from __future__ import annotations

import pytest

from buildsys.request import Variation
from buildsys.spec.config import parse_config
from buildsys.spec.variation import Change, changes, overlay_path, profile_of, varied

BASE = 'n = 1\nrate = 0.5\nday = 2026-01-02\n[deep.er]\nlist = [1, 2]\nword = "a"\n'


def merged(overlay: str, *overrides: tuple[str, str]):
    base = {"c.toml": parse_config("c.toml", BASE)}
    return base["c.toml"], varied(base, Variation("p", overrides), {"c.p.toml": overlay}.get, lambda path: [])["c.toml"]


@pytest.mark.parametrize(
    ("config", "name", "profile"),
    [
        ("configs/all.toml", "all.fast.toml", "fast"),
        ("configs/all.toml", "all.v1.2.toml", "v1.2"),
        ("all.yaml", "all.fast.yaml", "fast"),
        ("all.toml", "all.fast.yaml", ""),
        ("all.toml", "all.toml", ""),
        ("all.toml", "all..toml", ""),
        ("all.toml", "all.a b.toml", ""),
        ("all.toml", "small.fast.toml", ""),
    ],
)
def test_a_file_beside_a_config_is_an_overlay_by_its_name(config, name, profile):
    assert profile_of(config, name) == profile
    if profile:
        assert overlay_path(config, profile).rpartition("/")[2] == name


def test_tables_are_merged_and_all_else_is_replaced():
    base, config = merged("deep.er.list = [3]\nrate = 2\n")
    assert config.tree["deep"] == {"er": {"list": [3], "word": "a"}}
    assert (config.get("rate"), type(config.get("rate"))) == (2.0, float)
    assert (config.overlay, base.tree["deep"]["er"]["list"]) == ("c.p.toml", [1, 2])


def test_changes_are_told_by_key_as_toml_writes_them():
    base, config = merged('deep.er = { word = "b" }\n', ("day", "2027-01-02"), ("n", "1"), ("n", "2"))
    assert changes(base, config) == [
        Change("c.toml", "n", "1", "2"),
        Change("c.toml", "day", "2026-01-02", "2027-01-02"),
        Change("c.toml", "deep.er.word", '"a"', '"b"'),
    ]


def test_a_table_can_be_set_in_part():
    _, config = merged("", ("deep.er", '{ word = "b" }'))
    assert config.get("deep.er") == {"list": [1, 2], "word": "b"}
