"""The declared tables as others read them: a JSON Schema for editors, and the reference in `docs/rules.md`.

Knows nothing but the declarations in `tables`; both are made from them, so neither can say what is not so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from buildsys.spec.rulefile import CHAT_ONLY, KINDS
from buildsys.spec.tables import FileTable
from buildsys.spec.toml_text import inline_toml

Schema = Mapping[str, Any]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a rule file, for editors that complete and check TOML by one."""
    schema = msgspec.json.schema(FileTable)
    tables = schema["$defs"]
    tables["FileTable"]["title"] = "A rule file of buildsys"
    tables["RuleTable"]["title"] = "[rule.NAME]"
    tables["RuleTable"]["oneOf"] = [{"required": [kind]} for kind in KINDS]
    tables["RuleTable"]["dependentRequired"] = {"chat": ["endpoint"]} | {key: ["chat"] for key in CHAT_ONLY}
    tables["CheckTable"]["title"] = "a check"
    tables["ServiceTable"]["title"] = "[service.NAME]"
    tables["StoreTable"]["title"] = "[store]"
    tables["PriceTable"]["title"] = "[price]"
    tables["LimitsTable"]["title"] = "[limits]"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def rules_reference() -> str:
    """The reference of rule files in Markdown: what `docs/rules.md` holds."""
    tables = json_schema()["$defs"]
    parts = [
        _HEAD,
        f"```toml\n{EXAMPLE}```\n",
        _TEXTS,
        "## The file\n",
        *_keys({"properties": {key: tables["FileTable"]["properties"][key] for key in ("config", "pools")}}),
        f"## `[rule.NAME]`\n\n{tables['RuleTable']['description']}\n\n{_RULE_NAMES}",
        *_keys(tables["RuleTable"]),
        f"## `[rule.NAME.checks.CHECK]`\n\n{tables['CheckTable']['description']}\n",
        *_keys(tables["CheckTable"]),
        f"## `[service.NAME]`\n\n{tables['ServiceTable']['description']}\n",
        *_keys(tables["ServiceTable"]),
        *(
            part
            for table, header in (("StoreTable", "store"), ("PriceTable", "price"), ("LimitsTable", "limits"))
            for part in (f"## `[{header}]`\n\n{tables[table]['description']}\n", *_keys(tables[table]))
        ),
        _LIMITS,
    ]
    return "\n".join(parts)


def _keys(table: Schema) -> Iterator[str]:
    for key, schema in table["properties"].items():
        facts = [_type(schema), "required" if key in table.get("required", ()) else _default(schema)]
        yield f"### `{key}`\n\n*{', '.join(filter(None, facts))}*\n\n{schema['description']}\n"
        yield f"```toml\n{key} = {inline_toml(schema['examples'][0])}\n```\n"


def _default(schema: Schema) -> str:
    """The default where there is one that says something: an empty text or table stands for nothing."""
    return f"default {inline_toml(schema['default'])}" if schema.get("default") not in ("", {}, [], None) else ""


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return "a table"
    if choices := schema.get("enum"):
        return " or ".join(map(inline_toml, choices))
    if choices := schema.get("anyOf"):
        return " or ".join(_type(choice) for choice in choices if choice.get("type") != "null")
    if isinstance(schema.get("type"), list):
        return " or ".join(_type({"type": one}) for one in schema["type"] if one != "null")
    match schema.get("type"):
        case "object":
            if "additionalProperties" not in schema:
                return "table of any values"
            inner = _type(schema["additionalProperties"])
            return f"table of {inner}s" if inner.isalpha() else f"table of values, each {inner}"
        case "array":
            return f"array of {_type(schema['items'])}s"
        case "boolean":
            return "true or false"
        case "integer":
            return f"integer, at least {schema['minimum']}" if "minimum" in schema else "integer"
        case "number":
            least = (
                f"at least {schema['minimum']:g}" if "minimum" in schema else f"more than {schema['exclusiveMinimum']}"
            )
            return f"number, {least}"
    return "a size" if "size" in schema.get("title", "") else "string"


EXAMPLE: Final = """\
config = "workspace/configs/eagle3.toml"

[rule.prompts]
about   = "The source conversations, cleaned, capped and cut into prompt shards."
run     = "workspace/scripts/01_prepare_prompts.py::prepare"
inputs  = { source = "workspace/data/sample.jsonl" }
params  = { samples = "$samples", shards = "$shards" }
outputs = { prompts = "workspace/build/{profile}/prompts/{shard}.jsonl" }

[service.verifier]
shell  = "{python} workspace/scripts/serve_verifier.py --model {inputs.model} --port {port}"
inputs = { model = "workspace/verifier" }
ready  = "http://127.0.0.1:{port}/health"

[rule.replies]
about    = "Every prompt put to the verifier; raw replies, kept for ever."
each     = { shard = "@prompts[*]" }
chat     = "workspace/scripts/01b_generate_synthetic.py::build_request"
inputs   = { prompts = "@prompts" }
params   = { model = "$verifier.model", max_tokens = "$sampling.max_tokens" }
endpoint = "service:verifier"
outputs  = { replies = "workspace/build/{profile}/replies/{shard}.jsonl" }

[rule.samples]
about   = "Reasoning and answer taken from each reply."
each    = { shard = "@replies[*]" }
run     = "workspace/scripts/01b_generate_synthetic.py::extract"
inputs  = { replies = "@replies" }
outputs = { samples = "workspace/build/{profile}/samples/{shard}.parquet" }

[rule.samples.checks]
reasoning_captured = "SELECT avg((reasoning <> '')::INT) >= 0.95 FROM samples"

[rule.sizes]
about   = "How many bytes of samples there are."
shell   = "cat {inputs.samples} | wc --bytes > {outputs.sizes}"
inputs  = { samples = "@samples[*]" }
outputs = { sizes = "workspace/build/{profile}/sizes.txt" }
"""
"""A rule file that shows each kind of rule."""

_HEAD = """\
# Rule files

A project's rule files are TOML, `rules/*.toml`, and are read together: a rule may refer to one in another file.
This page is made from the declarations that check them; `buildsys schema` prints those as a JSON Schema for editors.
"""

_TEXTS = """\
## What texts mean

- `$a.b`, as a param or setting (also inside arrays and tables), an input, `each`, `endpoint` or `identity`: what the
  file's `config` has at the key `a.b`, with its type; the whole table where the key names one.
- `@rule`, `@rule.output`, as an input: the one output of a rule, or the one that is named. Where both rules have the
  same shards, it is this shard's.
- `@rule[*]`, `@rule.output[*]`, as an input or `each`: all shards of an output.
- `{shard}`, in outputs and in inputs that are paths: this action's shard. `each` may call it otherwise, say `{part}`,
  and then that name is the one to write.
- `{profile}`, in the same places: the profile of the build, `default` where none is asked for.
- `*`, in inputs that are paths: any characters but `/`. The input is then a list of paths.

A mark is doubled to be itself. At the start of a text `$$x` is the text `$x`, and `@@x` is `@x`; anywhere else `$` and
`@` are themselves. In paths and commands `{{` and `}}` are braces; in params and settings all braces are themselves.

Paths start at the project's folder. An input may lie elsewhere, an output and a script may not.

## Profiles

`buildsys build --profile sampled` lays the overlay `CONFIG.sampled.toml` (`.yaml`, `.json`, as the config itself) over
each config that has one beside it; at least one has to. An overlay gives other values to keys that the config has:
tables are merged, all else is replaced, and a value keeps its type, but an integer will do for a number. `default` is
the config as it is written. `--set KEY=VALUE` does the same to one key for one build: a value of TOML, else a text.

Outputs whose paths hold `{profile}` lie side by side, and what is equal under two profiles is made once. An output
without it is one for all profiles: another profile may make it only where its action has the same key as under
`default`.
"""

_RULE_NAMES = """\
Names of rules, inputs, outputs, params and settings are letters, digits and `_`, without a digit at the start. They are
passed as keywords, so words of Python are refused and no two of a rule are alike. Rules are views of SQL too, so words
of SQL and the names of the manifest's own views are refused for them.
"""

_LIMITS: Final = """\
### What a limit does

`--max-requests N`, `--max-cost X` and `--max-output-tokens N` of `buildsys build` and `buildsys plan` say the same for
once, and win over the file. What is no limit of requests is not touched by any of them: actions that need none run, and
what the log of replies answers counts nothing.

No request is sent once a limit is reached, or would be passed by the next; for tokens and cost the next is taken to be
as large as the replies before it are on average. So `max_requests` is never passed. What tokens and cost come to is
known only when replies are there: they can be passed by what is in flight, which is never called off. A build sends as
many requests as it may, also where `buildsys plan` says that it will need more. Then it ends with exit code 6, after
all that needs no more requests: the replies are in the log, and nothing is invalidated. The next build asks for the
rest, with limits that begin anew.

A request counts each time that a server may have worked for it: it was answered, by a reply or by a refusal of just
this request, or the answer was lost (5xx, broken off, timed out), and then it counts without tokens. It does not count
where the server was busy (429, 503), could not be reached, or takes no requests from here (401, 403, 404). Tokens are
those that replies tell in `usage`: one that tells none counts none, and a build with a limit that goes by them warns.
"""
