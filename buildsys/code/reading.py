"""A piece of code -> a digest that formatting can't change, and the names that it reads, writes and calls.

One piece runs as a whole: a statement without the functions defined in it, or the body of one function. Names are as
they are written, whatever they mean; those that a function binds for itself are left out. Knows no other piece.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from buildsys.code import known
from buildsys.code.functions import Function
from buildsys.code.scopes import Alias, Scope, aliases, fields_of, parameters, unmangled
from buildsys.digest import Digest, digest_bytes

Chain = tuple[str, ...]
"""A name and the attributes that follow it, as written: `a.b.c` is ("a", "b", "c")."""
Definition = Function | ast.ClassDef


class Code(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one piece of code does, in names.

    digest: of its syntax, without positions, docstrings and annotations that only reflection can see; those are in
    docs and notes, "" where there are none. reads: global names and chains whose value is used. writes: chains whose
    object is changed, or bound anew. stirs: those of which a method is called that may change it. calls: chains that
    are called; acts: those of them whose result is not used.
    attributes: of whatever object, also those that a text may name. texts: dotted names and files in string constants,
    "$NAME" for an environment variable, "?module" for one whose being there is asked, "=distribution", "-m module" for
    one that is run as a program. imports: made when it runs. binds: global names. computed: what it does by names that
    are not in it (see COMPUTED). note_reads: names in annotations. hands:
    what is called, and a name that it is given.
    """

    digest: Digest
    docs: str = ""
    notes: str = ""
    reads: tuple[Chain, ...] = ()
    writes: tuple[Chain, ...] = ()
    stirs: tuple[Chain, ...] = ()
    calls: tuple[Chain, ...] = ()
    acts: tuple[Chain, ...] = ()
    attributes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    imports: tuple[Alias, ...] = ()
    binds: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    note_reads: tuple[Chain, ...] = ()
    hands: tuple[tuple[Chain, Chain], ...] = ()


COMPUTED: Final = ("import", "attribute", "namespace", "modules", "path", "file", "elsewhere", "raise")
"""What code may do by names that are not in it: import a module, read an attribute, or a name of its own module or of
any; add to where modules are found, run a file that is named in a text, and run any file of the project. Or raise an
error."""
ROAMING: Final = frozenset(("path", "file", "elsewhere"))
_FIELD: Final = re.compile(r"\{[^{}!:]*")
_PART: Final = re.compile(r"\.([A-Za-z_]\w*)")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_FILE: Final = re.compile(r"\.py(?!\w)")
_PROGRAM: Final = re.compile(r"(?:^|\s)-m\s+([A-Za-z_][\w.]*)")
_NAMES_AT: Final = {
    **dict.fromkeys(("getattr", "setattr", "hasattr", "delattr", "getattr_static"), slice(1, 2)),
    **dict.fromkeys(("attrgetter", "methodcaller"), slice(0, 1)),
}
HANDED_ON: Final = "%code"
"""In the attributes of a piece: it makes a function of the code of another, and uses of that what it closes over."""
_LONGEST_NAME: Final = 200


class Reader:
    """Reads one piece. definitions: the functions defined in it, with the scope that their bodies are in.

    yields: it is the body of a generator. locals: the names in it that are not global.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.definitions: list[tuple[str, Function, Scope]] = []
        self._parts: list[str] = []
        self._docs: list[str] = []
        self._notes: list[ast.AST] = []
        self._stack: list[Any] = []
        self.reads: set[Chain] = set()
        self.writes: set[Chain] = set()
        self.stirs: set[Chain] = set()
        self.calls: set[Chain] = set()
        self.acts: set[Chain] = set()
        self.hands: set[tuple[Chain, Chain]] = set()
        self.attributes: set[str] = set()
        self.texts: set[str] = set()
        self.imports: list[Alias] = []
        self.binds: dict[str, None] = {}
        self.computed: set[str] = set()
        self.yields = False
        self.locals: set[str] = set()
        self._handed_on: set[int] = set()

    def read(self, nodes: Iterable[ast.AST]) -> Code:
        self._walk([*nodes])
        self._look_for_means()
        digest = digest_bytes("".join(self._parts).encode("utf-8", "surrogatepass"))
        docs = digest_bytes("\0".join(self._docs).encode("utf-8", "surrogatepass")) if self._docs else ""
        notes, note_reads = "", set[Chain]()
        if self._notes:
            aside = Reader(self.scope)
            notes, note_reads = aside.read(self._notes).digest, aside.reads
        sets: tuple[set[Any], ...] = (self.reads, self.writes, self.stirs, self.calls, self.acts, self.attributes)
        named = [tuple(sorted(names)) if names else () for names in (*sets, self.texts, self.computed, note_reads)]
        reads, writes, stirs, calls, acts, attributes, texts, computed, noted = named
        imports, binds = tuple(self.imports), tuple(self.binds)
        return Code(
            *(
                digest,
                docs,
                notes,
                reads,
                writes,
                stirs,
                calls,
                acts,
                attributes,
                texts,
                imports,
                binds,
                computed,
                noted,
            ),
            tuple(sorted(self.hands)),
        )

    def _walk(self, nodes: list[ast.AST]) -> None:
        stack, add, handler_of = self._stack, self._parts.append, _HANDLERS.get
        stack += reversed(nodes)
        while stack:
            node = stack.pop()
            kind = node.__class__
            if kind is str:
                add(node)
            elif (handle := handler_of(kind)) is not None:
                handle(self, node)
            elif kind is list:
                add("[")
                stack.append("]")
                stack += node[::-1]
            elif isinstance(node, ast.AST):
                self._open(node, fields_of(kind))
            elif kind is Scope:
                self.scope = node
            else:
                add(f"{node!r};")

    def _open(self, node: ast.AST, fields: tuple[str, ...]) -> None:
        """Its name, and what is in it to be read next."""
        if not fields:
            self._parts.append(f"{node.__class__.__name__}()")
            return
        self._parts.append(f"{node.__class__.__name__}(")
        stack = self._stack
        stack.append(")")
        for name in reversed(fields):
            value: Any = getattr(node, name, None)
            kind = value.__class__
            if kind is list:
                stack.append("]")
                stack += value[::-1]
                stack.append("[")
            else:
                stack.append(f"{value!r};" if kind is str or value is None else value)

    # ------------------------------------------------------------ names

    def _name(self, node: ast.Name) -> None:
        self._parts.append(f"{node.id};")
        if node.id in self.scope.local:
            self.locals.add(node.id)
            return
        if node.ctx.__class__ is ast.Load:
            self.reads.add((node.id,))
        elif self.scope.binds:
            self.binds[node.id] = None

    def _attribute(self, node: ast.Attribute, *, used: bool = True) -> None:
        root: Any
        chain, root = _chain(node)
        self.attributes.update(chain if id(node) not in self._handed_on else (*chain[:-1], HANDED_ON))
        self.attributes.update(filter(None, map(unmangled, chain)))
        if "__dict__" in chain and not (chain[0] == "__dict__" and _last(root) == "self"):
            self.computed.add("attribute")
        if root.__class__ is not ast.Name:
            self._parts.append(f".{'.'.join(chain)}(")
            self._stack += (")", root)
            if node.ctx.__class__ is not ast.Load:
                self._write_into(root)
            return
        name: str = root.id
        self._parts.append(f"{name}.{'.'.join(chain)};")
        if name in self.scope.local:
            self.locals.add(name)
        else:
            found = (name, *chain)
            if node.ctx.__class__ is not ast.Load:
                self.writes.add(found)
            elif used:
                self.reads.add(found)

    def _sequence(self, node: ast.List | ast.Tuple) -> None:
        """Words of a command may say which module is run, or what code."""
        for option, said in itertools.pairwise(node.elts):
            if isinstance(option, ast.Constant) and isinstance(said, ast.Constant) and isinstance(said.value, str):
                if option.value == "-m":
                    self.texts.add(f"-m {said.value}")
                elif option.value == "-c":
                    self._code_of_child(said.value)
        self._open(node, fields_of(node.__class__))

    def _code_of_child(self, text: str) -> None:
        """What another interpreter is given to run: the modules that it imports, and all names in it."""
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            tree = ast.parse(text)
            for node in ast.walk(tree):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    self.imports += [Alias("", alias.module, "*module") for alias in aliases(node) if not alias.level]
            self.attributes.update(_WORD.findall(text))

    def _subscript(self, node: ast.Subscript) -> None:
        written = node.ctx.__class__ is not ast.Load
        if written and (found := self._global(node.value)):
            self.writes.add(found)
            self._parts.append(f"[{'.'.join(found)}](")
            self.attributes.update(found[1:])
            self._stack += (")", node.slice)
            return
        if written:
            self._write_into(node.value)
        elif _last(node.value) == "environ":
            self._variable("getenv", None, [node.slice])
        elif self._global(node.value) == known.MODULES and (_is_text(node.slice) or _last(node.slice) == "__name__"):
            self._module_by_name(node.slice)
            return
        self._open(node, ("value", "slice"))

    def _module_by_name(self, name: ast.expr) -> None:
        """`sys.modules[__name__]`, or of another module by its name."""
        self.reads.add(("sys",))
        self.computed.add("modules" if _is_text(name) else "namespace")
        self._parts.append("sys.modules[")
        self._stack += ("]", name)

    def _write_into(self, node: Any) -> None:
        """Note what may change where a part of it is bound: `a.b()[0].c = 1` may change a.b."""
        if root := self._root(node):
            self.writes.add(root)

    def _root(self, node: Any) -> Chain | None:
        """What a chain of calls and parts begins with, where that is global."""
        while isinstance(node, ast.AST):
            if found := self._global(node):
                return found
            node = getattr(node, "value", None) or getattr(node, "func", None)
        return None

    def _global(self, node: Any) -> Chain | None:
        """The chain that a node is, where it begins with a global name."""
        if node.__class__ is ast.Name:
            name: str = node.id
            return None if name in self.scope.local else (name,)
        if node.__class__ is ast.Attribute:
            chain, root = _chain(node)
            if root.__class__ is ast.Name and root.id not in self.scope.local:
                return (root.id, *chain)
        return None

    # ------------------------------------------------------------ calls and texts

    def _call(self, node: ast.Call, *, used: bool = True) -> None:
        func: Any = node.func
        name = str(getattr(func, "attr", None) or getattr(func, "id", ""))
        if name in known.IMPORTERS and len(node.args) == 1 and not node.keywords and _is_text(node.args[0]):
            self.imports.append(Alias("", node.args[0].value, "*module"))  # type: ignore[attr-defined]
            self._parts.append(f"import {name}(")
            self._stack += (")", node.args)
            return
        found = self._global(func)
        if found:
            if name not in known.TAKES_AS_IT_IS:
                given = map(self._global, (*node.args, *(keyword.value for keyword in node.keywords)))
                self.hands.update((found, one) for one in given if one)
            self.calls.add(found)
            if not used:
                self.acts.add(found)
            if len(found) > 1 and found[-1] not in known.LOOKS_ONLY:
                self.stirs.add(found[:-1])
        else:
            if func.__class__ is ast.Attribute and func.attr not in known.LOOKS_ONLY and (root := self._root(func)):
                self.stirs.add(root)
            if not used and (root := self._root(func)):
                self.acts.add(root)
        self._look_at_means(name, node, plain=func.__class__ is ast.Name)
        self._variable(name, func, node.args)
        if name == "FunctionType" or (name == "add" and not used):
            self._hand_on(node.args[:1])
        self._parts.append("Call(")
        self._stack += (")", node.keywords, node.args)
        if found and len(found) > 1:
            # A method called for what it does, as `REG.append(x)`, is no look at what REG holds.
            self._attribute(func, used=used)
        else:
            self._stack.append(func)

    def _look_at_means(self, name: str, node: ast.Call, *, plain: bool) -> None:
        """Note what a call does by a name that it is given."""
        first = node.args[0] if node.args else None
        said = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
        self.attributes.update("%record" for one in node.keywords if (one.arg or name) in ("record", "catch_warnings"))
        if name in known.IMPORTERS or name in known.LOADERS:
            self.computed.add("import")
        elif said and name in known.PROBES:
            self.texts.add(f"?{said}")
        elif said and name in known.ABOUT:
            self.texts.add(f"={said}")
        elif name in known.ALL_INSTALLED:
            self.texts.add("=*")
        elif plain and name in ("vars", "dir") and not node.args:
            self.computed.add("namespace")
        elif (plain and name in ("vars", "dir")) or (
            name in _NAMES_AT and not all(map(_is_text, node.args[_NAMES_AT[name]]))
        ):
            self.computed.add("attribute")

    def _variable(self, name: str, func: Any, arguments: list[ast.expr]) -> None:
        """Note an environment variable that is looked up by a name that shows."""
        of_environment = func.__class__ is ast.Attribute and name in ("get", "pop", "setdefault")
        owner = func.value if of_environment else None
        if (name == "getenv" or _last(owner) == "environ") and arguments and _is_text(arguments[0]):
            self.texts.add(f"${arguments[0].value}")  # type: ignore[attr-defined]

    def _look_for_means(self) -> None:
        """Note what is done by names that tell of it wherever they stand."""
        for alias in self.imports:
            self.computed |= known.means_of(alias)
        if known.TELLING.isdisjoint(self.attributes.union(*self.reads, *self.writes, *self.stirs, *self.calls)):
            return
        named = {name for chain in (*self.reads, *self.writes, *self.stirs) for name in chain}
        named |= self.attributes
        chains = self.reads | self.calls
        ends = {chain[-1] for chain in chains if len(chain) == 1 or chain[0] in ("builtins", "__builtins__")}
        if not known.ELSEWHERE.isdisjoint(named) or "exec" in ends:
            self.computed.add("elsewhere")
        if not ends.isdisjoint(known.NAMESPACE):
            self.computed.add("namespace")
        if not ends.isdisjoint(("eval", "exec")) or any(chain[-1] in known.IMPORTING for chain in chains):
            self.computed.add("import")
        of_sys = {
            chain[1] for chain in (*self.reads, *self.writes, *self.stirs) if chain[0] == "sys" and len(chain) > 1
        }
        if not known.PLACES.isdisjoint(of_sys) or "addsitedir" in named or "__path__" in named:
            self.computed.add("path")
        if "modules" in of_sys:
            self.computed.add("namespace")
        if any(chain[:2] == known.MODULES for chain in (*self.reads, *self.stirs)):
            self.computed.add("modules")

    def _constant(self, node: ast.Constant) -> None:
        value: Any = node.value
        if value.__class__ is str:
            self._parts.append(f"{value!r};")
            if len(value) < _LONGEST_NAME or ".py" in value:
                self._text(value)
        elif value.__class__ is int:
            self._parts.append(f"{value:x};" if abs(value) > 1 << 63 else f"{value};")
        else:
            self._parts.append(f"{value.__class__.__name__} {value!r};")

    def _joined(self, node: ast.JoinedStr) -> None:
        """A text with an f in front in which nothing is filled in."""
        texts = [one.value for one in node.values if isinstance(one, ast.Constant)]
        if len(texts) == len(node.values):
            self._constant(ast.Constant("".join(map(str, texts))))
        else:
            self._open(node, ("values",))

    def _text(self, value: str) -> None:
        for field in _FIELD.finditer(value) if "{" in value else ():
            self.attributes.update(_PART.findall(field[0]))
        if "%(lineno)" in value or "{lineno" in value:
            self.attributes.add("%lineno")
        if "-m" in value and (program := _PROGRAM.search(value)):
            self.texts.add(f"-m {program[1]}")
        if value.isidentifier():
            self.attributes.update((value, unmangled(value) or value))
        elif _FILE.search(value):
            self.computed.add("file")
            self.texts.add(value)
        elif value[:1] not in ". ":
            parts = value.replace(":", ".").split(".")
            if all(part.isidentifier() for part in parts):
                self.texts.add(value)
                self.attributes.update(parts)

    # ------------------------------------------------------------ statements

    def _expression(self, node: ast.Expr) -> None:
        value: Any = node.value
        if value.__class__ is ast.Constant:
            return  # A docstring, or a text or dots in place of a statement.
        if value.__class__ is ast.Call:
            self._parts.append("Expr(")
            self._stack.append(")")
            self._call(value, used=False)
        else:
            called = (self._root(inner.func) for inner in ast.walk(value) if isinstance(inner, ast.Call))
            self.acts.update(root for root in called if root)
            self._open(node, ("value",))

    def _nothing(self, node: ast.AST) -> None:
        """`pass` does nothing."""

    def _annotated(self, node: ast.AnnAssign) -> None:
        if self.scope.in_class:
            self._open(node, ("target", "annotation", "value", "simple"))
            return
        self._notes.append(node.annotation)
        if node.value is None:
            self._open(node, ("target",))
        else:  # as if the annotation were not there
            self._parts.append("Assign([")
            self._stack += (")", node.value, "]", node.target)

    def _argument(self, node: ast.arg) -> None:
        self._parts.append(f"{node.arg};")
        if node.annotation:
            self._notes.append(node.annotation)

    def _alias(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in aliases(node):
            self.imports.append(alias)
            name = alias.name
            if name and self.scope.binds and name not in self.scope.local:
                self.binds[name] = None
        self._open(node, fields_of(node.__class__))

    def _definition(self, node: Function) -> None:
        """What runs when a function is defined; its body is another piece."""
        name = node.name
        self._parts.append(f"{node.__class__.__name__} {name}(")
        self.bind(name)
        if doc := ast.get_docstring(node, clean=False):
            self._docs.append(doc)
        if node.returns:
            self._notes.append(node.returns)
        self.definitions.append((f"{self.scope.within}{name}", node, self.scope))
        self.decorate(node)
        self._stack += (")", getattr(node, "type_params", None), node.args, node.decorator_list)

    def _class(self, node: ast.ClassDef) -> None:
        """A class that is not at the top of its module runs as a part of where it is."""
        self._parts.append(f"class {node.name}(")
        self.bind(node.name)
        self.decorate(node)
        if doc := ast.get_docstring(node, clean=False):
            self._docs.append(doc)
        within = Scope(self.scope.local, False, f"{self.scope.within}{node.name}.", True)
        self._stack += (")", self.scope, node.body, within, getattr(node, "type_params", None))
        self._stack += (node.keywords, node.bases, node.decorator_list)

    def decorate(self, node: Definition) -> None:
        """A decorator is called, and may note what it is given."""
        for decorator in node.decorator_list:
            if found := self._global(decorator):
                self.calls.add(found)
                if len(found) > 1 and found[-1] not in known.INERT:
                    self.stirs.add(found[:-1])

    def bind(self, name: str) -> None:
        if self.scope.binds and name not in self.scope.local:
            self.binds[name] = None

    def _pattern(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.bind(node.name)
        self._open(node, fields_of(node.__class__))

    def _class_pattern(self, node: ast.MatchClass) -> None:
        self.attributes.update(node.kwd_attrs)
        self._open(node, fields_of(node.__class__))

    def _raise(self, node: ast.Raise | ast.Assert) -> None:
        self.computed.add("raise")
        self._open(node, fields_of(node.__class__))

    def _assigned(self, node: ast.Assign | ast.AugAssign) -> None:
        """A docstring that becomes another is not looked at: whoever reads that one says so."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if "__doc__" not in self.attributes and any(_last(target) == "__doc__" for target in targets):
            self._stack.append(_FORGET_DOC)
        if isinstance(node, ast.Assign) and all(_last(target) == "__code__" for target in targets):
            self._hand_on([*targets, node.value])
        if isinstance(node, ast.AugAssign) and (changed := self._global(node.target)):
            self.writes.add(changed)  # `x += [1]` changes a list, whatever else is called so.
        self._open(node, fields_of(node.__class__))

    def _hand_on(self, nodes: Iterable[ast.AST]) -> None:
        """The code of a function becomes that of another, which says so when it runs, or one of a set: nobody looks."""
        self._handed_on.update(id(node) for node in nodes if getattr(node, "attr", "") == "__code__")

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        self.yields = True
        self._open(node, ("value",))

    def _forget_doc(self, _: object) -> None:
        self.attributes.discard("__doc__")

    # ------------------------------------------------------------ scopes within an expression

    def _lambda(self, node: ast.Lambda) -> None:
        inner = self.scope._replace(local=self.scope.local.union(parameters(node.args)))
        self._parts.append("Lambda(")
        self._stack += (")", self.scope, node.body, inner, node.args)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        first, *others = node.generators
        targets = {name.id for one in node.generators for name in ast.walk(one.target) if isinstance(name, ast.Name)}
        inner = self.scope._replace(local=self.scope.local | targets)
        self._parts.append(f"{node.__class__.__name__}(")
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._stack += (")", self.scope, others, first.ifs, made, first.target, f"{first.is_async};", inner, first.iter)


class _ForgetDoc:
    """On the stack, after what is assigned to a docstring."""


_FORGET_DOC: Final = _ForgetDoc()
_HANDLERS: Final[dict[type, Callable[[Reader, Any], None]]] = {
    ast.Name: Reader._name,
    ast.Attribute: Reader._attribute,
    ast.List: Reader._sequence,
    ast.Tuple: Reader._sequence,
    ast.Subscript: Reader._subscript,
    ast.Call: Reader._call,
    ast.Constant: Reader._constant,
    ast.JoinedStr: Reader._joined,
    ast.Expr: Reader._expression,
    ast.Pass: Reader._nothing,
    ast.AnnAssign: Reader._annotated,
    ast.arg: Reader._argument,
    ast.Import: Reader._alias,
    ast.ImportFrom: Reader._alias,
    ast.FunctionDef: Reader._definition,
    ast.AsyncFunctionDef: Reader._definition,
    ast.ClassDef: Reader._class,
    ast.MatchAs: Reader._pattern,
    ast.MatchStar: Reader._pattern,
    ast.MatchClass: Reader._class_pattern,
    ast.Raise: Reader._raise,
    ast.Assert: Reader._raise,
    ast.Assign: Reader._assigned,
    ast.AugAssign: Reader._assigned,
    ast.Yield: Reader._yield,
    ast.YieldFrom: Reader._yield,
    _ForgetDoc: Reader._forget_doc,
    ast.Lambda: Reader._lambda,
    ast.ListComp: Reader._comprehension,
    ast.SetComp: Reader._comprehension,
    ast.GeneratorExp: Reader._comprehension,
    ast.DictComp: Reader._comprehension,
}


def _chain(node: ast.Attribute) -> tuple[list[str], ast.expr]:
    """The attributes of `x.a.b`, and x."""
    names = []
    value: Any = node
    while value.__class__ is ast.Attribute:
        names.append(value.attr)
        value = value.value
    names.reverse()
    return names, value


def _last(node: Any) -> str:
    """The last name of a chain."""
    return str(getattr(node, "attr", None) or getattr(node, "id", ""))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)
