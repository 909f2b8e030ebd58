"""The place of every key: written out by hand for each form of TOML, and against tomllib on generated documents."""

from __future__ import annotations

import json
import string
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildsys.spec.toml_places import Keys, Position, key_positions

DOCUMENT = '''\
# [not.a.table]
plain = 1
"quo ted" = "a # b = c"
'lit.eral' = 'x = 1'
"es\\"cape" = """
inside = 1
[inside.too]
""""
dotted.key . "deep" = [ 1, 2, # three = 3
  [ "]" , { inner = "}" } ],
]

  [ table . sub ]
date = 1979-05-27 07:32:00
inline = { a = 1, b.c = { d = [] }, e = \'\'\'
\'\'\' }

[[many]]
name = 1
[many.more]
x = 1
[[many]]
name = 2
[[many.more]]
x = 2
[table]
last = true'''


@pytest.mark.parametrize(
    ("keys", "line", "column"),
    [
        (("plain",), 2, 1),
        (("quo ted",), 3, 1),
        (("lit.eral",), 4, 1),
        (('es"cape',), 5, 1),
        (("dotted",), 9, 1),
        (("dotted", "key"), 9, 8),
        (("dotted", "key", "deep"), 9, 14),
        (("dotted", "key", "deep", 1), 9, 28),
        (("dotted", "key", "deep", 2, 1, "inner"), 10, 13),
        (("table", "sub"), 13, 13),
        (("table", "sub", "date"), 14, 1),
        (("table", "sub", "inline", "b"), 15, 19),
        (("table", "sub", "inline", "b", "c", "d"), 15, 27),
        (("table", "sub", "inline", "e"), 15, 37),
        (("many",), 18, 3),
        (("many", 0, "name"), 19, 1),
        (("many", 0, "more", "x"), 21, 1),
        (("many", 1), 22, 3),
        (("many", 1, "name"), 23, 1),
        (("many", 1, "more", 0, "x"), 25, 1),
        (("table",), 26, 2),
        (("table", "last"), 27, 1),
    ],
)
def test_a_key_is_found_where_it_is_written(keys: Keys, line: int, column: int) -> None:
    tomllib.loads(DOCUMENT)
    assert key_positions(DOCUMENT)[keys] == Position(line, column)


def test_lines_of_windows_are_counted_like_others() -> None:
    windows = key_positions(DOCUMENT.replace("\n", "\r\n"))
    assert windows == key_positions(DOCUMENT)


def test_nothing_is_found_in_texts_and_comments() -> None:
    assert not [keys for keys in key_positions(DOCUMENT) if "inside" in keys or "not" in keys or "three" in keys]


# ---------------------------------------------------------------- generated documents

NAMES = st.text(st.sampled_from(string.ascii_letters + "_-9 .\"'\\#[]{}=é\t"), max_size=4)
TEXTS = st.text(st.sampled_from("ab\"'\\\n#[]{}=,"), max_size=8)


def _basic(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@st.composite
def keys_as_written(draw: st.DrawFn) -> str:
    """A key in one of the ways to write it."""
    name = draw(NAMES)
    forms = [_basic(name)]
    if "'" not in name:
        forms.append(f"'{name}'")
    if name and set(name) <= set(string.ascii_letters + "_-9"):
        forms.append(name)
    return draw(st.sampled_from(forms))


@st.composite
def scalars(draw: st.DrawFn) -> str:
    text = draw(TEXTS)
    forms = [_basic(text), "1979-05-27 07:32:00", "true", "-1e-5", "nan", "0xff"]
    escaped = text.replace("\\", "\\\\")
    if '"""' not in escaped and len(escaped) - len(escaped.rstrip('"')) <= 2:
        forms.append(f'"""{escaped}"""')
    if "'''" not in text and len(text) - len(text.rstrip("'")) <= 2:
        forms.append(f"'''{text}'''")
    return draw(st.sampled_from(forms))


GAPS = st.sampled_from(["", " ", "\t"])
BREAKS = st.sampled_from(["", " ", "\n", " # a = [comment\n ", "\r\n"])


def arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    element = st.tuples(BREAKS, values, BREAKS).map("".join)
    return st.tuples(st.lists(element, max_size=3).map(",".join), st.sampled_from(["", " ", ",\n"])).map(
        lambda parts: f"[{parts[0]}{parts[1] if parts[0] else ''}]"
    )


def inline_tables(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(GAPS, dotted_keys(), st.just("="), GAPS, values, GAPS).map("".join)
    return st.lists(pair, max_size=3).map(lambda pairs: "{" + ",".join(pairs) + "}")


def dotted_keys() -> st.SearchStrategy[str]:
    return st.lists(keys_as_written(), min_size=1, max_size=3).map(" . ".join)


VALUES = st.recursive(scalars(), lambda values: arrays(values) | inline_tables(values), max_leaves=5)
STATEMENTS = st.one_of(
    st.tuples(GAPS, dotted_keys(), st.just(" ="), GAPS, VALUES, st.sampled_from(["", " # b = 1"])).map("".join),
    dotted_keys().map("[{}]".format),
    dotted_keys().map("[[ {} ]]".format),
    st.just("# [comment]"),
)


def _key_paths(value: object, above: Keys = ()) -> list[Keys]:
    if isinstance(value, dict):
        return [path for key, part in value.items() for path in [(*above, key), *_key_paths(part, (*above, key))]]
    if isinstance(value, list):
        return [path for index, part in enumerate(value) for path in _key_paths(part, (*above, index))]
    return []


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Lines of TOML, each kept only while the whole is valid."""
    text = ""
    for statement in draw(st.lists(STATEMENTS, max_size=12)):
        longer = text + statement + draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
        try:
            tomllib.loads(longer)
        except tomllib.TOMLDecodeError:
            continue
        text = longer
    return text


@settings(max_examples=120, deadline=None)
@given(documents())
def test_the_keys_that_tomllib_finds_and_no_others_have_a_place_that_holds_them(text: str) -> None:
    positions = key_positions(text)
    lines = text.split("\n")
    paths = _key_paths(tomllib.loads(text))
    assert {path for path in positions if isinstance(path[-1], str)} == set(paths)
    for path in paths:
        line, column = positions[path]
        written = lines[line - 1][column - 1 :]
        name = str(path[-1])
        assert written.startswith((name or '""', _basic(name), f"'{name}'")), (path, written)
