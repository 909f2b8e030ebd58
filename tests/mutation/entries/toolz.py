"""What toolz can do, from deep entries: curried namespaces and modules made at import."""

import operator

import toolz
import toolz.curried as curried
from toolz import dicttoolz, functoolz, itertoolz, recipes
from toolz.sandbox import core as sandbox
from toolz.sandbox import parallel


def _even(x):
    return x % 2 == 0


def _inc(x):
    return x + 1


def grouping():
    return [
        toolz.groupby(len, ["cat", "mouse", "dog"]),
        toolz.groupby("n", [{"n": 1, "x": 2}, {"n": 1, "x": 3}]),
        toolz.countby(_even, range(5)),
        toolz.reduceby(_even, operator.add, range(6), 0),
        toolz.frequencies("abca"),
    ]


def merging():
    return [
        list(toolz.merge_sorted([1, 4], [2, 3], [0])),
        list(toolz.merge_sorted(["aa", "b"], ["ccc"], key=len)),
        toolz.merge({1: 2}, {3: 4}),
        toolz.merge_with(sum, {1: 1, 2: 2}, {1: 10}),
        list(toolz.interleave([[1, 2], "ab", [9]])),
    ]


def joining():
    left = [("a", 1), ("b", 2), ("d", 4)]
    right = [(1, "x"), (1, "y"), (3, "z")]
    return [
        list(toolz.join(1, left, 0, right)),
        list(toolz.join(1, left, 0, right, left_default=None, right_default=0)),
        list(toolz.diff([1, 2], [1, 3, 4], default=None)),
    ]


def windows():
    return [
        list(toolz.sliding_window(2, range(4))),
        list(toolz.partition(2, range(5), pad=None)),
        list(toolz.partition_all(2, range(5))),
        list(toolz.partition_all(3, [1, 2, 3, 4])),
        list(toolz.partitionby(_even, [1, 3, 2, 4, 5])),
    ]


def picking():
    return [
        toolz.first("abc"),
        toolz.second("abc"),
        toolz.nth(2, iter("abc")),
        toolz.last([1, 2, 3]),
        list(toolz.take(2, range(9))),
        list(toolz.tail(2, range(9))),
        list(toolz.drop(2, range(4))),
        list(toolz.take_nth(3, range(9))),
        toolz.get([1, 5], ["a", "b", "c"], "none"),
        list(toolz.pluck(["x", "y"], [{"x": 1, "y": 2}, {"x": 3}], None)),
    ]


def distinct():
    return [
        list(toolz.unique([1, 2, 1])),
        list(toolz.unique(["cat", "dog", "mouse"], key=len)),
        toolz.isdistinct([1, 2, 1]),
        toolz.isdistinct(iter([1, 2])),
        toolz.isiterable("abc"),
        list(toolz.remove(_even, range(4))),
        toolz.count(range(5)),
    ]


def top():
    return [
        toolz.topk(2, [1, 5, 3, 4]),
        toolz.topk(2, ["a", "bbb", "cc"], key=len),
        list(toolz.accumulate(operator.add, [1, 2, 3], -1)),
    ]


def concats():
    return [
        list(toolz.concat([[1], [2, 3]])),
        list(toolz.concatv([1], [2])),
        list(toolz.cons(0, [1])),
        list(toolz.interpose("a", [1, 2, 3])),
        list(toolz.mapcat(lambda s: [c.upper() for c in s], [["a", "b"], ["c"]])),
        list(toolz.take(3, toolz.iterate(_inc, 5))),
        toolz.peek([1, 2])[0],
        toolz.peekn(2, [1, 2, 3])[0],
    ]


def random_samples():
    return [
        list(toolz.random_sample(0.3, range(30), random_state=7)),
        list(toolz.random_sample(0.9, range(5), random_state=1)),
    ]


def dicts():
    d = {"a": {"b": 1}, "c": 2}
    return [
        toolz.valmap(str, {"x": 1}),
        toolz.keymap(str.upper, {"x": 1}),
        toolz.itemmap(reversed, {"x": 1}),
        toolz.valfilter(_even, {1: 2, 2: 3}),
        toolz.keyfilter(_even, {1: 2, 2: 3}),
        toolz.itemfilter(lambda item: item[0] < item[1], {1: 2, 3: 1}),
        toolz.assoc(d, "e", 5),
        toolz.dissoc(d, "c", "zz"),
        toolz.assoc_in(d, ["a", "z"], 9),
        toolz.update_in(d, ["a", "b"], _inc),
        toolz.get_in(["a", "q"], d, "none"),
        toolz.update_in({}, [1, 2, 3], str, default=0),
    ]


def get_in_errors():
    gave = []
    for keys, data in (([0, "a"], [{}]), (["x"], None), ([5], [1])):
        try:
            gave.append(dicttoolz.get_in(keys, data, no_default=True))
        except (KeyError, IndexError, TypeError) as error:
            gave.append(type(error).__name__)
    return gave


def composing():
    return [
        toolz.compose(str, _inc)(3),
        toolz.compose_left(_inc, _inc, str)(3),
        toolz.pipe(3, _inc, str),
        toolz.thread_first(1, (operator.sub, 5), _inc),
        toolz.thread_last(1, (operator.sub, 5), _inc),
        toolz.compose()(4),
        repr(toolz.compose(_inc, str.upper).__name__),
        toolz.compose(_inc, _inc) == toolz.compose(_inc, _inc),
    ]


def currying():
    @toolz.curry
    def add(a, b, c=3):
        return a + b + c

    return [
        add(1)(2),
        add(1, c=5)(2),
        add(b=2)(1),
        repr(add.__name__),
        add(1).args,
        add(1).keywords,
        add == toolz.curry(add.func),
    ]


def curry_errors():
    @toolz.curry
    def f(a, b):
        return a / b

    gave = []
    for given in ((1, 0), (1, 2, 3), ("x", 1)):
        try:
            gave.append(f(*given))
        except (TypeError, ZeroDivisionError) as error:
            gave.append(type(error).__name__)
    return gave


def memoizing():
    calls = []

    @toolz.memoize(key=lambda args, kwargs: args[0])
    def f(x, y=1):
        calls.append(x)
        return x + y

    @toolz.memoize
    def g(x):
        calls.append(-x)
        return x

    return [f(1), f(1, y=5), f(2), g(1), g(1), calls]


def juxtaposing():
    return [
        toolz.juxt(_inc, _even)(3),
        toolz.juxt([_inc, str])(3),
        toolz.complement(_even)(3),
        toolz.flip(operator.sub)(1, 5),
        toolz.excepts(ValueError, int, lambda error: "bad")("x"),
        toolz.excepts((KeyError, IndexError), lambda x: [][x])(1),
        toolz.apply(_inc, 2),
        toolz.do(str, 5),
        toolz.identity(4),
    ]


def introspection():
    def f(a, b=1, *c, d, **e):
        return None

    return [
        functoolz.is_valid_args(f, (1,), {"d": 2}),
        functoolz.is_partial_args(f, (), {}),
        functoolz.num_required_args(f),
        functoolz.has_varargs(f),
        functoolz.has_keywords(f),
        functoolz.is_arity(1, _inc),
        functoolz.is_arity(2, _inc),
        functoolz.is_valid_args(map, (), {}),
        functoolz.num_required_args(sorted),
        functoolz.is_partial_args(range, (1, 2, 3, 4), {}),
    ]


def curried_namespace():
    return [
        list(curried.map(_inc)([1, 2])),
        list(curried.filter(_even)(range(4))),
        curried.get(1)("abc"),
        curried.assoc({}, "a")(2),
        curried.pipe([1, 2, 3], curried.map(_inc), curried.filter(_even), list),
        curried.merge_with(sum)({1: 1}, {1: 2}),
        curried.groupby(len)(["a", "bb"]),
        curried.operator.add(1)(2),
        curried.reduce(operator.add)([1, 2]),
    ]


def curried_exceptions():
    from toolz.curried import exceptions
    from toolz.curried import operator as curried_operator

    return [
        exceptions.merge({1: 2}, {3: 4}),
        exceptions.merge_with(sum, {1: 2}),
        curried_operator.sub(5)(3),
        curried_operator.itemgetter(1)("abc"),
        sorted(name for name in vars(curried) if name.startswith("merge")),
    ]


def recipes_of():
    return [
        recipes.countby(len, ["a", "bb", "c"]),
        list(recipes.partitionby(_even, [2, 4, 1])),
        toolz.countby("k", [{"k": 1}, {"k": 1}]),
    ]


def sandboxed():
    E = sandbox.EqualityHashKey
    left, right = sandbox.unzip([("a", 1), ("b", 2)])
    return [
        list(toolz.unique([[1], [1], [2]], key=toolz.curry(E, str))),
        E(len, "ab") == E(len, "cd"),
        E(len, "ab") == E(len, "ab"),
        list(left),
        list(right),
        repr(E(0, [1, 2])),
    ]


def folding():
    return [
        parallel.fold(operator.add, range(10), 0, map=map, chunksize=3),
        parallel.fold(lambda s, x: s | {x}, [1, 2, 1], set(), map=map, chunksize=2, combine=set.union),
        parallel.fold(operator.mul, [1, 2, 3, 4], map=map, chunksize=2),
    ]


def tlz_namespace():
    import tlz
    import tlz.curried

    return [tlz.pipe(1, _inc, str), list(tlz.curried.map(_inc, [1])), tlz.itertoolz.first("ab"), tlz.get_in([0], [5])]


def pickled():
    import pickle

    @toolz.curry
    def unnamed(a, b):
        return a

    made = pickle.loads(pickle.dumps(toolz.functoolz.compose(str, len)))
    curry_again = pickle.loads(pickle.dumps(curried.get_in([0])))
    return [
        made("abc"),
        curry_again([5]),
        repr(made),
        itertoolz.getter([0, 1])("ab"),
        itertoolz.rest([1, 2]).__next__(),
    ]
