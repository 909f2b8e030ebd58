"""A TOML text that knows where its keys are: parsed, checked against declarations, and able to say what is wrong where.

Knows nothing of rules; the declarations are msgspec structs that are handed in.
"""

from __future__ import annotations

import ast
import datetime
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, NoReturn, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from buildsys.errors import BuildError, Place, excerpt_of, nearest
from buildsys.spec.toml_places import Keys, Position, key_positions

Table = TypeVar("Table", bound=msgspec.Struct)


@dataclass(frozen=True)
class TomlText:
    """One parsed file. path: as it is shown to people."""

    path: str
    text: str
    tree: Mapping[str, Any]

    @cached_property
    def _positions(self) -> dict[Keys, Position]:
        return key_positions(self.text)

    def place(self, *keys: str | int) -> Place:
        """Where the key path is written; where it is not, where the nearest table around it is."""
        while keys and keys not in self._positions:
            keys = keys[:-1]
        return Place(self.path, *self._positions[keys]) if keys else Place(self.path)

    def error(
        self, keys: Keys, problem: str, *, facts: Iterable[tuple[str, str]] = (), hint: str = "", around: int = 1
    ) -> BuildError:
        """An error at a key path, with the lines there."""
        place = self.place(*keys)
        excerpt = excerpt_of(self.text, place.line, around=around)
        return BuildError(problem, facts=facts, place=place, excerpt=excerpt, hint=hint)

    def table(self, declaration: type[Table]) -> Table:
        """The whole document as a struct. Raises BuildError at the deepest key that does not fit."""
        try:
            return msgspec.convert(self.tree, declaration)
        except msgspec.ValidationError as error:
            return self._refuse(declaration, self.tree, (), str(error))

    def _refuse(
        self, kind: Any, value: Any, keys: Keys, message: str, within: Keys = (), example: str = ""
    ) -> NoReturn:
        """Raises the error for a value that msgspec refused with `message`, from the part of it that is at fault.

        within: the table with declared keys around it. example: of the nearest key that has one.
        """
        bare = _meant(kind, value)
        if _is_struct(bare):
            self._refuse_unknown_key(bare, value, keys)
            within = keys if isinstance(value, dict) else within
        elif get_origin(bare) is dict:
            self._refuse_bad_names(kind, value, keys)
        for key, part_kind, part in _parts(kind, value):
            try:
                msgspec.convert(part, part_kind)
            except msgspec.ValidationError as error:
                nearer = _example(str(key), part_kind) or example
                self._refuse(part_kind, part, (*keys, key), str(error), within, nearer)
        if (missing := _MISSING.match(message)) and _is_struct(bare):
            hint = _example(missing["key"], get_type_hints(bare, include_extras=True)[missing["key"]])
            raise self.error(keys, f'{header(keys)} lacks "{missing["key"]}"', hint=hint)
        name = ".".join(map(str, keys[len(within) :])) + (f" in {header(within)}" if within else "")
        raise self.error(keys, _in_words(name, kind, value, message), hint=example)

    def _refuse_unknown_key(self, kind: type[msgspec.Struct], value: Any, keys: Keys) -> None:
        known = kind.__struct_fields__
        for key in value if isinstance(value, dict) else ():
            if key not in known:
                problem = f'unknown key "{key}"' + (f" in {header(keys)}" if keys else "")
                raise self.error((*keys, key), problem, hint=nearest(key, known))

    def _refuse_bad_names(self, kind: Any, value: Any, keys: Keys) -> None:
        key_kind = get_args(_bare(kind))[0]
        for key in value if isinstance(value, dict) else ():
            try:
                msgspec.convert(key, key_kind)
            except msgspec.ValidationError:
                meta = _metas(key_kind)[-1]
                raise self.error((*keys, key), f'"{key}" is not {meta.title}', hint=meta.description or "") from None


def header(keys: Keys) -> str:
    """The header of a table: `[rule.tokens]`."""
    return f"[{'.'.join(map(str, keys))}]"


def inline_toml(value: object) -> str:
    """A value as it is written on one line of TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline_toml, value)) + "]"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)


def parse_toml(path: str, text: str) -> TomlText:
    """The parsed text. Raises BuildError at the line where it stops being TOML."""
    try:
        return TomlText(path, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, str(error)) from None


# ---------------------------------------------------------------- what does not parse

_AT = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)
_TWICE = ("Cannot declare", "Cannot overwrite", "Duplicate inline table key", "Cannot redefine", "Cannot mutate")
_SYNTAX = {
    "Invalid statement": ("no key here", 'a line is a [table] or key = value; keys with other signs are "quoted"'),
    "Expected '='": ("a key without a value", "write key = value"),
    "Expected newline": ("more on this line than one key and its value", "put each key on a line of its own"),
    "Expected ']": ("the header of a table is not closed", "write [table] on a line of its own"),
    "Invalid value": ("no value here", 'text is quoted: key = "text"'),
    "Illegal character '\\n'": ("a string without its closing quote", 'write """ around a text of several lines'),
    "Illegal character": ("a control character", "write it as an escape, such as \\u0007"),
    "Unclosed array": ("an array without its closing ]", ""),
    "Unclosed inline table": ("an inline table without its closing }", "it has to end on the line that it starts on"),
    "Invalid initial character for a key": (
        "an inline table that does not go on here",
        "{ ... } is one line without a comma at its end; a longer one is a [table] of its own",
    ),
    "Unescaped": (
        "an unknown escape in a string",
        "double the backslash, or write 'single quotes', which know no escapes",
    ),
    "Expected \"'''\"": ("a text of several lines without its closing '''", ""),
    "Unterminated string": ("a string without its closing quote", ""),
}


def _not_toml(path: str, text: str, message: str) -> BuildError:
    match = _AT.match(message)
    what = match["what"] if match else message
    lines = text.rstrip().count("\n") + 1
    line = int(match["line"]) if match and match["line"] else lines
    column = int(match["column"]) if match and match["column"] else 0
    problem, hint = what[:1].lower() + what[1:], ""
    for start, words in _SYNTAX.items():
        if what.startswith(start):
            problem, hint = words
            break
    facts: list[tuple[str, str]] = []
    if what.startswith(_TWICE):
        problem, hint, column = "this has been given before", "keep one of the two; keys of one table stand together", 0
        facts = [("first", first)] if (first := _first_declared(path, text, line, what)) else []
    place = Place(path, line, column)
    return BuildError(f"not TOML: {problem}", facts=facts, place=place, excerpt=excerpt_of(text, line), hint=hint)


def _first_declared(path: str, text: str, line: int, what: str) -> str:
    """Where the table that is declared a second time at `line` was declared first; "" for other keys."""
    if (match := re.fullmatch(r"Cannot declare (\(.*\)) twice", what)) is None:
        return ""
    keys = ast.literal_eval(match[1])
    position = key_positions("\n".join(text.split("\n")[: line - 1])).get(keys)
    return f"{Place(path, position.line)} {header(keys)}" if position else ""


# ---------------------------------------------------------------- what does not fit

_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "object": "a table",
    "array": "an array",
    "date": "a date",
    "time": "a time",
    "datetime": "a date and time",
}
_TYPES = re.compile(r"Expected `([\w |]+)`, got `(\w+)`")
_LIMIT = re.compile(r"Expected `\w+` ([<>]=?) ([\d.]+)")
_BOUNDS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
_MISSING = re.compile(r"Object missing required field `(?P<key>\w+)`")


def _in_words(name: str, kind: Any, value: Any, message: str) -> str:
    """What msgspec says of one value, in the words of TOML."""
    if match := _TYPES.match(message):
        wanted = " or ".join(_WORDS[one] for one in match[1].split(" | "))
        return f"{name} has to be {wanted}, not {_WORDS[match[2]]}"
    if match := _LIMIT.match(message):
        return f"{name} has to be {_BOUNDS[match[1]]} {float(match[2]):g}, not {value}"
    if message.startswith("Invalid enum value"):
        return f'{name} is "{value}", which is {_neither(kind)}'
    if "matching regex" in message:
        return f'{name} is "{value}", which is not {next(meta.title for meta in _metas(kind) if meta.title)}'
    return f"{name} is empty" if not value else f"{name} has {len(value)} entries, and may have one"


def _neither(kind: Any) -> str:
    """`neither "a" nor "b"`, of the texts that a key may have."""
    return "neither " + " nor ".join(f'"{choice}"' for choice in get_args(_bare(kind)))


def _example(key: str, kind: Any) -> str:
    examples = [example for meta in _metas(kind) for example in meta.examples or ()]
    return f"for example: {key} = {inline_toml(examples[0])}" if examples else ""


def _metas(kind: Any) -> list[msgspec.Meta]:
    return [meta for meta in getattr(kind, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _meant(kind: Any, value: Any) -> Any:
    """What a table or an array is to be, where it may be something else, too."""
    kind = _bare(kind)
    choices = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    if isinstance(value, list):
        return next((one for one in choices if get_origin(one) is list), kind)
    return next((one for one in choices if _is_struct(one)), kind) if isinstance(value, dict) else kind


def _is_struct(kind: Any) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _parts(kind: Any, value: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """(key, declared type, value) of what a table or array holds."""
    kind = _meant(kind, value)
    if _is_struct(kind) and isinstance(value, dict):
        hints = get_type_hints(kind, include_extras=True)
        yield from ((key, hints[key], part) for key, part in value.items())
    elif get_origin(kind) is dict and isinstance(value, dict):
        yield from ((key, get_args(kind)[1], part) for key, part in value.items())
    elif get_origin(kind) is list and isinstance(value, list):
        yield from ((index, get_args(kind)[0], part) for index, part in enumerate(value))
