"""Bugs as a change of the engine may bring them, each of them a patch: the fuzz test has to find every one.

Knows the engine's insides, as a bug does. Where those move, the patch of a bug moves with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from buildsys import assess, build, prepare, survey
from buildsys.assess import Assessor, Bound
from buildsys.build import Build
from buildsys.code import slice as slices
from buildsys.counting import Counted, Counting
from buildsys.deliver import Delivery
from buildsys.digest import NO_DIGEST, Digest, digest_of
from buildsys.discover import Discoverer, Discovery
from buildsys.model import Discovered, Trace
from buildsys.plan import key
from buildsys.plan.key import Fact
from buildsys.prepare import Preparer
from buildsys.state.files import Files
from buildsys.state.objects import Objects
from buildsys.state.store import Store
from buildsys.supply import Supply

Plant = Callable[[], AbstractContextManager[object]]


def an_input_is_not_in_the_key() -> AbstractContextManager[object]:
    facts = key.input_facts
    return mock.patch.object(key, "input_facts", lambda inputs: list(facts(inputs))[1:])


def names_of_inputs_are_not_in_the_key() -> AbstractContextManager[object]:
    def without(inputs: Any) -> Iterator[Fact]:
        for fact in facts(inputs):
            yield replace(fact, value=[rest for _, *rest in fact.value])  # type: ignore[attr-defined]

    facts = key.input_facts
    return mock.patch.object(key, "input_facts", without)


def _facts_without(is_lost: Callable[[Fact], bool]) -> AbstractContextManager[object]:
    facts = prepare.rule_facts
    return mock.patch.object(prepare, "rule_facts", lambda *of: [fact for fact in facts(*of) if not is_lost(fact)])


def a_param_is_not_in_the_key() -> AbstractContextManager[object]:
    return _facts_without(lambda fact: (fact.group, fact.name) == ("param", "p0"))


def the_type_of_a_param_is_not_in_the_key() -> AbstractContextManager[object]:
    def textual(*of: Any) -> Iterator[Fact]:
        for fact in facts(*of):
            yield replace(fact, value=str(fact.value)) if fact.group == "param" else fact

    facts = prepare.rule_facts
    return mock.patch.object(prepare, "rule_facts", textual)


def names_of_output_files_are_not_in_the_key() -> AbstractContextManager[object]:
    make = assess.action_key
    return mock.patch.object(assess, "action_key", lambda hasher, inputs, names=(): make(hasher, inputs))


@contextmanager
def helpers_are_not_in_the_key() -> Iterator[None]:
    """But for their names; nor in what was used, which would find what the key does not tell."""

    def named(*of: Any) -> Iterator[Fact]:
        for fact in facts(*of):
            is_lost = fact.group == "code" and ":h" in f":{fact.name}"
            yield replace(fact, value="") if is_lost else fact

    facts = prepare.rule_facts
    with mock.patch.object(prepare, "rule_facts", named), _used_without("/h"):
        yield


def _used_without(text: str) -> AbstractContextManager[object]:
    """Functions with this text in path or name did not run, as far as is known."""

    def used(self: Preparer, rule: Any, trace: Trace) -> Digest:
        functions = frozenset(name for name in trace.functions if text not in name)
        return of_trace(self, rule, replace(trace, functions=functions))

    of_trace = Preparer.used
    return mock.patch.object(Preparer, "used", used)


def the_command_is_not_in_the_key() -> AbstractContextManager[object]:
    return _facts_without(lambda fact: fact.name == "command")


def settings_are_in_the_key() -> AbstractContextManager[object]:
    def more(rule: Any, *rest: Any) -> Iterator[Fact]:
        yield from facts(rule, *rest)
        yield from (Fact("setting", setting.name, setting.value) for setting in rule.settings)

    facts = prepare.rule_facts
    return mock.patch.object(prepare, "rule_facts", more)


def comments_are_in_the_key() -> AbstractContextManager[object]:
    def with_text(symbols: Any, where: Any) -> Digest:
        return digest_of(found(symbols, where), symbols._texts[where.path])

    found = slices._Symbols._digest
    return mock.patch.object(slices._Symbols, "_digest", with_text)


def the_paths_of_inputs_are_in_the_key() -> AbstractContextManager[object]:
    def located(inputs: Any) -> Iterator[Fact]:
        for role, given in inputs:
            yield Fact("input", role, [[one.path, one.digest, one.many] for one in given])

    return mock.patch.object(key, "input_facts", located)


def an_input_counts_by_the_key_that_made_it() -> AbstractContextManager[object]:
    """No early cutoff."""
    keys: dict[object, str] = {}

    def assessed(self: Assessor, actions: Any) -> Any:
        found = assess_all(self, actions)
        keys.update({action: getattr(one, "key", "") for action, one in zip(actions, found, strict=True)})
        return found

    def bound(self: Assessor, source: Any) -> Bound:
        one = bind(self, source)
        given = [replace(file, digest=Digest(keys.get(file.maker, file.digest))) for file in one.given]
        return replace(one, given=tuple(given))

    assess_all, bind = Assessor.assess, Assessor.bind
    return mock.patch.multiple(Assessor, assess=assessed, bind=bound)


def a_file_of_the_same_size_is_the_same() -> AbstractContextManager[object]:
    """A digest is trusted after an edit in place."""

    def row(self: Files, path: str, full: str, found: Any) -> Any:
        known = self._learned.get(path) or self._known.get(path)
        return known if known and known[0].size == found.size else read(self, path, full, found)

    read = Files._row
    return mock.patch.object(Files, "_row", row)


@contextmanager
def a_missing_object_is_restored_as_nothing() -> Iterator[None]:
    def copied(self: Objects, digest: Digest, target: Path, executable: bool) -> None:
        if self.path(digest).exists():
            copy_out(self, digest, target, executable)
        else:
            target.write_bytes(b"")

    copy_out = Objects.copy_out
    with mock.patch.object(Store, "has", return_value=True), mock.patch.object(Objects, "copy_out", copied):
        yield


def a_damaged_object_is_restored_as_it_is() -> AbstractContextManager[object]:
    def copied(self: Objects, digest: Digest, target: Path, executable: bool) -> None:
        target.write_bytes(self.path(digest).read_bytes())

    return mock.patch.object(Objects, "copy_out", copied)


def a_damaged_object_is_read_as_it_is() -> AbstractContextManager[object]:
    return mock.patch.object(Objects, "verify", return_value=None)


def shards_are_folded_by_letter() -> AbstractContextManager[object]:
    """k10 before k2."""
    return mock.patch.object(assess, "natural_key", lambda name: name)


def outputs_in_place_are_not_looked_at() -> AbstractContextManager[object]:
    return mock.patch.object(Assessor, "where", return_value="workspace")


def outputs_are_not_kept() -> AbstractContextManager[object]:
    """What was made before runs again."""

    def nowhere(self: Assessor, rule: Any, outputs: Any) -> str:
        found = where(self, rule, outputs)
        return "nowhere" if found == "store" else found

    where = Assessor.where
    return mock.patch.object(Assessor, "where", nowhere)


def the_past_is_only_the_last_build() -> AbstractContextManager[object]:
    return mock.patch.object(assess.Past, "find", return_value={})


def nothing_is_tidied() -> AbstractContextManager[object]:
    return mock.patch.object(Build, "_tidy", return_value=None)


def edited_outputs_are_overwritten() -> AbstractContextManager[object]:
    return mock.patch.object(Store, "knows", return_value=True)


def failed_checks_hold_nothing_back() -> AbstractContextManager[object]:
    def held(self: Delivery, parcel: Any) -> None:
        self._hold(parcel, [])

    return mock.patch.object(Delivery, "_check", held)


def a_changed_check_is_not_asked() -> AbstractContextManager[object]:
    return mock.patch.object(Assessor, "_checked", lambda self, assessed: list(assessed))


def what_failed_holds_nobody_up() -> AbstractContextManager[object]:
    """The actions that need it go on with what it made before."""
    good = build.GOOD
    return mock.patch.object(build, "GOOD", good | {"failed"})


def a_plan_knows_no_store() -> AbstractContextManager[object]:
    class Empty(Store):
        def has(self, artifact: Any) -> bool:
            return False

    return mock.patch.object(survey, "Store", Empty)


def a_plan_forgets_early_cutoff() -> AbstractContextManager[object]:
    def sure(self: Any, action: Any) -> Any:
        planned = early(self, action)
        return replace(planned, fate="run") if planned and planned.fate == "maybe" else planned

    early = survey.Surveyor._early
    return mock.patch.object(survey.Surveyor, "_early", sure)


def dropped_outputs_are_not_made_again() -> AbstractContextManager[object]:
    return mock.patch.object(Supply, "lacking", return_value=[])


def nothing_is_narrowed() -> AbstractContextManager[object]:
    """Whatever changes in the code that an action could run runs it."""
    return mock.patch.object(Preparer, "used", return_value=NO_DIGEST)


def a_function_that_ran_is_not_in_what_was_used() -> AbstractContextManager[object]:
    return _used_without(":rare")


def an_alias_survives_an_edit() -> AbstractContextManager[object]:
    def counted(self: Counting, one: Any, result: Any) -> Counted | None:
        return find(self, one, result) or (Counted(result) if result.alias else None)

    find = Counting._counted
    return mock.patch.object(Counting, "_counted", counted)


def _discovered_without(is_lost: Callable[[Discovered], bool]) -> AbstractContextManager[object]:
    def discovered(self: Discoverer, assessment: Any, traced: Any) -> Discovery:
        found = discover(self, assessment, traced)
        return replace(found, inputs=tuple(one for one in found.inputs if not is_lost(one)))

    discover = Discoverer.discover
    return mock.patch.object(Discoverer, "discover", discovered)


def a_discovered_file_is_left_out() -> AbstractContextManager[object]:
    return _discovered_without(lambda one: one.kind == "file")


BUGS: Mapping[Plant, int] = {
    an_input_is_not_in_the_key: 1,
    names_of_inputs_are_not_in_the_key: 18,
    a_param_is_not_in_the_key: 2,
    the_type_of_a_param_is_not_in_the_key: 30,
    names_of_output_files_are_not_in_the_key: 2,
    helpers_are_not_in_the_key: 18,
    the_command_is_not_in_the_key: 131,
    settings_are_in_the_key: 30,
    comments_are_in_the_key: 2,
    the_paths_of_inputs_are_in_the_key: 1,
    an_input_counts_by_the_key_that_made_it: 5,
    a_file_of_the_same_size_is_the_same: 3,
    a_missing_object_is_restored_as_nothing: 13,
    a_damaged_object_is_restored_as_it_is: 60,
    a_damaged_object_is_read_as_it_is: 13,
    shards_are_folded_by_letter: 6,
    outputs_in_place_are_not_looked_at: 1,
    outputs_are_not_kept: 1,
    the_past_is_only_the_last_build: 1,
    nothing_is_tidied: 2,
    edited_outputs_are_overwritten: 12,
    failed_checks_hold_nothing_back: 35,
    a_changed_check_is_not_asked: 35,
    what_failed_holds_nobody_up: 1,
    a_plan_knows_no_store: 1,
    a_plan_forgets_early_cutoff: 5,
    dropped_outputs_are_not_made_again: 146,
    nothing_is_narrowed: 2,
    a_function_that_ran_is_not_in_what_was_used: 15,
    an_alias_survives_an_edit: 42,
    a_discovered_file_is_left_out: 82,
}
"""Bug -> the first graph that is tried: mostly the first of all to show it, until the generator changes."""
