"""`buildsys graph`: rules, services and shards as drawings, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run

ROOT = Path(__file__).parent.parent.parent


def test_mermaid_is_what_a_viewer_draws(run: Run) -> None:
    assert run("graph").stdout == (
        "flowchart LR\n"
        '    rule_words["words<br>2 shards"]\n'
        '    rule_book["book"]\n'
        "    rule_words -->|all shards| rule_book\n"
    )


def test_graphviz_gets_the_same(run: Run) -> None:
    told = run("graph", "--dot").stdout
    assert '    rule_words [label="words\\n2 shards"]\n' in told
    assert '    rule_words -> rule_book [label="all shards"]\n' in told
    assert told.startswith("digraph")
    assert told.endswith("}\n")


def test_json_has_services_and_what_a_target_needs_alone(run: Run) -> None:
    found = json.loads(run("graph", "--json", "samples", cwd=ROOT).stdout)
    assert [node["name"] for node in found["nodes"]] == ["verifier", "prompts", "replies", "samples"]
    assert {"start": "service_verifier", "into": "rule_replies", "every": False} in found["edges"]
    assert len(found["edges"]) == 3


def test_shards_that_a_rule_makes_are_counted_once_they_are_there(fresh: Path, run: Run) -> None:
    (fresh / "rules/more.toml").write_text(
        '[rule.cut]\nshell = "touch {outputs.cut}/a.txt"\noutputs = { cut = "made/cut/{shard}.txt" }\n'
        '[rule.use]\neach = { shard = "@cut[*]" }\nshell = "cp {inputs.cut} {outputs.use}"\n'
        'inputs = { cut = "@cut" }\noutputs = { use = "made/use/{shard}.txt" }\n'
    )
    assert 'rule_use["use"]' in run("graph", cwd=fresh).stdout
    assert run("build", cwd=fresh).returncode == 0
    assert 'rule_use["use<br>1 shard"]' in run("graph", cwd=fresh).stdout
