"""The lines that a build leaves, from scripted events."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from buildsys.console import Console
from buildsys.digest import Digest
from buildsys.events import (
    ActionFinished,
    ActionStarted,
    BuildFinished,
    BuildStarted,
    CheckFinished,
    Event,
    Notice,
    RequestCounts,
    RequestsAnswered,
    ServiceReady,
    ShardsKnown,
)
from buildsys.model import ActionId, CheckVerdict, Limits, Outcome, Prices, RuleName, Shard, Usage

TRACEBACK = """error: KeyError: 'reasoning'
    Traceback (most recent call last):
      File "extract.py", line 58, in extract
    KeyError: 'reasoning'
  log: {log}"""


class Told:
    """A console without a terminal, and a clock that stands still until it is set."""

    def __init__(self, colour: bool = False) -> None:
        self.now = 0.0
        self.stream = io.StringIO()
        self.console = Console(self.stream, colour=colour, live=False, clock=lambda: self.now)

    def __call__(self, *events: Event) -> None:
        for event in events:
            self.console(event)

    def act(self, name: str, outcome: Outcome = "ran", takes_s: float = 0.0, error: str = "", log: str = "") -> None:
        action = action_of(name)
        if outcome in ("ran", "failed", "cancelled"):
            self(ActionStarted(action, "never built"))
        self.now += takes_s
        self(ActionFinished(action, outcome, "", error=error, log=log))

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def action_of(name: str) -> ActionId:
    rule, _, shard = name.rstrip("]").partition("[")
    return ActionId(RuleName(rule), Shard(shard))


def begin(*rules: tuple[str, int]) -> Sequence[Event]:
    names = tuple(RuleName(name) for name, _ in rules)
    return [BuildStarted("buildsys build", (), names), *(ShardsKnown(RuleName(name), n) for name, n in rules)]


def verdict(name: str, check: str, passed: bool) -> CheckFinished:
    return CheckFinished(action_of(name), CheckVerdict(check, Digest("0"), passed))


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_build_with_nothing_to_do_is_one_line(told):
    told(*begin(("tokens", 2), ("vocab", 1)))
    for name in ("tokens[0]", "tokens[1]", "vocab"):
        told.act(name, "reused")
    told(BuildFinished(0, "done", 0.21, {"reused": 3}))
    assert told.lines == ["3 actions up to date (0.2 s)"]


def test_a_rule_is_one_line_once_all_its_actions_are_settled(told):
    told(*begin(("tokens", 2)))
    told.act("tokens[0]", "reused")
    told.act("tokens[1]", takes_s=0.5)
    assert told.lines == ["  tokens          1 reused, 1 ran      0.5 s"]


def test_rules_that_are_up_to_date_are_told_only_when_something_else_is(told):
    told(*begin(("prompts", 1), ("vocab", 1)))
    told.act("prompts", "reused")
    assert told.lines == []
    told.act("vocab", takes_s=72)
    assert told.lines == ["  prompts         1 reused", "  vocab           1 ran                 72 s"]


def test_a_long_rule_name_widens_the_column_for_all(told):
    told(*begin(("a", 1), ("a_rule_with_a_long_name", 1)))
    told.act("a")
    told.act("a_rule_with_a_long_name")
    short, long = told.lines
    assert short.index("1 ran") == long.index("1 ran")


def test_the_last_line_counts_outcomes_and_names_the_run(told):
    told(*begin(("vocab", 1)))
    told.act("vocab")
    told(BuildFinished(7, "done", 58, {"ran": 36, "reused": 1204}))
    assert told.lines[-1] == '1,240 actions: 1,204 reused, 36 ran in 58 s · run 7 · try: buildsys sql "FROM runs"'


def test_requests_are_told_with_their_tokens_and_what_was_answered_before(told):
    told(*begin(("replies", 2)))
    for name in ("replies[0]", "replies[1]"):
        told(ActionStarted(action_of(name), ""), RequestsAnswered(action_of(name), RequestCounts(100, 256, 80, 4000)))
        told(
            RequestsAnswered(action_of(name), RequestCounts(256, 256, 200, 8192)),
            ActionFinished(action_of(name), "ran", ""),
        )
    assert told.lines[-1].endswith("400 requests, 112 answered before, 16,384 tokens")


def answered(told: Told, name: str, counts: RequestCounts) -> None:
    told(ActionStarted(action_of(name), ""), RequestsAnswered(action_of(name), counts))
    told(ActionFinished(action_of(name), "ran", ""))


def test_replies_that_did_not_end_well_are_told_with_what_is_wrong(told):
    told(*begin(("replies", 2)))
    ends, bad = {"stop": 200, "length": 2}, {"truncated": 2, "empty reasoning": 5, "refused": 54}
    answered(told, "replies[0]", RequestCounts(256, 256, 256, 8192, finish_reasons=ends, bad=bad))
    ends, bad = {"stop": 255, "length": 1}, {"truncated": 1}
    answered(told, "replies[1]", RequestCounts(256, 256, 256, 8192, finish_reasons=ends, bad=bad))
    assert told.lines[-1].endswith("512 requests, 16,384 tokens · stop 455, length 3 · refused 54, empty reasoning 5")


def test_replies_that_are_all_well_need_no_words(told):
    """Those of a model that never reasons are, too."""
    told(*begin(("replies", 2)))
    for name in ("replies[0]", "replies[1]"):
        ends = {"stop": 250, "tool_calls": 6}
        answered(told, name, RequestCounts(256, 256, 256, 8192, finish_reasons=ends, bad={"empty reasoning": 256}))
    assert told.lines[-1].endswith("512 requests, 16,384 tokens")


def test_a_shard_without_reasoning_among_others_that_have_some_is_told(told):
    told(*begin(("replies", 2)))
    answered(told, "replies[0]", RequestCounts(9, 9, 9, bad={"empty reasoning": 9}))
    answered(told, "replies[1]", RequestCounts(9, 9, 9))
    assert told.lines[-1].endswith("18 requests · empty reasoning 9")


def test_requests_that_were_refused_are_told_at_the_end_with_what_asks_them_again(told):
    told(*begin(("replies", 2), ("labels", 1)))
    answered(told, "replies[0]", RequestCounts(9, 9, 9, bad={"refused": 3}, refused=2))
    answered(told, "replies[1]", RequestCounts(9, 9, 9))
    answered(told, "labels", RequestCounts(9, 9, 9, bad={"refused": 1}, refused=1))
    told(BuildFinished(1, "done", 2, {"ran": 3}))
    assert told.lines[-2] == (
        "refused: 3 requests of replies, labels (asked again only by buildsys build --retry-failed)"
    )


def test_a_check_is_told_with_the_share_of_actions_that_it_holds_for(told):
    told(*begin(("samples", 2)))
    told(verdict("samples[0]", "reasoning_captured", True), verdict("samples[1]", "reasoning_captured", False))
    told.act("samples[0]")
    told.act("samples[1]", "failed")
    assert told.lines[-1].endswith("reasoning_captured 50 %")


def test_many_checks_that_hold_are_only_counted(told):
    told(*begin(("samples", 1)))
    told(*(verdict("samples", check, True) for check in ("one", "two", "three")))
    told.act("samples")
    assert told.lines[-1].endswith("3 checks 100 %")


def test_a_failure_is_told_at_once_with_its_action_and_log(told):
    told(*begin(("samples", 2)))
    told.act("samples[3]", "failed", error=TRACEBACK.format(log="logs/3.log"), log="logs/3.log")
    assert told.lines == [
        "error: samples[3]: KeyError: 'reasoning'",
        "    Traceback (most recent call last):",
        '      File "extract.py", line 58, in extract',
        "    KeyError: 'reasoning'",
        "  log: logs/3.log",
    ]


def test_a_log_that_the_error_does_not_name_is_added(told):
    told(*begin(("samples", 2)))
    told.act("samples[3]", "failed", error='error: check "full" failed for samples[3]', log="logs/3.log")
    assert told.lines == ['error: check "full" failed for samples[3]', "  log: logs/3.log"]


def test_a_second_failure_of_the_same_kind_is_one_line(told):
    told(*begin(("samples", 3)))
    for shard in ("3", "4"):
        log = f"logs/samples/{shard}.log"
        told.act(f"samples[{shard}]", "failed", error=TRACEBACK.format(log=log), log=log)
    assert told.lines[5:] == ["error: samples[4]: KeyError: 'reasoning' (as above; log: logs/samples/4.log)"]


def test_a_check_that_fails_for_many_shards_is_told_once_with_their_names(told):
    """Though the rows and the paths that it tells are others for each."""
    told(*begin(("samples", 4)))
    for shard in (0, 2, 1):
        told(verdict(f"samples[{shard}]", "full", False))
        error = f'error: check "full" failed for samples[{shard}]\n    n={shard}'
        told.act(f"samples[{shard}]", "failed", error=error)
    assert told.lines == ['error: check "full" failed for samples[0]', "    n=0"]
    told(verdict("samples[3]", "full", False), verdict("samples[3]", "whole", False))
    told.act("samples[3]", "failed", error='error: check "whole" failed for samples[3]')
    assert told.lines[2:4] == [
        'error: check "whole" failed for samples[3]',
        'error: check "full" failed for samples[1], samples[2] (as above)',
    ]
    assert told.lines[4].split()[:3] == ["samples", "4", "failed"]
    assert len(told.lines) == 5


def test_a_check_that_only_warns_is_told_once_with_the_other_shards_named(told):
    told(*begin(("samples", 3)))
    for shard in (0, 2, 1):
        text = f'warning: check "full" failed for samples[{shard}]\n    n={shard}'
        failed = CheckVerdict("full", Digest("0"), False, severity="warn")
        told(CheckFinished(action_of(f"samples[{shard}]"), failed, text))
        told.act(f"samples[{shard}]")
    assert told.lines[:3] == [
        'warning: check "full" failed for samples[0]',
        "    n=0",
        'warning: check "full" failed for samples[1], samples[2] (as above)',
    ]
    assert told.lines[3].split() == ["samples", "3", "ran", "full", "0", "%"]


def test_shards_that_failed_a_check_are_named_where_a_build_ends_before_all_are_done(told):
    told(*begin(("samples", 4)))
    for shard in range(2):
        told(verdict(f"samples[{shard}]", "full", False))
        told.act(f"samples[{shard}]", "failed", error=f'error: check "full" failed for samples[{shard}]\n    n={shard}')
    told(BuildFinished(1, "failed", 1.0, {"failed": 2}))
    assert told.lines[2] == 'error: check "full" failed for samples[1] (as above)'


def test_another_failure_is_told_in_full(told):
    told(*begin(("samples", 3)))
    told.act("samples[3]", "failed", error="error: one\n  the first")
    told.act("samples[4]", "failed", error="error: two\n  the second")
    assert told.lines[2:] == ["error: samples[4]: two", "  the second"]


def test_a_diagnostic_that_blocks_many_actions_is_told_once(told):
    told(*begin(("samples", 2), ("tokens", 1), ("vocab", 1)))
    for name in ("samples[0]", "samples[1]", "tokens"):
        told.act(name, "blocked", error="error: try block without except\n  extract.py:56:5")
    told.act("vocab", "skipped")
    told(BuildFinished(2, "failed", 0.4, {"blocked": 3, "skipped": 1}))
    assert told.lines == [
        "error: try block without except",
        "  extract.py:56:5",
        "blocked: samples 2, tokens (their last good outputs stay)",
        "skipped: vocab",
        "4 actions: 3 blocked, 1 skipped in 0.4 s · run 2",
    ]


def test_a_failed_build_says_what_was_not_started_and_where_to_look(told):
    told(*begin(("samples", 3), ("vocab", 1)))
    told.act("samples[0]")
    told.act("samples[1]", "failed", error="error: broken")
    told(BuildFinished(3, "failed", 2, {"ran": 1, "failed": 1}))
    assert told.lines[1:] == [
        "  samples         1 failed, 1 ran, 1 not started",
        "not started: vocab",
        "2 actions: 1 failed, 1 ran in 2.0 s · run 3 · try: buildsys log 'samples[1]'",
    ]


def test_an_interrupted_build_says_that_what_ran_is_kept(told):
    told(*begin(("samples", 2)))
    told.act("samples[0]")
    told.act("samples[1]", "cancelled")
    told(BuildFinished(3, "interrupted", 2, {"ran": 1, "cancelled": 1}))
    assert told.lines[-1] == (
        "interrupted: 1 ran, 1 cancelled in 2.0 s · run 3 · what ran is kept; the next build goes on from here"
    )


def test_services_and_notices_are_lines_of_their_own(told):
    told(ServiceReady("verifier", "http://127.0.0.1:41233/v1", 0.61))
    told(Notice("warning", "a.json was not made by the build"), Notice("info", "one.txt changed"))
    assert told.lines == [
        "verifier ready on 127.0.0.1:41233 (0.6 s)",
        "warning: a.json was not made by the build",
        "one.txt changed",
    ]


def test_without_colour_there_is_no_escape_and_with_it_there_is():
    for colour in (False, True):
        told = Told(colour)
        told(*begin(("vocab", 1)))
        told.act("vocab", "failed", error="error: broken")
        assert ("\x1b[" in told.stream.getvalue()) is colour


def test_progress_without_a_terminal_says_how_far_each_rule_is_and_what_is_left(told):
    told(*begin(("replies", 1), ("tokens", 4)))
    told(ActionStarted(action_of("replies"), ""), RequestsAnswered(action_of("replies"), RequestCounts(0, 100, 0, 0)))
    told.act("tokens[0]", takes_s=5)
    told(ActionStarted(action_of("tokens[1]"), ""))
    told(RequestsAnswered(action_of("replies"), RequestCounts(50, 100, 50, 0)))
    told.console.refresh()
    assert told.lines == ["  5.0 s: replies, 50 of 100 requests, 10/s, 5.0 s left · tokens 1/4, 15 s left"]


def test_progress_without_a_terminal_says_how_replies_come_in_and_what_is_spent(told):
    action = action_of("replies")
    told(BuildStarted("buildsys build", (), (action.rule,), limits=Limits(max_requests=1000)))
    told(ShardsKnown(action.rule, 1), ActionStarted(action, ""), RequestsAnswered(action, RequestCounts(0, 800)))
    told.now = 70.0
    ends, bad = {"stop": 69, "length": 1}, {"truncated": 1}
    told(RequestsAnswered(action, RequestCounts(70, 800, 70, 7000, 9, 12, 3, ends, bad)))
    told.console.refresh()
    assert told.lines == [
        "  70 s: replies, 70 of 800 requests, 1.0/s, 12 min 10 s left, 100 tokens/s, truncated 1.4 %, "
        "12 in flight, 3 retries, stop 69, length 1 · 70 of 1,000 requests"
    ]


def test_progress_is_silent_where_nothing_runs(told):
    told(*begin(("tokens", 4)))
    told.console.refresh()
    assert told.lines == []


def test_a_stream_that_nobody_reads_ends_no_build():
    class Gone(io.StringIO):
        n_tries = 0

        def write(self, text: str) -> int:
            self.n_tries += 1
            raise BrokenPipeError

    gone = Gone()
    console = Console(gone, colour=False, live=False)
    with console:
        console(Notice("info", "one"))
        console(Notice("info", "two"))
        console(BuildFinished(1, "done", 1, {"ran": 1}))
    assert gone.n_tries == 1


def test_money_is_told_where_prices_are_declared(told):
    prices = Prices(request=0.5, action_hour=36.0, service_hour=360.0, gpu_hour=36.0, currency="EUR")
    action = action_of("replies")
    told(BuildStarted("buildsys build", (), (action.rule,), prices, {action.rule: 2}), ShardsKnown(action.rule, 1))
    told(ServiceReady("verifier", "http://127.0.0.1:1", 0.0), ActionStarted(action, ""))
    told(RequestsAnswered(action, RequestCounts(3, 4, 3, 0)))
    told.now = 10.0
    told.console.refresh()
    assert told.lines[-1].endswith(" · 2.80 EUR so far")
    told(ActionFinished(action, "ran", "", Usage(wall_s=10.0)), BuildFinished(1, "done", 10.0, {"ran": 1}))
    assert " in 10 s · 2.80 EUR · run 1" in told.lines[-1]
