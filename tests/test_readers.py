"""Which outputs of rules those who read the manifest have as tables."""

from __future__ import annotations

from buildsys.readers import output_tables
from buildsys.spec.graph import Graph
from buildsys.spec.rulefile import read_rules

RULES = """
[rule.samples]
shell = "true {outputs.samples} {outputs.plot}"
outputs = { samples = "build/{profile}/samples.parquet", plot = "build/{profile}/samples.png" }

[rule.states]
shell = "true {outputs.states}"
outputs = { states = "build/{profile}/states.parquet" }
ephemeral = true
"""


def test_what_may_be_dropped_and_what_has_no_rows_are_no_tables() -> None:
    graph = Graph(read_rules({"rules/a.toml": RULES}, lambda path: None))
    assert [(table.rule, table.output) for table in output_tables(graph)] == [("samples", "samples")]
