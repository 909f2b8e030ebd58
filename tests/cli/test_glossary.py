from __future__ import annotations

import re
from pathlib import Path

from buildsys.model import OUTCOMES

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_every_outcome_of_an_action_is_explained_in_the_table():
    assert tuple(re.findall(r"^\| \*\*(\w+)\*\* \| .+ \| .+ \|$", GLOSSARY, re.MULTILINE)) == OUTCOMES


def test_no_word_is_explained_twice():
    words = re.findall(r"^\*\*(.+?)\*\*", GLOSSARY, re.MULTILINE)
    assert len(words) > 20
    assert len(words) == len(set(words))
