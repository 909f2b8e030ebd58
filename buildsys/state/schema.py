"""The manifest's tables: append-only, in the schema `recorded`, which is nobody's business but the manifest's.

Knows nothing of connections. Users read the views (`views`). A change of the tables is a new entry of MIGRATIONS; the
entries that were once released never change.
"""

from __future__ import annotations

from typing import Final

_FIRST: Final = """
CREATE SCHEMA recorded;
CREATE TABLE recorded.format (version INTEGER, views VARCHAR);

CREATE TABLE recorded.runs (
    run_id INTEGER, started DOUBLE, command VARCHAR, profile VARCHAR, targets VARCHAR[]);
CREATE TABLE recorded.ends (
    run_id INTEGER, ended DOUBLE, outcome VARCHAR);

CREATE TABLE recorded.contexts (
    context VARCHAR, position INTEGER, kind VARCHAR, name VARCHAR, value VARCHAR, path VARCHAR);
CREATE TABLE recorded.results (
    result_id BIGINT, key VARCHAR, rule VARCHAR, shard VARCHAR, run_id INTEGER, context VARCHAR,
    wall_s DOUBLE, cpu_s DOUBLE, max_rss BIGINT, requests_sent BIGINT, requests_reused BIGINT, log VARCHAR);
CREATE TABLE recorded.outputs (
    result_id BIGINT, position INTEGER, name VARCHAR, shard VARCHAR, file VARCHAR,
    digest VARCHAR, size BIGINT, executable BOOLEAN, tree BOOLEAN);
CREATE TABLE recorded.inputs (
    result_id BIGINT, position INTEGER, role VARCHAR, name VARCHAR, path VARCHAR, digest VARCHAR,
    maker_rule VARCHAR, maker_shard VARCHAR);

-- result_id is NULL where the action holds nothing from then on.
CREATE TABLE recorded.holds (
    hold_id BIGINT, profile VARCHAR, rule VARCHAR, shard VARCHAR, result_id BIGINT, run_id INTEGER);
CREATE TABLE recorded.places (
    hold_id BIGINT, position INTEGER, name VARCHAR, shard VARCHAR, path VARCHAR,
    digest VARCHAR, size BIGINT, executable BOOLEAN, tree BOOLEAN);

CREATE TABLE recorded.actions (
    run_id INTEGER, profile VARCHAR, rule VARCHAR, shard VARCHAR, outcome VARCHAR, key VARCHAR, reason VARCHAR,
    started DOUBLE, wall_s DOUBLE, cpu_s DOUBLE, max_rss BIGINT, requests_sent BIGINT, requests_reused BIGINT,
    log VARCHAR, error VARCHAR);
CREATE TABLE recorded.checks (
    run_id INTEGER, profile VARCHAR, rule VARCHAR, shard VARCHAR, name VARCHAR, key VARCHAR, passed BOOLEAN,
    detail VARCHAR, wall_s DOUBLE);
CREATE TABLE recorded.files (
    file_id BIGINT, path VARCHAR, size BIGINT, mtime_ns BIGINT, ctime_ns BIGINT, inode UBIGINT, mode INTEGER,
    digest VARCHAR);
CREATE TABLE recorded.requests (
    key VARCHAR, rule VARCHAR, shard VARCHAR, run_id INTEGER, profile VARCHAR, record_id VARCHAR, sample INTEGER,
    model VARCHAR, identity VARCHAR, endpoint VARCHAR, finish_reason VARCHAR, prompt_tokens BIGINT,
    output_tokens BIGINT, wall_s DOUBLE, status INTEGER, error VARCHAR, reused BOOLEAN);
CREATE TABLE recorded.metrics (
    run_id INTEGER, profile VARCHAR, rule VARCHAR, shard VARCHAR, name VARCHAR, step BIGINT, value DOUBLE);
"""

_OVERRIDES: Final = """
ALTER TABLE recorded.runs ADD COLUMN overrides VARCHAR[] DEFAULT [];
"""

_METRICS: Final = """
-- Of bytes, not of a run: whoever has an output of these bytes has these numbers. name is NULL where there are none.
DROP TABLE recorded.metrics;
CREATE TABLE recorded.metrics (
    rule VARCHAR, output VARCHAR, digest VARCHAR, name VARCHAR, step BIGINT, value DOUBLE);
"""

_PRICES: Final = """
-- The columns are those of model.Prices, in its order.
CREATE TABLE recorded.prices (
    run_id INTEGER, request DOUBLE, input_token DOUBLE, output_token DOUBLE, action_hour DOUBLE, service_hour DOUBLE,
    gpu_hour DOUBLE, currency VARCHAR);
CREATE TABLE recorded.services (run_id INTEGER, name VARCHAR, started DOUBLE, ended DOUBLE);
ALTER TABLE recorded.actions ADD COLUMN gpus INTEGER;
"""

_SETTINGS: Final = """
-- Those of a rule in a run in which it made something; never part of a key.
CREATE TABLE recorded.settings (run_id INTEGER, rule VARCHAR, name VARCHAR, value VARCHAR, path VARCHAR);
"""

_EVIDENCE: Final = """
-- What a run used, beside its key: each trace, each set of discovered inputs and all of it together once, by digest.
-- kind is 'module', 'function' or 'unseen'; NULL where a trace tells of nothing.
CREATE TABLE recorded.traces (trace VARCHAR, kind VARCHAR, name VARCHAR);
CREATE TABLE recorded.discovered (discovered VARCHAR, kind VARCHAR, name VARCHAR, value VARCHAR);
CREATE TABLE recorded.evidence (
    evidence VARCHAR, sources VARCHAR, used VARCHAR, trace VARCHAR, discovered VARCHAR);
ALTER TABLE recorded.results ADD COLUMN rest VARCHAR;
ALTER TABLE recorded.results ADD COLUMN evidence VARCHAR;
ALTER TABLE recorded.results ADD COLUMN counts_as VARCHAR;

-- Keys under which an action has a result that was made under another one. The last row of a key counts; result_id is
-- NULL where what was said before is undone. said_by is 'narrowed', 'accepted' or 'undone'.
CREATE TABLE recorded.aliases (
    alias_id BIGINT, profile VARCHAR, rule VARCHAR, shard VARCHAR, key VARCHAR, result_id BIGINT, evidence VARCHAR,
    said_by VARCHAR, reason VARCHAR, run_id INTEGER);
"""

_VERSIONS: Final = """
-- Those of a rule in a run in which it made something; what is part of a key is among the parts of contexts.
CREATE TABLE recorded.versions (run_id INTEGER, rule VARCHAR, name VARCHAR, version VARCHAR);
"""

_TEXTS: Final = """
-- The text of each symbol that a key has held, once: name and digest are its name and value among the contexts.
CREATE TABLE recorded.texts (name VARCHAR, digest VARCHAR, text VARCHAR);
"""

_SEVERITY: Final = """
ALTER TABLE recorded.checks ADD COLUMN severity VARCHAR DEFAULT 'error';
"""

_OFFENDING: Final = """
-- How many rows a check gave, and the first of them as JSON: a list of objects; NULL where there are none.
ALTER TABLE recorded.checks ADD COLUMN n_offending BIGINT;
ALTER TABLE recorded.checks ADD COLUMN offending VARCHAR;
"""

_REJECTIONS: Final = """
-- Requests that are to be asked anew. run_id: the last run by then; what it and those before it had of the reply counts
-- no more.
CREATE TABLE recorded.rejections (key VARCHAR, run_id INTEGER);
"""

_BAD: Final = """
-- The kinds of what is wrong with a reply, by commas; NULL of requests that were recorded before anybody looked.
ALTER TABLE recorded.requests ADD COLUMN bad VARCHAR;
"""

MIGRATIONS: Final = (
    _FIRST,
    _OVERRIDES,
    _METRICS,
    _PRICES,
    _SETTINGS,
    _EVIDENCE,
    _VERSIONS,
    _TEXTS,
    _SEVERITY,
    _OFFENDING,
    _REJECTIONS,
    _BAD,
)
"""Entry n takes the tables from version n to version n + 1; an empty database is version 0."""
