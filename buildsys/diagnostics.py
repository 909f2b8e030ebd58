"""What is wrong with the scripts of rules, found without running them, and which rules it blocks.

Joins what single texts tell (`proofreader`) with how they import one another (`reached`), with what is installed for
each rule, and with the slices, which say whether a line can matter to a rule. A rule is blocked only by what is sure: a
text that its interpreter can't compile, a name that nothing binds, a module of the project that is not there. Knows no
result.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Final

from buildsys.code.findings import Fault, Suspect, is_quiet
from buildsys.code.parse import Broken
from buildsys.code.slice import Slice, parse_once
from buildsys.code.units import Unit
from buildsys.errors import BuildError, Place, excerpt_of
from buildsys.model import Diagnostic, RuleName, Service
from buildsys.phrases import listed
from buildsys.prepare import PYTHON, Preparer
from buildsys.project import Project, action_environment
from buildsys.proofreader import Proofreader
from buildsys.reached import Files, Lack, Reached, is_found_here, names_in_folders
from buildsys.sources import Installed
from buildsys.spec.graph import Graph
from buildsys.state.interpreters import Interpreter

_CACHE: Final = "cache/diagnostics.json"
_QUIET: Final = "or write `# noqa: F821` behind it, if it is there after all"
_LEVELS: Final = ("error", "warning", "note")
_LAZY_ANNOTATIONS: Final = (3, 14)
_OWN: Final = tuple(sys.version_info[:2])
_PART: Final = re.compile(r"[\w.-]+")


def holds(code: Slice, path: str, text: str, line: int) -> bool:
    """Whether the symbol that a line of a file is in is one of the slice. text: the file's, and it parses."""
    names = {symbol.name for symbol in code.symbols if symbol.path == path}
    if not names:
        return False
    return "*" in names or not names.isdisjoint(_symbols_at(parse_once(path, text).units, line))


def _symbols_at(units: Sequence[Unit], line: int) -> Iterator[str]:
    """The names of the innermost units that a line is in; several where it has several statements."""
    for unit in units:
        if unit.line <= line <= unit.end:
            inner = list(_symbols_at(unit.members, line))
            yield from inner or [unit.name]


@dataclass(frozen=True)
class _Program:
    """Scripts that run together: those of a rule, or of a service.

    rules: that can't run without it. code: Broken where it can't be sliced. is_main: they are run as programs, and not
    imported. is_ours: by the interpreter that buildsys names.
    """

    rules: tuple[RuleName, ...]
    scripts: tuple[str, ...]
    code: Slice | Broken
    installed: Installed
    interpreter: Interpreter | None = None
    is_main: bool = False
    is_ours: bool = True

    @property
    def version(self) -> tuple[int, ...]:
        return tuple(map(int, self.interpreter.version.split("."))) if self.interpreter else _OWN

    def matters(self, reached: Reached, path: str, line: int, *, called: bool) -> bool:
        """A line can matter to an action. called: it is in a function; else it runs whenever its module is imported."""
        if isinstance(self.code, Broken) or (path in reached.at_once and not called):
            return True
        return holds(self.code, path, reached.texts[path], line)


class Diagnosis:
    """The diagnostics of some rules. A module that only a computed import can reach is not looked at.

    trouble: why names were not looked at, for people; "" where they were.
    """

    def __init__(self, project: Project, graph: Graph, preparer: Preparer, rules: Iterable[RuleName]) -> None:
        """Raises BuildError for a script that can't be followed, as `Preparer.code` does."""
        self._env = action_environment((), preparer.environ)
        self._proofreader = Proofreader(project.state / _CACHE)
        self._programs = list(_programs(graph, preparer, rules))
        self._reached: dict[tuple[Installed, str], Reached] = {}
        for program in self._programs:
            files = Files(program.installed, self._proofreader, project.looks)
            for script in program.scripts:
                if (program.installed, script) not in self._reached:
                    self._reached[program.installed, script] = Reached(script, files)
        self._installed: dict[str, set[str]] = {}
        self._elsewhere: dict[tuple[str, str], Fault | None] = {}

    @property
    def n_scripts(self) -> int:
        return len({script for _, script in self._reached})

    @property
    def n_modules(self) -> int:
        """How many files of the project the scripts import, themselves left out."""
        paths = {path for one in self._reached.values() for path in one.texts}
        return len(paths - {script for _, script in self._reached})

    @property
    def trouble(self) -> str:
        return self._proofreader.trouble

    @cached_property
    def found(self) -> tuple[Diagnostic, ...]:
        """All of them: errors first, each level by place."""
        self._ask()
        alike: dict[tuple[Place | None, str], list[Diagnostic]] = {}
        for program in self._programs:
            for one in self._of_program(program):
                alike.setdefault((one.place, one.problem), []).append(one)
        merged = sorted(map(_merged, alike.values()), key=_order)
        return *merged, *self.missing

    @cached_property
    def missing(self) -> tuple[Diagnostic, ...]:
        """Notes on packages that are not installed for the rules that import them. No linter is asked for these."""
        users: dict[str, dict[str, dict[RuleName, None]]] = {}
        for program in self._programs:
            python = program.interpreter.python if program.interpreter else ""
            for lack, matters in self._lacks(program):
                if lack.kind == "package" and not lack.near and matters and program.is_ours:
                    users.setdefault(python, {}).setdefault(lack.name, {}).update(dict.fromkeys(program.rules))
        return tuple(_missing(python, users_of) for python, users_of in sorted(users.items()))

    @cached_property
    def blocked(self) -> Mapping[RuleName, Diagnostic]:
        """The rules that can't run, each with the first error that says why."""
        blocked: dict[RuleName, Diagnostic] = {}
        for one in self.found:
            for rule in one.rules if one.level == "error" else ():
                blocked.setdefault(rule, one)
        return blocked

    @property
    def news(self) -> list[Diagnostic]:
        """What a build tells: what blocks or lacks something, and of what it read for the first time also warnings."""
        new = {
            path
            for reached in self._reached.values()
            for path, text in reached.texts.items()
            if self._proofreader.is_new(path, text)
        }
        return [one for one in self.found if one.level != "warning" or (one.place and one.place.path in new)]

    def keep(self) -> None:
        """Write down what is known of the texts, for the next build."""
        self._proofreader.keep()

    # ------------------------------------------------------------ one program

    def _ask(self) -> None:
        """Have other programs look at what is new, each once."""
        self._proofreader.ask()
        others: dict[str, tuple[Interpreter, set[str]]] = {}
        for program in self._programs:
            if (interpreter := program.interpreter) and program.version != _OWN:
                texts = others.setdefault(interpreter.python, (interpreter, set()))[1]
                for script in program.scripts:
                    texts.update(self._reached[program.installed, script].texts.values())
        for python, (interpreter, texts) in others.items():
            ordered = sorted(texts)
            faults = self._proofreader.elsewhere(python, interpreter.version, self._env, ordered)
            for text, fault in zip(ordered, faults or (), strict=False):
                self._elsewhere[python, text] = fault

    def _of_program(self, program: _Program) -> Iterator[Diagnostic]:
        found = [one for script in program.scripts for one in self._of_script(program, script)]
        yield from found
        broken = program.code
        if isinstance(broken, Broken) and not any(one.level == "error" and _is_at(one, broken) for one in found):
            yield _of_error(broken, program.rules)
        for lack, matters in self._lacks(program):
            if lack.kind != "package" or lack.near:  # no package is meant where a module is called almost so
                imported, text = lack.imported, program.installed.sources.read(lack.path) or ""
                place = Place(lack.path, imported.line, imported.column)
                yield _diagnostic(program, matters, _words_of_lack(lack), place, text, imported.width)

    def _of_script(self, program: _Program, script: str) -> Iterator[Diagnostic]:
        reached = self._reached[program.installed, script]
        for path, text in reached.texts.items():
            findings = self._proofreader.read(path, text)
            if fault := self._fault(program, text, findings.fault):
                matters = program.matters(reached, path, fault.line, called=False)
                place = Place(path, fault.line, fault.column)
                yield _diagnostic(program, matters, (fault.problem, fault.hint), place, text, fault.width)
            for suspect in findings.suspects or ():
                if self._is_suspect(program, reached, path, suspect):
                    matters = suspect.sure and program.matters(reached, path, suspect.line, called=suspect.called)
                    place = Place(path, suspect.line, suspect.column)
                    yield _diagnostic(program, matters, _words_of_name(suspect), place, text, len(suspect.name))

    def _fault(self, program: _Program, text: str, own: Fault | None) -> Fault | None:
        """What keeps the program's interpreter from compiling a text, or this one from reading it."""
        interpreter = program.interpreter
        if interpreter is None or program.version == _OWN or (interpreter.python, text) not in self._elsewhere:
            return own
        there = self._elsewhere[interpreter.python, text]
        if own and there:
            return own
        if there:
            return there._replace(problem=f"{there.problem}, for Python {interpreter.version}")
        if own:
            problem = f"buildsys runs in Python {PYTHON}, which can't read it: {own.problem}"
            return own._replace(problem=problem, hint=f"run buildsys in Python {interpreter.version}, as the rule is")
        return None

    def _is_suspect(self, program: _Program, reached: Reached, path: str, suspect: Suspect) -> bool:
        """It is worth telling: no other module may have bound it."""
        outline = reached.outlines[path]
        if outline is None or outline.opaque or reached.meddles or suspect.name in reached.sets:
            return False
        if reached.is_submodule(path, suspect.name):
            return False
        if suspect.main and not (program.is_main and path in program.scripts):
            return False
        if suspect.annotation and program.version >= _LAZY_ANNOTATIONS:
            return False
        if suspect.new_in and program.version >= (3, suspect.new_in):
            return False
        if suspect.star:
            known = reached.star_names(path)
            return suspect.sure and known is not None and suspect.name not in known
        return True

    # ------------------------------------------------------------ imports

    def _lacks(self, program: _Program) -> Iterator[tuple[Lack, bool]]:
        """What a program imports and is not there; and whether that can matter to an action."""
        for script in program.scripts:
            reached = self._reached[program.installed, script]
            for lack in () if reached.moves else reached.lacks(self._is_installed(program.interpreter)):
                imported = lack.imported
                is_run = not imported.main or (program.is_main and lack.path in program.scripts)
                if is_run and not is_quiet(reached.texts[lack.path].split("\n")[imported.line - 1]):
                    yield lack, program.matters(reached, lack.path, imported.line, called=imported.called)

    def _is_installed(self, interpreter: Interpreter | None) -> Callable[[str], bool]:
        """Whether a module of some name can be imported there, though no rule says so."""
        stdlib = (interpreter.stdlib or sys.builtin_module_names) if interpreter else sys.stdlib_module_names
        folders = interpreter.path if interpreter else tuple(sys.path)

        def is_installed(name: str) -> bool:
            python = interpreter.python if interpreter else ""
            if name not in stdlib and python not in self._installed:
                self._installed[python] = names_in_folders(folders)
            if name in stdlib or name in self._installed[python]:
                return True
            return interpreter.distributions.provides(name) if interpreter else is_found_here(name)

        return is_installed


def check(project: Project, graph: Graph, preparer: Preparer) -> tuple[tuple[Diagnostic, ...], Diagnosis]:
    """All that is wrong with the rules of a graph and their scripts, and the diagnosis of those that could be read."""
    wrong: dict[tuple[str, Place | None], Diagnostic] = {}
    readable: list[RuleName] = []
    for rule in graph.rules.values():
        try:
            with project.excerpts():
                preparer.code(rule)
                for service in graph.services_of(rule):
                    _service_code(preparer, service)
            readable.append(rule.name)
        except BuildError as error:
            wrong[error.problem, error.place] = _of_error(error, (rule.name,))
    diagnosis = Diagnosis(project, graph, preparer, readable)
    return (*wrong.values(), *diagnosis.found), diagnosis


def missing_packages(project: Project) -> tuple[Diagnostic, ...]:
    """Notes on what the rules that are built by default import and is not installed for them.

    Of a project that was just begun: nothing that was looked at is kept in it.
    """
    with tempfile.TemporaryDirectory(prefix="buildsys-") as folder:
        project.state = Path(folder)
        graph = project.graph()
        return Diagnosis(project, graph, Preparer(project, graph), graph.wanted(()).shards).missing


def _programs(graph: Graph, preparer: Preparer, rules: Iterable[RuleName]) -> Iterator[_Program]:
    services: dict[str, tuple[Service, list[RuleName]]] = {}
    for name in rules:
        rule = graph.rules[name]
        for service in graph.services_of(rule):
            services.setdefault(service.name, (service, []))[1].append(name)
        scripts = tuple(preparer.scripts(rule))
        code = preparer.code(rule)
        if scripts and code:
            is_main = rule.kind == "shell"
            is_ours = not is_main or "{python}" in rule.command
            installed, interpreter = preparer.installed(rule.python), preparer.interpreter(rule)
            yield _Program((name,), scripts, code, installed, interpreter, is_main, is_ours)
    for service, users in services.values():
        scripts = tuple(preparer.service_scripts(service))
        code = _service_code(preparer, service)
        if scripts and code:
            is_ours = "{python}" in service.command
            yield _Program(tuple(users), scripts, code, preparer.installed(), None, True, is_ours)


def _service_code(preparer: Preparer, service: Service) -> Slice | Broken | None:
    try:
        return preparer.service_code(service)
    except Broken as broken:
        return broken


# ---------------------------------------------------------------- words


def _diagnostic(
    program: _Program, is_error: bool, words: tuple[str, str], place: Place, text: str, width: int
) -> Diagnostic:
    problem, hint = words
    excerpt = excerpt_of(text, place.line, column=place.column, width=width)
    place = replace(place, path=program.installed.locate(place.path))
    return Diagnostic("error" if is_error else "warning", problem, place, excerpt, hint, program.rules)


def _words_of_name(suspect: Suspect) -> tuple[str, str]:
    """The problem with a name, and what to do."""
    name = suspect.name
    if not suspect.sure:
        return f"`{name}` may not be defined", ""
    if suspect.kind == "gone":
        return f"`{name}` is gone after its `except` block", "give what is needed later another name, within the block"
    if suspect.kind == "early":
        when = f" in line {suspect.since}" if suspect.since > suspect.line else ""
        return (
            f"`{name}` is used before it is assigned{when}",
            f"assign it first; `global {name}` if the module's is meant",
        )
    hint = f'did you mean "{suspect.near[0]}"?' if suspect.near else f"define or import it, {_QUIET}"
    return f"`{name}` is not defined", hint


def _words_of_lack(lack: Lack) -> tuple[str, str]:
    near = f'did you mean "{lack.near[0]}"?' if lack.near else ""
    if lack.kind == "name":
        return f'{lack.owner} defines no "{lack.name}"', near
    if lack.kind == "module":
        return f'there is no module "{lack.name}"', near
    return f'there is no module "{lack.name}", and no package of this name is installed', near


def _missing(python: str, users: Mapping[str, Iterable[RuleName]]) -> Diagnostic:
    """One note for all that an interpreter lacks. users: the rules by the name that they import."""
    names = sorted(users)
    rules = tuple(dict.fromkeys(rule for name in names for rule in users[name]))
    where = f"for {python}" if python else "here"
    hint = pip_line(python, names)
    if len(names) == 1:
        need = "needs" if len(rules) == 1 else "need"
        problem = f"{names[0]} is not installed {where}; {listed(rules)} {need} it to run"
        return Diagnostic("note", problem, hint=hint, rules=rules)
    problem = f"{listed(names)} are not installed {where}; the rules that import them need them to run"
    return Diagnostic("note", problem, None, "", hint, rules, tuple((name, listed(users[name])) for name in names))


def pip_line(python: str, names: Sequence[str]) -> str:
    """The command that installs what provides these imports: of buildsys' own extras, the one that brings all."""
    wanted = " ".join(names)
    for extra, brought in _extras().items():
        if not python and set(names) <= brought:
            wanted = f"'buildsys[{extra}]'"
            break
    return f"{python} -m pip install {wanted}" if python else f"pip install {wanted}"


def _extras() -> dict[str, set[str]]:
    """What buildsys' extras bring, by name; what it needs itself comes with each."""
    found: dict[str, set[str]] = {}
    core: set[str] = set()
    try:
        lines = metadata.requires("buildsys") or ()
    except metadata.PackageNotFoundError:
        return found
    for line in lines:
        requirement, _, marker = line.partition(";")
        name, extra = _PART.match(requirement), re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if name:
            brought = found.setdefault(extra[1], set()) if extra else core
            brought.add(name[0].replace("-", "_").lower())
    return {extra: brought | core for extra, brought in found.items()}


def _of_error(error: BuildError, rules: tuple[RuleName, ...]) -> Diagnostic:
    return Diagnostic("error", error.problem, error.place, error.excerpt, error.hint, rules, error.facts)


def _is_at(one: Diagnostic, broken: BuildError) -> bool:
    return one.place is not None and broken.place is not None and one.place.path == broken.place.path


def _merged(alike: Sequence[Diagnostic]) -> Diagnostic:
    """One for what several programs have in common: of the worst level, and of the rules of which it is that."""
    level = min((one.level for one in alike), key=_LEVELS.index)
    worst = [one for one in alike if one.level == level]
    return replace(worst[0], rules=tuple(dict.fromkeys(rule for one in worst for rule in one.rules)))


def _order(one: Diagnostic) -> tuple[int, str, int, int]:
    place = one.place or Place("")
    return _LEVELS.index(one.level), place.path, place.line, place.column
