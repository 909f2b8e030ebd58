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


def why(root: Path, target: str) -> list[str]:
    """What `buildsys why` says, line by line."""
    return ["".join(span.text for span in line) for line in why_lines(explain(Project(root), target))]


def line_of(root: Path, start: str) -> int:
    """The number of the first line that starts so."""
    return (root / SCRIPT).read_text().split(f"\n{start}")[0].count("\n") + 2


def test_what_nothing_can_see_runs_nothing(root: Path) -> None:
    text = (root / SCRIPT).read_text()
    start, end = text.index("def _reasoning"), text.index("def _reply_token_ids")
    text = text[:start] + text[end:] + "\n\n" + text[start:end]  # functions change places
    text = text.replace('"""Prompt and reply as tokens, or why not."""', '"""Prompt and reply, as token ids."""')
    text = text.replace("def extract(replies: Path", "def extract(replies: 'Path | str'")
    text = text.replace("    marks = Marks(", "    # Ids of tokens.\n\n    marks = Marks(")
    (root / SCRIPT).write_text(text)
    for rule in ("prompts", "replies", "samples", "tokens"):
        action = rule if rule == "prompts" else f"{rule}[0000]"
        head, made, compared, *_ = why(root, action)
        assert (head, compared.strip()) == (
            f"{action} is up to date",
            "compared with what there is now, all of it is equal:",
        )
        assert made.startswith("  made by run 1, ")
    built = run(root, "tokens")
    assert (built.ran, built.n_sent) == ([], 0)


EDITS = {
    "tokenize": (
        "    rows = []\n    for row in pq",
        "    rows: list = list()\n    for row in pq",
        "tokens",
        "tokenize",
        ("    -    rows = []", "    +    rows: list = list()"),
    ),
    "a helper of tokenize": (
        "return spoken == expected and (",
        "return spoken == expected and bool(",
        "tokens",
        "tokenize → _sequence → _round_trip",
        (
            "    -    return spoken == expected and (counted is None or counted in (len(reply), len(reply) - 1))",
            "    +    return spoken == expected and bool(counted is None or counted in (len(reply), len(reply) - 1))",
        ),
    ),
    "a helper of extract": (
        'return message.get("reasoning") or',
        'return message.get("reasoning", "") or',
        "samples",
        "extract → _sample → _reasoning",
        (
            '    -    return message.get("reasoning") or message.get("reasoning_content") or ""',
            '    +    return message.get("reasoning", "") or message.get("reasoning_content") or ""',
        ),
    ),
    "extract": (
        "rows = [_sample(msgspec.json.decode(line)) for line in some]",
        "rows = [*map(_sample, map(msgspec.json.decode, some))]",
        "samples",
        "extract",
        (
            "    -            rows = [_sample(msgspec.json.decode(line)) for line in some]",
            "    +            rows = [*map(_sample, map(msgspec.json.decode, some))]",
        ),
    ),
    "the request": (
        '"messages": record["messages"],',
        '"messages": [*record["messages"][:-1], record["messages"][-1]],',
        "replies",
        "build_request",
        (
            '    -        "messages": record["messages"],',
            '    +        "messages": [*record["messages"][:-1], record["messages"][-1]],',
        ),
    ),
}


@pytest.mark.parametrize(("old", "new", "rule", "way", "diff"), EDITS.values(), ids=EDITS)
def test_why_tells_the_symbol_its_line_the_way_and_the_diff_and_the_build_runs_that_rule(
    root: Path, old: str, new: str, rule: str, way: str, diff: tuple[str, str]
) -> None:
    edit(root, old, new)
    symbol = way.split()[-1]
    place = f"{SCRIPT}:{line_of(root, f'def {symbol}(')}"
    head, *told = why(root, f"{rule}[0000]")
    assert head == f"{rule}[0000] will run: its code changed: {symbol} ({place})"
    assert told[: "→" in way] == [f"    reached by {way}"][: "→" in way]
    changed = (root / SCRIPT).read_text()[: (root / SCRIPT).read_text().index(new.strip())].count("\n") + 1
    assert f"    @@ {SCRIPT}:{changed} @@" in told
    assert [line for line in told if line.startswith(("    -", "    +"))] == list(diff)
    if rule != "tokens":
        assert why(root, "tokens[0000]")[-1] == f"  before it, {head}"
    built = run(root, "tokens")
    assert (rules_of(built), built.n_sent) == ([rule], 0)


def test_why_says_blocked_where_two_lines_fell_out_of_a_try(root: Path) -> None:
    edit(root, 'message = choice.get("message") or {}\n', 'try:\n        message = choice["message"]\n')
    head, *_ = why(root, "samples[0000]")
    assert head == "samples[0000] is blocked: try block without except or finally"
    (explained,) = explain(Project(root), "samples[0000]")
    line = line_of(root, "def _reasoning(") + 4
    assert f"{SCRIPT}:{line}:5" in explained.planned.error
    assert why(root, "prompts")[0] == "prompts is up to date"


def test_an_edit_of_the_request_asks_anew(root: Path) -> None:
    edit(root, '"return_token_ids": True,', '"return_token_ids": True,\n        "seed": 1,')
    other = run(root, "tokens")
    assert other.n_sent == 8
    assert "replies" in rules_of(other)
