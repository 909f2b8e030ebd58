"""A build's events as people read them: lines that stay, and on a terminal a region below that shows what goes on.

A rule is told in one line once all its actions are settled, a failure at once and in full, and what is only reused not
at all unless something else happens. Knows nothing of how a build works; the events are all it sees.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TextIO

from buildsys.events import (
    ActionFinished,
    BuildFinished,
    BuildStarted,
    CheckFinished,
    Diagnosed,
    Event,
    LimitReached,
    Notice,
    ServiceReady,
)
from buildsys.model import ActionId, Outcome, RuleName, natural_key
from buildsys.phrases import counted, duration, listed, money, up_to_date
from buildsys.plan.limits import spent_text, stopped
from buildsys.tally import ORDER, RuleTally, Tally
from buildsys.terminal import Line, Screen, Span, Style, error_lines

_LIVE_S: Final = 0.1
_PLAIN_S: Final = 10.0
_CALM_S: Final = 0.3
"""A build that is over sooner shows no region at all."""

_BAR: Final = 16
_AGAIN: Final = Span(" (asked again only by buildsys build --retry-failed)", "dim")
_STYLES: Final[Mapping[str, Style]] = {"failed": "red", "blocked": "yellow", "cancelled": "yellow", "skipped": "yellow"}


class Console:
    """Renders events, from any thread. A context manager: at its end nothing but the lines that stay is left.

    live: `stream` is a terminal whose last lines may be painted over; else a line of progress comes every 10 s.
    clock: seconds, from any start.
    """

    def __init__(
        self, stream: TextIO, *, colour: bool, live: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = Screen(stream, colour=colour)
        self._live = live
        self._clock = clock
        self._lock = threading.Lock()
        self._tally = Tally()
        self._started = clock()
        self._held: list[RuleTally] = []
        self._busy = False
        self._width = 14
        self._told: set[str] = set()
        self._unchecked: set[ActionId] = set()
        self._alike: dict[tuple[RuleName, str], list[ActionId]] = {}
        self._first_failed: ActionId | None = None
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="console", daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._ticker.join()
        with self._lock:
            self._screen.write(())

    def __call__(self, event: Event) -> None:
        with self._lock:
            lines = self._lines(event)
            if lines:
                self._screen.write(lines, self._region())

    def refresh(self) -> None:
        """Tell how far the build is, as it is now."""
        with self._lock:
            if self._live:
                self._screen.write((), self._region())
            elif self._tally.in_progress():
                self._screen.write([self._progress_line()])

    def _tick(self) -> None:
        while not self._over.wait(_LIVE_S if self._live else _PLAIN_S):
            self.refresh()

    # ------------------------------------------------------------ lines that stay

    def _lines(self, event: Event) -> list[Line]:
        now = self._clock()
        rule = self._tally.take(event, now)
        match event:
            case BuildStarted():
                self._started = now
                self._width = max([self._width, *(len(name) for name in event.rules)])
            case Notice():
                return [_notice(event)]
            case Diagnosed():
                text = event.diagnostic.render()
                self._told.add(text)
                return error_lines(text)
            case LimitReached():
                return error_lines(stopped(event).render())
            case ServiceReady():
                where = event.url.partition("//")[2].partition("/")[0]
                return [[Span(f"{event.name} ready on {where} ({duration(event.seconds)})")]]
            case CheckFinished() if event.verdict.holds_back:
                self._unchecked.add(event.action)
            case CheckFinished() if event.warning:
                return self._once_for_alike(event.action, event.warning)
            case BuildFinished():
                self._over.set()
                return self._last_lines(event)
        return [*self._failure(event), *self._settled(rule)] if rule else []

    def _settled(self, rule: RuleTally) -> list[Line]:
        """The line of a rule that is done with; those of rules that are up to date wait until something else is."""
        if rule.settled and not rule.told:
            rule.told = True
            self._held.append(rule)
        self._busy = self._busy or not rule.quiet
        if not self._busy:
            return []
        held, self._held = self._held, []
        lines = []
        for rule in held:
            lines += self._as_above(rule)
            lines += [] if _only_waited(rule) else [self._rule_line(rule)]
        return lines

    def _as_above(self, rule: RuleTally) -> list[Line]:
        """The other actions of a rule that failed a check, or were warned of, as one that is told, a line for each."""
        lines: list[Line] = []
        for (name, problem), actions in self._alike.items():
            if name == rule.name and actions:
                named = map(str, sorted(actions, key=lambda action: natural_key(action.shard)))
                lines += error_lines(f"{problem} {listed(named, most=12)} (as above)")
                actions.clear()
        return lines

    def _rule_line(self, rule: RuleTally) -> Line:
        line = [Span(f"  {rule.name:<{self._width}}  ", "dim" if rule.quiet else "")]
        outcomes: Sequence[tuple[str, int]] = rule.outcomes()
        if rule.n and rule.n_done < rule.n:
            outcomes = [*outcomes, ("not started", rule.n - rule.n_done)]
        line += _counts(outcomes, "dim" if rule.quiet else "")
        taken = sum(len(span.text) for span in line[1:])
        line.append(Span(f"{' ' * max(0, 15 - taken)}{rule.elapsed():>11}  ", "dim"))
        line.append(Span(" · ".join(filter(None, [", ".join(rule.facts()), ", ".join(rule.ends())]))))
        flaws = ", ".join(f"{kind} {n:,}" for kind, n in rule.flaws())
        return [*line, Span(f" · {flaws}", "yellow")] if flaws else line

    def _failure(self, event: Event) -> list[Line]:
        """A failure in full, one like it in a line; a diagnostic once for all that it blocks.

        What fails a check as another shard did waits until its rule is told: there may be as many as shards.
        """
        if not isinstance(event, ActionFinished) or not event.error:
            return []
        text, name = event.error, str(event.action)
        same = f"{event.action.rule} {text.replace(event.log or name, '').replace(name, '')}"
        if event.outcome == "blocked":
            same = text
        else:
            self._first_failed = self._first_failed or event.action
            text = _naming(event)
        if event.action in self._unchecked:
            return self._once_for_alike(event.action, text)
        if same not in self._told:
            self._told.add(same)
            return error_lines(text)
        if event.outcome == "blocked":
            return []
        return error_lines(f"{text.partition(chr(10))[0]} (as above{f'; log: {event.log}' if event.log else ''})")

    def _once_for_alike(self, action: ActionId, text: str) -> list[Line]:
        """What is told of an action and a check in full, but of those of its rule after the first; see `_as_above`."""
        kind = action.rule, text.partition("\n")[0].replace(str(action), "").rstrip()
        if kind in self._alike:
            self._alike[kind].append(action)
            return []
        self._alike[kind] = []
        return error_lines(text)

    # ------------------------------------------------------------ the end

    def _last_lines(self, event: BuildFinished) -> list[Line]:
        n = sum(event.counts.values())
        if event.outcome == "done" and n == event.counts.get("reused", 0):
            return [[Span(up_to_date(n, event.seconds))]]
        unsettled = [rule for rule in self._tally.rules.values() if rule.n_done and not rule.told]
        lines = []
        for rule in (*self._held, *unsettled):
            lines += self._as_above(rule)
            lines += [] if _only_waited(rule) else [self._rule_line(rule)]
        return [*lines, *self._left_out(), *self._refused(), self._final_line(event)]

    def _left_out(self) -> list[Line]:
        lines: list[Line] = []
        kinds: tuple[tuple[Outcome, str], ...] = (("blocked", " (their last good outputs stay)"), ("skipped", ""))
        for outcome, note in kinds:
            if rules := self._tally.with_outcome(outcome):
                names = listed((name if n == 1 else f"{name} {n:,}" for name, n in rules.items()), most=12)
                lines.append([Span(f"{outcome}:", "yellow"), Span(f" {names}"), Span(note, "dim")])
        not_started = [rule.name for rule in self._tally.rules.values() if not rule.n_done and rule.n != 0]
        if not_started:
            lines.append([Span("not started:", "yellow"), Span(f" {listed(not_started, most=12)}")])
        return lines

    def _refused(self) -> list[Line]:
        """How many requests servers refused, and how to ask them again."""
        of_rule = {rule.name: n for rule in self._tally.rules.values() if (n := rule.requests["refused"])}
        if not of_rule:
            return []
        text = f" {counted(sum(of_rule.values()), 'request')} of {listed(of_rule, most=12)}"
        return [[Span("refused:", "yellow"), Span(text), _AGAIN]]

    def _final_line(self, event: BuildFinished) -> Line:
        ordered = [(outcome, event.counts[outcome]) for outcome in ORDER if event.counts.get(outcome)]
        line = [Span(f"{counted(sum(event.counts.values()), 'action')}: ", "bold"), *_counts(ordered, "bold")]
        if event.outcome == "interrupted":
            line = [Span("interrupted: ", "red"), *(_counts(ordered, "bold") or [Span("nothing was done")])]
        notes = [f" in {duration(event.seconds)}", *self._spent()]
        if event.run_id:
            notes.append(f"run {event.run_id}")
        return [*line, Span(" · ".join([*notes, *self._advice(event)]), "dim")]

    def _spent(self) -> list[str]:
        """Money, where prices are declared."""
        prices, cost = self._tally.prices, self._tally.cost(self._clock())
        return [] if prices is None or cost is None else [money(cost, prices.currency)]

    def _advice(self, event: BuildFinished) -> list[str]:
        if event.outcome == "interrupted":
            return ["what ran is kept; the next build goes on from here"]
        if self._first_failed and event.outcome == "failed":
            return [f"try: buildsys log {_quoted(self._first_failed)}"]
        return ['try: buildsys sql "FROM runs"'] if event.outcome == "done" else []

    # ------------------------------------------------------------ what goes on

    def _region(self) -> list[Line]:
        """What a terminal shows below the lines that stay."""
        now = self._clock()
        if not self._live or self._over.is_set() or now - self._started < _CALM_S:
            return []
        lines = [line for rule in self._tally.in_progress() for line in self._live_lines(rule, now)]
        return [*lines, self._status_line(now)]

    def _live_lines(self, rule: RuleTally, now: float) -> list[Line]:
        """How far it is; of a rule that asks, below that, how its requests go."""
        line = [Span(f"  {rule.name:<{self._width}}  ", "bold")]
        if rule.n != 1 or rule.asked:
            n_done = "" if rule.n == 1 else f"{rule.n_done:,}/{'?' if rule.n is None else f'{rule.n:,}'}"
            line += [Span(f"{n_done:<9} "), *_bar(rule)]
        facts = ", ".join(rule.progress(now)) if rule.asked else " · ".join([*rule.left(now), *_running(rule, now)])
        line.append(Span(facts, "dim"))
        below = _joined(_going(rule, now)) if rule.asked else []
        return [line, [Span("    "), *below]] if below else [line]

    def _status_line(self, now: float) -> Line:
        tally = self._tally
        n_running = sum(len(rule.running) for rule in tally.in_progress())
        n_known = f"{tally.n_known:,}{'' if tally.complete else '+'}"
        parts = [f"{tally.n_done:,} of {n_known} actions", f"{n_running:,} running", duration(now - self._started)]
        return [Span(f"  {' · '.join([*parts, *self._spent_by_now()])}", "dim")]

    def _spent_by_now(self) -> list[str]:
        """Against each limit; money also where nothing limits it."""
        limits, prices = self._tally.spent(), self._tally.prices
        found = [spent_text(limit, prices.currency if prices else "") for limit in limits]
        is_limited = any(limit.name == "max_cost" for limit in limits)
        return found if is_limited else [*found, *(f"{spent} so far" for spent in self._spent())]

    def _progress_line(self) -> Line:
        now = self._clock()
        rules = []
        for rule in self._tally.in_progress():
            counts = f" {rule.n_done:,}/{rule.n:,}" if rule.n and rule.n > 1 else ""
            going = [span.text for span in _going(rule, now)]
            rules.append(", ".join([f"{rule.name}{counts}", *rule.progress(now), *going]))
        return [Span(f"  {duration(now - self._started)}: {' · '.join([*rules, *self._spent_by_now()])}", "dim")]


def _notice(notice: Notice) -> Line:
    return [Span("warning:", "yellow"), Span(f" {notice.text}")] if notice.level == "warning" else [Span(notice.text)]


def _only_waited(rule: RuleTally) -> bool:
    """Nothing was tried: told with all others of its kind."""
    return rule.n_done == rule.counts["blocked"] + rule.counts["skipped"]


def _counts(counts: Sequence[tuple[str, int]], style: Style) -> list[Span]:
    spans: list[Span] = []
    for outcome, n in counts:
        spans += [Span(", ", style)] if spans else []
        spans.append(Span(f"{n:,} {outcome}", _STYLES.get(outcome, style)))
    return spans


def _naming(event: ActionFinished) -> str:
    """The rendered error; the action that failed and its log are added where they are not told."""
    first, newline, rest = event.error.partition("\n")
    problem = first.removeprefix("error: ")
    named = problem if str(event.action) in problem else f"{event.action}: {problem}"
    log = f"\n  log: {event.log}" if event.log and event.log not in event.error else ""
    return f"error: {named}{newline}{rest}{log}"


def _quoted(action: ActionId) -> str:
    """As a shell takes it: brackets are a pattern there."""
    return f"'{action}'" if action.shard else str(action)


def _bar(rule: RuleTally) -> list[Span]:
    n_requests = rule.requests["total"]
    share = rule.requests["done"] / rule.expected if n_requests else rule.n_done / (rule.n or 1)
    filled = min(_BAR, int(share * _BAR))
    return [Span("━" * filled, "green"), Span("─" * (_BAR - filled) + "  ", "dim")]


def _going(rule: RuleTally, now: float) -> list[Span]:
    """How it goes with a rule, what matters most first: a narrow terminal cuts the rest."""
    groups: list[tuple[list[str], Style]] = [
        (rule.left(now), ""),
        (rule.tokens(now), "dim"),
        (rule.bad_shares(), "yellow"),
        (rule.traffic(), "dim"),
        (rule.ends(), "dim"),
    ]
    return [Span(", ".join(facts), style) for facts, style in groups if facts]


def _joined(spans: Sequence[Span]) -> list[Span]:
    """With a dot between any two."""
    return [one for span in spans for one in (Span(" · ", "dim"), span)][1:]


def _running(rule: RuleTally, now: float) -> list[str]:
    """The actions that run, oldest first; for a rule's only one also why it runs."""
    if rule.n == 1:
        return [duration(now - began) for began in rule.running.values()] + [rule.reason]
    return [listed((f"{action.shard} {duration(now - began)}" for action, began in rule.running.items()), most=4)]
