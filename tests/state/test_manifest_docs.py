"""`docs/manifest.md` says what is there. Its questions are asked by `tests/behaviour/test_questions.py`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from buildsys.query import connect
from buildsys.state.views import PUBLIC

PAGE = (Path(__file__).parents[2] / "docs" / "manifest.md").read_text()
SECTIONS = re.findall(r"^### `([^`]+)`\n(.*?)(?=^#)", PAGE, re.DOTALL | re.MULTILINE)
ARGUMENTS = {
    "upstream(path)": "upstream('x')",
    "downstream(path)": "downstream('x')",
    "compare(run_a, run_b)": "compare(1, 2)",
}


def test_every_public_view_and_macro_has_a_section():
    assert sorted(name for name, _ in SECTIONS) == sorted([*PUBLIC, *ARGUMENTS])


@pytest.mark.parametrize(("name", "section"), SECTIONS, ids=[name for name, _ in SECTIONS])
def test_the_columns_are_those_on_the_page(built, name, section):
    documented = re.findall(r"^\| `(\w+)` \| ([A-Z\[\]]+) \|", section, re.MULTILINE)
    with connect(built) as con:
        described = con.execute(f"DESCRIBE FROM {ARGUMENTS.get(name, name)}").fetchall()
    assert documented == [(column, kind) for column, kind, *_ in described]


@pytest.mark.parametrize("view", PUBLIC)
def test_every_view_says_of_which_profile_its_rows_are(built, view):
    with connect(built) as con:
        assert "profile" in [column for column, *_ in con.execute(f"DESCRIBE FROM {view}").fetchall()]
