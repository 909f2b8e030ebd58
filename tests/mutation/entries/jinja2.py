"""What jinja2 can do, from deep entries: a compiler to Python, filters found by name, visitors, a metaclass of nodes."""

from jinja2 import (
    ChainableUndefined,
    ChoiceLoader,
    DebugUndefined,
    DictLoader,
    Environment,
    FunctionLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateError,
    make_logging_undefined,
    meta,
    nodes,
    pass_context,
    select_autoescape,
)
from jinja2.ext import Extension
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment


def _render(text, env=None, **given):
    try:
        return (env or Environment()).from_string(text).render(**given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:160]


def variables():
    return _render(
        "{{ a.b }} {{ a['c'] }} {{ xs[1:] }} {{ missing }}|{{ x or 'none' }}", a={"b": 1, "c": 2}, xs=[1, 2, 3]
    )


def loops():
    text = "{% for x in xs if x %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ loop.cycle('a', 'b') }}{{ ', ' if not loop.last }}{% else %}none{% endfor %}"
    return [_render(text, xs=[1, 0, 2]), _render(text, xs=[])]


def recursive_loops():
    text = "{% for n in tree recursive %}{{ n.v }}@{{ loop.depth }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}"
    return _render(text, tree=[{"v": 1, "c": [{"v": 2}, {"v": 3}]}])


def loop_controls():
    env = Environment(extensions=["jinja2.ext.loopcontrols"])
    return _render(
        "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% elif x > 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
        env,
    )


def conditions():
    text = (
        "{% if n > 5 and not done %}a{% elif n in [1, 2] or n is none %}b{% else %}c{% endif %}{{ 'x' if n else 'y' }}"
    )
    return [_render(text, n=n) for n in (6, 1, None, 0)]


def macros():
    text = "{% macro m(a, b=2, *args, **kw) %}{{ a }}{{ b }}{{ args }}{{ kw }}{{ caller() if caller }}{% endmacro %}{{ m(1) }}{{ m(1, 3, 4, z=5) }}{% call m(7) %}inner{% endcall %}"
    return _render(text)


def macro_errors():
    return [
        _render("{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}"),
        _render("{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=1) }}"),
    ]


def inheritance():
    env = Environment(
        loader=DictLoader(
            {
                "base": "<{% block a %}A{% endblock %}|{% block b required %}{% endblock %}|{{ self.a() }}>",
                "mid": "{% extends 'base' %}{% block a %}[{{ super() }}]{% endblock %}",
                "leaf": "{% extends 'mid' %}{% block b %}B{{ super.super }}{% endblock %}{% block a %}({{ super() }}){% endblock %}",
            }
        )
    )
    return [env.get_template("leaf").render(), _render("{% extends 'mid' %}", env)]


def includes():
    env = Environment(
        loader=DictLoader({"part": "{{ x }}!", "lib": "{% macro up(s) %}{{ s|upper }}{% endmacro %}{% set k = 3 %}"})
    )
    return _render(
        "{% include 'part' %}{% include ['no', 'part'] without context %}{% include 'gone' ignore missing %}{% import 'lib' as l %}{{ l.up('a') }}{{ l.k }}{% from 'lib' import up as u %}{{ u('b') }}",
        env,
        x=5,
    )


def assignments():
    return _render(
        "{% set a, b = 1, 2 %}{% set t %}body{{ a }}{% endset %}{{ t }}{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{% with c = b %}{{ c }}{% endwith %}{% set up | upper %}x{% endset %}{{ up }}"
    )


def string_filters():
    return _render(
        "{{ 'hello world'|title }} {{ 'abc'|center(7) }} {{ ' a '|trim }} {{ 'a b c'|wordcount }} {{ 'aXb'|replace('X', '-') }} {{ 'long text here'|truncate(8) }} {{ 'a b'|urlencode }} {{ 'abc'|reverse }} {{ '%s-%s'|format(1, 2) }} {{ 'one two three'|wordwrap(5) }} {{ 'a\nb'|indent(2) }} {{ 'x'|capitalize }}"
    )


def list_filters():
    return _render(
        "{{ xs|sort|join(',') }} {{ xs|unique|list }} {{ xs|batch(2, 0)|list }} {{ xs|slice(2)|list }} {{ xs|sum }} {{ xs|max }} {{ xs|first }} {{ xs|select('odd')|list }} {{ xs|reject('gt', 2)|list }} {{ xs|map('string')|join('+') }} {{ xs|last }} {{ xs|length }} {{ xs|min }}",
        xs=[3, 1, 2, 3],
    )


def object_filters():
    rows = [{"g": "a", "n": 1}, {"g": "b", "n": 2}, {"g": "a", "n": 3}]
    return _render(
        "{% for g, items in rows|groupby('g') %}{{ g }}={{ items|map(attribute='n')|list }} {% endfor %}{{ rows|selectattr('n', 'ge', 2)|map(attribute='g')|join }} {{ {'b': 1, 'a': 2}|dictsort }} {{ rows|sum(attribute='n') }} {{ {'a': 1}|items|list }} {{ rows|rejectattr('g', 'eq', 'a')|list }}",
        rows=rows,
    )


def number_filters():
    return _render(
        "{{ 3.14159|round(2) }} {{ 2.5|round(method='ceil')|int }} {{ '12'|int }} {{ 'x'|int(7) }} {{ '1.5'|float }} {{ 123456|filesizeformat }} {{ -3|abs }} {{ 5|default(1) }} {{ none|default('d', true) }} {{ [1, {'a': 2}]|tojson }} {{ [1]|pprint }}"
    )


def escaping():
    env = Environment(autoescape=select_autoescape(default_for_string=True))
    return _render(
        "{{ x }} {{ x|safe }} {{ x|e }} {{ {'a': x}|xmlattr }} {{ x|striptags }} {{ 'see http://a.org ok'|urlize }} {% autoescape false %}{{ x }}{% endautoescape %} {{ x|forceescape }}",
        env,
        x="<b>&</b>",
    )


def tests_of():
    return _render(
        "{{ 3 is odd }}{{ 4 is divisibleby 2 }}{{ x is defined }}{{ x is undefined }}{{ 'a' is string }}{{ [] is sequence }}{{ {} is mapping }}{{ 1 is number }}{{ none is none }}{{ 'A' is upper }}{{ 1 is in [1] }}{{ 2 is gt 1 }}{{ true is boolean }}{{ 'x' is sameas 'x' }}{{ range is callable }}{{ 'upper' is filter }}"
    )


def undefined_kinds():
    text = "{{ a }}{{ a.b.c }}"
    return [
        _render(text, Environment(undefined=kind))
        for kind in (StrictUndefined, DebugUndefined, ChainableUndefined, make_logging_undefined())
    ]


def whitespace():
    env = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    text = "a\n  {% if true %}\n  b\n  {%- endif %}\n {# c #}\nd {{- 1 -}} e\n"
    return [_render(text, env), _render(text), _render("{% raw %}{{ x }}{% endraw %}")]


def own_syntax():
    env = Environment(
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="[%",
        block_end_string="%]",
        line_statement_prefix="#",
        line_comment_prefix="//",
    )
    return _render("# for x in xs\n<< x >> // note\n# endfor\n[% if true %]y[% endif %]", env, xs=[1, 2])


def syntax_errors():
    return [
        _render(text)
        for text in (
            "{% if %}",
            "{{ 1 + }}",
            "{% for x %}",
            "{% endfor %}",
            "{{ 'a }}",
            "{% block a %}{% block a %}{% endblock %}{% endblock %}",
            "{{ x|nofilter }}",
            "{% unknown %}",
            "{{ x is nosuch }}",
        )
    ]


def sandboxed():
    return [
        _render("{{ ''.__class__.__mro__ }}", SandboxedEnvironment()),
        _render("{{ xs.append(1) }}", ImmutableSandboxedEnvironment(), xs=[]),
        _render("{{ range(999999) }}", SandboxedEnvironment()),
        _render("{{ '{0.__class__}'.format(1) }}", SandboxedEnvironment()),
        _render("{{ xs.index(2) }}{{ 2 ** 3 }}", SandboxedEnvironment(), xs=[1, 2]),
    ]


def native():
    env = NativeEnvironment()
    return [
        env.from_string(text).render(x=4)
        for text in ("{{ x + 1 }}", "[{{ x }}, 2]", "{{ x }}{{ x }}", "a{{ x }}", "{{ [x] }}")
    ]


def own_extension():
    class Repeat(Extension):
        tags = {"repeat"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            times = parser.parse_expression()
            body = parser.parse_statements(["name:endrepeat"], drop_needle=True)
            return nodes.CallBlock(self.call_method("_repeat", [times]), [], [], body).set_lineno(line)

        def _repeat(self, times, caller):
            return caller() * times

    return _render("{% repeat 3 %}x{% endrepeat %}", Environment(extensions=[Repeat]))


def translations():
    env = Environment(extensions=["jinja2.ext.i18n", "jinja2.ext.do"])
    env.install_gettext_callables(lambda s: s.upper(), lambda a, b, n: (a if n == 1 else b).upper(), newstyle=True)
    return [
        _render(
            "{% trans user=name %}hi {{ user }}{% endtrans %}{{ _('yes') }}{% do xs.append(1) %}{{ xs }}",
            env,
            name="Bo",
            xs=[],
        ),
        _render("{% trans n=2 %}one{% pluralize %}{{ n }} many{% endtrans %}", env),
        list(env.extract_translations("{{ _('a') }}{% trans n=1 %}b{% pluralize %}c{% endtrans %}")),
    ]


def parsed():
    env = Environment()
    tree = env.parse(
        "{% extends 'base' %}{% set a = 1 %}{{ a + b }}{% include 'x' %}{% for i in c %}{{ i }}{% endfor %}"
    )
    return [
        sorted(meta.find_undeclared_variables(tree)),
        list(meta.find_referenced_templates(tree)),
        len(list(tree.find_all(nodes.Name))),
        repr(tree.body[1]),
    ]


def compiled():
    source = Environment().compile("{% for x in xs %}{{ x|upper ~ 1 + 2 }}{% endfor %}", raw=True)
    return [line for line in source.splitlines() if "yield" in line or "for" in line]


def loaders():
    env = Environment(
        loader=ChoiceLoader([PrefixLoader({"p": DictLoader({"a": "A"})}), FunctionLoader({"f": "F"}.get)])
    )
    gave = [env.get_template("p/a").render(), env.select_template(["no", "f"]).render()]
    try:
        env.get_template("gone")
    except TemplateError as error:
        gave.append(type(error).__name__)
    return gave


def contexts():
    @pass_context
    def names(context):
        return sorted(key for key in context.get_exported() | context.parent if key.startswith("v"))

    env = Environment()
    env.globals.update(names=names, v0=0)
    env.filters["twice"] = lambda value: value * 2
    env.tests["large"] = lambda value: value > 5
    expression = env.compile_expression("a + b * 2 if a is large else none")
    return [
        _render("{{ names() }}{{ 'a'|twice }}{{ 6 is large }}", env, v1=1),
        expression(a=6, b=1),
        expression(a=1, b=1),
    ]


def streamed():
    template = Environment().from_string("{% for x in range(3) %}{{ x }},{% endfor %}")
    stream = template.stream()
    stream.enable_buffering(2)
    return [list(stream), list(template.generate()), template.make_module().__class__.__name__]


def async_rendering():
    import asyncio

    async def double(x):
        return x * 2

    async def numbers():
        for n in range(3):
            yield n

    env = Environment(enable_async=True)
    template = env.from_string("{% for n in numbers() %}{{ double(n) }}{{ loop.index }}{% endfor %}{{ [1, 2]|sum }}")
    return asyncio.run(template.render_async(numbers=numbers, double=double))
