"""A small project as the manifest sees it: two prompt shards, replies, samples, tokens, a vocabulary and a draft.

Run 1 makes everything under the profile `default`. Run 2 changes a setting of `replies`, one function and a version:
shard 1 is made anew, shard 0 fails. Run 3 was killed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import duckdb

from buildsys.digest import digest_of
from buildsys.model import ActionId, ActionKey, Artifact, CheckVerdict, Made, Part, RuleName, Shard, Usage
from buildsys.state.manifest import Manifest
from buildsys.state.rows import (
    ActionRow,
    CheckRow,
    Context,
    FileRow,
    Hold,
    InputRow,
    MetricsRow,
    Number,
    OutputTable,
    RequestRow,
    ResultRow,
    Row,
)
from buildsys.state.stats import Stat

BUILD = "workspace/build/default"
SCRIPT = "workspace/scripts/01b_generate_synthetic.py"
SOURCE = "workspace/data/sample.jsonl"
PATTERN = "workspace/build/{profile}"
FILES = {
    "prompts": "prompts/{shard}.jsonl",
    "replies": "replies/{shard}.jsonl",
    "samples": "samples/{shard}.parquet",
    "tokens": "tokens/{shard}.parquet",
    "hidden_states": "hidden_states/{shard}.safetensors",
    "vocab": "vocab.json",
    "draft": "draft",
}
TABLES = tuple(
    OutputTable(rule, RuleName(rule), rule, f"{PATTERN}/{FILES[rule]}")
    for rule in ("replies", "samples", "tokens", "vocab")
)
SHARDS = ("0", "1")


def action(rule: str, shard: str = "") -> ActionId:
    return ActionId(RuleName(rule), Shard(shard))


def key_of(act: ActionId, version: int) -> ActionKey:
    return ActionKey(digest_of("key", act, version))


def made(act: ActionId, version: int, *, rule_shard: str = "", held: bool = False) -> Made:
    """The one output of an action; of the origin `prompts` the one that is `rule_shard`."""
    place = FILES[act.rule].replace("{shard}", act.shard or rule_shard)
    path = f"{BUILD}/{place}" if held else place.rpartition("/")[2]
    digest = digest_of("bytes", act, rule_shard, version)
    return Made(act.rule, Shard(rule_shard), Artifact(path, digest, 1000, tree=act.rule == "draft"))


def context(rule: str, version: int, *parts: Part) -> Context:
    common = (
        Part("code", f"01b_generate_synthetic.py:{rule}", digest_of("code", rule, version), SCRIPT),
        Part("python", "python", "3.11"),
        Part("version", "numpy", f"2.{version}.0"),
    )
    return Context(digest_of("context", rule, version), (*common, *parts))


def input_of(name: str, maker: ActionId, version: int, *, rule_shard: str = "") -> InputRow:
    output = made(maker, version, rule_shard=rule_shard, held=True)
    return InputRow("input", name, output.artifact.path, output.artifact.digest, maker)


def done(
    act: ActionId, version: int, run_id: int, inputs: tuple[InputRow, ...], *, shards: tuple[str, ...] = ("",)
) -> list[Row]:
    """An action that ran: its result, how it ended, and that it holds now."""
    key = key_of(act, version)
    usage = Usage(wall_s=2.0, cpu_s=1.5, max_rss=1 << 20)
    outputs = [tuple(made(act, version, rule_shard=shard, held=held) for shard in shards) for held in (False, True)]
    return [
        ResultRow(key, act, run_id, digest_of("context", act.rule, version), outputs[0], inputs, usage),
        ActionRow(run_id, "default", act, "ran", key, "new", usage, started=time.time()),
        Hold("default", act, key, outputs[1], run_id),
    ]


def first_run(run_id: int) -> list[Row]:
    source = InputRow("input", "source", SOURCE, digest_of("source"))
    rows: list[Row] = [
        context("prompts", 1, Part("param", "samples", "int 2", "samples")),
        context("replies", 1, Part("param", "max_tokens", "int 64", "sampling.max_tokens")),
        *(context(rule, 1) for rule in ("samples", "tokens", "hidden_states", "vocab", "draft")),
        FileRow(SOURCE, Stat(2048, 1_700_000_000 * 10**9, 1_700_000_000 * 10**9, 7, 0o100644), digest_of("source")),
        *done(action("prompts"), 1, run_id, (source,), shards=SHARDS),
    ]
    for shard in SHARDS:
        replies, samples, tokens = (action(rule, shard) for rule in ("replies", "samples", "tokens"))
        rows += done(replies, 1, run_id, (input_of("prompts", action("prompts"), 1, rule_shard=shard),))
        rows += requests(replies, run_id)
        rows += done(samples, 1, run_id, (input_of("replies", replies, 1),))
        rows.append(
            CheckRow(run_id, "default", samples, CheckVerdict("reasoning_captured", digest_of("check", shard), True))
        )
        rows += done(tokens, 1, run_id, (input_of("samples", samples, 1),))
        rows += done(action("hidden_states", shard), 1, run_id, (input_of("tokens", tokens, 1),))
    folded = tuple(input_of("tokens", action("tokens", shard), 1) for shard in SHARDS)
    rows += done(action("vocab"), 1, run_id, folded)
    states = tuple(input_of("hidden_states", action("hidden_states", shard), 1) for shard in SHARDS)
    rows += done(action("draft"), 1, run_id, (*states, input_of("vocab", action("vocab"), 1)))
    curve = tuple(Number("loss", step, 2.0 / (1 + step)) for step in range(3))
    rows.append(MetricsRow(RuleName("draft"), "draft", made(action("draft"), 1).artifact.digest, curve))
    return rows


def second_run(run_id: int) -> list[Row]:
    replies = action("replies", "1")
    failed = ActionRow(
        run_id, "default", action("replies", "0"), "failed", None, "its params changed", Usage(1.0),
        error="error: the server answers 500", started=time.time(),
    )  # fmt: skip
    return [
        context("replies", 2, Part("param", "max_tokens", "int 128", "sampling.max_tokens")),
        *done(replies, 2, run_id, (input_of("prompts", action("prompts"), 1, rule_shard="1"),)),
        *requests(replies, run_id),
        failed,
    ]


def requests(act: ActionId, run_id: int) -> list[Row]:
    one = RequestRow(
        digest_of("request", act, run_id), act.rule, act.shard, run_id, "default", f"{act.shard}-a", 0, "verifier-1",
        "rev-1", "http://127.0.0.1:8000", "stop", 20, 40, 0.5, 200,
    )  # fmt: skip
    cut = replace(
        one, key=digest_of("cut", act, run_id), record_id=f"{act.shard}-b", finish_reason="length", output_tokens=64
    )
    return [
        one,
        cut,
        replace(one, record_id=f"{act.shard}-c", finish_reason="", status=400, error="prompt is too long"),
    ]


def write_outputs(root: Path) -> None:
    """The outputs that SQL reads, as the pipeline writes them; and a file that nobody declared."""
    con = duckdb.connect()
    for shard in SHARDS:
        for rule in FILES:
            (root / BUILD / rule).mkdir(parents=True, exist_ok=True)
        (root / BUILD / "replies" / f"{shard}.jsonl").write_text(
            f'{{"id":"{shard}-a","record":{{"q":"why"}},"sample":0,"replies":[{{"choices":[{{"finish_reason":"stop"}}]}}]}}\n'
            f'{{"id":"{shard}-b","record":{{"q":1}},"sample":0,"replies":[{{"choices":[{{"finish_reason":"length"}}]}}]}}\n'
        )
        samples = f"SELECT unnest(['{shard}-a', '{shard}-b']) AS record_id, unnest(['', 'since']) AS reasoning"
        tokens = f"SELECT '{shard}-a' AS id, [1, 2, 9] AS input_ids, [false, true, true] AS loss_mask"
        con.execute(f"COPY ({samples}) TO '{root / BUILD / 'samples' / shard}.parquet'")
        con.execute(f"COPY ({tokens}) TO '{root / BUILD / 'tokens' / shard}.parquet'")
    (root / BUILD / "vocab.json").write_text('{"token_ids": [1, 2, 3]}')
    con.execute(f"COPY (SELECT 'stray' AS record_id, '' AS reasoning) TO '{root / BUILD}/samples/stray.parquet'")
    con.close()


def build(root: Path) -> Manifest:
    """The manifest after the three runs, published, still open."""
    write_outputs(root)
    manifest = Manifest.open(root / ".buildsys")
    for rows_of in (first_run, second_run):
        run_id = manifest.begin_run(command="buildsys build", profile="default", targets=["draft"])
        manifest.commit(rows_of(run_id))
        manifest.finish_run(run_id, "done" if run_id == 1 else "failed")
    manifest.begin_run(command="buildsys watch", profile="default", targets=[])
    manifest.close()
    manifest = Manifest.open(root / ".buildsys")
    manifest.publish(TABLES)
    return manifest
