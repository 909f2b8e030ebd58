"""What the manifest is asked and told, in SQL: the texts that are too long to stand where they are used.

Knows the tables of `schema` and the helper views of `views`; what the rows become is for `manifest`. `$1`, `$2` ... are
the arguments, in their order there.
"""

from __future__ import annotations

from typing import Final

_RESULT: Final = "r.run_id, r.context, coalesce(r.evidence, ''), coalesce(r.counts_as, '')"
"""Of a result, after its key and action; then come what it is found by, its alias, and whether it is rejected."""
_REJECTED: Final = "r.result_id IN (FROM recorded.rejected)"
HELD: Final = f"""
    SELECT h.hold_id, r.key, h.rule, h.shard, {_RESULT}, NULL, a.key, a.evidence, a.said_by, a.reason,
        {_REJECTED}, p.name, p.shard, p.path, p.digest, p.size, p.executable, p.tree
    FROM recorded.current h JOIN recorded.results r USING (result_id) LEFT JOIN recorded.places p USING (hold_id)
    LEFT JOIN recorded.current_aliases a
        ON a.profile = h.profile AND a.rule = h.rule AND a.shard = h.shard AND a.result_id = h.result_id
    WHERE h.profile = $1 ORDER BY h.hold_id, p.position
"""
_NO_ALIAS: Final = "NULL AS alias, NULL AS alias_evidence, NULL AS said_by, NULL AS reason"
_MADE: Final = f"""
    SELECT row_number() OVER (ORDER BY r.result_id DESC) AS n, r.key, r.rule, r.shard, {_RESULT}, w.found,
        w.alias, w.alias_evidence, w.said_by, w.reason, {_REJECTED} AS rejected, r.result_id
    FROM wanted w JOIN recorded.results r USING (result_id)
"""
_WITH_OUTPUTS: Final = """
    SELECT m.* EXCLUDE (result_id), o.name, o.shard, o.file, o.digest, o.size, o.executable, o.tree
    FROM made m LEFT JOIN recorded.outputs o USING (result_id) ORDER BY m.n, o.position
"""
FOUND: Final = f"""
    WITH wanted AS (
        SELECT max(result_id) AS result_id, r.key AS found, {_NO_ALIAS}
        FROM recorded.results r WHERE r.key IN (SELECT unnest($1)) GROUP BY r.key, r.evidence
        UNION ALL
        SELECT result_id, key, key, evidence, said_by, reason FROM recorded.aliases WHERE alias_id IN (
            SELECT max(alias_id) FROM recorded.aliases
            WHERE said_by <> 'narrowed' AND key IN (SELECT unnest($1)) GROUP BY key
        ) AND result_id IS NOT NULL
    ), made AS ({_MADE}) {_WITH_OUTPUTS}
"""
AKIN: Final = f"""
    WITH wanted AS (
        SELECT max(r.result_id) AS result_id, r.rest AS found, {_NO_ALIAS}
        FROM recorded.results r JOIN recorded.evidence e USING (evidence)
        WHERE r.rest IN (SELECT unnest($1)) AND e.used <> '' AND NOT {_REJECTED} GROUP BY r.rest, r.evidence
        QUALIFY row_number() OVER (PARTITION BY r.rest ORDER BY max(r.result_id) DESC) <= $2
    ), made AS ({_MADE}) {_WITH_OUTPUTS}
"""
EVIDENCE: Final = """
    SELECT evidence, sources, used, trace, discovered FROM recorded.evidence WHERE evidence IN (SELECT unnest($1))
"""
EVIDENCE_OF: Final = """
    SELECT r.context, e.sources, e.used, e.trace, e.discovered
    FROM recorded.evidence e JOIN recorded.results r USING (evidence)
    WHERE e.used <> '' AND e.trace IN (SELECT trace FROM recorded.traces WHERE kind = 'module' AND name = $1)
    GROUP BY ALL ORDER BY max(r.result_id) DESC
"""
TRACES: Final = "SELECT trace, kind, list(name) FROM recorded.traces WHERE trace IN (SELECT unnest($1)) GROUP BY ALL"
DISCOVERED: Final = """
    SELECT discovered, kind, name, value FROM recorded.discovered WHERE discovered IN (SELECT unnest($1))
    ORDER BY discovered, kind, name
"""
NEEDED: Final = """
    WITH window_start AS (
        SELECT min(run_id) AS run_id FROM (SELECT run_id FROM recorded.runs ORDER BY run_id DESC LIMIT $1)
    ), pinned AS (
        SELECT run_id, profile FROM recorded.runs WHERE run_id IN (SELECT unnest($2::INTEGER[]))
    ), held AS (
        SELECT hold_id FROM recorded.current
        UNION SELECT hold_id FROM recorded.holds, window_start w WHERE holds.run_id >= w.run_id
        UNION SELECT max(hold_id) FROM recorded.holds h, window_start w
            WHERE h.run_id <= w.run_id GROUP BY h.profile, h.rule, h.shard
        UNION SELECT max(hold_id) FROM recorded.holds h JOIN pinned p USING (profile)
            WHERE h.run_id <= p.run_id GROUP BY p.run_id, h.rule, h.shard
    )
    SELECT result_id FROM recorded.holds WHERE hold_id IN (FROM held) AND result_id IS NOT NULL
    UNION SELECT result_id FROM recorded.results, window_start w WHERE results.run_id >= w.run_id
    UNION SELECT result_id FROM recorded.results WHERE run_id IN (SELECT run_id FROM pinned)
"""
READ_BY: Final = """
    SELECT DISTINCT h.profile, h.rule, i.digest FROM recorded.current h JOIN recorded.inputs i USING (result_id)
    WHERE i.maker_rule IN (SELECT unnest($1))
"""
UNNEEDED_REQUESTS: Final = """
    SELECT key FROM recorded.requests EXCEPT
    SELECT q.key FROM recorded.requests q JOIN recorded.results r USING (rule, shard, run_id)
    WHERE r.result_id IN (SELECT unnest($1::BIGINT[]))
"""
ASKERS: Final = """
    SELECT rule, count(DISTINCT key) FROM recorded.requests WHERE key IN (SELECT unnest($1)) GROUP BY rule ORDER BY rule
"""
RESTING: Final = """
    SELECT DISTINCT h.profile, h.rule, h.shard FROM recorded.current h JOIN recorded.results r USING (result_id)
    JOIN recorded.requests q ON q.run_id = r.run_id AND q.rule = r.rule AND q.shard = r.shard
    WHERE q.key IN (SELECT unnest($1))
"""
LAST_TRIED: Final = """
    SELECT profile, rule, shard, max(run_id), max_by(key, run_id) FROM recorded.actions
    WHERE key IS NOT NULL GROUP BY profile, rule, shard
"""
IDS: Final = """
    SELECT key, coalesce(evidence, ''), max(result_id) FROM recorded.results
    WHERE key IN (SELECT unnest($1)) GROUP BY ALL
"""
SHORT_KEYS: Final = """
    SELECT DISTINCT ('0x' || left(key, 15))::BIGINT FROM recorded.results
    UNION SELECT ('0x' || left(rest, 15))::BIGINT FROM recorded.results WHERE rest <> ''
    UNION SELECT ('0x' || left(key, 15))::BIGINT FROM recorded.aliases WHERE said_by = 'accepted'
"""
VERDICTS: Final = """
    SELECT key, max_by(passed, recorded.checks.rowid), max_by(severity, recorded.checks.rowid) FROM recorded.checks
    WHERE key IN (SELECT unnest($1)) GROUP BY key
"""
ONCE: Final = """
    SELECT context FROM recorded.contexts
    UNION SELECT unnest([evidence, trace, discovered]) FROM recorded.evidence
    UNION SELECT digest || ' ' || name FROM recorded.texts
"""
TEXTS: Final = "SELECT name, digest, text FROM recorded.texts WHERE digest IN (SELECT unnest($1))"
RUN_STARTED: Final = "SELECT make_timestamp((started * 1e6)::BIGINT) FROM recorded.runs WHERE run_id = $1"
INPUTS: Final = """
    SELECT r.key, i.name, i.digest, i.path FROM recorded.inputs i JOIN recorded.results r USING (result_id)
    WHERE i.role = 'input' AND r.result_id IN (
        SELECT max(result_id) FROM recorded.results WHERE key IN (SELECT unnest($1)) GROUP BY key
    ) ORDER BY r.result_id, i.position
"""
FILES: Final = """
    SELECT path, size, mtime_ns, ctime_ns, inode, mode, digest FROM recorded.files
    WHERE file_id IN (SELECT max(file_id) FROM recorded.files GROUP BY path)
"""
LARGEST: Final = """
    SELECT coalesce((SELECT max(result_id) FROM recorded.results), 0),
        coalesce((SELECT max(hold_id) FROM recorded.holds), 0), coalesce((SELECT max(file_id) FROM recorded.files), 0),
        coalesce((SELECT max(alias_id) FROM recorded.aliases), 0)
"""
MEASURED: Final = "SELECT DISTINCT rule, output, digest FROM recorded.metrics"
PROFILES: Final = """
    SELECT r.profile, max(r.run_id), make_timestamp((max_by(r.started, r.run_id) * 1e6)::BIGINT),
        max_by(coalesce(e.outcome, ''), r.run_id),
        coalesce(any_value(h.n_actions), 0)
    FROM recorded.runs r LEFT JOIN recorded.ends e USING (run_id)
    LEFT JOIN (SELECT profile, count(*) AS n_actions FROM recorded.current GROUP BY profile) h USING (profile)
    GROUP BY r.profile ORDER BY r.profile
"""
USAGES: Final = """
    SELECT rule, shard, max_by(wall_s, result_id), max_by(requests_sent + requests_reused, result_id)
    FROM recorded.results GROUP BY rule, shard
"""
MEANS: Final = """
    SELECT rule, s.request_s, avg(prompt_tokens) FILTER (prompt_tokens >= 0),
        avg(output_tokens) FILTER (output_tokens >= 0)
    FROM recorded.requests LEFT JOIN (
        SELECT rule, sum(wall_s) / sum(requests_sent) AS request_s FROM recorded.results
        WHERE requests_sent > 0 GROUP BY rule
    ) s USING (rule)
    WHERE status = 200 GROUP BY ALL
"""
ASKED: Final = """
    WITH same AS (
        SELECT a.run_id, a.profile, a.rule, a.shard FROM recorded.actions a
        WHERE a.rule = $1 AND (a.key IN (SELECT unnest($3))
            OR a.key IN (SELECT key FROM recorded.results WHERE context = $2))
    )
    SELECT record_id, count(DISTINCT key) FROM requests SEMI JOIN same USING (run_id, profile, rule, shard)
    WHERE status > 0 AND NOT rejected AND (status < 400 OR NOT $4) GROUP BY record_id
"""
REFUSED: Final = """
    SELECT DISTINCT r.key, r.run_id FROM recorded.results r JOIN recorded.requests q USING (rule, shard, run_id)
    WHERE r.key IN (SELECT unnest($1)) AND q.status >= 400
"""
BEGIN_RUN: Final = "INSERT INTO recorded.runs SELECT $1, $2, $3, $4, $5::VARCHAR[], $6::VARCHAR[]"
NEXT_RUN: Final = "SELECT coalesce(max(run_id), 0) + 1 FROM recorded.runs"
TABLES: Final = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'recorded' ORDER BY ALL"
KILLED: Final = """
    INSERT INTO recorded.ends
    SELECT run_id, NULL, 'killed' FROM recorded.runs ANTI JOIN recorded.ends USING (run_id)
"""
