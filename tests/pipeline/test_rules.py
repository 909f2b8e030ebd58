"""The rule file fits the scripts, and its checks tell good outputs from bad ones."""

import ast
import json
import re
import tomllib

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, SCRIPTS

RULES = tomllib.loads((ROOT / "rules/eagle3.toml").read_text())
CONFIG = tomllib.loads((ROOT / "workspace/configs/eagle3.toml").read_text())
NAMES = list(RULES["rule"])


def entry(rule):
    """Names of the arguments of a rule's function."""
    path, name = (rule.get("run") or rule["chat"]).split("::")
    tree = ast.parse((ROOT / path).read_text())
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    return {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}


def config_keys(value):
    if isinstance(value, str):
        return [value[1:]] if value.startswith("$") else []
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [key for inner in values for key in config_keys(inner)]


def check(rule, name, view, path):
    """What a check of the rule file says of a file."""
    reader = "read_parquet" if path.suffix == ".parquet" else "read_json"
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW {view} AS FROM {reader}('{path}')")
        check = RULES["rule"][rule]["checks"][name]
        ((verdict,),) = database.execute(check["sql"] if isinstance(check, dict) else check).fetchall()
    return verdict


@pytest.mark.parametrize("name", [name for name in NAMES if "shell" not in RULES["rule"][name]])
def test_a_rule_passes_what_its_function_takes(name):
    rule = RULES["rule"][name]
    passed = {*rule.get("params", {}), *rule.get("settings", {})} | ({"scratch"} if "scratch" in rule else set())
    passed |= {"record", "replies"} if "chat" in rule else {*rule.get("inputs", {}), *rule["outputs"]}
    assert passed == entry(rule)


def test_the_command_of_several_processes_passes_what_one_gets():
    one, several = RULES["rule"]["draft"], RULES["rule"]["draft_torchrun"]
    passed = set(re.findall(r"--(\w+) \{(?:inputs|outputs|params|settings)?\.?\1\}", several["shell"]))
    assert passed == entry(one)
    for group in ("inputs", "params", "settings"):
        assert several[group].items() >= one[group].items()


@pytest.mark.parametrize("key", sorted(set(config_keys(RULES))))
def test_every_key_that_rules_use_is_in_the_config(key):
    value = CONFIG
    for part in key.split("."):
        value = value[part]
    assert value is not None


def test_every_key_of_the_config_is_used():
    leaves = {
        f"{name}.{key}" if isinstance(value, dict) else name
        for name, value in CONFIG.items()
        for key in (value if isinstance(value, dict) else [""])
    }
    assert leaves == set(config_keys(RULES))


def test_scripts_do_nothing_at_import():
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Expr, ast.If)
    for path in sorted(SCRIPTS.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            assert isinstance(node, kinds), (path.name, node.lineno)
            if isinstance(node, ast.Expr):
                assert isinstance(node.value, ast.Constant), (path.name, node.lineno)
            if isinstance(node, ast.If):
                assert ast.unparse(node.test) == "__name__ == '__main__'", (path.name, node.lineno)


def test_scripts_import_nothing_of_the_build_system():
    for path in SCRIPTS.glob("*.py"):
        assert "buildsys" not in path.read_text()


@pytest.fixture
def changed(tmp_path):
    """A copy of a Parquet file after each row went through a change."""

    def changed(path, change):
        table = pq.read_table(path)
        rows = [row | change(row) for row in table.to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / "changed.parquet")
        return tmp_path / "changed.parquet"

    return changed


def same(row):
    return {}


@pytest.mark.parametrize("name", list(RULES["rule"]["samples"]["checks"]))
def test_good_samples_pass(run, changed, name):
    assert check("samples", name, "samples", changed(run.samples, same)) is True


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("reasoning_captured", {"reasoning": ""}),
        ("answer_captured", {"answer": ""}),
        ("few_truncated", {"finish_reason": "length"}),
        ("few_errors", {"error": "refused"}),
    ],
)
def test_bad_samples_fail(run, changed, name, fault):
    assert check("samples", name, "samples", changed(run.samples, lambda row: fault)) is False


@pytest.mark.parametrize("name", list(RULES["rule"]["tokens"]["checks"]))
def test_good_tokens_pass(run, changed, name):
    assert check("tokens", name, "tokens", changed(run.tokens, same)) is True


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("few_skipped", lambda row: {"skipped": "round trip"}),
        ("mask_fits", lambda row: {"loss_mask": row["loss_mask"][1:]}),
        ("something_learnt", lambda row: {"loss_mask": [0] * len(row["input_ids"])}),
        ("prompt_unmasked", lambda row: {"loss_mask": [1] * len(row["input_ids"])}),
    ],
)
def test_bad_tokens_fail(run, changed, name, fault):
    assert check("tokens", name, "tokens", changed(run.tokens, fault)) is False


@pytest.mark.parametrize(
    ("rule", "name", "view", "good", "bad"),
    [
        ("vocab", "covers", "coverage", {"coverage": 0.99}, {"coverage": 0.5}),
        (
            "draft",
            "loss_fell",
            "curve",
            [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 1.0}],
            [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 3.5}],
        ),
        (
            "acceptance",
            "lossless",
            "report",
            {"trained": {"lossless": 9, "prompts": 9}},
            {"trained": {"lossless": 8, "prompts": 9}},
        ),
        (
            "acceptance",
            "worth_it",
            "report",
            {"trained": {"tokens_per_step": 2.5}, "untrained": {"tokens_per_step": 1.1}},
            {"trained": {"tokens_per_step": 1.2}, "untrained": {"tokens_per_step": 1.1}},
        ),
    ],
)
def test_checks_of_reports(tmp_path, rule, name, view, good, bad):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(good))
    assert check(rule, name, view, report) is True
    report.write_text(json.dumps(bad))
    assert check(rule, name, view, report) is False
