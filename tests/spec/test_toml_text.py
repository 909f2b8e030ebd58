"""What is wrong with TOML, in our own words: the text as such, and tables that don't fit their declaration."""

from __future__ import annotations

import pytest

from buildsys.errors import BuildError
from buildsys.spec.tables import FileTable
from buildsys.spec.toml_text import inline_toml, parse_toml


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a = 1\nb\n", 2, "a key without a value"),
        ("a = 1 b = 2\n", 1, "more on this line than one key and its value"),
        ("a = it\n", 1, "no value here"),
        ('a = "b\nc = 1\n', 1, "a string without its closing quote"),
        ("a = [1,\n2\n", 2, "an array without its closing ]"),
        ("a = { b = 1,\n c = 2 }\n", 1, "an inline table that does not go on here"),
        ('a = "\\d"\n', 1, "an unknown escape in a string"),
        ("[a\nb = 1\n", 1, "the header of a table is not closed"),
        ("a = '''\nb\n", 2, "a text of several lines without its closing '''"),
        ('a = """\nb\n', 2, "a string without its closing quote"),
        ("a = 1\na = 2\n", 2, "this has been given before"),
        ("= 1\n", 1, "no key here"),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(BuildError) as caught:
        parse_toml("rules/a.toml", text)
    assert caught.value.problem == f"not TOML: {problem}"
    assert caught.value.place is not None
    assert (caught.value.place.path, caught.value.place.line) == ("rules/a.toml", line)
    assert f"→ {line} │" in caught.value.excerpt


def test_a_table_that_is_opened_twice_tells_both_places() -> None:
    with pytest.raises(BuildError) as caught:
        parse_toml("rules/a.toml", '[rule.a]\nabout = "x"\n\n[rule.b]\n[rule.a]\n')
    assert caught.value.render() == (
        "error: not TOML: this has been given before\n"
        "  rules/a.toml:5\n"
        "      3 │\n"
        "      4 │ [rule.b]\n"
        "    → 5 │ [rule.a]\n"
        "  first: rules/a.toml:1 [rule.a]\n"
        "hint: keep one of the two; keys of one table stand together"
    )


OUTPUTS = 'outputs = { o = "b/o" }\n'


@pytest.mark.parametrize(
    ("text", "place", "problem", "hint"),
    [
        (
            '[rule.tokens]\nouputs = { o = "b/o" }\n',
            "2:1",
            'unknown key "ouputs" in [rule.tokens]',
            'did you mean "outputs"?',
        ),
        ("rules = 1\n", "1:1", 'unknown key "rules"', 'did you mean "rule"?'),
        ("[service.v]\nread = 1\n", "2:1", 'unknown key "read" in [service.v]', 'did you mean "ready"?'),
        ("config = 3\n", "1:1", "config has to be a string, not an integer", "for example: config = "),
        ("rule = 3\n", "1:1", "rule has to be a table, not an integer", ""),
        (f"[rule.a]\n{OUTPUTS}about = 3\n", "3:1", "about in [rule.a] has to be a string, not an integer", "for exam"),
        (f"[rule.a]\n{OUTPUTS}default = 1979-05-27\n", "3:1", "default in [rule.a] has to be true or false, not a", ""),
        (
            f"[rule.a]\n{OUTPUTS}inputs = {{ a = 1.5 }}\n",
            "3:12",
            "inputs.a in [rule.a] has to be a string, not a number",
            "for example: inputs = {",
        ),
        ('[rule.a]\noutputs = "b/o"\n', "2:1", "outputs in [rule.a] has to be a table, not a string", "for example"),
        (f"[rule.a]\n{OUTPUTS}samples = true\n", "3:1", "samples in [rule.a] has to be an integer, not true or", ""),
        (f"[rule.a]\n{OUTPUTS}samples = 0\n", "3:1", "samples in [rule.a] has to be at least 1, not 0", "for example"),
        (
            f'[rule.a]\n{OUTPUTS}env = ["A", "b c"]\n',
            "3:13",
            'env.1 in [rule.a] is "b c", which is not the name of',
            "",
        ),
        (f'[rule.a]\n{OUTPUTS}run = "a.py"\n', "3:1", 'run in [rule.a] is "a.py", which is not a function of a', "for"),
        (f"[rule.my-rule]\n{OUTPUTS}", "1:7", '"my-rule" is not a name', "Letters, digits and _"),
        (f"[rule.a]\n{OUTPUTS}params = {{ 1x = 1 }}\n", "3:12", '"1x" is not a name', "Letters, digits and _"),
        ("[rule.a]\nabout = 'x'\n", "1:7", '[rule.a] lacks "outputs"', "for example: outputs = {"),
        ("[rule.a]\noutputs = {}\n", "2:1", "outputs in [rule.a] is empty", "for example: outputs = {"),
        (f'[rule.a]\n{OUTPUTS}[rule.a.checks]\nc = ""\n', "4:1", "checks.c in [rule.a] is empty", "for example"),
        (
            f"[rule.a]\n{OUTPUTS}checks = {{ c = 3 }}\n",
            "3:12",
            "checks.c in [rule.a] has to be a string or a table",
            "f",
        ),
        (f"[rule.a]\n{OUTPUTS}checks = {{ c = {{}} }}\n", "3:12", '[rule.a.checks.c] lacks "sql"', "for example: sql"),
        (
            f'[rule.a]\n{OUTPUTS}checks = {{ c = {{ sql = "x", severty = "warn" }} }}\n',
            "3:29",
            'unknown key "severty" in [rule.a.checks.c]',
            'did you mean "severity"?',
        ),
        (
            f'[rule.a]\n{OUTPUTS}[rule.a.checks.c]\nsql = "x"\nseverity = "warning"\n',
            "5:1",
            'severity in [rule.a.checks.c] is "warning", which is neither "error" nor "warn"',
            'for example: severity = "warn"',
        ),
        (
            f'[rule.a]\n{OUTPUTS}checks = {{ c = {{ sql = "", canary = false }} }}\n',
            "3:18",
            "sql in [rule.a.checks.c] is empty",
            "for example: sql",
        ),
        (
            f'[rule.a]\n{OUTPUTS}each = {{ a = "x", b = "y" }}\n',
            "3:1",
            "each in [rule.a] has 2 entries, and may have one",
            'for example: each = { shard = "@prompts[*]" }',
        ),
        (
            '[service.v]\nshell = "x"\nready = "y"\nready_timeout_s = 0\n',
            "4:1",
            "ready_timeout_s in [service.v] has to be more than 0, not 0",
            "for example: ready_timeout_s = 600",
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_key(text: str, place: str, problem: str, hint: str) -> None:
    with pytest.raises(BuildError) as caught:
        parse_toml("rules/a.toml", text).table(FileTable)
    assert caught.value.problem.startswith(problem)
    assert str(caught.value.place) == f"rules/a.toml:{place}"
    assert f"→ {place.partition(':')[0]} │" in caught.value.excerpt
    assert caught.value.hint.startswith(hint)


def test_a_value_is_written_on_one_line() -> None:
    value = {"a": ["x", 'q"', "\\"], "b": {"c": 1.5, "d": False}}
    assert parse_toml("x.toml", f"v = {inline_toml(value)}").tree == {"v": value}
