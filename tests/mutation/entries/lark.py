"""What lark can do, from deep entries: a grammar for grammars, three parsers, visitors called by the names of rules."""

from lark import Discard, Lark, Token, Transformer, Tree, UnexpectedInput, Visitor, ast_utils, v_args
from lark.indenter import Indenter
from lark.reconstruct import Reconstructor
from lark.visitors import Interpreter, Transformer_NonRecursive, merge_transformers

JSON = r"""
?start: value
?value: object | array | ESCAPED_STRING -> string | SIGNED_NUMBER -> number | "true" -> true | "null" -> null
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""
TEXT = '{"a": [1, -2.5, "x"], "b": {"c": null, "d": true}}'

CALC = r"""
?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: atom | product "*" atom -> mul
?atom: NUMBER -> number | "-" atom -> neg | NAME "=" sum -> assign | NAME -> var | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""


@v_args(inline=True)
class Calculate(Transformer):
    from operator import add, mul, neg, sub

    number = float

    def __init__(self):
        super().__init__()
        self.vars = {}

    def assign(self, name, value):
        self.vars[str(name)] = value
        return value

    def var(self, name):
        return self.vars.get(str(name), 0.0)


class ToPython(Transformer):
    def string(self, children):
        return children[0][1:-1]

    def number(self, children):
        return float(children[0])

    array = list
    pair = tuple
    object = dict

    def null(self, _):
        return None

    def true(self, _):
        return True


def json_earley():
    return ToPython().transform(Lark(JSON).parse(TEXT))


def json_lalr():
    return ToPython().transform(Lark(JSON, parser="lalr").parse(TEXT))


def json_lalr_inline():
    return Lark(JSON, parser="lalr", transformer=ToPython()).parse(TEXT)


def json_cyk():
    return Lark('start: "a" b "c"\nb: "x" | "y" b', parser="cyk").parse("ayyxc").pretty()


def calculator():
    parser = Lark(CALC, parser="lalr", transformer=Calculate())
    return [parser.parse("1+2*-3"), parser.parse("(1+2)*3-4")]


def assigned_calculator():
    calculate = Calculate()
    parser = Lark(CALC, parser="lalr")
    return [calculate.transform(parser.parse("x = 1 + 2")), calculate.transform(parser.parse("x * x"))]


def ambiguous():
    tree = Lark('start: a | b\na: "x" c\nb: "x" c\nc: "y"+', ambiguity="explicit").parse("xyy")
    return tree.pretty()


def resolved_by_priority():
    return Lark('start: a | b\na.2: WORD\nb.1: WORD\nWORD: "x"').parse("x").pretty()


def dynamic_lexer():
    grammar = 'start: _if+\n_if: "if" NAME | NAME\n%import common.CNAME -> NAME\n%ignore " "'
    return [
        Lark(grammar, lexer="dynamic_complete").parse("if x").pretty(),
        Lark(grammar, lexer="basic").parse("if x y").pretty(),
    ]


def errors():
    gave = []
    parser = Lark(JSON, parser="lalr")
    for text in ("[1, ", "[1 2]", "{?}", '{"a" 1}'):
        try:
            parser.parse(text)
        except UnexpectedInput as error:
            gave.append([type(error).__name__, error.line, error.column, error.get_context(text, 5)])
    return gave


def error_examples():
    parser = Lark(JSON, parser="lalr")
    try:
        parser.parse("[1, ")
    except UnexpectedInput as error:
        return error.match_examples(parser.parse, {"end": ["[", "[1,"], "colon": ['{"a" 1']}, use_accepts=True)


def interactive():
    interactive = Lark(JSON, parser="lalr").parse_interactive("[1, 2")
    seen = [str(token) for token in interactive.iter_parse()]
    accepts = sorted(interactive.accepts())
    interactive.feed_token(Token("RSQB", "]"))
    return [seen, accepts, interactive.feed_eof().pretty()]


def recovery():
    fixed = []

    def on_error(error):
        fixed.append(type(error).__name__)
        return True

    tree = Lark(JSON, parser="lalr").parse("[1, , 2]", on_error=on_error)
    return [tree.pretty(), fixed]


def templates():
    grammar = 'start: _sep{item, ","}\n_sep{x, s}: x (s x)*\nitem: WORD ~ 1..2\n%import common.WORD\n%ignore " "'
    return Lark(grammar).parse("a b, c").pretty()


def indentation():
    class Indent(Indenter):
        NL_type = "_NL"
        OPEN_PAREN_types = []
        CLOSE_PAREN_types = []
        INDENT_type = "_INDENT"
        DEDENT_type = "_DEDENT"
        tab_len = 8

    grammar = "start: _NL* tree+\ntree: NAME _NL [_INDENT tree+ _DEDENT]\n%import common.CNAME -> NAME\n%import common.WS_INLINE\n%declare _INDENT _DEDENT\n%ignore WS_INLINE\n_NL: /(\\r?\\n[\\t ]*)+/"
    return Lark(grammar, parser="lalr", postlex=Indent()).parse("a\n    b\n    c\n        d\ne\n").pretty()


def reconstructing():
    grammar = 'start: "set" NAME "=" value\nvalue: NUMBER | NAME\n%import common.CNAME -> NAME\n%import common.NUMBER\n%import common.WS\n%ignore WS'
    parser = Lark(grammar, maybe_placeholders=False)
    return Reconstructor(parser).reconstruct(parser.parse("set x = 5"))


def visiting():
    class Count(Visitor):
        def __init__(self):
            self.n = 0

        def number(self, tree):
            self.n += 1

        def __default__(self, tree):
            self.last = tree.data

    count = Count()
    tree = Lark(JSON).parse(TEXT)
    count.visit_topdown(tree)
    count.visit(tree)
    return [count.n, str(count.last)]


def interpreting():
    class Run(Interpreter):
        def array(self, tree):
            return sum(self.visit_children(tree))

        def number(self, tree):
            return float(tree.children[0])

    return Run().visit(Lark(JSON, parser="lalr").parse("[1, 2, [3]]"))


def transforming():
    class Drop(Transformer_NonRecursive):
        def number(self, children):
            return Discard

        def string(self, children):
            return children[0].upper()

    class Loud(Transformer):
        def null(self, _):
            return "NULL"

    both = Drop() * Loud()
    tree = Lark(JSON, parser="lalr").parse(TEXT)
    merged = merge_transformers(ToPython(), other=Loud())
    return [both.transform(tree).pretty(), type(merged).__name__]


def trees():
    tree = Tree("a", [Tree("b", [Token("X", "1")]), Tree("c", [Tree("b", [])])])
    return [
        tree.pretty(),
        [t.data for t in tree.iter_subtrees()],
        [t.data for t in tree.iter_subtrees_topdown()],
        len(list(tree.find_data("b"))),
        [str(t) for t in tree.scan_values(lambda v: isinstance(v, Token))],
        tree == tree.copy(),
        repr(tree.children[0].children[0].update(value="2")),
    ]


def positions():
    tree = Lark(JSON, parser="lalr", propagate_positions=True).parse('{"a":\n [1]}')
    array = next(tree.find_data("array"))
    return [array.meta.line, array.meta.column, array.meta.end_column, array.meta.start_pos]


def lexing():
    parser = Lark(JSON, parser="lalr", lexer="contextual")
    return [(token.type, str(token), token.column) for token in parser.lex('["a", 1]')]


def saved():
    import io

    stream = io.BytesIO()
    Lark(JSON, parser="lalr").save(stream)
    stream.seek(0)
    return Lark.load(stream).parse("[1]").pretty()


def dataclass_trees():
    import sys
    from dataclasses import dataclass
    from types import ModuleType

    module = ModuleType("made")

    class _Ast(ast_utils.Ast):
        pass

    @dataclass
    class Value(_Ast, ast_utils.WithMeta):
        meta: object
        number: str

    @dataclass
    class Items(_Ast, ast_utils.AsList):
        values: list

    module.Value, module.Items = Value, Items
    sys.modules["made"] = module
    transformer = ast_utils.create_transformer(module, Transformer())
    tree = transformer.transform(Lark("items: value+\nvalue: /[0-9]/", start="items", parser="lalr").parse("12"))
    return [one.number for one in tree.values]


def grammar_errors():
    gave = []
    for grammar in ("start: missing", "start: a\na: b\n", "start: X\nX: /(/", 'start: "a" start2\n', "start: a a: b"):
        try:
            Lark(grammar)
        except Exception as error:
            gave.append([type(error).__name__, str(error)[:40]])
    return gave
