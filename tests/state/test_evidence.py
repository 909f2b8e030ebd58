"""What the manifest keeps of runs beside their keys, and the keys under which their results hold as well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buildsys.digest import NO_DIGEST, digest_of
from buildsys.model import ActionKey, Alias, Discovered, Observed, SaidBy, Trace
from buildsys.query import connect
from buildsys.state.rows import AliasRow, ResultRow, Row
from tests.state import small
from tests.state.small import SCRIPT, action

TOKENS = action("tokens", "0")
STOP = Discovered("file", "workspace/data/stop.txt", digest_of("stop"))
SEEN = Observed(
    sources=digest_of("sources"),
    used=digest_of("used"),
    trace=Trace(frozenset([SCRIPT]), frozenset([f"{SCRIPT}:tokenize", f"{SCRIPT}:C.lower#2"])),
    discovered=(STOP, Discovered("exists", "workspace/\udcffmine", ""), Discovered("folder", "/data", digest_of("f"))),
)


def made(version, run_id, seen, *, rest="rest"):
    """The rows of an action that ran, with what was seen of it."""
    rows: list[Row] = []
    for row in small.done(TOKENS, version, run_id, ()):
        if isinstance(row, ResultRow):
            rows.append(replace(row, observed=seen, rest=digest_of(rest)))
        else:
            rows.append(replace(row, evidence=seen.evidence.digest) if isinstance(row, small.Hold) else row)
    return rows


def alias_of(version, seen, key, said_by: SaidBy = "narrowed"):
    if said_by == "undone":
        return AliasRow("default", TOKENS, key, "undone", "")
    evidence = seen.evidence._replace(sources=digest_of("other sources"))
    result = small.key_of(TOKENS, version)
    return AliasRow("default", TOKENS, key, said_by, "because", result, seen.evidence.digest, evidence)


def test_what_a_run_used_is_found_by_the_digests_that_its_result_has(filled):
    filled.commit(made(5, 1, SEEN))
    result = filled.newest("default")[TOKENS]
    (evidence,) = filled.evidence([result.evidence]).values()
    assert evidence == SEEN.evidence
    assert filled.traces([evidence.trace]) == {evidence.trace: SEEN.trace}
    assert filled.discovered([evidence.discovered]) == {evidence.discovered: sorted(SEEN.discovered)}


@pytest.mark.parametrize("trace", [Trace(), Trace(unseen=("a child process ran", "so did another"))])
def test_a_trace_that_tells_of_little_is_kept_as_well(filled, trace):
    filled.commit(made(5, 1, replace(SEEN, trace=trace)))
    assert filled.traces([trace.digest]) == {trace.digest: trace}


def test_a_result_without_evidence_has_none(filled):
    assert {result.evidence for result in filled.newest("default").values()} == {""}
    assert filled.evidence([""]) == filled.traces([""]) == filled.discovered([""]) == {}


def test_what_many_runs_have_in_common_is_stored_once(root, filled):
    filled.commit([*made(5, 1, SEEN), *made(6, 1, SEEN)])
    filled.commit(made(7, 1, replace(SEEN, sources=digest_of("edited"))))
    filled.publish()
    with connect(root) as con:
        tables = ("traces", "discovered", "evidence")
        counts = [con.execute(f"SELECT count(*) FROM recorded.{table}").fetchall()[0][0] for table in tables]
    assert counts == [3, 3, 2]


def test_what_was_stored_is_known_after_reopening(root, filled):
    filled.commit(made(5, 1, SEEN))
    filled.close()
    reopened = small.Manifest.open(root / ".buildsys")
    reopened.commit(made(6, 1, SEEN))
    assert reopened.discovered([SEEN.evidence.discovered])[SEEN.evidence.discovered] == sorted(SEEN.discovered)
    reopened.close()


def test_one_key_may_have_made_several_results_and_each_of_them_can_hold(filled):
    other = replace(SEEN, discovered=(STOP._replace(value=digest_of("another")),))
    filled.commit(made(5, 1, SEEN))
    filled.commit(made(5, 1, other))
    filled.commit(made(5, 1, replace(other)))
    key = small.key_of(TOKENS, 5)
    found = [result.evidence for result in filled.find([key])[key]]
    assert found == [other.evidence.digest, SEEN.evidence.digest]
    assert filled.newest("default")[TOKENS].evidence == other.evidence.digest
    filled.commit([row for row in made(5, 1, SEEN) if isinstance(row, small.Hold)])
    assert filled.newest("default")[TOKENS].evidence == SEEN.evidence.digest


def test_results_that_differ_in_code_alone_are_found_by_the_rest_of_their_keys(filled):
    unseen = replace(SEEN, used=NO_DIGEST, trace=Trace(unseen=("a child process ran",)))
    filled.commit([*made(5, 1, SEEN), *made(6, 1, SEEN), *made(7, 1, unseen), *made(8, 1, SEEN, rest="another")])
    filled.commit(made(9, 1, replace(SEEN, used=digest_of("used otherwise"))))
    rest = digest_of("rest")
    versions = [int(result.key == small.key_of(TOKENS, 9)) for result in filled.akin([rest])[rest]]
    assert versions == [1, 0], "of equal evidence the newest, and none that can't be narrowed"
    assert [result.key for result in filled.akin([rest])[rest]] == [small.key_of(TOKENS, n) for n in (9, 6)]


def test_no_more_results_are_looked_at_than_costs_nothing(filled):
    for version in range(5, 20):
        filled.commit(made(version, 1, replace(SEEN, sources=digest_of(version))))
    rest = digest_of("rest")
    assert [result.key for result in filled.akin([rest])[rest]] == [small.key_of(TOKENS, n) for n in range(19, 11, -1)]


def test_a_result_holds_under_the_last_key_that_was_said_to_be_another_of_its(filled):
    filled.commit(made(5, 1, SEEN))
    filled.commit([alias_of(5, SEEN, ActionKey("first")), alias_of(5, SEEN, ActionKey("second"))])
    result = filled.newest("default")[TOKENS]
    evidence = SEEN.evidence._replace(sources=digest_of("other sources"))
    assert result.key == small.key_of(TOKENS, 5)
    assert result.alias == Alias(ActionKey("second"), evidence.digest, "narrowed", "because")
    assert filled.evidence([evidence.digest]) == {evidence.digest: evidence}


def test_an_alias_is_of_one_result_and_not_of_what_is_made_later(filled):
    filled.commit([*made(5, 1, SEEN), alias_of(5, SEEN, ActionKey("another"))])
    filled.commit(made(6, 1, SEEN))
    assert filled.newest("default")[TOKENS].alias is None


def test_a_key_that_was_accepted_is_found_until_that_is_undone(filled):
    key = ActionKey("f" * 32)
    filled.commit([*made(5, 1, SEEN), alias_of(5, SEEN, key, "accepted"), alias_of(5, SEEN, key)])
    (found,) = filled.find([key])[key]
    assert (found.key, found.alias and found.alias.said_by) == (small.key_of(TOKENS, 5), "accepted")
    assert int(key[:15], 16) in filled.short_keys()
    filled.commit([alias_of(5, SEEN, key, "undone")])
    assert filled.find([key]) == {}
    assert filled.newest("default")[TOKENS].alias is None


def test_a_key_that_a_result_was_narrowed_to_is_not_found_by_it(filled):
    key = ActionKey("f" * 32)
    filled.commit([*made(5, 1, SEEN), alias_of(5, SEEN, key)])
    assert filled.find([key]) == {}, "whether it counts is seen by its rest, for the sources as they are then"


def test_sql_tells_what_was_read_undeclared_and_what_of_the_code_was_used(root, filled):
    filled.commit([*made(5, 1, SEEN), alias_of(5, SEEN, ActionKey("another"))])
    filled.publish()
    place = small.made(TOKENS, 5, held=True).artifact.path
    with connect(root) as con:
        read = con.execute("SELECT path, declared FROM files WHERE NOT declared").fetchall()
        edges = con.execute("SELECT name, path, value FROM edges WHERE role = 'discovered' ORDER BY ALL").fetchall()
        above = con.execute(f"SELECT name, path FROM upstream('{place}') WHERE kind = 'discovered'").fetchall()
        below = con.execute(f"SELECT path FROM downstream('{STOP.name}') WHERE depth = 1").fetchall()
        used = con.execute("SELECT symbol, n_actions, n_used FROM code_deps WHERE rule = 'tokens' AND n_used > 0")
        symbols = sorted(used.fetchall())
        held = con.execute(f"SELECT key, held_key, held_by, held_because FROM artifacts WHERE path = '{place}'")
        assert held.fetchall() == [(small.key_of(TOKENS, 5), "another", "narrowed", "because")]
    assert read == [(STOP.name, False)]
    assert edges == [
        ("exists", "workspace/\\udcffmine", ""),
        ("file", STOP.name, None),
        ("folder", "/data", None),
    ]
    assert sorted(above) == [("exists", "workspace/\\udcffmine"), ("file", STOP.name), ("folder", "/data")]
    assert below == [(place,)]
    assert symbols == [("*", 0, 1), ("C.lower#2", 0, 1), ("tokenize", 0, 1)]


def test_runs_differ_in_what_they_discovered(root, filled):
    filled.commit(made(5, 1, SEEN))
    filled.begin_run(command="buildsys build", profile="default", targets=[])
    filled.commit(made(6, 2, replace(SEEN, discovered=(STOP._replace(value=digest_of("another")),))))
    filled.publish()
    with connect(root) as con:
        query = "SELECT name, path, a, b FROM compare(1, 2) WHERE kind = 'discovered' AND rule = 'tokens' ORDER BY ALL"
        assert ("file", STOP.name, STOP.value, digest_of("another")) in con.execute(query).fetchall()


def test_a_run_that_went_back_to_an_earlier_result_of_its_key_has_the_metrics_of_that_one(root, filled):
    other = replace(SEEN, discovered=(STOP._replace(value=digest_of("another")),))
    for n, seen in enumerate([SEEN, other, SEEN]):
        run_id = 1 if n == 0 else filled.begin_run(command="buildsys build", profile="default", targets=[])
        rows = made(5, run_id, seen)
        digest = digest_of("bytes", n)
        for row in rows:
            if n == 2 and isinstance(row, small.ActionRow):
                filled.commit([replace(row, outcome="restored")])
            elif isinstance(row, ResultRow) and n < 2:
                (one,) = row.outputs
                filled.commit([replace(row, outputs=(replace(one, artifact=replace(one.artifact, digest=digest)),))])
                filled.commit([small.MetricsRow(TOKENS.rule, "tokens", digest, (small.Number("n", None, n),))])
            elif not isinstance(row, ResultRow):
                filled.commit([row])
    filled.publish()
    with connect(root) as con:
        found = con.execute("SELECT run_id, value FROM metrics WHERE rule = 'tokens' ORDER BY ALL").fetchall()
    assert found == [(1, 0.0), (2, 1.0), (3, 0.0)]


def test_an_ephemeral_output_is_found_by_what_it_counts_by(root, filled):
    states, draft = action("hidden_states", "0"), action("draft")
    counted = digest_of("key and discovered")
    rows: list[Row] = []
    tokens = small.input_of("tokens", TOKENS, 1)
    for row in [*small.done(states, 5, 1, (tokens,)), *small.done(draft, 5, 1, ())]:
        if isinstance(row, ResultRow) and row.action == states:
            row = replace(row, counts_as=counted)
        elif isinstance(row, ResultRow):
            row = replace(row, inputs=(small.input_of("states", states, 5)._replace(digest=counted),))
        rows.append(row)
    filled.commit(rows)
    assert filled.newest("default")[states].counted == counted
    filled.publish()
    place = small.made(draft, 5, held=True).artifact.path
    with connect(root) as con:
        above = con.execute(f"SELECT rule, shard FROM upstream('{place}') WHERE depth = 2 AND kind = 'artifact'")
        assert above.fetchall() == [("tokens", "0")]
