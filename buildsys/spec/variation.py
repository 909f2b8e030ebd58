"""Configs as one request varies them: a profile's overlay laid over each, then single keys set for one build.

Knows config trees and texts, nothing of rules or the file system. A variation gives other values to keys that there
are; it adds none, and keeps the type of each. So a misspelt key is an error, not a key of its own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import basename, splitext
from typing import NoReturn

from buildsys.errors import BuildError, Place, nearest
from buildsys.model import SHARD_NAME, Value
from buildsys.request import DEFAULT_PROFILE, Variation
from buildsys.spec.config import Config, dotted_keys, parse_config
from buildsys.spec.toml_text import inline_toml, parse_toml

_NAME = re.compile(SHARD_NAME)


@dataclass(frozen=True)
class Change:
    """One key that a profile gives another value. before, after: as TOML writes them on one line."""

    config: str
    key: str
    before: str
    after: str


def check_profile(name: str) -> None:
    """Raises BuildError for what can't be the name of a profile: it becomes part of paths."""
    if not _NAME.fullmatch(name):
        hint = "a profile is made of A-Z a-z 0-9 . _ - and does not start with a dot"
        raise BuildError(f'"{name}" can\'t be the name of a profile', hint=hint)


def overlay_path(config: str, profile: str) -> str:
    """Where the overlay of a config lies: beside it, `eagle3.fast.toml` for `eagle3.toml` and the profile `fast`."""
    stem, suffix = splitext(config)
    return f"{stem}.{profile}{suffix}"


def profile_of(config: str, name: str) -> str:
    """The profile whose overlay of the config a file beside it is, by its name; "" where it is none."""
    stem, suffix = splitext(basename(config))
    middle = name.removeprefix(f"{stem}.").removesuffix(suffix)
    return middle if name == f"{stem}.{middle}{suffix}" and _NAME.fullmatch(middle) else ""


def varied(
    configs: Mapping[str, Config],
    variation: Variation,
    read_text: Callable[[str], str | None],
    profiles: Callable[[str], list[str]],
) -> dict[str, Config]:
    """The configs, by path, as the variation has them.

    read_text: path -> text, None where there is no such file. profiles: path of a config -> those with an overlay for
    it. Raises BuildError for a profile without any overlay (`default` needs none), for a key that there is not, and for
    a value of another type.
    """
    check_profile(variation.profile)
    found = {path: _overlaid(config, variation.profile, read_text) for path, config in configs.items()}
    if variation.profile != DEFAULT_PROFILE and not any(config.overlay for config in found.values()):
        raise _no_profile(variation.profile, configs, profiles)
    for key, text in variation.overrides:
        found = _overridden(found, key, text)
    return found


def changes(base: Config, config: Config) -> list[Change]:
    """What a variation gave other values, in the order of the config."""

    def within(base: Mapping[str, Value], tree: Mapping[str, Value], above: str) -> Iterator[Change]:
        for key, before in base.items():
            after = tree[key]
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                yield from within(before, after, f"{above}{key}.")
            elif (type(before), before) != (type(after), after):
                yield Change(config.path, above + key, inline_toml(before), inline_toml(after))

    return list(within(base.tree, config.tree, ""))


# ---------------------------------------------------------------- overlays


def _overlaid(config: Config, profile: str, read_text: Callable[[str], str | None]) -> Config:
    path = overlay_path(config.path, profile)
    text = read_text(path)
    if text is None:
        return config

    def refuse(keys: tuple[str, ...], problem: str, hint: str) -> NoReturn:
        facts = [("laid over", config.path)]
        if path.endswith(".toml"):
            raise parse_toml(path, text).error(keys, problem, facts=facts, hint=hint)
        raise BuildError(problem, facts=facts, place=Place(path), hint=hint)

    return replace(config, tree=_merged(config, parse_config(path, text).tree, refuse), overlay=path)


def _no_profile(name: str, configs: Mapping[str, Config], profiles: Callable[[str], list[str]]) -> BuildError:
    valid = sorted({DEFAULT_PROFILE, *(profile for path in configs for profile in profiles(path))})
    looked_for = ", ".join(overlay_path(path, name) for path in configs)
    return BuildError(
        f'there is no profile "{name}"',
        facts=[("looked for", looked_for or "nothing: no rule file names a config")],
        hint=nearest(name, valid),
    )


# ---------------------------------------------------------------- single keys


def _overridden(configs: dict[str, Config], key: str, text: str) -> dict[str, Config]:
    """The configs with a key of theirs set: in each that has it."""
    having = {path: config for path, config in configs.items() if key in dotted_keys(config.tree)}
    if not having:
        valid = [known for config in configs.values() for known in dotted_keys(config.tree)]
        facts = [("configs", ", ".join(configs) or "none: no rule file names one")]
        raise BuildError(f"--set {key}: no config has this key", facts=facts, hint=nearest(key, valid))
    return configs | {path: _set(config, key, text) for path, config in having.items()}


def _set(config: Config, key: str, text: str) -> Config:
    def refuse(keys: tuple[str, ...], problem: str, hint: str) -> NoReturn:
        facts = [("set", f"{key}={text}"), ("config", config.path)]
        raise BuildError(f"--set: {problem}", facts=facts, hint=hint)

    tree: dict[str, Value] = {}
    inner = tree
    *above, last = key.split(".")
    for part in above:
        inner[part] = inner = {}
    inner[last] = _value(text, config.get(key))
    return replace(config, tree=_merged(config, tree, refuse))


def _value(text: str, before: Value) -> Value:
    """The text as a value of TOML where it is one, else as it is; so a text may go without its quotes."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = parsed["value"]
    return text if len(parsed) > 1 or (isinstance(before, str) and not isinstance(value, str)) else value


# ---------------------------------------------------------------- both

_Refuse = Callable[[tuple[str, ...], str, str], NoReturn]
"""Raises the error about a key of what is laid over: its keys from the top, the problem, the hint."""


def _merged(config: Config, over: Mapping[str, Value], refuse: _Refuse) -> Mapping[str, Value]:
    """The config's tree with other values: tables are merged, all else is replaced."""

    def merge(base: Mapping[str, Value], over: Mapping[str, Value], above: tuple[str, ...]) -> Mapping[str, Value]:
        tree = dict(base)
        for key, value in over.items():
            keys = (*above, key)
            name = ".".join(keys)
            if key not in base:
                refuse(keys, f'"{name}" is no key of {config.path}', nearest(name, list(dotted_keys(config.tree))))
            before = base[key]
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                tree[key] = merge(before, value, keys)
            elif isinstance(before, float) and type(value) is int:
                tree[key] = float(value)
            elif before is None or type(before) is type(value):
                tree[key] = value
            else:
                problem = f"{name} has to be {_kind(before)}, not {_kind(value)}"
                refuse(keys, problem, f"{config.path} has {name} = {inline_toml(before)}")
        return tree

    return merge(config.tree, over, ())


_KINDS: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "a table",
}


def _kind(value: Value) -> str:
    return "nothing" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")
