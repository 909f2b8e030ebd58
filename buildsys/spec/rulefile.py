"""TOML text -> rules and services, every error with its place and the nearest valid name.

Knows no file system: texts come in, and configs through a function. What one table says is settled here, whether all of
them go together in `agreement`, and who feeds whom in `graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from buildsys.errors import nearest
from buildsys.model import GPU, MEMORY, SECRET_FILE, Asking, Check, Each, Output, Rule, RuleName, Service, Versions
from buildsys.request import AS_WRITTEN, Variation
from buildsys.spec.agreement import check_agreement
from buildsys.spec.config import Config, parse_config
from buildsys.spec.declared import Declared
from buildsys.spec.names import why_no_name, why_no_rule
from buildsys.spec.pattern import rename
from buildsys.spec.project_tables import project_tables
from buildsys.spec.rule_text import PROFILE, SHARD, RuleText, is_marked, literal
from buildsys.spec.sizes import bytes_of
from buildsys.spec.tables import CheckTable, FileTable, RuleTable, ServiceTable
from buildsys.spec.toml_places import Keys
from buildsys.spec.toml_text import TomlText, header, parse_toml
from buildsys.spec.variation import varied

Kind = Literal["run", "shell", "chat"]
KINDS: Final[tuple[Kind, ...]] = ("run", "shell", "chat")
GROUPS: Final = ("inputs", "outputs", "params", "settings")
"""What a function gets by keyword."""
CHAT_ONLY: Final = ("endpoint", "identity", "samples", "canary", "in_flight", "stream", "reuse_shorter")
CODE_ONLY: Final = ("scratch", "python", "sandbox")
"""What a chat rule, whose requests are made by buildsys itself, can't have."""
BY_POSITION: Final = ("record", "replies")
"""The arguments of a chat rule's function that are not its params."""


def read_rules(
    texts: Mapping[str, str],
    read_text: Callable[[str], str | None],
    variation: Variation = AS_WRITTEN,
    profiles: Callable[[str], list[str]] = lambda config: [],
) -> Declared:
    """All rule files together, in the order of their paths, under one variation of their configs.

    texts: path of a rule file -> its text. read_text: path of a config -> its text, None where there is no such file.
    profiles: path of a config -> the profiles with an overlay for it. Raises BuildError for the first thing that is
    wrong.
    """
    files, tables = _tables(texts)
    project = project_tables(zip(files, tables, strict=True))
    configs = varied(_configs(files, tables, read_text), variation, read_text, profiles)
    rules: list[Rule] = []
    services: list[Service] = []
    for toml, table in zip(files, tables, strict=True):
        text = RuleText(toml, configs.get(table.config))
        rules += [_RuleReader(text, ("rule", name), rule).rule(name) for name, rule in table.rule.items()]
        services += [_service(text, name, service) for name, service in table.service.items()]
    read = sorted({path for config in configs.values() for path in (config.path, config.overlay) if path})
    check_agreement({toml.path: toml for toml in files}, rules, services, read)
    _check_pools(files, rules, project.pools)
    return Declared(
        {rule.name: rule for rule in rules},
        {service.name: service for service in services},
        project.keeping,
        project.prices,
        project.pools,
        variation,
        project.limits,
    )


def read_configs(
    texts: Mapping[str, str],
    read_text: Callable[[str], str | None],
    variation: Variation,
    profiles: Callable[[str], list[str]],
) -> dict[str, Config]:
    """The configs alone, by path; everything as `read_rules` has it."""
    return varied(_configs(*_tables(texts), read_text), variation, read_text, profiles)


def _tables(texts: Mapping[str, str]) -> tuple[list[TomlText], list[FileTable]]:
    files = [parse_toml(path, texts[path]) for path in sorted(texts)]
    return files, [toml.table(FileTable) for toml in files]


def _check_pools(files: Iterable[TomlText], rules: Iterable[Rule], pools: Mapping[str, int]) -> None:
    """Raises BuildError for a resource that is no pool, or is less than what one action takes."""
    texts = {toml.path: toml for toml in files}
    for rule in rules:
        for name, amount in rule.resources:
            keys = ("rule", rule.name, "resources", name)
            toml = texts[rule.place.path]
            if name not in (GPU, MEMORY, *pools):
                hint = nearest(name, [GPU, MEMORY, *pools]) or "declare its size under [pools]"
                raise toml.error(keys, f'resources of [rule.{rule.name}] name "{name}", which is no pool', hint=hint)
            if name in pools and amount > pools[name]:
                problem = f"[rule.{rule.name}] takes {amount} of {name}, which has {pools[name]}"
                raise toml.error(keys, problem, hint=f"raise {name} under [pools], or take less")


def _configs(
    files: Iterable[TomlText], tables: Iterable[FileTable], read_text: Callable[[str], str | None]
) -> dict[str, Config]:
    """The configs that the rule files name, by path."""
    configs: dict[str, Config] = {}
    for toml, table in zip(files, tables, strict=True):
        path = table.config
        if not path or path in configs:
            continue
        content = read_text(path)
        if content is None:
            hint = "write the path from the project's folder"
            raise toml.error(("config",), f"there is no config {path}", hint=hint)
        configs[path] = parse_config(path, content)
    return configs


@dataclass(frozen=True)
class _RuleReader:
    """Reads one rule table, whose keys and types are right."""

    text: RuleText
    keys: Keys
    table: RuleTable

    def rule(self, name: str) -> Rule:
        text, keys, table = self.text, self.keys, self.table
        kind = self._kind()
        self._check_names(name, kind)
        each = self._each()
        script, _, function = (table.run or table.chat).partition("::")
        rule = Rule(
            name=RuleName(name),
            kind=kind,
            place=text.toml.place(*keys),
            about=table.about,
            script=text.path_within((*keys, kind), script) if script else "",
            function=function,
            command=table.shell,
            each=each,
            inputs=text.inputs((*keys, "inputs"), table.inputs, each.variable if each else ""),
            params=text.params((*keys, "params"), table.params),
            settings=text.params((*keys, "settings"), table.settings),
            outputs=tuple(self._output(output, pattern, each) for output, pattern in table.outputs.items()),
            checks=tuple(self._check(check, written) for check, written in table.checks.items()),
            env=tuple(table.env),
            secrets=self._secrets(),
            services=tuple(table.services),
            default=table.default,
            python=text.text((*keys, "python"), table.python) if table.python else "",
            resources=tuple(self._resource(name, value) for name, value in table.resources.items()),
            scratch=table.scratch,
            ephemeral=table.ephemeral,
            metrics=self._metrics(),
            versions=self._versions(),
            sandbox=table.sandbox,
            strict=table.strict,
        )
        if kind == "shell":
            self._check_command(rule)
        return self._chat(rule) if kind == "chat" else rule

    def _check(self, name: str, written: str | CheckTable) -> Check:
        place = self.text.toml.place(*self.keys, "checks", name)
        if isinstance(written, str):
            return Check(name, written, place)
        return Check(name, written.sql, place, written.severity, written.canary)

    def _resource(self, name: str, written: int | str) -> tuple[str, int]:
        """How much of a resource an action takes: a number, of memory also a size."""
        keys = (*self.keys, "resources", name)
        value = self.text.value(keys, written)
        if isinstance(value, str) and name == MEMORY:
            try:
                return name, bytes_of(value)
            except ValueError:
                self.text.refuse(keys, f'is "{value}", which is no size', hint='write it like "4GB"')
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            hint = 'write it like "4GB"' if name == MEMORY else "write a whole number, 0 or more"
            self.text.refuse(keys, f"is {value!r}", hint=hint)
        return name, value

    def _metrics(self) -> tuple[str, ...]:
        for index, name in enumerate(self.table.metrics):
            keys = (*self.keys, "metrics", index)
            if name not in self.table.outputs:
                self.text.refuse(keys, f'is "{name}", which is no output', hint=nearest(name, list(self.table.outputs)))
            if not self.table.outputs[name].endswith(".json"):
                self.text.refuse(keys, f'is "{name}", which is no JSON file', hint="metrics are read from .json files")
        return tuple(self.table.metrics)

    def _versions(self) -> Versions:
        """Without the key, those that are imported; an empty array names none."""
        written = self.table.versions
        if isinstance(written, list):
            return tuple(written)
        return "closure" if written else "imported"

    def _secrets(self) -> tuple[tuple[str, str], ...]:
        """(name, variable or file) of each. Refuses a variable that `env` would put into keys and the manifest."""
        for name, variable in self.table.secrets.items():
            if variable.startswith(SECRET_FILE) and not self.table.chat:
                hint = "only chat reads secrets from files; code gets them as variables"
                self.text.refuse((*self.keys, "secrets", name), f'is "{variable}"', hint=hint)
            if variable in self.table.env:
                hint = "take it out of env, whose values are part of keys and recorded"
                self.text.refuse((*self.keys, "secrets", name), f"is {variable}, which is in env too", hint=hint)
        return tuple(self.table.secrets.items())

    def _kind(self) -> Kind:
        """Which of the three; refuses what only a chat rule has in another."""
        given = [kind for kind in KINDS if getattr(self.table, kind)]
        if not given:
            hint = 'add run = "path.py::function", shell = "command" or chat = "path.py::function"'
            self.text.refuse(self.keys, "does not say what makes its outputs", hint=hint)
        if len(given) > 1:
            hint = "a rule has one of run, shell and chat; two of them are two rules"
            self.text.refuse((*self.keys, given[1]), f"stands beside {given[0]}", hint=hint)
        written = self.text.toml.tree["rule"][self.keys[1]]
        for key in CHAT_ONLY:
            if key in written and given[0] != "chat":
                self.text.refuse((*self.keys, key), f"does not go with {given[0]}", hint="only chat asks a server")
        for key in (*CODE_ONLY, "ephemeral"):
            if key in written and given[0] == "chat":
                self.text.refuse((*self.keys, key), "does not go with chat", hint="leave it out")
        if "strict" in written and given[0] == "shell":
            hint = "sandbox = true binds what its programs read"
            self.text.refuse((*self.keys, "strict"), "does not go with shell", hint=hint)
        return given[0]

    def _check_names(self, name: str, kind: Kind) -> None:
        """Names that can be passed as keywords and used in SQL, each of them once."""
        if why := why_no_rule(name):
            self.text.refuse(self.keys, f"can't be called so: {name} {why}", hint="give the rule another name")
        seen: dict[str, Keys] = {}
        for group in GROUPS:
            for key in getattr(self.table, group):
                at = (*self.keys, group, key)
                taken = (
                    "services",
                    "scratch",
                    *(BY_POSITION if kind == "chat" and group in ("params", "settings") else ()),
                )
                if why := why_no_name(key) or ("is passed by buildsys itself" if key in taken else ""):
                    self.text.refuse(at, f"can't be called so: {key} {why}", hint="give it another name")
                if key in seen:
                    place = self.text.toml.place(*seen[key])
                    hint = "inputs, outputs, params and settings are all passed by name: give one of the two another"
                    self.text.refuse(
                        at, f"is called like {seen[key][2]}.{key}", facts=[("first", str(place))], hint=hint
                    )
                seen[key] = at

    def _each(self) -> Each | None:
        for variable, text in self.table.each.items():
            keys = (*self.keys, "each", variable)
            if variable == PROFILE:
                self.text.refuse(keys, "is a name that is taken", hint=f"{{{PROFILE}}} is the profile: write {SHARD}")
            source = self.text.source(keys, text)
            if isinstance(source, str):
                return Each(variable, self._shard_pattern(keys, source, variable))
            if not source.every:
                hint = f'write "{source}[*]", all shards of {source.rule}'
                self.text.refuse(keys, f'is "{text}", which is one output', hint=hint)
            return Each(variable, source)
        return None

    def _shard_pattern(self, keys: Keys, path: str, variable: str) -> str:
        if self.text.names_in(keys, path, (variable, PROFILE)).count(variable) != 1:
            hint = f'write a reference, or a path such as "workspace/prompts/{{{variable}}}.jsonl"'
            self.text.refuse(keys, f'is "{path}", which has to hold {{{variable}}} once', hint=hint)
        return rename(path, variable, SHARD)

    def _output(self, name: str, text: str, each: Each | None) -> Output:
        keys = (*self.keys, "outputs", name)
        if is_marked(text, "$") or is_marked(text, "@"):
            hint = f'an output is a path; for one of this name write "{text[0]}{text}"'
            self.text.refuse(keys, f'is "{text}", which is not a path', hint=hint)
        path = self.text.path_within(keys, literal(text))
        variable = each.variable if each else SHARD
        n_shards = self.text.names_in(keys, path, (variable, PROFILE)).count(variable)
        if path.partition("/")[0] == ".buildsys":
            self.text.refuse(keys, "lies in .buildsys", hint="that folder is buildsys' own")
        if "*" in path:
            self.text.refuse(
                keys, "holds a *", hint="an output is one path; where the files are many, name their folder"
            )
        if each and not n_shards:
            hint = f"put {{{variable}}} into the path: all shards would write this one"
            self.text.refuse(keys, f"lacks {{{variable}}}", hint=hint)
        if not each and n_shards > 1:
            hint = "a rule that makes shards makes them in one folder, each of them one file or folder"
            self.text.refuse(keys, f"holds {{{variable}}} twice", hint=hint)
        return Output(name, rename(path, variable, SHARD), self.text.toml.place(*keys))

    def _check_command(self, rule: Rule) -> None:
        allowed = [f"{group}.{name}" for group in GROUPS for name in getattr(self.table, group)]
        allowed += [f"services.{name}" for name in rule.services]
        allowed += ["scratch"] if rule.scratch else []
        self.text.names_in((*self.keys, "shell"), rule.command, [*allowed, "python"])

    def _chat(self, rule: Rule) -> Rule:
        """The rule with what chat adds: one input of records, one output of replies, and who answers."""
        for group, parts in {"inputs": rule.inputs, "outputs": rule.outputs}.items():
            if len(parts) != 1:
                hint = "chat reads its records from one input and writes the replies to one output"
                self.text.refuse((*self.keys, group), f"has {len(parts) or 'no'} entries", hint=hint)
        if not self.table.endpoint:
            hint = 'add endpoint = "service:NAME" or the URL of a server'
            self.text.refuse(self.keys, "does not say where its requests go", hint=hint)
        endpoint, *others = self._endpoints()
        url = not endpoint.startswith("service:")
        identity = self.text.value((*self.keys, "identity"), self.table.identity) if url else ""
        if not isinstance(identity, str) or (url and not identity):
            hint = 'add identity = "model@revision": replies are kept under it, and served again while it stays'
            problem = f"{header(self.keys)} does not say who answers at {endpoint}"
            raise self.text.toml.error((*self.keys, "identity"), problem, hint=hint)
        table = self.table
        asking = Asking(tuple(others), table.in_flight, table.canary, table.stream, table.reuse_shorter)
        return replace(rule, endpoint=endpoint, identity=identity, samples=table.samples, asking=asking)

    def _endpoints(self) -> list[str]:
        """A service, or the URLs of one or more servers."""
        keys = (*self.keys, "endpoint")
        value = self.text.value(keys, self.table.endpoint)
        endpoints = value if isinstance(value, list) else [value]
        if not endpoints:
            self.text.refuse(keys, f'is "{self.table.endpoint}", which names no server', hint="write at least one URL")
        for one in endpoints:
            if not isinstance(one, str) or not one:
                self.text.refuse(keys, f"has {one!r}, which is no text")
            if not one.startswith(("http://", "https://")) and (len(endpoints) > 1 or not one.startswith("service:")):
                hint = 'write "service:NAME" or the URL of a server, with http:// or https://'
                if len(endpoints) > 1:
                    hint = "write URLs of servers, with http:// or https://; a service is one for itself"
                self.text.refuse(keys, f'is "{one}"' if len(endpoints) == 1 else f'has "{one}"', hint=hint)
        return endpoints  # type: ignore[return-value]


def _service(text: RuleText, name: str, table: ServiceTable) -> Service:
    keys = ("service", name)
    if why := why_no_name(name):
        text.refuse(keys, f"can't be called so: {name} {why}", hint="give the service another name")
    service = Service(
        name=name,
        command=table.shell,
        ready=table.ready,
        place=text.toml.place(*keys),
        inputs=text.inputs((*keys, "inputs"), table.inputs),
        params=text.params((*keys, "params"), table.params),
        env=tuple(table.env),
        ready_timeout_s=table.ready_timeout_s,
        keep=table.keep,
    )
    parts = [*(f"inputs.{part.name}" for part in service.inputs), *(f"params.{part.name}" for part in service.params)]
    for key, written, allowed in (("shell", table.shell, [*parts, "port", "python"]), ("ready", table.ready, ["port"])):
        if "port" not in text.names_in((*keys, key), written, allowed):
            text.refuse((*keys, key), "lacks {port}", hint="a service listens at the free port that it is given")
    return service
