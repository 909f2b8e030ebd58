"""Profiles and keys set for one build: what they make of the config, where outputs lie, and what runs."""

from __future__ import annotations

import pytest

from buildsys.errors import USAGE
from buildsys.explain import explain
from buildsys.project import Project
from buildsys.query import sql
from buildsys.request import Variation
from buildsys.survey import survey
from tests.behaviour.conftest import Space

RULES = """
config = "configs/all.toml"

[rule.cut]
shell = '''
mkdir -p {outputs.part}
head -n {params.cap} {inputs.source} | awk -v to={outputs.part} -v per={params.per} \\
    '{{ print > (to "/" int((NR - 1) / per) ".txt") }}'
'''
inputs = { source = "data/lines.txt" }
params = { cap = "$cap", per = "$per" }
outputs = { part = "build/{profile}/cut/{shard}.txt" }

[rule.shout]
each = { shard = "@cut[*]" }
shell = "tr a-z A-Z < {inputs.part} > {outputs.loud}; printf %s {params.mark} >> {outputs.loud}"
inputs = { part = "@cut" }
params = { mark = "$style.mark" }
outputs = { loud = "build/{profile}/shout/{shard}.txt" }
"""
CONFIG = 'cap = 6\nper = 2\nweight = 1.0\nname = "all"\ntags = ["a"]\n[style]\nmark = "!"\nwide = false\n'
SHARED = """
[rule.index]
shell = "cat {inputs.parts} | wc -c > {outputs.total}; echo {params.weight} >> {outputs.total}"
inputs = { parts = "@cut[*]" }
params = { weight = "$weight" }
outputs = { total = "shared/index.txt" }
"""
CUT = ["cut"]
SHOUT = ["shout[0]", "shout[1]", "shout[2]"]


@pytest.fixture
def words(space: Space) -> Space:
    """Six lines in three shards, and the profile `quiet`, which has another mark."""
    space.write("rules/words.toml", RULES)
    space.write("configs/all.toml", CONFIG)
    space.write("configs/all.quiet.toml", '[style]\nmark = "."\n')
    space.write("data/lines.txt", "a\nb\nc\nd\ne\nf\n")
    return space


def share(words: Space) -> None:
    """A third rule, whose output all profiles have in common."""
    words.write("rules/words.toml", RULES + SHARED)


# ---------------------------------------------------------------- side by side


def test_two_profiles_keep_their_outputs_side_by_side_and_switching_runs_nothing(words):
    assert words.build().ran == CUT + SHOUT
    quiet = words.build(profile="quiet")
    assert (quiet.ran, quiet.restored) == (SHOUT, CUT)
    assert words.read("build/default/shout/0.txt") == "A\nB\n!"
    assert words.read("build/quiet/shout/0.txt") == "A\nB\n."
    for profile in ("default", "quiet", "default"):
        again = words.build(profile=profile)
        assert again.actions("reused") == CUT + SHOUT


def test_a_cap_changed_in_one_profile_leaves_the_other_alone(words):
    words.build()
    words.build(profile="quiet")
    words.write("configs/all.quiet.toml", 'cap = 2\n[style]\nmark = "."\n')
    assert words.build().actions("reused") == CUT + SHOUT
    assert words.build(profile="quiet").ran == CUT
    assert not (words.root / "build/quiet/shout/2.txt").exists()
    assert words.read("build/default/shout/2.txt") == "E\nF\n!"
    assert words.build().actions("reused") == CUT + SHOUT


def test_an_edit_of_the_config_reaches_a_profile_that_does_not_say_otherwise(words):
    words.build(profile="quiet")
    words.replace("configs/all.toml", 'mark = "!"', 'mark = "?"')
    assert words.build(profile="quiet").ran == []
    words.replace("configs/all.toml", "per = 2", "per = 3")
    assert words.build(profile="quiet").ran == ["cut", "shout[0]", "shout[1]"]


def test_every_view_tells_the_profiles_apart(words):
    words.build()
    words.build(profile="quiet", overrides=(("style.wide", "true"),))
    rows = sql(words.root, "SELECT profile, overrides FROM runs ORDER BY run_id").rows
    assert rows == [("default", []), ("quiet", ["style.wide=true"])]
    marks = "SELECT profile, value FROM params WHERE name = 'mark' ORDER BY profile"
    assert sql(words.root, marks).rows == [("default", "'!' (str)"), ("quiet", "'.' (str)")]
    places = "SELECT path FROM artifacts WHERE profile = 'quiet' AND rule = 'shout' AND shard = '1'"
    assert sql(words.root, places).rows == [("build/quiet/shout/1.txt",)]


def test_a_profile_may_come_as_yaml_or_json_beside_such_a_config(words):
    words.write("rules/words.toml", RULES.replace("all.toml", "all.yaml"))
    words.write("configs/all.yaml", "cap: 2\nper: 2\nstyle: { mark: '!' }\n")
    words.write("configs/all.quiet.yaml", "style: { mark: '-' }\n")
    assert words.build(profile="quiet").ran == ["cut", "shout[0]"]
    assert words.read("build/quiet/shout/0.txt") == "A\nB\n-"


# ---------------------------------------------------------------- what SQL says of two profiles


def compared(words: Space, run_a: int, run_b: int) -> list[tuple[str, ...]]:
    """(rule, shard, kind, name) of all that differs, and the two values where people can read them."""
    rows = sql(words.root, f"FROM compare({run_a}, {run_b})").rows
    return [
        (rule, shard, kind, name, *((a, b) if kind == "param" else ())) for rule, shard, kind, name, _, a, b in rows
    ]


def test_compare_tells_two_profiles_apart_by_what_one_of_them_says_otherwise(words):
    words.build()
    words.build(profile="quiet")
    assert compared(words, 1, 2) == [
        ("shout", "", "param", "mark", "'!' (str)", "'.' (str)"),
        ("shout", "0", "output", "loud"),
        ("shout", "1", "output", "loud"),
        ("shout", "2", "output", "loud"),
    ]


def test_compare_tells_what_an_edit_changed_in_one_profile(words):
    words.build(profile="quiet")
    words.build()
    words.write("configs/all.quiet.toml", 'cap = 4\n[style]\nmark = "."\n')
    words.build(profile="quiet")
    assert compared(words, 1, 3) == [
        ("cut", "", "output", "part"),
        ("cut", "", "param", "cap", "6 (int)", "4 (int)"),
        ("shout", "2", "input", "part"),
        ("shout", "2", "output", "loud"),
    ]
    assert compared(words, 2, 2) == []


def test_lineage_is_that_of_the_profile_though_results_are_shared(words):
    words.write("configs/all.quiet.toml", "cap = 60\n")
    words.build()
    assert words.build(profile="quiet").restored == SHOUT
    caps = "SELECT value FROM upstream('build/{}/shout/1.txt') WHERE name = 'cap'"
    assert sql(words.root, caps.format("default")).rows == [("6 (int)",)]
    assert sql(words.root, caps.format("quiet")).rows == [("60 (int)",)]
    paths = "SELECT path FROM upstream('build/quiet/shout/1.txt') WHERE kind IN ('artifact', 'source') ORDER BY depth"
    assert sql(words.root, paths).rows == [
        ("build/quiet/shout/1.txt",),
        ("build/quiet/cut/1.txt",),
        ("data/lines.txt",),
    ]
    below = "SELECT path FROM downstream('build/quiet/cut/1.txt')"
    assert sql(words.root, below).rows == [("build/quiet/shout/1.txt",)]


# ---------------------------------------------------------------- what is looked at


def test_plan_and_why_look_at_the_profile_that_they_are_asked_for(words):
    words.build()
    quiet = Project(words.root, Variation("quiet"))
    fates = {str(planned.action): planned.fate for planned in survey(quiet).actions}
    assert fates == {"cut": "restore"} | dict.fromkeys(SHOUT, "run")
    words.build(profile="quiet")
    assert survey(Project(words.root, Variation("quiet"))).up_to_date
    (shout,) = explain(Project(words.root, Variation("quiet", (("style.mark", "?"),))), "shout[1]")
    assert shout.planned.reason == "param mark changed: '.' (str) → '?' (str) (style.mark)"
    assert survey(Project(words.root)).up_to_date


def test_a_target_is_a_path_of_its_profile(words):
    assert words.build("build/quiet/shout/1.txt", profile="quiet").ran == ["cut", "shout[1]"]
    assert words.build("build/quiet/shout/1.txt").error is not None


# ---------------------------------------------------------------- set for one build


def test_a_key_can_be_set_for_one_build_and_the_next_one_takes_it_back(words):
    words.build()
    once = words.build(overrides=(("style.mark", "?"), ("cap", "4")))
    assert once.ran == ["cut", "shout[0]", "shout[1]"]
    assert words.read("build/default/shout/0.txt") == "A\nB\n?"
    again = words.build()
    assert again.ran == []
    assert again.restored == CUT + SHOUT


def test_an_integer_is_a_number_where_the_config_has_one(words):
    share(words)
    words.build()
    assert words.build(overrides=(("weight", "1"),)).actions("reused") == ["cut", "index", *SHOUT]
    assert words.build(overrides=(("weight", "2"),)).ran == ["index"]


@pytest.mark.parametrize("value", ["quiet, please", "12", "true", '"12"'])
def test_a_text_needs_no_quotes(words, value):
    words.build(overrides=(("style.mark", value),))
    assert words.read("build/default/shout/0.txt") == "A\nB\n" + value.strip('"')


@pytest.mark.parametrize(
    ("key", "value", "problem", "hint"),
    [
        ("caps", "4", "--set caps: no config has this key", 'did you mean "cap"?'),
        ("style.marks", "x", "--set style.marks: no config has this key", 'did you mean "style.mark"?'),
        ("cap", "many", "--set: cap has to be an integer, not a text", "configs/all.toml has cap = 6"),
        ("cap", "1.5", "--set: cap has to be an integer, not a number", "configs/all.toml has cap = 6"),
        ("style.wide", "1", "--set: style.wide has to be true or false, not an integer", "style.wide = false"),
        ("style", "loud", "--set: style has to be a table, not a text", "configs/all.toml has style = "),
        ("style", "{ loud = 1 }", '--set: "style.loud" is no key of configs/all.toml', "style"),
        ("tags", "b", "--set: tags has to be an array, not a text", 'configs/all.toml has tags = ["a"]'),
    ],
)
def test_what_can_not_be_set_is_told(words, key, value, problem, hint):
    error = words.build(overrides=((key, value),)).error
    assert error is not None
    assert (error.problem, error.exit_code) == (problem, USAGE)
    assert hint in error.hint


# ---------------------------------------------------------------- overlays that are wrong


@pytest.mark.parametrize(
    ("overlay", "problem", "line", "hint"),
    [
        ("[style]\nmarc = '.'\n", '"style.marc" is no key of configs/all.toml', 2, 'did you mean "style.mark"?'),
        ("cap = '4'\n", "cap has to be an integer, not a text", 1, "configs/all.toml has cap = 6"),
        ("per = 2\n[cap]\nhigh = 4\n", "cap has to be an integer, not a table", 2, "configs/all.toml has cap = 6"),
        ("cap = \n", "not TOML: no value here", 1, 'text is quoted: key = "text"'),
    ],
)
def test_an_overlay_that_is_wrong_is_told_with_its_line(words, overlay, problem, line, hint):
    words.write("configs/all.quiet.toml", overlay)
    error = words.build(profile="quiet").error
    assert error is not None
    assert error.place is not None
    assert (error.problem, error.place.path, error.place.line) == (problem, "configs/all.quiet.toml", line)
    assert error.hint == hint
    assert words.build().error is None


def test_a_profile_that_there_is_not_is_told_with_those_that_there_are(words):
    words.write("configs/all.loud.toml", "cap = 1\n")
    error = words.build(profile="quite").error
    assert error is not None
    assert (error.problem, error.hint) == ('there is no profile "quite"', 'did you mean "quiet"?')
    assert error.facts == (("looked for", "configs/all.quite.toml"),)
    far = words.build(profile="night").error
    assert far is not None
    assert far.hint == "valid here: default, loud, quiet"


@pytest.mark.parametrize("name", ["../quiet", ".quiet", "a b", ""])
def test_a_profile_has_a_name_that_can_be_a_folder(words, name):
    error = words.build(profile=name).error
    assert error is not None
    assert "can't be the name of a profile" in error.problem


# ---------------------------------------------------------------- outputs that profiles share


def test_an_output_that_is_the_same_under_two_profiles_is_shared(words):
    share(words)
    assert words.build().ran == ["cut", "index", *SHOUT]
    assert words.build(profile="quiet").actions("reused") == ["index"]
    words.write("data/lines.txt", "a\nb\nc\nd\ne\nzzz\n")
    assert words.build(profile="quiet").ran == ["cut", "index", "shout[2]"]
    after = words.build()
    assert (after.ran, after.actions("reused")) == (["shout[2]"], ["index", "shout[0]", "shout[1]"])


def test_a_shared_output_is_refused_before_anything_runs_where_its_rule_says_otherwise(words):
    share(words)
    words.write("configs/all.quiet.toml", "weight = 2.5\n")
    built = words.build(profile="quiet")
    assert (built.ran, built.error is not None) == ([], True)
    assert built.error.problem == "index can't share its output with the profile default: it would make another"
    assert built.error.facts == (
        ("default", "shared/index.txt"),
        ("quiet", "shared/index.txt"),
        ("differs", "param weight changed: 1.0 (float) → 2.5 (float) (weight)"),
    )
    assert built.error.hint == 'write "shared/{profile}/index.txt", which gives each profile one of its own'
    assert words.build("shout", profile="quiet").ran == CUT + SHOUT


def test_a_shared_output_is_refused_where_what_it_is_made_from_is_another(words):
    share(words)
    words.build()
    words.write("configs/all.quiet.toml", "cap = 2\n")
    built = words.build(profile="quiet", keep_going=True)
    assert built.ran == ["cut"]
    assert built.failed == ["index"]
    assert "input parts is another" in built.errors
    assert "param cap changed: 6 (int) → 2 (int) (cap)" in built.errors
    assert words.build().actions("reused") == ["cut", "index", *SHOUT]


def test_inputs_that_come_out_equal_all_the_same_are_shared(words):
    share(words)
    words.build()
    words.write("configs/all.quiet.toml", "cap = 60\n")
    built = words.build(profile="quiet")
    assert built.ran == ["cut"]
    assert built.actions("reused") == ["index"]


def test_a_shared_output_whose_script_is_broken_is_blocked_as_any_other(words):
    rule = 'run = "scripts/count.py::count"\ninputs = { parts = "@cut[*]" }\noutputs = { total = "shared/n.txt" }\n'
    words.write("rules/count.toml", "[rule.count]\n" + rule)
    words.write("scripts/count.py", "def count(parts, total:\n")
    built = words.build(profile="quiet", keep_going=True)
    assert (built.error, built.actions("blocked"), built.ran) == (None, ["count"], CUT + SHOUT)


def test_a_shared_output_stays_while_another_profile_holds_it(words):
    each = """
        [rule.twice]
        each = { shard = "@cut[*]" }
        shell = "cat {inputs.part} {inputs.part} > {outputs.twice}"
        inputs = { part = "@cut" }
        outputs = { twice = "shared/twice/{shard}.txt" }
        """
    words.write("rules/words.toml", RULES)
    words.write("rules/twice.toml", each)
    words.build()
    words.build(profile="quiet")
    words.write("configs/all.quiet.toml", "cap = 4\n")
    assert words.build(profile="quiet").outcome == "done"
    assert words.read("shared/twice/2.txt") == "e\nf\ne\nf\n"
    assert words.build().restored == []
