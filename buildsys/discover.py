"""What a run asked of the machine and its rule does not declare: the discovered inputs of its result.

Joins what a worker told with the rules and the files as they are after the run. Knows nothing of how the run went, nor
of what its answers decide later. Used from several threads at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from buildsys.assess import Assessment
from buildsys.counting import Counting
from buildsys.errors import BuildError
from buildsys.model import ActionId, Discovered, Result, Rule, RuleName, Trace
from buildsys.past import Past
from buildsys.prepare import Prepared
from buildsys.project import PASSED_ON
from buildsys.run.machine import VISIBLE
from buildsys.run.traced import Asked, Touch, Traced
from buildsys.spec.graph import Graph, path_regex
from buildsys.spec.names import role_for
from buildsys.state.discoveries import BY_OTHERS_TOO, CHANGING, OF_PYTHON, WRITTEN, Discoveries, kind_of
from buildsys.state.looks import Looks

_OF_THE_BUILD: Final = frozenset(("PYTHONHASHSEED", "TMPDIR", VISIBLE))
"""Variables by which a build tells an action its share of the machine: no result may depend on them."""

_MOST_TOLD: Final = 5
_QUERY: Final = "`buildsys sql \"FROM edges WHERE role = 'discovered'\"`"


@dataclass(frozen=True)
class Undeclared:
    """What a rule should declare. name: path or variable. does: as in "it reads data/a.json". add: where which line."""

    name: str
    does: str
    add: str


@dataclass(frozen=True)
class Discovery:
    """inputs: sorted. undeclared: those of them that the rule should declare, as far as the call itself asked for them.

    is_settled: all of it is still as the run found it.
    """

    inputs: tuple[Discovered, ...] = ()
    undeclared: tuple[Undeclared, ...] = ()
    is_settled: bool = True


NOTHING_FOUND: Final = Discovery()


class Discoverer:
    """Tells discovered inputs from declared ones, and says what each is worth."""

    def __init__(self, graph: Graph, looks: Looks, answers: Discoveries) -> None:
        self._graph = graph
        self._root = os.fspath(looks.root)
        self._looks = looks
        self._answers = answers

    def discover(self, assessment: Assessment, traced: Traced) -> Discovery:
        """Raises BuildError for a run that read another rule's output, or where the rule is strict what it must not."""
        rule = assessment.prepared.rule
        touches = list(self._undeclared(assessment, traced.touches))
        if read := next((one for one in touches if self._graph.is_made(one.path) and one.kind != "exists"), None):
            raise self._reads_output(rule, read.path)
        asked = [one for one in traced.variables if self._is_discovered(rule, one)]
        sources = assessment.prepared.code.sources if assessment.prepared.code else {}
        undeclared = [
            *(_file(one) for one in touches if _is_to_declare(one) and one.path not in sources),
            *(_variable(one) for one in asked if one.name not in PASSED_ON),
        ]
        if rule.strict and undeclared:
            raise _strict(rule, undeclared)
        found = [self._found(one) for one in touches]
        inputs = [one for one, _ in found]
        inputs += [Discovered("variable", one.name, self._answers.look_again("variable", one.name)) for one in asked]
        packages = self._packages(assessment.prepared, traced.packages)
        inputs += [Discovered("package", name, self._answers.look_again("package", name)) for name in packages]
        return Discovery(tuple(sorted(set(inputs))), tuple(undeclared), all(settled for _, settled in found))

    # ------------------------------------------------------------ what is declared

    def _undeclared(self, assessment: Assessment, touches: Iterable[Touch]) -> Iterator[Touch]:
        """Of what earlier calls of the worker asked for, what they declared counts for them alone."""
        touches = [one for one in touches if not one.own or self._is_left(one) or self._is_listed_too(one)]
        if not touches:
            return
        declared = set(self._declared(assessment))
        others = self._of_other_shards(assessment.prepared.rule)
        for one in touches:
            places = [one.path, *map(str, PurePosixPath(one.path).parents)]
            if not declared.isdisjoint(places):
                continue
            if one.earlier and (self._graph.is_made(one.path) or any(other.fullmatch(one.path) for other in others)):
                continue
            yield one

    def _is_left(self, one: Touch) -> bool:
        """It was opened to be written to, or given other permissions; its content is as it was, so it was only read."""
        if one.kind != "file" or one.stat is None:
            return False
        size, mtime_ns, _, inode, _ = one.stat
        try:
            now = self._looks.stat(one.path)
        except OSError:
            return False
        return now is not None and (now.size, now.mtime_ns, now.inode) == (size, mtime_ns, inode)

    def _is_listed_too(self, one: Touch) -> bool:
        """A folder of the project in which the run has made something: what else lies there, it was told as well.

        Elsewhere such a folder is a cache of some library.
        """
        return one.kind == "folder" and not one.path.startswith("/") and not self._graph.is_made(one.path)

    def _declared(self, assessment: Assessment) -> Iterator[str]:
        """The paths of its inputs, those of links followed too."""
        for given in (given for bound in assessment.reads for given in bound.given):
            path = given.path.rstrip("/")
            yield path
            full = os.path.join(self._root, path)
            if (real := os.path.realpath(full)) != full:
                yield real.removeprefix(f"{os.path.realpath(self._root)}/")

    def _of_other_shards(self, rule: Rule) -> list[re.Pattern[str]]:
        sources = [one.source for one in rule.inputs if isinstance(one.source, str) and "{shard}" in one.source]
        return [re.compile(path_regex(source, self._graph.profile).pattern + "(/.*)?") for source in sources]

    def _is_discovered(self, rule: Rule, one: Asked) -> bool:
        """Secrets never are; what only libraries ask for is no business of the code's."""
        declared = {*rule.env, *(variable for _, variable in rule.secrets)}
        return one.ours and one.name not in declared and one.name not in _OF_THE_BUILD

    def _packages(self, prepared: Prepared, imported: Iterable[str]) -> Iterator[str]:
        """Those that no import statement in reach names; of a rule that lists its versions, these alone count."""
        rule, code = prepared.rule, prepared.code
        if code is None or isinstance(rule.versions, tuple):
            return
        for name in sorted(set(imported) - code.imports):
            yield f"{name}{OF_PYTHON}{rule.python}" if rule.python else name

    # ------------------------------------------------------------ what it is worth

    def _found(self, one: Touch) -> tuple[Discovered, bool]:
        """What the run was answered, and whether that is the answer now and stays so."""
        now = self._answers.look_again(one.kind, one.path)
        if one.own and one.kind == "folder":
            return Discovered("folder", one.path, WRITTEN + now), False
        if one.kind == "exists":
            value = kind_of(one.stat[4]) if one.stat else ""
            later = not value and self._graph.is_made(one.path)
            return Discovered("exists", one.path, value), value == now and not later
        if one.stat is None:
            return Discovered(one.kind, one.path, ""), now == ""
        if not one.own and self._is_moved(one):
            now = CHANGING
        return Discovered(one.kind, one.path, now), now != CHANGING

    def _is_moved(self, one: Touch) -> bool:
        """It was written to since. In a folder where outputs lie builds may have put some; these are no part of it."""
        if one.kind == "folder" and self._graph.leads_to_outputs(one.path):
            return False
        try:
            return self._looks.stat(one.path) != one.stat
        except OSError:
            return True

    def _reads_output(self, rule: Rule, path: str) -> BuildError:
        try:
            target = self._graph.target(path)
        except BuildError:
            made_by, hint = "another profile", f"declare it in [rule.{rule.name}], or don't read it"
        else:
            made_by = target.rule if isinstance(target, ActionId) else target
            hint = f'add {made_by} = "@{made_by}" to the inputs of [rule.{rule.name}], so that it is built first'
            if made_by == rule.name:
                hint = "what an action needs of earlier attempts belongs into its scratch (`scratch = true`)"
        problem = f"it reads {path}, an output of {made_by}, which is none of its inputs"
        return BuildError(problem, place=rule.place, hint=hint)


class Disclosure:
    """Tells what runs found by what earlier ones did.

    What rules should declare is told once: an earlier build has told what holding results discovered.
    """

    def __init__(self, past: Past, counting: Counting, answers: Discoveries) -> None:
        self._past = past
        self._counting = counting
        self._answers = answers
        self._told: dict[RuleName, set[str]] = {}

    def settled(self, action: ActionId, trace: Trace, found: Discovery) -> Discovery:
        """The same, where what changed during the last run of the action as well counts as this one has left it.

        So a child process that writes to a file it was told of does not have the action run for ever, nor does a run
        that lists the folder which it writes to.
        """
        writes = {one.name for one in found.inputs if one.value.startswith(WRITTEN)}
        writes |= {one.name for one in found.inputs if trace.unseen and one.value == CHANGING}
        if not writes or action not in self._past.newest:
            return found
        before = {one.name: one for one in self._counting.discovered(self._past.newest[action]) if _is_changing(one)}
        inputs = (
            one._replace(value=self._left(action, before[one.name])) if one.name in writes & before.keys() else one
            for one in found.inputs
        )
        return replace(found, inputs=tuple(sorted(inputs)))

    def _left(self, action: ActionId, before: Discovered) -> str:
        """What that is worth which has changed in two runs. before: as the first of them found it."""
        if before.value == BY_OTHERS_TOO:
            return BY_OTHERS_TOO
        now = self._answers.look_again(before.kind, before.name)
        is_changed_again = now != self._answers.value_now(before.kind, before.name)
        written = before.value != CHANGING and not self._answers.is_unchanged(before)
        if written and is_changed_again and self._writers[before.name] - {action}:
            return BY_OTHERS_TOO
        return WRITTEN + now

    @cached_property
    def _writers(self) -> Mapping[str, set[ActionId]]:
        """The actions in whose last runs a file changed, or a folder, by its name."""
        found: dict[str, set[ActionId]] = {}
        for action, result in self._past.newest.items():
            for one in filter(_is_changing, self._counting.discovered(result)):
                found.setdefault(one.name, set()).add(action)
        return found

    def news(self, rule: RuleName, undeclared: Sequence[Undeclared]) -> list[str]:
        """For people, one line each."""
        if not undeclared:
            return []
        told = self._told.get(rule)
        if told is None:
            told = self._told[rule] = {
                one.name for result in self._holding(rule) for one in self._counting.discovered(result)
            }
        new = {one.name: one for one in undeclared if one.name not in told}
        told.update(new)
        lines = [f"{rule} {one.does}: add to its {one.add}" for one in list(new.values())[:_MOST_TOLD]]
        if len(new) > _MOST_TOLD:
            lines.append(f"{rule} reads {len(new) - _MOST_TOLD} more files that it does not declare: see {_QUERY}")
        return lines

    def _holding(self, rule: RuleName) -> list[Result]:
        return [result for action, result in self._past.newest.items() if action.rule == rule]


def _is_changing(one: Discovered) -> bool:
    return one.value in (CHANGING, BY_OTHERS_TOO) or one.value.startswith(WRITTEN)


def _is_to_declare(one: Touch) -> bool:
    """A file of the project that it opened itself; what lies elsewhere can't be declared."""
    return one.kind == "file" and one.stat is not None and not one.earlier and not one.path.startswith("/")


def _file(one: Touch) -> Undeclared:
    return Undeclared(one.path, f"reads {one.path}", f'inputs: {role_for(one.path)} = "{one.path}"')


def _variable(one: Asked) -> Undeclared:
    return Undeclared(one.name, f"asks for the variable {one.name}, which it does not get", f'env: "{one.name}"')


def _strict(rule: Rule, undeclared: list[Undeclared]) -> BuildError:
    first, *others = undeclared
    return BuildError(
        f"it {first.does}, and [rule.{rule.name}] does not declare that",
        facts=[("undeclared too", other.name) for other in others],
        place=rule.place,
        hint=f"add to its {first.add}; or take `strict` out",
    )
