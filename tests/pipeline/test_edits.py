"""An edit of the script that asks, takes apart and tokenizes runs what it can change, and asks nothing again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from buildsys.cli.why import why_lines
from buildsys.explain import explain
from buildsys.project import Project
from tests.pipeline.test_build import REPOSITORY, SCRIPT, Built, configure, run


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped pipeline up to tokens, for the least of prompts."""
    root = tmp_path_factory.mktemp("edits")
    shutil.copytree(REPOSITORY / "rules", root / "rules")
    shutil.copytree(REPOSITORY / "workspace", root / "workspace", ignore=shutil.ignore_patterns("build", "__pycache__"))
    configure(root, samples=8)
    built = run(root, "tokens")
    assert (built.outcome, built.errors) == ("done", [])
    assert built.n_sent == 8
    return root


@pytest.fixture
def root(asked: Path) -> Iterator[Path]:
    """With the script as it is shipped, before and after each test; what was made before is there again."""
    yield asked
    shutil.copy(REPOSITORY / SCRIPT, asked / SCRIPT)
    configure(asked, samples=8)
    assert run(asked, "tokens").ran == []


def edit(root: Path, old: str, new: str) -> None:
    text = (root / SCRIPT).read_text()
    assert text.count(old) == 1, old
    (root / SCRIPT).write_text(text.replace(old, new))


def rules_of(built: Built) -> list[str]:
    assert built.outcome == "done", built.errors
    return sorted({action.partition("[")[0] for action in built.ran})


def test_what_nothing_can_see_runs_nothing(root: Path) -> None:
    text = (root / SCRIPT).read_text()
    start, end = text.index("def _reasoning"), text.index("def _reply_token_ids")
    text = text[:start] + text[end:] + "\n\n" + text[start:end]  # functions change places
    text = text.replace('"""Prompt and reply as tokens, or why not."""', '"""Prompt and reply, as token ids."""')
    text = text.replace("def extract(replies: Path", "def extract(replies: 'Path | str'")
    text = text.replace("    marks = Marks(", "    # Ids of tokens.\n\n    marks = Marks(")
    (root / SCRIPT).write_text(text)
    built = run(root, "tokens")
    assert (built.ran, built.n_sent) == ([], 0)


@pytest.mark.parametrize(
    ("old", "new", "ran"),
    [
        ("    rows = []\n    for row in pq", "    rows: list = list()\n    for row in pq", ["tokens"]),
        ("return spoken == expected and (", "return spoken == expected and bool(", ["tokens"]),
        ('return message.get("reasoning") or', 'return message.get("reasoning", "") or', ["samples"]),
        (
            "rows = [_sample(json.loads(line)) for line in lines]",
            "rows = [*map(_sample, map(json.loads, lines))]",
            ["samples"],
        ),
    ],
    ids=["tokenize", "a helper of tokenize", "a helper of extract", "extract"],
)
def test_an_edit_of_what_comes_after_the_replies_sends_nothing(root: Path, old: str, new: str, ran: list[str]) -> None:
    edit(root, old, new)
    built = run(root, "tokens")
    assert (rules_of(built), built.n_sent) == (ran, 0)


def test_an_edit_of_the_request_asks_anew(root: Path) -> None:
    edit(root, '"messages": record["messages"],', '"messages": [*record["messages"][:-1], record["messages"][-1]],')
    same = run(root, "tokens")
    assert (rules_of(same), same.n_sent) == (["replies"], 0), "the requests are equal, and so they are answered"
    edit(root, '"return_token_ids": True,', '"return_token_ids": True,\n        "seed": 1,')
    other = run(root, "tokens")
    assert other.n_sent == 8
    assert "replies" in rules_of(other)


def test_why_names_the_symbol_its_line_and_the_way_to_it(root: Path) -> None:
    edit(root, "return spoken == expected and (", "return expected == spoken and (")
    explained = explain(Project(root), "tokens[0000]")
    line = (root / SCRIPT).read_text().partition("def _round_trip")[0].count("\n") + 1
    assert ["".join(span.text for span in spans) for spans in why_lines(explained)] == [
        f"tokens[0000] will run: its code changed: _round_trip ({SCRIPT}:{line})",
        "    reached by tokenize → _sequence → _round_trip",
    ]
