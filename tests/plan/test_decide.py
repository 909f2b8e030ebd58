"""Run, reuse or restore, and the line that says why."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from buildsys.digest import Digest
from buildsys.model import ActionId, ActionKey, Part, Result, RuleName, Shard
from buildsys.plan.decide import Where, decide, differences, reason_of

RESULT = Result(ActionKey("k"), ActionId(RuleName("tokens"), Shard("1")), 1, (), Digest("c"))
CODE = "its code changed (scripts/one.py)"
LENGTH = "param length changed: 64 (int) → 96 (int)"


@pytest.mark.parametrize(
    ("result", "where", "changes", "do", "reason"),
    [
        (None, "nowhere", [], "run", "never built"),
        (None, "nowhere", [CODE], "run", CODE),
        (None, "nowhere", [CODE, LENGTH], "run", f"{CODE}, and 1 more"),
        (None, "workspace", [CODE], "run", CODE),
        (None, "store", [CODE], "run", CODE),
        (RESULT, "workspace", [], "reuse", "up to date"),
        (RESULT, "workspace", [CODE], "reuse", "up to date"),
        (RESULT, "store", [], "restore", "made before under the same key"),
        (RESULT, "store", [CODE], "restore", "made before under the same key"),
        (RESULT, "nowhere", [], "run", "its outputs are neither in place nor in the store"),
        (RESULT, "nowhere", [CODE], "run", "its outputs are neither in place nor in the store"),
    ],
)
def test_what_is_to_be_done_follows_from_the_result_and_where_its_outputs_are(
    result: Result | None, where: Where, changes: Sequence[str], do: str, reason: str
) -> None:
    decision = decide(result, where, changes)
    assert (decision.do, decision.reason) == (do, reason)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([], "never built"),
        ([CODE], CODE),
        ([CODE, LENGTH], f"{CODE}, and 1 more"),
        ([LENGTH, CODE, CODE], f"{LENGTH}, and 2 more"),
    ],
)
def test_a_reason_is_the_first_change_and_how_many_there_are(changes: Sequence[str], reason: str) -> None:
    assert reason_of(changes) == reason


# ---------------------------------------------------------------- one line a difference


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            Part("code", "one.py:mark", "d1", "scripts/one.py", 3),
            Part("code", "one.py:mark", "d2", "scripts/one.py", 4),
            "its code changed: mark (scripts/one.py:4)",
        ),
        (None, Part("code", "a.py:*", "d1", "scripts/a.py"), "its code is new: * (scripts/a.py)"),
        (Part("code", "a.py:*", "d1", "scripts/a.py"), None, "its code is gone: * (scripts/a.py)"),
        (Part("code", "a.py:*", "d1"), Part("code", "a.py:*", "d2"), "its code changed: *"),
        (
            Part("param", "length", "64 (int)", "sampling.length"),
            Part("param", "length", "96 (int)", "sampling.length"),
            "param length changed: 64 (int) → 96 (int) (sampling.length)",
        ),
        (
            Part("param", "length", "64 (int)"),
            Part("param", "length", "64.0 (float)"),
            "param length changed: 64 (int) → 64.0 (float)",
        ),
        (None, Part("param", "length", "64 (int)"), "param length is new: 64 (int)"),
        (Part("param", "length", "64 (int)"), None, "param length is gone: 64 (int)"),
        (
            Part("input", "prompts", "d1", "data/1.jsonl"),
            Part("input", "prompts", "d2", "data/1.jsonl"),
            "input prompts changed (data/1.jsonl)",
        ),
        (None, Part("input", "prompts", "d1", "data/2.jsonl"), "input prompts is new (data/2.jsonl)"),
        (Part("input", "prompts", "d1", "data/2.jsonl"), None, "input prompts is gone (data/2.jsonl)"),
        (Part("rule", "command", "a"), Part("rule", "command", "b"), "the rule's command changed"),
        (Part("rule", "kind", "run"), Part("rule", "kind", "chat"), "the rule's kind changed"),
        (None, Part("rule", "samples", "1"), "the rule's samples is new"),
        (Part("env", "MODELS", "a"), Part("env", "MODELS", "b"), "variable MODELS changed: a → b"),
        (Part("version", "torch", "2.9"), Part("version", "torch", "2.10"), "version of torch changed: 2.9 → 2.10"),
        (None, Part("version", "torch", "2.9"), "version of torch is new: 2.9"),
        (Part("python", "python", "3.11"), Part("python", "python", "3.12"), "python changed: 3.11 → 3.12"),
        (Part("identity", "identity", "a"), Part("identity", "identity", "b"), "identity changed: a → b"),
        (Part("service", "verifier", "d1"), Part("service", "verifier", "d2"), "service verifier changed: d1 → d2"),
        (
            Part("output", "tokens", "{shard}.bin"),
            Part("output", "tokens", "{shard}.npy"),
            "output tokens changed: {shard}.bin → {shard}.npy",
        ),
    ],
)
def test_a_difference_is_one_line_that_names_it_and_where_it_is(old: Part | None, new: Part | None, line: str) -> None:
    assert differences([old] if old else [], [new] if new else []) == [line]


SAME = Part("param", "length", "64 (int)", "sampling.length")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([], []),
        ([SAME], [SAME]),
        ([SAME], [Part("param", "length", "64 (int)", "other.key")]),
        ([SAME, Part("env", "A", "")], [Part("env", "A", ""), SAME]),
        ([Part("code", "one.py:*", "d", "scripts/one.py")], [Part("code", "one.py:*", "d", "lib/one.py")]),
    ],
    ids=["nothing", "the same", "the config's key alone", "the order alone", "the folder of the code alone"],
)
def test_what_is_not_in_the_key_makes_no_difference(old: Sequence[Part], new: Sequence[Part]) -> None:
    assert differences(old, new) == []


def test_a_variable_that_is_empty_is_not_one_that_is_gone() -> None:
    assert differences([Part("env", "A", "")], []) == ["variable A is gone: "]


def test_names_are_told_apart_by_what_they_are_names_of() -> None:
    assert differences([Part("env", "a", "1"), Part("param", "a", "1")], [Part("param", "a", "1")]) == [
        "variable a is gone: 1"
    ]


def test_each_file_of_a_role_is_a_thing_of_its_own() -> None:
    old = [Part("input", "tokens", digest, f"build/{n}.bin") for n, digest in enumerate("abc")]
    new = [Part("input", "tokens", digest, f"build/{n}.bin") for n, digest in enumerate("axcd")]
    assert differences(old, new) == ["input tokens changed (build/1.bin)", "input tokens is new (build/3.bin)"]


def test_the_most_telling_difference_comes_first() -> None:
    groups = ["unheard", "format", "version", "output", "env", "service", "identity", "input", "param", "code", "rule"]
    assert differences([], [Part(group, "x", "2", "p") for group in groups]) == [
        "the rule's x is new",
        "its code is new: x (p)",
        "param x is new: 2 (p)",
        "input x is new (p)",
        "identity x is new: 2 (p)",
        "service x is new: 2 (p)",
        "variable x is new: 2 (p)",
        "output x is new: 2 (p)",
        "version of x is new: 2 (p)",
        "format x is new: 2 (p)",
        "unheard x is new: 2 (p)",
    ]


def test_differences_of_one_group_keep_their_order_and_what_is_gone_comes_last() -> None:
    old = [Part("param", name, "1") for name in "dab"]
    new = [Part("param", name, "2") for name in "bca"]
    assert [line.split()[1] for line in differences(old, new)] == ["b", "c", "a", "d"]


def test_an_input_of_another_folder_is_the_same_thing_as_code_sees_only_its_name() -> None:
    old = [
        Part("input", "tokens", digest, f"build/sampled/tokens/{n}.parquet") for n, digest in enumerate(("d0", "d1"))
    ]
    new = [
        Part("input", "tokens", digest, f"build/default/tokens/{n}.parquet") for n, digest in enumerate(("d0", "d2"))
    ]
    assert differences(old, new) == ["input tokens changed (build/default/tokens/1.parquet)"]


def test_of_inputs_with_one_name_each_is_a_thing_of_its_own() -> None:
    old = [Part("input", "all", digest, f"data/{n}/x.txt") for n, digest in enumerate(("d0", "d1", "d2"))]
    new = [Part("input", "all", digest, f"data/{n}/x.txt") for n, digest in enumerate(("d0", "d3", "d2"))]
    assert differences(old, new) == ["input all changed (data/1/x.txt)"]


def test_what_held_is_restored_because_it_is_gone() -> None:
    assert decide(RESULT, "store", [], holds=True).reason == "its outputs are gone or were changed"
