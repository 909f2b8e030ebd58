"""What mistune can do, from deep entries: rules by name, plugins that change a parser, a renderer with computed methods."""

import mistune
from mistune.directives import Admonition, FencedDirective, Figure, Image, Include, RSTDirective, TableOfContents
from mistune.renderers.markdown import MarkdownRenderer
from mistune.renderers.rst import RSTRenderer
from mistune.toc import add_toc_hook, render_toc_ul

TEXT = """# Title

Some *emphasis*, **strong** and `code` with a [link](http://a.org "t") and ![alt](x.png).

- one
- two
  - deep

1. first
2. second

> quoted
> more

```py
x = 1
```

---

<div>raw</div>

[ref]: http://b.org
See [ref] and <http://auto.org>.
"""


def html_of_everything():
    return mistune.html(TEXT)


def plain():
    return mistune.create_markdown(escape=True)("a <b> & *c*\nd  \ne\\\nf")


def hard_wrap():
    return mistune.create_markdown(hard_wrap=True)("a\nb\n\nc")


def tokens():
    parsed = mistune.create_markdown(renderer="ast")(TEXT)
    return [token["type"] for token in parsed] + [parsed[2]["children"][0]["type"]]


def headings():
    return mistune.html("Setext\n======\n\nTwo\n---\n\n### three ###\n\n####### seven")


def lists():
    return mistune.html("* a\n\n  b\n* c\n\n3) x\n4) y\n\n- \n- z\n\n    code")


def nested_lists():
    return mistune.html("- a\n  1. b\n     - c\n  2. d\n- e\n+ f")


def quotes_and_code():
    return mistune.html("> a\nlazy\n> > deep\n\n    indented\n\n~~~ sh\nx\n~~~\n")


def links():
    return mistune.html("[a](<b c> \"t\") [x][Y] [y] ![i][y] [bad](javascript:x)\n\n[y]: /u 'title'\n")


def emphasis():
    return mistune.html("*a **b** c* __d__ ***e*** snake_case_word *un closed **x*")


def inline_html():
    return mistune.html("a <b>c</b> <!-- d --> &amp; &#35; \\* `` a`b ``")


def tables():
    md = mistune.create_markdown(plugins=["table"])
    return md("| a | b |\n|:--|--:|\n| 1 | *2* |\n| 3 | 4 |\n\na | b\n--|--\n1 | 2\n")


def footnotes():
    md = mistune.create_markdown(plugins=["footnotes"])
    return md("a[^1] b[^x] c[^1]\n\n[^1]: one\n[^x]: two\n    more\n")


def struck_and_marked():
    md = mistune.create_markdown(plugins=["strikethrough", "mark", "insert", "superscript", "subscript"])
    return md("~~a~~ ==b== ^^c^^ d^2^ H~2~O")


def tasks():
    return mistune.create_markdown(plugins=["task_lists"])("- [x] a\n- [ ] b\n- c")


def definitions():
    return mistune.create_markdown(plugins=["def_list"])("Term\n: first\n: second\n\nOther\n:   x\n\n    y\n")


def abbreviations():
    return mistune.create_markdown(plugins=["abbr"])("The HTML is HTML.\n\n*[HTML]: Hyper Text\n")


def formulas():
    return mistune.create_markdown(plugins=["math"])("$a^2$ and\n\n$$\nb\n$$\n")


def bare_urls():
    return mistune.create_markdown(plugins=["url", "spoiler", "ruby"])("see https://a.org/x. >!hidden!< [漢(kan)]")


def admonitions():
    md = mistune.create_markdown(plugins=[RSTDirective([Admonition()])])
    return md(".. note:: Title\n   :class: x\n\n   Body *em*\n\nafter")


def fenced_directives():
    md = mistune.create_markdown(plugins=[FencedDirective([Admonition(), Image(), Figure(), Include()])])
    return md(
        "```{warning} T\nbody\n```\n\n```{image} a.png\n:alt: x\n:width: 20\n```\n\n```{figure} b.png\ncaption\n\nlegend\n```\n"
    )


def contents():
    md = mistune.create_markdown(plugins=[RSTDirective([TableOfContents()])])
    return md(".. toc:: On\n   :min-level: 1\n   :max-level: 2\n\n# A\n\n## B\n\n### C\n")


def contents_hook():
    md = mistune.create_markdown()
    add_toc_hook(md)
    _, state = md.parse("# A\n\n## B\n\n# C\n")
    return [state.env["toc_items"], render_toc_ul(state.env["toc_items"])]


def to_markdown():
    return mistune.create_markdown(renderer=MarkdownRenderer())(TEXT)


def to_rst():
    return mistune.create_markdown(renderer=RSTRenderer())(TEXT)


def own_renderer():
    class Loud(mistune.HTMLRenderer):
        def heading(self, text, level, **attrs):
            return f"[{level}:{text.upper()}]"

        def link(self, text, url, title=None):
            return f"{text}->{self.safe_url(url)}"

    return mistune.create_markdown(renderer=Loud(escape=False))("# a *b*\n\n[x](data:bad) [y](/z)\n\n<i>raw</i>")


def own_plugin():
    def parse(inline, m, state):
        state.append_token({"type": "wiki", "raw": m.group("wiki_text")})
        return m.end()

    def wiki(md):
        md.inline.register("wiki", r"\[\[(?P<wiki_text>[\s\S]+?)\]\]", parse, before="link")
        if md.renderer and md.renderer.NAME == "html":
            md.renderer.register("wiki", lambda renderer, text: f"<a>{text}</a>")

    return mistune.create_markdown(plugins=[wiki])("a [[Page One]] *b*")
