"""Config text (TOML, YAML 1.2, JSON) -> typed values by dotted key.

Knows nothing of rules or files. Values keep the types that their format gives them: 1, 1.0, "1" and true stay apart,
dates are dates, null is None.
"""

from __future__ import annotations

import datetime
import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import splitext
from typing import Final, NoReturn

from buildsys.errors import BuildError, Place, excerpt_of, nearest
from buildsys.model import Value
from buildsys.spec.toml_places import key_positions
from buildsys.spec.toml_text import parse_toml

_MOST_LEVELS: Final = 100
"""How deep values may be nested: far above any config, far below where Python gives up."""


@dataclass(frozen=True)
class Config:
    """One parsed config file. path: as it is shown to people. overlay: the file that a profile lays over it, or ""."""

    path: str
    tree: Mapping[str, Value]
    overlay: str = ""

    def get(self, key: str) -> Value:
        """The value at a dotted key, the whole table where it names one.

        Raises BuildError, with the nearest key that there is, but without a place: the caller knows who asked.
        """
        value: Value = self.tree
        for part in key.split("."):
            if not isinstance(value, Mapping) or part not in value:
                close = difflib.get_close_matches(key, [*dotted_keys(self.tree)], n=1)
                raise BuildError(f'no key "{key}" in {self.path}', hint=nearest(key, close or list(self.tree)))
            value = value[part]
        return value


def parse_config(path: str, text: str) -> Config:
    """The config in a file of this name. Raises BuildError where the text is not what the suffix says."""
    try:
        tree = _parse(path, text)
    except RecursionError:
        raise _too_deep(path) from None
    _refuse_depth(path, tree)
    _refuse_what_yaml_alone_has(path, tree)
    if not isinstance(tree, dict):
        hint = "a config is a table: keys with values"
        raise BuildError("a config without keys", place=Place(path, 1), excerpt=excerpt_of(text, 1), hint=hint)
    return Config(path, tree)


def key_line(path: str, text: str, key: str) -> int:
    """The line of a dotted key in a config that can be parsed; 0 where the key is not in it."""
    names = key.split(".")
    if path.endswith(".toml"):
        position = key_positions(text).get(tuple(names))
        return position.line if position else 0
    from ruamel.yaml import YAML

    line, node = 0, YAML(typ="safe", pure=True).compose(text)  # JSON is YAML too.
    for name in names:
        pairs = node.value if node is not None and node.id == "mapping" else ()
        line, node = next(((one.start_mark.line + 1, value) for one, value in pairs if one.value == name), (0, None))
    return line


def _parse(path: str, text: str) -> Value:
    match splitext(path)[1]:
        case ".toml":
            return parse_toml(path, text).tree
        case ".yaml" | ".yml":
            return _parse_yaml(path, text)
        case ".json":
            return _parse_json(path, text)
    hint = "its name has to end with .toml, .yaml, .yml or .json"
    raise BuildError("not a config", place=Place(path), hint=hint)


def _refuse_depth(path: str, tree: Value) -> None:
    """Level by level, each value once, since an alias of YAML may put a value into itself."""
    level = {id(tree): tree}
    for _ in range(_MOST_LEVELS):
        parts: list[Value] = []
        for value in level.values():
            parts += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        level = {id(part): part for part in parts}
    if level:
        raise _too_deep(path)


def _too_deep(path: str) -> BuildError:
    return BuildError(f"values nested more than {_MOST_LEVELS} levels deep, or in themselves", place=Place(path))


def dotted_keys(tree: Mapping[str, Value], above: str = "") -> Iterator[str]:
    """All keys as `$a.b` names them, tables before what they hold."""
    for key, value in tree.items():
        yield above + key
        if isinstance(value, Mapping):
            yield from dotted_keys(value, f"{above}{key}.")


# ---------------------------------------------------------------- YAML


def _parse_yaml(path: str, text: str) -> Value:
    """YAML 1.2, in which NO is a text, 012 is twelve and 1e-5 a number. An empty text is an empty table."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        tree: Value = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        _refuse(path, text, "YAML", _first_line(error.problem or error.context or str(error)), line, column)
    except YAMLError as error:
        _refuse(path, text, "YAML", _first_line(str(error)))
    return {} if tree is None else tree


def _first_line(message: str) -> str:
    return message.partition("\n")[0]


_SCALARS = (str, int, float, bool, datetime.date, datetime.time, type(None))


def _refuse_what_yaml_alone_has(path: str, value: Value, above: str = "") -> None:
    """Keys that are no texts, since `$a.b` can't name them and 1 would pass for "1"; sets, bytes and the like."""
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                where = f" in {above}" if above else ""
                raise BuildError(f"a key that is no text: {key}{where}", place=Place(path), hint=f'write "{key}":')
            _refuse_what_yaml_alone_has(path, part, f"{above}.{key}" if above else key)
    elif isinstance(value, list):
        for part in value:
            _refuse_what_yaml_alone_has(path, part, above)
    elif not isinstance(value, _SCALARS):
        hint = "a config holds texts, numbers, true and false, dates, lists and mappings"
        raise BuildError(f"{above} is a {type(value).__name__}", place=Place(path), hint=hint)


# ---------------------------------------------------------------- JSON


def _parse_json(path: str, text: str) -> Value:
    def table(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
        keys = [key for key, _ in pairs]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            _refuse(path, text, "JSON", f'the key "{twice}" is given twice in one object')
        return dict(pairs)

    try:
        tree: Value = json.loads(text, object_pairs_hook=table)
    except json.JSONDecodeError as error:
        _refuse(path, text, "JSON", error.msg[:1].lower() + error.msg[1:], error.lineno, error.colno)
    return tree


def _refuse(path: str, text: str, language: str, why: str, line: int = 0, column: int = 0) -> NoReturn:
    place = Place(path, line, column)
    raise BuildError(f"not {language}: {why}", place=place, excerpt=excerpt_of(text, line)) from None
