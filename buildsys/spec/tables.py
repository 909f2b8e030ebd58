"""The tables of a rule file as one declaration: what is checked, what editors complete, and what `docs/rules.md` says.

Knows shapes and types only; what the texts mean is read in `rulefile`. The description of a key is Markdown for the
reference, its example is also the hint where a value does not fit.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Name = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        title="a name",
        description="Letters, digits and _, without a digit at the start.",
    ),
]
Variable = Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$", title="the name of an environment variable")]
Secret = Annotated[
    str,
    Meta(pattern="^([A-Za-z_][A-Za-z0-9_]*|file:.+)$", title='the name of an environment variable, or "file:PATH"'),
]
Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
Size = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]+(\.[0-9]+)? ?([kKMGT]i?B|B)$",
        title='a size, such as "64MB"',
        description="Bytes, with the unit B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024).",
    ),
]
Price = Annotated[float, Meta(ge=0)]
Closure = Annotated[str, Meta(pattern="^closure$")]
Function = Annotated[
    str, Meta(pattern=r"^[^:@$]+\.py::[A-Za-z_][A-Za-z0-9_]*$", title="a function of a script (path.py::function)")
]


class CheckTable(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A check of which more is to be said than its SQL, `name = { sql = "...", ... }` in place of `name = "..."`."""

    sql: Annotated[
        Text,
        Meta(
            description="The assertion, as it is written where it stands alone.",
            examples=["SELECT avg((answer <> '')::INT) >= 0.95 FROM samples"],
        ),
    ]
    severity: Annotated[
        Literal["error", "warn"],
        Meta(
            description=(
                "What it comes to where it fails. An `error` keeps the outputs from their place. With `warn` they are "
                "published and built upon all the same: the offending rows are shown once, as a warning, and the "
                "verdict is recorded. To change it asks that check anew where it had failed, and runs nothing else."
            ),
            examples=["warn"],
        ),
    ] = "error"
    canary: Annotated[
        bool,
        Meta(
            description=(
                "Whether it is asked of the first few replies before the rest is sent; `false` for what holds of all "
                "rows together, such as how many there are."
            ),
            examples=[False],
        ),
    ] = True


class RuleTable(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A declared way to make outputs from inputs, by a Python function, a shell command or a chat API."""

    about: Annotated[
        Text,
        Meta(
            description="What the rule is for, in one sentence.",
            examples=["Reasoning and answer taken from each reply."],
        ),
    ] = ""
    run: Annotated[
        Function,
        Meta(
            description=(
                "A Python function, called once an action. Its keywords are the rule's inputs (a `Path`, or a list of "
                "them), outputs (a `Path` to write to), params and settings (typed values). A rule has exactly one of "
                "`run`, `shell` and `chat`."
            ),
            examples=["workspace/scripts/01b_generate_synthetic.py::extract"],
        ),
    ] = ""
    shell: Annotated[
        Text,
        Meta(
            description=(
                "A shell command, run once an action. Filled in, and quoted where needed, are `{inputs.x}`, "
                "`{outputs.y}`, `{params.z}`, `{settings.z}`, `{services.n}` and `{python}`, the interpreter. The "
                "project's scripts are named by their paths from its folder, and run from a frozen copy: name the data "
                "files that they read as inputs, since there are none beside the copy."
            ),
            examples=["sort --unique {inputs.words} > {outputs.sorted}"],
        ),
    ] = ""
    chat: Annotated[
        Function,
        Meta(
            description=(
                "A Python function that gives the chat request of one record: "
                "`build_request(record, replies, **params) -> dict | None`. It is called with the replies so far until "
                "it returns None. The rule has one input, whose lines are the records, and one output, whose lines are "
                "the raw replies. What the server refuses for good (400, 413, 422) is a row with its `error`, and is "
                "asked again only by `buildsys build --retry-failed`."
            ),
            examples=["workspace/scripts/01b_generate_synthetic.py::build_request"],
        ),
    ] = ""
    each: Annotated[
        dict[Name, Text],
        Meta(
            min_length=1,
            max_length=1,
            description=(
                "One variable, of any name, and where its values come from: all shards of another rule "
                '(`"@rule[*]"`, `"@rule.output[*]"`), or a pattern of paths that holds the variable once '
                '(`"workspace/prompts/{shard}.jsonl"`). The rule has one action for each value. Without `each` it has '
                "one action; where its outputs hold `{shard}` all the same, the action is given the folder and makes "
                "the shards."
            ),
            examples=[{"shard": "@prompts[*]"}],
        ),
    ] = {}
    inputs: Annotated[
        dict[Name, Text],
        Meta(
            description=(
                "What the action reads, by the name it is passed under: a path (of a file or a folder, or with `*` of "
                "many), `{shard}` and `{profile}` filled in; an output of another rule, `@rule` (`@rule.output` where "
                "it has several), which is this shard's where both rules have the same shards; the list of an output's "
                "shards, `@rule[*]` or `@rule.output[*]`; or `$key`, a path from the config."
            ),
            examples=[{"replies": "@replies", "tokenizer": "$verifier.path"}],
        ),
    ] = {}
    params: Annotated[
        dict[Name, Any],
        Meta(
            description=(
                "Values that are passed to the code and decide the result; a changed one runs the actions again. Any "
                "TOML value. A text `$a.b`, also inside arrays and tables, is the config's value with its type."
            ),
            examples=[{"max_length": 2048, "temperature": "$sampling.temperature"}],
        ),
    ] = {}
    settings: Annotated[
        dict[Name, Any],
        Meta(
            description="Values that are passed and recorded, and run nothing again: written like params.",
            examples=[{"log_every": 50}],
        ),
    ] = {}
    outputs: Annotated[
        dict[Name, Text],
        Meta(
            min_length=1,
            description=(
                "What the action makes, by the name it is passed under: a path in the project, of a file or a folder. "
                "`{shard}` (or the variable that `each` names) is the action's shard, `{profile}` the profile, "
                "`default` where none is asked for. A rule with `each` has the variable in every output. No two "
                "outputs may be, or lie in, one another."
            ),
            examples=[{"samples": "workspace/build/{profile}/samples/{shard}.parquet"}],
        ),
    ]
    checks: Annotated[
        dict[Name, Text | CheckTable],
        Meta(
            description=(
                "Assertions in SQL, by name, over the outputs of one action: each output that is Parquet, JSON Lines, "
                "JSON or CSV is a table of its name, with the rows of this action's shard alone (of all shards that "
                "it made, where it makes them). One that is `.safetensors` is a table of its tensors, by its header: "
                "`name` and `dtype` (as the file has it, such as `BF16`), VARCHAR; `shape`, BIGINT[]; `bytes`, "
                "BIGINT. A check that gives one row of one BOOLEAN holds where that is true; false and NULL, as of an "
                "average over no rows, fail. One that gives anything else asks for offending rows: it holds where "
                "there are none, so `SELECT count(*) ...` never does. SQL that gives no answer fails, too; a text "
                "that is no SQL is refused before anything runs. A check that fails keeps the outputs from their "
                "place, and all that needs them from running; one with `severity`, see below, may only warn."
            ),
            examples=[{"answered": "SELECT avg((answer <> '')::INT) >= 0.95 FROM samples"}],
        ),
    ] = {}
    env: Annotated[
        list[Variable],
        Meta(
            description="Environment variables that the code reads. Their values decide the result, as params do.",
            examples=[["TOKENIZERS_PARALLELISM"]],
        ),
    ] = []
    secrets: Annotated[
        dict[Name, Secret],
        Meta(
            description=(
                "Secrets by name, and the environment variables that hold them; with `chat` also files, as "
                "`file:~/.keys/verifier`. Their values are in no key, log or manifest."
            ),
            examples=[{"api_key": "VERIFIER_API_KEY"}],
        ),
    ] = {}
    services: Annotated[
        list[Name],
        Meta(
            description=(
                "Services that run while the action does. The function gets their URLs in the keyword `services`, a "
                "shell command as `{services.n}`."
            ),
            examples=[["verifier"]],
        ),
    ] = []
    endpoint: Annotated[
        Text | list[Text],
        Meta(
            title="string, or an array of URLs",
            description=(
                "Only with `chat`: where requests go, `service:NAME` or the URL of a server, or a `$key` that says so. "
                "It is where, not what: never part of a key. The URLs of several servers that answer alike share the "
                "requests by load; one that is lost is left out."
            ),
            examples=["service:verifier"],
        ),
    ] = ""
    identity: Annotated[
        str,
        Meta(
            description=(
                "Only with `chat`, and needed where the endpoint is a URL: who answers there, such as a model with its "
                "revision, or a `$key` that says so. A service answers for itself; what is given here is not used then."
            ),
            examples=["Kimi-K2.5@9f1c2ab"],
        ),
    ] = ""
    samples: Annotated[
        int, Meta(ge=1, description="Only with `chat`: how many answers are asked for, for each record.", examples=[4])
    ] = 1
    canary: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Only with `chat`: so many records of the first shard are asked before all others. Their replies go "
                "through the rules that are made of them shard by shard, and through the checks of all of these (not "
                "rules with `resources`, `services` or `scratch`). Where that goes wrong no more is sent; while "
                "the others are asked it is done again with what has come, every few hundred replies. 0 is neither."
            ),
            examples=[8],
        ),
    ] = 0
    in_flight: Annotated[
        int,
        Meta(
            ge=1,
            le=65536,
            description=(
                "Only with `chat`: how many requests each server is sent at a time at most. There are fewer where it "
                "sends requests away, or gets as much done with fewer."
            ),
            examples=[1024],
        ),
    ] = 256
    stream: Annotated[
        bool,
        Meta(
            description=(
                "Only with `chat`: replies are received bit by bit, so that one is given up when nothing comes any "
                "more, and not by how long all of it may take. What is kept is the whole reply. Never part of a key."
            ),
            examples=[True],
        ),
    ] = False
    reuse_shorter: Annotated[
        bool,
        Meta(
            description=(
                "Only with `chat`: a reply that ended of itself under a smaller `max_tokens` answers the same request "
                "under a larger one."
            ),
            examples=[True],
        ),
    ] = False
    python: Annotated[
        Text,
        Meta(
            description=(
                "The interpreter that runs the rule's code, `{python}` in its command: a path, absolute or from the "
                "project's folder, or a `$key` that says so. Python 3.9 or later, which needs nothing of buildsys. Its "
                "minor version and the versions installed for it are in the keys, where it lies is not. Scripts are "
                "read with the grammar of the Python that runs buildsys. Without it, that one."
            ),
            examples=[".venvs/train/bin/python"],
        ),
    ] = ""
    versions: Annotated[
        Closure | list[Text],
        Meta(
            title='"closure", or an array of names',
            description=(
                "Of which distributions the versions are in the keys. Without it, of those that the code imports; with "
                '`"closure"` also of all that these require. An array is of those named and no others, by the names of '
                "distributions or by those that are imported. The versions of the closure that are in no key are "
                "recorded all the same. What is installed as editable counts as code of the project, not by a version."
            ),
            examples=[["torch", "transformers"]],
        ),
    ] = ""
    resources: Annotated[
        dict[Name, int | str],
        Meta(
            description=(
                "What an action occupies while it runs; actions wait until it is free, in the order in which they ask "
                "for it. `gpu` is a number of GPUs, which it gets in `CUDA_VISIBLE_DEVICES`: of those that this "
                "variable names where buildsys is started (its word is taken), else of all. With `gpu = 0` it is "
                "passed on as it is. `memory` is a size, of all that the machine has or its control group may use. "
                "Other names are pools of `[pools]`. Never part of a key. What takes more than there is, is refused "
                "before anything runs, unless it is up to date. A value may be a `$key`."
            ),
            examples=[{"gpu": 1, "memory": "4GB"}],
        ),
    ] = {}
    scratch: Annotated[
        bool,
        Meta(
            description=(
                "Whether the action gets a folder of its own, `scratch` (`{scratch}` in a command), that outlives it "
                "until it succeeds: a training that was killed goes on from what it left there. Each action key has "
                "its own, so nothing of another state of inputs or code is ever found in it."
            ),
            examples=[True],
        ),
    ] = False
    ephemeral: Annotated[
        bool,
        Meta(
            description=(
                "Whether the outputs may be dropped once all that needs them is up to date. They are not kept in the "
                "store, and are made again when something needs them; what needs them counts them by the key of the "
                "action that made them, not by their bytes. `[store]` may limit how much disk they use."
            ),
            examples=[True],
        ),
    ] = False
    sandbox: Annotated[
        bool,
        Meta(
            description=(
                "Whether actions run in a sandbox that proves what the rule declares: each in a process of its own, "
                "which can read the inputs, the code, the interpreter with what is installed for it, and the system's "
                "programs, libraries and settings, and can write its outputs, its scratch and temporary files. All "
                "else is refused, and the error names it. Reads by native libraries and child processes are no "
                "exception; that a path exists may be asked. It needs Linux 5.13 or later with Landlock, and each "
                "action imports anew what others have imported once. Never part of a key."
            ),
            examples=[True],
        ),
    ] = False
    strict: Annotated[
        bool,
        Meta(
            description=(
                "Whether an action fails that reads a file of the project which the rule does not declare, or whose "
                "code asks for a variable which it does not declare. Without it, that is told once, with the line to "
                "add, and what was read is a discovered input of the result. Not for `shell`, whose programs are not "
                "traced: `sandbox` binds them. Never part of a key."
            ),
            examples=[True],
        ),
    ] = False
    metrics: Annotated[
        list[Name],
        Meta(
            description=(
                "Those outputs, JSON files, whose numbers become rows of the view `metrics`: nested names are joined "
                "with dots; a list of objects with a `step` is a curve."
            ),
            examples=[["report"]],
        ),
    ] = []
    default: Annotated[
        bool,
        Meta(
            description="Whether a build without targets makes the rule; with `false`, only one that names it does.",
            examples=[False],
        ),
    ] = True


class ServiceTable(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A server that is started when an action needs it, on a free port of this machine."""

    shell: Annotated[
        Text,
        Meta(
            description=(
                "The command that runs the server until it is stopped. Filled in are `{port}`, which it has to listen "
                "at, `{inputs.x}`, `{params.z}` and `{python}`."
            ),
            examples=["{python} workspace/scripts/serve_verifier.py --model {inputs.model} --port {port}"],
        ),
    ]
    ready: Annotated[
        Text,
        Meta(
            description="A URL with `{port}` that answers with status 200 once the server is up.",
            examples=["http://127.0.0.1:{port}/health"],
        ),
    ]
    inputs: Annotated[
        dict[Name, Text],
        Meta(
            description="What the server reads, as in a rule; a changed input restarts it.",
            examples=[{"model": "workspace/verifier"}],
        ),
    ] = {}
    params: Annotated[
        dict[Name, Any],
        Meta(
            description="Values for the command, as in a rule; a changed one restarts the server.",
            examples=[{"threads": 2}],
        ),
    ] = {}
    env: Annotated[
        list[Variable],
        Meta(description="Environment variables that the server reads, as in a rule.", examples=[["OMP_NUM_THREADS"]]),
    ] = []
    ready_timeout_s: Annotated[
        float, Meta(gt=0, description="How many seconds it may take until `ready` answers.", examples=[600])
    ] = 120.0
    keep: Annotated[
        bool,
        Meta(
            description=(
                "Whether the server is left running after a build, also after one that failed or was interrupted, "
                "for the next one to use: see `buildsys service`. It is started anew where its key has changed, where "
                "it has ended, and where it no longer answers."
            ),
            examples=[True],
        ),
    ] = False


class StoreTable(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What is kept of what was made, and how. One rule file of a project may have this table."""

    link_above: Annotated[
        Size,
        Meta(
            description=(
                "Outputs larger than this are not copied into the store but linked there, so that the disk holds them "
                "once. The file in the workspace is then read-only."
            ),
            examples=["1GB"],
        ),
    ] = "64MB"
    ephemeral_budget: Annotated[
        Size,
        Meta(
            description=(
                "How much disk ephemeral outputs may use, in all profiles together. What nothing needs at the moment "
                "is dropped to make room, the oldest first; a build that needs more at once is refused before it "
                "runs anything. Without it, they stay until `buildsys gc` drops them."
            ),
            examples=["200GB"],
        ),
    ] = ""
    keep_logs: Annotated[
        Count,
        Meta(
            description="The logs of this many runs are kept, the last ones; of each action the newest log stays.",
            examples=[100],
        ),
    ] = 30


class PriceTable(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What things cost, in any one currency. One rule file of a project may have this table."""

    request: Annotated[Price, Meta(description="A request that is sent.", examples=[0.0001])] = 0.0
    input_token: Annotated[Price, Meta(description="A token of a prompt that is sent.", examples=[6e-7])] = 0.0
    output_token: Annotated[Price, Meta(description="A token of a reply.", examples=[2.5e-6])] = 0.0
    action_hour: Annotated[Price, Meta(description="An hour that an action runs.", examples=[0.04])] = 0.0
    service_hour: Annotated[Price, Meta(description="An hour that a service is up.", examples=[12.0])] = 0.0
    gpu_hour: Annotated[
        Price, Meta(description="An hour of one GPU that an action occupies by its `resources`.", examples=[2.5])
    ] = 0.0
    currency: Annotated[
        str, Meta(description="What all of this is in, as it is shown behind a sum.", examples=["USD"])
    ] = ""


class LimitsTable(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the requests that one build sends may come to. One rule file of a project may have this table."""

    max_requests: Annotated[
        Count | UnsetType, Meta(description="How many requests are sent at most.", examples=[1000])
    ] = UNSET
    max_cost: Annotated[
        Price | UnsetType,
        Meta(
            description=(
                "What requests and their tokens may cost, at the prices of `[price]`, which has to name one of "
                "`request`, `input_token` and `output_token`. What actions and services cost by the hour is not in it."
            ),
            examples=[25.0],
        ),
    ] = UNSET
    max_output_tokens: Annotated[
        Count | UnsetType, Meta(description="How many tokens replies may hold together.", examples=[5000000])
    ] = UNSET


class FileTable(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Everything that a rule file may hold."""

    config: Annotated[
        Text,
        Meta(
            description=(
                "The file (`.toml`, `.yaml`, `.yml`, `.json`) that `$a.b` in this rule file reads its keys from."
            ),
            examples=["workspace/configs/eagle3.toml"],
        ),
    ] = ""
    rule: Annotated[dict[Name, RuleTable], Meta(description="The rules, by name.")] = {}
    service: Annotated[dict[Name, ServiceTable], Meta(description="The services, by name.")] = {}
    store: Annotated[StoreTable, Meta(description="What is kept, and how.")] = field(default_factory=StoreTable)
    price: Annotated[PriceTable, Meta(description="What things cost.")] = field(default_factory=PriceTable)
    limits: Annotated[LimitsTable, Meta(description="What the requests of a build may come to.")] = field(
        default_factory=LimitsTable
    )
    pools: Annotated[
        dict[Name, Annotated[int, Meta(ge=1)]],
        Meta(
            description=(
                "Named pools that `resources` take from, with their sizes: at most so much of each is occupied at a "
                "time. One rule file of a project may have this table."
            ),
            examples=[{"disk": 2}],
        ),
    ] = {}
