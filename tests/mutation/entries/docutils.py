"""What docutils can do, from deep entries: modules imported by computed names, state machines, visitors by class names."""

from docutils import frontend, io, nodes, utils
from docutils.core import publish_doctree, publish_from_doctree, publish_parts, publish_string
from docutils.parsers.rst import Directive, Parser, directives, roles

QUIET = {"report_level": 5, "halt_level": 5, "_disable_config": True, "warning_stream": False}

TEXT = """
Title
=====

Subtitle
--------

Text with *emphasis*, **strong**, ``literal``, a link_ and a [1]_ note.

- one
- two

1. first
#. second

term
  definition

:field: value

.. _link: http://a.org
.. [1] the note

::

  literal block
"""


def _tree(text, **settings):
    return publish_doctree(text, settings_overrides={**QUIET, **settings}).pformat()


def tree_of_everything():
    return _tree(TEXT)


def html():
    return publish_parts(TEXT, writer="html5", settings_overrides=QUIET)["body"]


def html4():
    return publish_parts(TEXT, writer="html4", settings_overrides=QUIET)["fragment"]


def latex():
    return publish_parts(TEXT, writer="latex", settings_overrides=QUIET)["body"]


def xml():
    return publish_string(TEXT, writer="xml", settings_overrides={**QUIET, "output_encoding": "unicode"}).splitlines()[
        4:
    ]


def manpage():
    return publish_string(
        "Name\n====\n\ntext *em*\n\n- a\n",
        writer="manpage",
        settings_overrides={**QUIET, "output_encoding": "unicode", "datestamp": None},
    ).splitlines()[-12:]


def tables():
    return _tree(
        "=====  =====\n a      b\n=====  =====\n 1      2\n 3      4\n=====  =====\n\n+---+---+\n| a | b |\n+===+===+\n| c     |\n+---+---+\n"
    )


def csv_table():
    return _tree('.. csv-table:: T\n   :header: "a", "b"\n   :widths: 10, 20\n\n   1, "x, y"\n   2, z\n')


def list_table():
    return _tree(".. list-table:: T\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - 2\n")


def admonitions():
    return _tree(".. note:: body\n\n.. admonition:: Own\n   :class: x\n\n   text\n\n.. warning::\n\n   - a\n")


def images():
    return _tree(
        ".. image:: a.png\n   :width: 50%\n   :alt: x\n   :target: http://a.org\n\n.. figure:: b.png\n   :align: left\n\n   Caption\n\n   Legend\n"
    )


def contents():
    return _tree(".. contents:: Here\n   :depth: 1\n\n.. sectnum::\n\nA\n=\n\nx\n\nB\n=\n\ny\n\nC\n-\n\nz\n")


def substitutions():
    return _tree(
        ".. |n| replace:: some *text*\n.. |u| unicode:: 0xA9\n.. |d| image:: x.png\n\nA |n| and |u| |d| and |missing|.\n"
    )


def footnotes():
    return _tree("a [#x]_ b [#]_ c [*]_ d [CIT]_\n\n.. [#x] one\n.. [#] two\n.. [*] three\n.. [CIT] four\n")


def targets():
    return _tree(
        "See `a b`_ and anonymous__ and `inline <http://x.org>`_ and c_.\n\n.. _a b: http://a.org\n__ http://b.org\n.. _c: `a b`_\n"
    )


def roles_of():
    text = ".. role:: custom(emphasis)\n   :class: own\n\n:custom:`a` :sup:`2` :title:`t` :code:`x = 1` :pep:`8` :nosuch:`y` :math:`a^2`\n"
    return _tree(text)


def own_role():
    def shout(name, rawtext, text, lineno, inliner, options=None, content=()):
        return [nodes.strong(rawtext, text.upper())], []

    roles.register_local_role("shout", shout)
    return _tree("a :shout:`loud` b")


def own_directive():
    class Twice(Directive):
        has_content = True
        optional_arguments = 1
        option_spec = {"n": directives.nonnegative_int, "flag": directives.flag}

        def run(self):
            node = nodes.container()
            for _ in range(self.options.get("n", 2)):
                self.state.nested_parse(self.content, self.content_offset, node)
            return [node]

    directives.register_directive("twice", Twice)
    return [_tree(".. twice::\n   :n: 3\n\n   *x*\n"), _tree(".. twice::\n   :n: -3\n\n   x\n", report_level=2)]


def option_lists():
    return _tree(
        "-a         first\n-b FILE    second\n--long=X   third\n/V         dos\n\n>>> 1 + 1\n2\n\n| line\n|   block\n"
    )


def errors():
    return _tree("Title\n==\n\n*open\n\n.. nosuch:: x\n\n.. image::\n\n`a`_\n\n- x\n y\n", report_level=1)


def transitions_and_comments():
    return _tree("a\n\n-----\n\n.. a comment\n\nb\n\n..\n\n   quote\n\n   -- Author\n")


def bibliography():
    return _tree(
        "Title\n=====\n\n:Author: Bo\n:Date: $Date: 2024/01/02 $\n:Version: 1\n:Abstract: short\n:Custom: x\n\ntext\n"
    )


def math_blocks():
    return publish_parts(
        ".. math:: a^2 + \\frac{b}{2}\n\n:math:`\\sqrt{x}`\n",
        writer="html5",
        settings_overrides={**QUIET, "math_output": "MathML"},
    )["body"]


def code_blocks():
    return publish_parts(
        ".. code:: python\n   :number-lines: 5\n\n   def f():\n       return 1\n",
        writer="html5",
        settings_overrides={**QUIET, "syntax_highlight": "none"},
    )["body"]


def smart_quotes():
    return _tree('He said "it\'s --- fine"... ``"code"``\n', smart_quotes=True)


def other_language():
    return _tree(".. achtung:: x\n\n.. bild:: a.png\n", language_code="de")


def built_tree():
    document = utils.new_document("x", frontend.get_default_settings(Parser))
    section = nodes.section(ids=["s"])
    section += nodes.title("", "T")
    section += nodes.paragraph("", "", nodes.Text("a "), nodes.emphasis("", "b"))
    document += section

    class Names(nodes.SparseNodeVisitor):
        seen = []

        def visit_emphasis(self, node):
            self.seen.append(node.astext())

        def depart_section(self, node):
            self.seen.append("end")

    document.walkabout(Names(document))
    html = publish_from_doctree(
        document, writer="pseudoxml", settings_overrides={**QUIET, "output_encoding": "unicode"}
    )
    return [Names.seen, document.pformat(), len(html), [type(n).__name__ for n in document.findall()]]


def helpers():
    return [
        nodes.make_id("A Long -- Näme 2"),
        nodes.fully_normalize_name(" A  b\nC "),
        utils.column_width("a\u4e2d"),
        utils.relative_path("/a/b/c", "/a/d/e"),
        utils.escape2null("a\\*b"),
        utils.split_escaped_whitespace("a\x00 b"),
        utils.xml_declaration("utf-8"),
        directives.length_or_percentage_or_unitless("3 em"),
        directives.class_option("A b"),
        directives.unicode_code("0x41"),
        directives.positive_int_list("1 2,3".replace(",", " ")),
        io.StringInput("x").read(),
    ]
