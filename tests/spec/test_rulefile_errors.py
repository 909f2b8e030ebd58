"""What read_rules refuses, with the place and what to do about it."""

from __future__ import annotations

import pytest

from buildsys.errors import BuildError
from buildsys.spec.rulefile import read_rules

CONFIG = 'samples = 100\n[verifier]\nmodel = "m"\nn = 3\nempty = ""\n'
RUN = 'run = "s.py::f"\n'
OUT = 'outputs = { o = "b/o" }\n'
CHAT = 'chat = "s.py::f"\ninputs = { i = "data/x" }\n' + OUT
TOKENS = f"[rule.tokens]\n{RUN}outputs = {{ x = 'b/1', y = 'b/2' }}\n"
SERVICE = '[service.verifier]\nshell = "serve {port}"\nready = "http://127.0.0.1:{port}"\n'


def refused(text: str, *more: str) -> BuildError:
    """The error for rule files a.toml, b.toml ... of these texts."""
    texts = {f"rules/{name}.toml": text for name, text in zip("abc", (text, *more), strict=False)}
    with pytest.raises(BuildError) as caught:
        read_rules(texts, {"c.toml": CONFIG}.get)
    return caught.value


ERRORS: dict[str, tuple[str, str, str, str]] = {
    # what: (text of the rule file, line:column, problem, hint), both as they begin
    "no kind": (
        f"[rule.a]\n{OUT}",
        "1:7",
        "[rule.a] does not say what makes its outputs",
        'add run = "path.py::function", shell',
    ),
    "two kinds": (
        f'[rule.a]\n{RUN}shell = "x"\n{OUT}',
        "3:1",
        "shell in [rule.a] stands beside run",
        "a rule has one of run, shell and chat",
    ),
    "a key of chat elsewhere": (
        f"[rule.a]\n{RUN}{OUT}samples = 1\n",
        "4:1",
        "samples in [rule.a] does not go with run",
        "only chat asks a server",
    ),
    "a view's name": (
        f"[rule.runs]\n{RUN}{OUT}",
        "1:7",
        "[rule.runs] can't be called so: runs is a view of the manifest",
        "give the rule another name",
    ),
    "a word of SQL": (
        f"[rule.order]\n{RUN}{OUT}",
        "1:7",
        "[rule.order] can't be called so: order is a word of SQL",
        "",
    ),
    "a word of Python": (
        f"[rule.a]\n{RUN}inputs = {{ class = 'x' }}\n{OUT}",
        "3:12",
        "inputs.class in [rule.a] can't be called so: class is a word of Python",
        "give it another name",
    ),
    "a keyword of buildsys": (
        f"[rule.a]\n{RUN}settings = {{ services = 1 }}\n{OUT}",
        "3:14",
        "settings.services in [rule.a] can't be called so: services is passed by buildsys itself",
        "give it another name",
    ),
    "an argument of build_request": (
        f'[rule.a]\n{CHAT}endpoint = "service:v"\nparams = {{ replies = 1 }}\n',
        "6:12",
        "params.replies in [rule.a] can't be called so: replies is passed by buildsys itself",
        "give it another name",
    ),
    "one name twice": (
        f"[rule.a]\n{RUN}params = {{ o = 1 }}\n{OUT}",
        "3:12",
        "params.o in [rule.a] is called like outputs.o",
        "inputs, outputs, params and settings are all passed by name",
    ),
    "each of one output": (
        f"{TOKENS}[rule.a]\neach = {{ shard = '@tokens.x' }}\n{RUN}outputs = {{ o = 'b/o/{{shard}}' }}\n",
        "5:10",
        'each.shard in [rule.a] is "@tokens.x", which is one output',
        'write "@tokens.x[*]", all shards of tokens',
    ),
    "each without its variable": (
        f"[rule.a]\neach = {{ part = 'data/*.jsonl' }}\n{RUN}outputs = {{ o = 'b/{{part}}' }}\n",
        "2:10",
        'each.part in [rule.a] is "data/*.jsonl", which has to hold {part} once',
        'write a reference, or a path such as "workspace/prompts/{part}.jsonl"',
    ),
    "each called profile": (
        f"[rule.a]\neach = {{ profile = 'data/{{profile}}' }}\n{RUN}outputs = {{ o = 'b/{{profile}}' }}\n",
        "2:10",
        "each.profile in [rule.a] is a name that is taken",
        "{profile} is the profile: write shard",
    ),
    "one path for all shards": (
        f"[rule.a]\neach = {{ part = 'data/{{part}}' }}\n{RUN}{OUT}",
        "4:13",
        "outputs.o in [rule.a] lacks {part}",
        "put {part} into the path: all shards would write this one",
    ),
    "a doubled variable is none": (
        f"[rule.a]\neach = {{ part = 'data/{{part}}' }}\n{RUN}outputs = {{ o = 'b/{{{{part}}}}' }}\n",
        "4:13",
        "outputs.o in [rule.a] lacks {part}",
        "",
    ),
    "an origin with two folders": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'b/{{shard}}/{{shard}}.jsonl' }}\n",
        "3:13",
        "outputs.o in [rule.a] holds {shard} twice",
        "a rule that makes shards makes them in one folder",
    ),
    "a name in braces that is none": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'b/{{profil}}' }}\n",
        "3:13",
        "outputs.o in [rule.a] has {profil}, which stands for nothing",
        'did you mean "{profile}"?',
    ),
    "shard where it is called otherwise": (
        f"[rule.a]\neach = {{ part = 'data/{{part}}' }}\n{RUN}outputs = {{ o = 'b/{{shard}}' }}\n",
        "4:13",
        "outputs.o in [rule.a] has {shard}, which stands for nothing",
        "valid here: {part}, {profile}",
    ),
    "a shard's input without shards": (
        f"[rule.a]\n{RUN}inputs = {{ i = 'data/{{shard}}' }}\n{OUT}",
        "3:12",
        "inputs.i in [rule.a] has {shard}, which stands for nothing",
        "valid here: {profile}",
    ),
    "a single brace": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'b/{{x' }}\n",
        "3:13",
        'outputs.o in [rule.a] has a single "{"',
        "write {{ and }} for the braces themselves",
    ),
    "an output from the config": (
        f"config = 'c.toml'\n[rule.a]\n{RUN}outputs = {{ o = '$verifier.model' }}\n",
        "4:13",
        'outputs.o in [rule.a] is "$verifier.model", which is not a path',
        'an output is a path; for one of this name write "$$verifier.model"',
    ),
    "an absolute output": (
        f"[rule.a]\n{RUN}outputs = {{ o = '/b/o' }}\n",
        "3:13",
        'outputs.o in [rule.a] is "/b/o", which is not in the project',
        "write the path from the project's folder",
    ),
    "an output that leaves": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'b/../../o' }}\n",
        "3:13",
        "outputs.o in [rule.a] is",
        "",
    ),
    "the project as output": (f"[rule.a]\n{RUN}outputs = {{ o = './' }}\n", "3:13", "outputs.o in [rule.a] is", ""),
    "a script that leaves": (f"[rule.a]\nrun = '../s.py::f'\n{OUT}", "2:1", 'run in [rule.a] is "../s.py", which', ""),
    "an output in the state": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'b/../.buildsys/o' }}\n",
        "3:13",
        "outputs.o in [rule.a] lies in .buildsys",
        "that folder is buildsys' own",
    ),
    "an output over a rule file": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'rules/{{shard}}.toml' }}\n",
        "3:13",
        "outputs.o in [rule.a] would overwrite the rule file rules/a.toml",
        "give it another path",
    ),
    "an output over a folder of rule files": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'rules' }}\n",
        "3:13",
        "outputs.o in",
        "",
    ),
    "an output over a config": (
        f"config = 'c.toml'\n[rule.a]\n{RUN}outputs = {{ o = 'c.toml' }}\n",
        "4:13",
        "outputs.o in [rule.a] would overwrite the config c.toml",
        "",
    ),
    "an output over a script": (
        f"[rule.a]\n{RUN}outputs = {{ o = 's.py' }}\n",
        "3:13",
        "outputs.o in [rule.a] would overwrite the script s.py",
        "",
    ),
    "an output of many paths": (
        f"[rule.a]\n{RUN}outputs = {{ o = 'b/*.x' }}\n",
        "3:13",
        "outputs.o in [rule.a] holds a *",
        "an output is one path",
    ),
    "an unknown rule": (
        f"{TOKENS}[rule.a]\n{RUN}inputs = {{ i = '@token' }}\n{OUT}",
        "6:12",
        "@token refers to no rule: there is no [rule.token]",
        'did you mean "tokens"?',
    ),
    "an unknown rule in each": (
        f"[rule.a]\neach = {{ part = '@p[*]' }}\n{RUN}outputs = {{ o = 'b/{{part}}' }}\n",
        "2:10",
        "@p[*] refers to no rule",
        "valid here: a",
    ),
    "an unknown output": (
        f"{TOKENS}[rule.a]\n{RUN}inputs = {{ i = '@tokens.z[*]' }}\n{OUT}",
        "6:12",
        '@tokens.z[*] refers to no output: [rule.tokens] has no "z"',
        'did you mean "@tokens.',
    ),
    "one of several outputs": (
        f"{TOKENS}[rule.a]\n{RUN}inputs = {{ i = '@tokens' }}\n{OUT}",
        "6:12",
        "@tokens may be any of 2 outputs",
        "write @tokens.x or @tokens.y",
    ),
    "one of several outputs, all shards": (
        f"{TOKENS}{SERVICE}inputs = {{ i = '@tokens[*]' }}\n",
        "7:12",
        "@tokens[*] may be any of 2 outputs",
        "write @tokens.x[*] or @tokens.y[*]",
    ),
    "no reference": (
        f"[rule.a]\n{RUN}inputs = {{ i = '@tokens[3]' }}\n{OUT}",
        "3:12",
        'inputs.i in [rule.a] is "@tokens[3]", which is no reference',
        "write @rule, @rule.output, @rule[*] or @rule.output[*]",
    ),
    "a reference among params": (
        f"[rule.a]\n{RUN}params = {{ p = ['@tokens'] }}\n{OUT}",
        "3:17",
        'params.p.0 in [rule.a] is "@tokens", which refers to a rule',
        'an output of a rule goes into inputs; for the text itself write "@@tokens"',
    ),
    "no config": (
        f"[rule.a]\n{RUN}params = {{ p = '$samples' }}\n{OUT}",
        "3:12",
        'params.p in [rule.a] is "$samples", but this file names no config',
        'add config = "workspace/configs/..." above all tables',
    ),
    "no file of this config": ("\nconfig = 'd.toml'\n", "2:1", "there is no config d.toml", "write the path from"),
    "no such key": (
        f"config = 'c.toml'\n[rule.a]\n{RUN}params = {{ p = {{ q = '$verifier.modl' }} }}\n{OUT}",
        "4:18",
        'params.p.q in [rule.a] is "$verifier.modl", which the config does not have',
        'did you mean "verifier.model"?',
    ),
    "a price for a key": (
        f"config = 'c.toml'\n[rule.a]\n{RUN}params = {{ p = '$5 off' }}\n{OUT}",
        "4:12",
        'params.p in [rule.a] is "$5 off", which the config does not have',
        'valid here: samples, verifier; for the text itself "$$5 off"',
    ),
    "a path that is a number": (
        f"config = 'c.toml'\n[rule.a]\n{RUN}inputs = {{ i = '$verifier.n' }}\n{OUT}",
        "4:12",
        'inputs.i in [rule.a] is "$verifier.n", which is 3 and no text',
        "verifier.n in c.toml has to be a text",
    ),
    "a wrong name in a command": (
        f"[rule.a]\nshell = 'sort {{inputs.word}}'\ninputs = {{ words = 'w' }}\n{OUT}",
        "2:1",
        "shell in [rule.a] has {inputs.word}, which stands for nothing",
        'did you mean "{inputs.words}"?',
    ),
    "the shell's own braces": (
        f"[rule.a]\nshell = \"awk '{{print $1}}'\"\n{OUT}",
        "2:1",
        "shell in [rule.a] has {print $1}, which stands for nothing",
        "valid here: {outputs.o}, {python}; the braces themselves are {{ and }}",
    ),
    "a port without a service": (f"[rule.a]\nshell = 'x {{port}}'\n{OUT}", "2:1", "shell in [rule.a] has {port}", ""),
    "a secret that is recorded": (
        f"[rule.a]\n{RUN}{OUT}env = ['KEY']\nsecrets = {{ k = 'KEY' }}\n",
        "5:13",
        "secrets.k in [rule.a] is KEY, which is in env too",
        "take it out of env",
    ),
    "an unknown service": (
        f"[rule.a]\n{RUN}{OUT}services = ['verifer']\n{SERVICE}",
        "4:13",
        "there is no [service.verifer]",
        'did you mean "verifier"?',
    ),
    "no service at all": (
        f"[rule.a]\n{CHAT}endpoint = 'service:v'\n",
        "5:1",
        "there is no [service.v]",
        "declare it: [service.v] with shell and ready",
    ),
    "a service without a port": (
        "[service.v]\nshell = 'serve'\nready = 'http://127.0.0.1:{port}'\n",
        "2:1",
        "shell in [service.v] lacks {port}",
        "a service listens at the free port that it is given",
    ),
    "a service's output": (
        f"{SERVICE}inputs = {{ i = 'data/{{shard}}' }}\n",
        "4:12",
        "inputs.i in [service.verifier] has {shard}, which stands for nothing",
        "valid here: {profile}",
    ),
    "a service that is a word of Python": (
        "[service.class]\nshell = 'serve {port}'\nready = 'http://127.0.0.1:{port}'\n",
        "1:10",
        "[service.class] can't be called so: class is a word of Python",
        "",
    ),
    "versions of something else": (
        f"[rule.a]\nrun = 's.py::f'\n{OUT}versions = 'all'\n",
        "4:1",
        'versions in [rule.a] is "all", which is not "closure", or an array of names',
        'for example: versions = ["torch", "transformers"]',
    ),
    "versions by number": (
        f"[rule.a]\nrun = 's.py::f'\n{OUT}versions = 2\n",
        "4:1",
        "versions in [rule.a] has to be a string or an array, not an integer",
        "",
    ),
    "a version without a name": (
        f"[rule.a]\nrun = 's.py::f'\n{OUT}versions = ['torch', '']\n",
        "4:22",
        "versions.1 in [rule.a] is empty",
        "",
    ),
    "a resource that is half a GPU": (
        f"[rule.a]\nrun = 's.py::f'\n{OUT}resources = {{ gpu = 0.5 }}\n",
        "4:15",
        "resources.gpu in [rule.a] has to be an integer or a string, not a number",
        "",
    ),
    "chat without records": (
        f"[rule.a]\nchat = 's.py::f'\n{OUT}",
        "1:7",
        "inputs in [rule.a] has no entries",
        "chat reads its records from one input",
    ),
    "chat with two outputs": (
        "[rule.a]\nchat = 's.py::f'\ninputs = { i = 'x' }\noutputs = { o = 'b/o', p = 'b/p' }\n",
        "4:1",
        "outputs in [rule.a] has 2 entries",
        "",
    ),
    "chat without an endpoint": (
        f"[rule.a]\n{CHAT}",
        "1:7",
        "[rule.a] does not say where its requests go",
        'add endpoint = "service:NAME" or the URL of a server',
    ),
    "no endpoint": (
        f"[rule.a]\n{CHAT}endpoint = 'localhost:80'\n",
        "5:1",
        'endpoint in [rule.a] is "localhost:80"',
        'write "service:NAME" or the URL of a server',
    ),
    "a URL without an identity": (
        f"[rule.a]\n{CHAT}endpoint = 'http://gpu:80'\n",
        "1:7",
        "[rule.a] does not say who answers at http://gpu:80",
        'add identity = "model@revision"',
    ),
    "an empty identity": (
        f"config = 'c.toml'\n[rule.a]\n{CHAT}endpoint = 'http://gpu:80'\nidentity = '$verifier.empty'\n",
        "7:1",
        "[rule.a] does not say who answers at http://gpu:80",
        "",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_refused_with_its_place_and_what_to_do(what: str) -> None:
    text, place, problem, hint = ERRORS[what]
    error = refused(text)
    assert error.problem.startswith(problem)
    assert str(error.place) == f"rules/a.toml:{place}"
    line = int(place.partition(":")[0])
    assert f"→ {line} │ {text.splitlines()[line - 1]}" in error.excerpt
    assert error.hint.startswith(hint)


def test_an_error_reads_like_this() -> None:
    text = "[rule.tokens]\nabout   = 'Tokens.'\nrun     = 's.py::f'\noutputs = { tokens = 'b/{shrad}.bin' }\n"
    assert refused(text).render() == (
        "error: outputs.tokens in [rule.tokens] has {shrad}, which stands for nothing\n"
        "  rules/a.toml:4:13\n"
        "      3 │ run     = 's.py::f'\n"
        "    → 4 │ outputs = { tokens = 'b/{shrad}.bin' }\n"
        'hint: did you mean "{shard}"?'
    )


def test_two_rules_of_one_name_show_both_places() -> None:
    error = refused(f"\n[rule.a]\n{RUN}{OUT}", f"[rule.a]\n{RUN}outputs = {{ o = 'b/p' }}\n")
    assert error.render() == (
        'error: two rules are called "a"\n'
        "  first:  rules/a.toml:2 [rule.a]\n"
        "  second: rules/b.toml:1 [rule.a]\n"
        "hint: give one of them another name"
    )


def test_names_that_sql_takes_for_one_are_one() -> None:
    error = refused(f"[rule.a]\n{RUN}{OUT}[rule.A]\n{RUN}outputs = {{ o = 'b/p' }}\n")
    assert error.problem == "two rules differ in upper and lower case alone"


def test_two_services_of_one_name_show_both_places() -> None:
    error = refused(SERVICE, SERVICE)
    assert error.problem == 'two services are called "verifier"'
    assert error.facts == (
        ("first", "rules/a.toml:1 [service.verifier]"),
        ("second", "rules/b.toml:1 [service.verifier]"),
    )


def test_two_rules_that_make_one_output_show_both_places() -> None:
    error = refused(f"[rule.tokens]\n{RUN}{OUT}", f"\n[rule.retokenize]\n{RUN}\n{OUT}")
    assert error.render() == (
        "error: two rules make one output\n"
        "  output: b/o\n"
        "  first:  rules/a.toml:3 [rule.tokens]\n"
        "  second: rules/b.toml:5 [rule.retokenize]\n"
        "hint: give one of them another pattern"
    )


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("b/o", "b//o", "two rules make one output"),
        ("b/o", "b/o/x", "two rules make one output inside another"),
        ("b/{shard}/x", "b/o", "two rules make one output inside another"),
        ("b/{shard}.x", "b/index.x", "two rules can make one output"),
        ("b/{profile}/x", "b/default/x", "two rules can make one output"),
    ],
)
def test_outputs_that_can_meet_are_refused(first: str, second: str, problem: str) -> None:
    error = refused(
        f"[rule.a]\n{RUN}outputs = {{ o = '{first}' }}\n[rule.b]\n{RUN}outputs = {{ o = '{second}' }}\n",
    )
    assert error.problem == problem
    assert "rules/a.toml:3 [rule.a]" in error.facts[-2][1]
    assert "rules/a.toml:6 [rule.b]" in error.facts[-1][1]


def test_two_outputs_of_one_rule_are_no_two_rules() -> None:
    error = refused(f"[rule.a]\n{RUN}outputs = {{ o = 'b/o', p = 'b/o' }}\n")
    assert error.problem == "two outputs of [rule.a] clash"
