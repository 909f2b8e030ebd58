"""The public views and macros of the manifest, as SQL; `docs/manifest.md` says what each column means.

Knows nothing of connections. Views are text, not data: they are made anew whenever this text differs from the text that
the manifest was last written with. All of them can be read by DuckDB 1.4 and later.
"""

from __future__ import annotations

from typing import Final

_CURRENT: Final = """
-- What holds now: for each action of each profile its newest hold, unless it was released.
CREATE OR REPLACE VIEW recorded.current AS
SELECT * FROM recorded.holds
WHERE hold_id IN (SELECT max(hold_id) FROM recorded.holds GROUP BY profile, rule, shard) AND result_id IS NOT NULL;

-- The key under which an action has what it holds, where that is not the key under which it was made.
CREATE OR REPLACE VIEW recorded.current_aliases AS
SELECT * FROM recorded.aliases
WHERE alias_id IN (SELECT max(alias_id) FROM recorded.aliases GROUP BY profile, rule, shard) AND result_id IS NOT NULL;

-- The results that rest on a reply which was rejected after they were made.
CREATE OR REPLACE VIEW recorded.rejected AS
SELECT DISTINCT r.result_id
FROM recorded.rejections x
JOIN recorded.requests q ON q.key = x.key AND q.run_id <= x.run_id
JOIN recorded.results r ON r.run_id = q.run_id AND r.rule = q.rule AND r.shard = q.shard;

-- The discovered inputs of each result.
CREATE OR REPLACE VIEW recorded.discoveries AS
SELECT r.result_id, d.kind, d.name, d.value
FROM recorded.results r JOIN recorded.evidence USING (evidence) JOIN recorded.discovered d USING (discovered);

-- The parts of the keys that hold now, once for each rule; n_actions of its actions have it.
CREATE OR REPLACE VIEW recorded.current_parts AS
SELECT u.profile, u.rule, c.kind, c.name, c.value, c.path, sum(u.n_actions)::BIGINT AS n_actions
FROM (
    SELECT h.profile, h.rule, r.context, count(*) AS n_actions
    FROM recorded.current h JOIN recorded.results r USING (result_id) GROUP BY ALL
) u JOIN recorded.contexts c USING (context)
GROUP BY ALL;

-- The settings of each result: those that its rule had in the run that made it.
CREATE OR REPLACE VIEW recorded.settings_of AS
SELECT r.result_id, s.rule, s.name, s.value, s.path
FROM recorded.results r JOIN recorded.settings s USING (run_id, rule);

-- The versions of each result that are in no key.
CREATE OR REPLACE VIEW recorded.versions_of AS
SELECT r.result_id, v.rule, v.name, v.version
FROM recorded.results r JOIN recorded.versions v USING (run_id, rule);

-- Those who answered a rule with reasoning. Of others no reply is bad for want of it.
CREATE OR REPLACE VIEW recorded.reasoners AS
SELECT DISTINCT rule, identity FROM recorded.requests
WHERE status = 200 AND NOT contains(bad, 'empty reasoning') AND NOT contains(bad, 'refused');
"""

_HISTORY: Final = """
-- What things cost is said at the prices that the run had (plan/price says the same); NULL where it had none.
CREATE OR REPLACE VIEW requests AS
SELECT r.run_id, r.profile, r.rule, r.shard, r.record_id, r.sample, r.model, r.identity, r.endpoint, r.finish_reason,
    list_filter(string_split(r.bad, ', '),
        lambda kind: kind <> '' AND (kind <> 'empty reasoning' OR w.rule IS NOT NULL)) AS bad,
    r.prompt_tokens, r.output_tokens, r.wall_s, r.status, r.error, r.reused, r.key,
    CASE WHEN r.reused OR r.status = 0 THEN 0 ELSE 1 END * (p.request + greatest(r.prompt_tokens, 0) * p.input_token
        + greatest(r.output_tokens, 0) * p.output_token) AS cost,
    coalesce(r.run_id <= x.run_id, false) AS rejected
FROM recorded.requests r
LEFT JOIN recorded.prices p USING (run_id)
LEFT JOIN recorded.reasoners w ON w.rule = r.rule AND w.identity = r.identity
LEFT JOIN (SELECT key, max(run_id) AS run_id FROM recorded.rejections GROUP BY key) x ON x.key = r.key;

CREATE OR REPLACE VIEW actions AS
SELECT a.run_id, a.profile, a.rule, a.shard, a.outcome, a.key, a.reason,
    make_timestamp((a.started * 1e6)::BIGINT) AS started, a.wall_s, a.cpu_s, a.max_rss, a.requests_sent,
    a.requests_reused, a.log, a.error, coalesce(a.gpus, 0) * a.wall_s AS gpu_s,
    a.wall_s / 3600 * (p.action_hour + coalesce(a.gpus, 0) * p.gpu_hour) + coalesce(q.cost, 0) AS cost
FROM recorded.actions a
LEFT JOIN recorded.prices p USING (run_id)
LEFT JOIN (SELECT run_id, profile, rule, shard, sum(cost) AS cost FROM requests GROUP BY ALL) q
    USING (run_id, profile, rule, shard);

-- Where a terminal is too narrow for all columns, the first and the last ones are shown: so these tell the most.
CREATE OR REPLACE VIEW runs AS
SELECT r.run_id, r.profile, r.command,
    make_timestamp((r.started * 1e6)::BIGINT) AS started, make_timestamp((e.ended * 1e6)::BIGINT) AS ended,
    r.targets, r.overrides, round(coalesce(s.service_s, 0), 3) AS service_s,
    coalesce(a.cost, 0) + coalesce(s.service_s, 0) / 3600 * p.service_hour AS cost, p.currency,
    coalesce(a.n_failed, 0) AS n_failed, coalesce(a.n_ran, 0) AS n_ran, round(e.ended - r.started, 3) AS wall_s,
    e.outcome
FROM recorded.runs r
LEFT JOIN recorded.ends e USING (run_id)
LEFT JOIN recorded.prices p USING (run_id)
LEFT JOIN (
    SELECT run_id, sum(ended - started) AS service_s FROM recorded.services GROUP BY run_id
) s USING (run_id)
LEFT JOIN (
    SELECT run_id, count(*) FILTER (outcome = 'ran') AS n_ran, count(*) FILTER (outcome = 'failed') AS n_failed,
        sum(cost) AS cost
    FROM actions GROUP BY run_id
) a USING (run_id)
ORDER BY r.run_id;

CREATE OR REPLACE VIEW checks AS
SELECT run_id, profile, rule, shard, name, severity, passed, detail, n_offending, offending, key, wall_s
FROM recorded.checks;

-- Each run has the metrics of the results that it made, took or left in place; also of those that failed a check.
CREATE OR REPLACE VIEW metrics AS
WITH made AS (
    SELECT result_id, key, run_id FROM recorded.results
    WHERE result_id IN (SELECT o.result_id FROM recorded.outputs o SEMI JOIN recorded.metrics USING (digest))
), held AS (
    SELECT profile, rule, shard, run_id, result_id FROM recorded.holds
    QUALIFY row_number() OVER (PARTITION BY profile, rule, shard, run_id ORDER BY hold_id DESC) = 1
), had AS (
    SELECT a.run_id, a.profile, a.rule, a.shard, h.result_id
    FROM recorded.actions a
    ASOF JOIN held h ON h.profile = a.profile AND h.rule = a.rule AND h.shard = a.shard AND a.run_id >= h.run_id
    WHERE a.outcome IN ('ran', 'reused', 'restored') AND h.result_id IN (SELECT result_id FROM made)
    UNION
    SELECT a.run_id, a.profile, a.rule, a.shard, m.result_id
    FROM recorded.actions a JOIN made m ON m.key = a.key AND a.run_id = m.run_id WHERE a.outcome = 'failed'
    UNION
    SELECT run_id, profile, rule, shard, result_id FROM recorded.holds SEMI JOIN made USING (result_id)
), last_had AS (
    SELECT h.profile, h.rule, h.shard, h.result_id, max(h.run_id) AS run_id
    FROM had h SEMI JOIN recorded.current c USING (profile, rule, shard, result_id) GROUP BY ALL
)
SELECT h.run_id, h.profile, h.rule, coalesce(nullif(o.shard, ''), h.shard) AS shard, m.name, m.step, m.value,
    m.output, l.run_id IS NOT NULL AS holds
FROM had h LEFT JOIN last_had l USING (profile, rule, shard, result_id, run_id)
JOIN recorded.outputs o USING (result_id)
JOIN recorded.metrics m ON m.rule = h.rule AND m.output = o.name AND m.digest = o.digest
WHERE m.name IS NOT NULL;
"""

_NOW: Final = """
CREATE OR REPLACE VIEW artifacts AS
SELECT h.profile, h.rule, coalesce(nullif(p.shard, ''), h.shard) AS shard, p.name, p.path, p.digest, p.size, r.key,
    r.run_id, r.wall_s, a.key AS held_key, a.said_by AS held_by, a.reason AS held_because
FROM recorded.current h
JOIN recorded.places p USING (hold_id)
JOIN recorded.results r USING (result_id)
LEFT JOIN recorded.current_aliases a
    ON a.profile = h.profile AND a.rule = h.rule AND a.shard = h.shard AND a.result_id = h.result_id;

CREATE OR REPLACE VIEW params AS
SELECT profile, rule, name, value, path AS config_key, n_actions FROM recorded.current_parts WHERE kind = 'param';

CREATE OR REPLACE VIEW settings AS
SELECT h.profile, h.rule, s.name, s.value, s.path AS config_key, count(*) AS n_actions
FROM recorded.current h JOIN recorded.settings_of s USING (result_id) GROUP BY ALL;

CREATE OR REPLACE VIEW versions AS
SELECT profile, rule, name, value AS version, true AS keyed, n_actions FROM recorded.current_parts
WHERE kind IN ('version', 'python')
UNION ALL
SELECT h.profile, h.rule, v.name, v.version, false, count(*)
FROM recorded.current h JOIN recorded.versions_of v USING (result_id) GROUP BY ALL;

CREATE OR REPLACE VIEW code_deps AS
WITH reached AS (
    SELECT profile, rule, path, split_part(name, ':', -1) AS symbol, value AS digest, n_actions
    FROM recorded.current_parts WHERE kind = 'code'
), traced AS (
    SELECT h.profile, h.rule, e.trace, count(*) AS n_used
    FROM recorded.current h JOIN recorded.results r USING (result_id) JOIN recorded.evidence e USING (evidence)
    GROUP BY ALL
), used AS (
    SELECT t.profile, t.rule, split_part(u.name, ':', 1) AS path,
        CASE u.kind WHEN 'module' THEN '*' ELSE split_part(u.name, ':', 2) END AS symbol,
        sum(t.n_used)::BIGINT AS n_used
    FROM traced t JOIN recorded.traces u USING (trace) WHERE u.kind IN ('module', 'function') GROUP BY ALL
)
SELECT profile, rule, path, symbol, digest, coalesce(n_actions, 0) AS n_actions, coalesce(n_used, 0) AS n_used
FROM reached FULL JOIN used USING (profile, rule, path, symbol);

CREATE OR REPLACE VIEW symbols AS
SELECT DISTINCT profile, path, symbol, digest FROM code_deps WHERE digest IS NOT NULL;

CREATE OR REPLACE VIEW files AS
SELECT s.profile, s.path, s.digest, f.size, make_timestamp(f.mtime_ns // 1000) AS modified, s.n_actions, s.declared
FROM (
    SELECT h.profile, i.path, i.digest, count(DISTINCT i.result_id) AS n_actions, bool_or(i.declared) AS declared
    FROM recorded.current h JOIN (
        SELECT result_id, path, digest, true AS declared FROM recorded.inputs WHERE maker_rule IS NULL
        UNION ALL
        SELECT result_id, name, value, false FROM recorded.discoveries WHERE kind = 'file' AND value <> ''
    ) i USING (result_id) GROUP BY ALL
) s
LEFT JOIN (SELECT path, digest, max_by(size, file_id) AS size, max_by(mtime_ns, file_id) AS mtime_ns
           FROM recorded.files GROUP BY ALL) f USING (path, digest);
"""

_LINEAGE: Final = """
CREATE OR REPLACE VIEW edges AS
WITH held AS (
    SELECT profile, rule, shard, result_id, max(hold_id) AS hold_id FROM recorded.holds
    WHERE result_id IS NOT NULL GROUP BY ALL
), made AS (
    SELECT h.*, r.run_id, r.context FROM held h JOIN recorded.results r USING (result_id)
)
SELECT m.run_id, m.profile, m.rule, m.shard, i.role, i.name, i.path, i.digest, NULL::VARCHAR AS value
FROM made m JOIN recorded.inputs i USING (result_id)
UNION ALL
SELECT m.run_id, m.profile, m.rule, m.shard, 'discovered', d.kind, d.name,
    CASE WHEN d.kind IN ('file', 'folder') THEN d.value END, CASE WHEN d.kind NOT IN ('file', 'folder') THEN d.value END
FROM made m JOIN recorded.discoveries d USING (result_id)
UNION ALL
SELECT m.run_id, m.profile, m.rule, m.shard, 'output', p.name, p.path, p.digest, NULL
FROM made m JOIN recorded.places p USING (hold_id)
UNION ALL
SELECT m.run_id, m.profile, m.rule, m.shard, c.kind, c.name, c.path, CASE WHEN c.kind = 'code' THEN c.value END,
    CASE WHEN c.kind <> 'code' THEN c.value END
FROM made m JOIN recorded.contexts c USING (context)
UNION ALL
SELECT m.run_id, m.profile, m.rule, m.shard, 'setting', s.name, s.path, NULL, s.value
FROM made m JOIN recorded.settings_of s USING (result_id);

-- consumer read an output of producer, by digest (an ephemeral output counts by the key of its action, with what that
-- discovered). Of several results with those bytes, the one that holds now under the profile, else under another one,
-- else the newest.
CREATE OR REPLACE VIEW recorded.links AS
WITH makers AS (
    SELECT h.profile, h.rule, h.shard, h.result_id, coalesce(nullif(r.counts_as, ''), r.key) AS counted,
        max(h.hold_id IN (SELECT hold_id FROM recorded.current)) AS holds
    FROM recorded.holds h JOIN recorded.results r USING (result_id) GROUP BY ALL
), given AS (
    SELECT m.profile, m.rule, m.shard, o.digest, m.result_id, m.holds
    FROM makers m JOIN recorded.outputs o USING (result_id)
    UNION ALL
    SELECT profile, rule, shard, counted, result_id, holds FROM makers
)
SELECT i.result_id AS consumer, u.profile,
    coalesce(max(g.result_id) FILTER (g.holds AND g.profile = u.profile), max(g.result_id) FILTER (g.holds),
        max(g.result_id)) AS producer
FROM recorded.inputs i
JOIN given g ON g.rule = i.maker_rule AND g.shard = i.maker_shard AND g.digest = i.digest
CROSS JOIN (SELECT DISTINCT profile FROM recorded.runs) u
GROUP BY i.result_id, u.profile, g.rule, g.shard, g.digest;

CREATE OR REPLACE MACRO upstream(start_path) AS TABLE
WITH RECURSIVE start AS MATERIALIZED (
    SELECT h.profile, h.result_id, h.rule, h.shard, p.name, p.path, p.digest
    FROM recorded.current h JOIN recorded.places p USING (hold_id)
    WHERE p.path = rtrim(start_path, '/') OR starts_with(p.path, rtrim(start_path, '/') || '/')
        OR starts_with(start_path, p.path || '/')
), links AS MATERIALIZED (
    SELECT DISTINCT consumer, producer FROM recorded.links WHERE profile IN (SELECT profile FROM start)
), now AS MATERIALIZED (
    -- Where an input is under the profile that was asked about: it may have been read at the place of another one.
    SELECT h.rule, h.shard, parse_filename(p.path) AS file, p.digest, any_value(p.path) AS path
    FROM recorded.current h JOIN recorded.places p USING (hold_id)
    WHERE h.profile IN (SELECT profile FROM start) GROUP BY ALL
), reached(result_id, depth) USING KEY (result_id) AS (
    SELECT DISTINCT result_id, 0 FROM start
    UNION
    SELECT l.producer, min(r.depth) + 1 FROM reached r JOIN links l ON l.consumer = r.result_id
    WHERE NOT EXISTS (FROM recurring.reached known WHERE known.result_id = l.producer)
    GROUP BY l.producer
), found AS (
    SELECT 0 AS depth, 'artifact' AS kind, rule, shard, name, path, digest, NULL::VARCHAR AS value FROM start
    UNION ALL
    SELECT n.depth + 1, CASE WHEN i.maker_rule IS NULL THEN 'source' ELSE 'artifact' END,
        coalesce(i.maker_rule, r.rule), coalesce(i.maker_shard, r.shard), i.name, coalesce(w.path, i.path), i.digest,
        NULL
    FROM reached n JOIN recorded.results r USING (result_id) JOIN recorded.inputs i USING (result_id)
    LEFT JOIN now w ON w.rule = i.maker_rule AND w.shard = i.maker_shard AND w.digest = i.digest
        AND w.file = parse_filename(i.path)
    UNION ALL
    SELECT n.depth + 1, 'discovered', r.rule, r.shard, d.kind, d.name,
        CASE WHEN d.kind IN ('file', 'folder') THEN d.value END,
        CASE WHEN d.kind NOT IN ('file', 'folder') THEN d.value END
    FROM reached n JOIN recorded.results r USING (result_id) JOIN recorded.discoveries d USING (result_id)
    UNION ALL
    SELECT used.depth + 1, c.kind, used.rule, '', c.name, c.path, CASE WHEN c.kind = 'code' THEN c.value END,
        CASE WHEN c.kind <> 'code' THEN c.value END
    FROM (
        SELECT r.rule, r.context, min(n.depth) AS depth
        FROM reached n JOIN recorded.results r USING (result_id) GROUP BY ALL
    ) used JOIN recorded.contexts c USING (context)
    UNION ALL
    SELECT n.depth + 1, 'setting', s.rule, '', s.name, s.path, NULL, s.value
    FROM reached n JOIN recorded.settings_of s USING (result_id)
    UNION ALL
    SELECT n.depth + 1, 'held', a.rule, a.shard, a.said_by, '', NULL, a.reason
    FROM reached n JOIN recorded.current h USING (result_id)
    JOIN recorded.current_aliases a USING (profile, rule, shard, result_id)
    WHERE profile IN (SELECT profile FROM start)
)
SELECT min(depth) AS depth, kind, rule, CASE WHEN min(shard) = max(shard) THEN min(shard) ELSE '' END AS shard, name,
    path, digest, value
FROM found GROUP BY kind, rule, name, path, digest, value
ORDER BY depth, kind, rule, shard, name, path;

-- By what holds, profile by profile: what an action read is what its maker holds now under the same profile, whichever
-- profile it was read under, and whatever it held then.
CREATE OR REPLACE MACRO downstream(start_path) AS TABLE
WITH RECURSIVE places AS MATERIALIZED (
    SELECT h.hold_id, h.profile, h.rule, h.shard, p.name, p.path, p.digest
    FROM recorded.current h JOIN recorded.places p USING (hold_id)
), reads AS MATERIALIZED (
    SELECT h.hold_id, i.path, NULL::BIGINT AS producer
    FROM recorded.current h JOIN recorded.inputs i USING (result_id) WHERE i.maker_rule IS NULL
    UNION
    SELECT h.hold_id, d.name, NULL
    FROM recorded.current h JOIN recorded.discoveries d USING (result_id) WHERE d.kind NOT IN ('variable', 'package')
    UNION
    SELECT h.hold_id, p.path, p.hold_id
    FROM recorded.current h JOIN recorded.inputs i USING (result_id)
    JOIN places p ON p.profile = h.profile AND p.rule = i.maker_rule AND p.shard = i.maker_shard
        AND parse_filename(p.path) = parse_filename(i.path)
), start AS (
    SELECT hold_id FROM reads
    WHERE path = rtrim(start_path, '/') OR starts_with(path, rtrim(start_path, '/') || '/')
        OR starts_with(start_path, path || '/')
    UNION
    SELECT h.hold_id FROM recorded.current h JOIN recorded.results r USING (result_id)
    JOIN recorded.contexts c USING (context)
    WHERE c.path = start_path OR starts_with(c.path, start_path || '.')
), reached(hold_id, depth) USING KEY (hold_id) AS (
    SELECT hold_id, 1 FROM start
    UNION
    SELECT l.hold_id, min(r.depth) + 1 FROM reached r JOIN reads l ON l.producer = r.hold_id
    WHERE NOT EXISTS (FROM recurring.reached known WHERE known.hold_id = l.hold_id)
    GROUP BY l.hold_id
)
SELECT DISTINCT n.depth, 'artifact' AS kind, p.rule, p.shard, p.name, p.path, p.digest, NULL::VARCHAR AS value
FROM reached n JOIN places p USING (hold_id)
ORDER BY n.depth, p.rule, p.shard, p.name, p.path;
"""

_COMPARE: Final = """
-- What held at the end of a run, as comparable facts. The profile is taken out of the paths: out of an output's the one
-- that it is of, out of an input's the one under which it was read.
CREATE OR REPLACE MACRO recorded.facts_of(of_run) AS TABLE
WITH held AS (
    SELECT h.profile, h.rule, h.shard, h.result_id, h.hold_id FROM recorded.holds h
    WHERE h.result_id IS NOT NULL AND h.hold_id IN (
        SELECT max(b.hold_id) FROM recorded.holds b JOIN recorded.runs r ON r.run_id = of_run AND r.profile = b.profile
        WHERE b.run_id <= of_run GROUP BY b.rule, b.shard)
), facts AS (
    SELECT m.profile, h.rule, h.shard, 'input' AS kind, i.name, i.path, i.digest AS value
    FROM held h JOIN recorded.inputs i USING (result_id) JOIN recorded.results r USING (result_id)
    JOIN recorded.runs m ON m.run_id = r.run_id
    UNION ALL
    SELECT h.profile, h.rule, h.shard, 'discovered', d.kind, d.name, d.value
    FROM held h JOIN recorded.discoveries d USING (result_id)
    UNION ALL
    SELECT h.profile, h.rule, h.shard, 'output', p.name, p.path, p.digest
    FROM held h JOIN recorded.places p USING (hold_id)
    UNION ALL
    SELECT DISTINCT h.profile, h.rule, '', c.kind, c.name, c.path, c.value
    FROM held h JOIN recorded.results r USING (result_id) JOIN recorded.contexts c USING (context)
    WHERE c.kind <> 'output'
    UNION ALL
    SELECT DISTINCT h.profile, h.rule, '', 'setting', s.name, s.path, s.value
    FROM held h JOIN recorded.settings_of s USING (result_id)
    UNION ALL
    SELECT DISTINCT h.profile, h.rule, '', 'version', v.name, '', v.version
    FROM held h JOIN recorded.versions_of v USING (result_id)
    UNION ALL
    SELECT h.profile, h.rule, h.shard, 'metric', m.name, p.path, arg_max(m.value, coalesce(m.step, 0))::VARCHAR
    FROM held h JOIN recorded.places p USING (hold_id)
    JOIN recorded.metrics m ON m.rule = h.rule AND m.output = p.name AND m.digest = p.digest
    WHERE m.name IS NOT NULL GROUP BY ALL
)
SELECT rule, shard, kind, name, replace('/' || path, '/' || profile || '/', '/{profile}/')[2:] AS path,
    string_agg(DISTINCT value, ' | ' ORDER BY value) AS value
FROM facts GROUP BY ALL;

CREATE OR REPLACE MACRO compare(run_a, run_b) AS TABLE
SELECT rule, shard, kind, name, path, one.value AS a, other.value AS b
FROM recorded.facts_of(run_a) one FULL JOIN recorded.facts_of(run_b) other USING (rule, shard, kind, name, path)
WHERE one.value IS DISTINCT FROM other.value
    AND (kind <> 'metric' OR (one.value IS NOT NULL AND other.value IS NOT NULL))
ORDER BY rule, shard, kind, name, path;
"""

VIEWS: Final = _CURRENT + _HISTORY + _NOW + _LINEAGE + _COMPARE

PUBLIC: Final = (
    "runs", "actions", "artifacts", "edges", "files", "symbols", "code_deps", "params", "settings", "versions",
    "checks", "requests", "metrics",
)  # fmt: skip
"""Names of the views that users may build on; no rule output may take one."""
