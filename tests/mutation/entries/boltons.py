"""What boltons can do, from deep entries: many modules that know little of each other, imported where they are used."""


def lru_cache():
    from boltons.cacheutils import LRU, cached

    store = LRU(max_size=3, on_miss=lambda key: key * 2)
    for key in (1, 2, 3, 1, 4, 5):
        store[key]

    @cached(store)
    def squared(x):
        return x * x

    return [squared(2), squared(2), len(store), store.hit_count, store.miss_count, sorted(map(repr, store.keys()))]


def lri_and_counter():
    from boltons.cacheutils import LRI, ThresholdCounter

    store = LRI(2)
    store.update({"a": 1, "b": 2, "c": 3})
    counter = ThresholdCounter(threshold=0.1)
    counter.update("abracadabra")
    return [sorted(store), counter.most_common(2), counter.get_common_count(), counter["r"]]


def min_id_map():
    from boltons.cacheutils import MinIDMap, cachedproperty

    class Thing:
        calls = 0

        @cachedproperty
        def size(self):
            Thing.calls += 1
            return 5

    things = [Thing() for _ in range(3)]
    ids = MinIDMap()
    first = [ids.get(thing) for thing in things]
    ids.drop(things[1])
    return [first, ids.get(Thing()), things[0].size + things[0].size, Thing.calls]


def ordered_multi_dict():
    from boltons.dictutils import OrderedMultiDict

    d = OrderedMultiDict([("a", 1), ("b", 2), ("a", 3)])
    d.add("c", 4)
    d.update_extend({"b": 5})
    return [
        d.items(multi=True),
        d.getlist("a"),
        d.inverted().items(multi=True),
        dict(d.counts()),
        d.poplast("b"),
        d.todict(),
    ]


def frozen_and_one_to_one():
    from boltons.dictutils import FrozenDict, ManyToMany, OneToOne, subdict

    pairs = OneToOne({"a": 1, "b": 2})
    pairs["c"] = 2
    many = ManyToMany([(1, "x"), (1, "y"), (2, "x")])
    many.remove(1, "x")
    return [
        dict(pairs),
        dict(pairs.inv),
        sorted(many.get(1)),
        sorted(many.inv.keys()),
        dict(FrozenDict({"a": 1}).updated(b=2)),
        subdict({"a": 1, "b": 2}, drop=["a"]),
    ]


def remap():
    from boltons.iterutils import remap

    root = {"a": [1, None, {"b": None, "c": (2, {3})}], "d": None}
    return remap(root, visit=lambda path, key, value: value is not None)


def research_and_paths():
    from boltons.iterutils import get_path, research

    root = {"a": [{"b": 1}, {"b": (2, "x")}]}
    return [get_path(root, ("a", 1, "b", 0)), research(root, query=lambda path, key, value: isinstance(value, int))]


def chunks_and_windows():
    from boltons import iterutils as it

    return [
        it.chunked(range(10), 4, fill=None),
        it.windowed(range(5), 3),
        it.bucketize(range(6), key=lambda x: x % 3),
        it.partition(range(5), lambda x: x > 2),
        it.split(["a", None, "b", "c", None], maxsplit=1),
        list(it.redundant([1, 2, 1, 3, 2])),
        it.unique([3, 1, 3, 2]),
    ]


def backoff_and_frange():
    from boltons.iterutils import backoff, chunk_ranges, flatten, frange, pairwise, strip

    return [
        backoff(1, 10),
        frange(1, 2, 0.25),
        list(chunk_ranges(20, 8, overlap_size=2)),
        flatten([[1, [2]], [3, (4, "ab")]]),
        pairwise([1, 2, 3]),
        strip([0, 1, 2, 0], 0),
    ]


def same_and_first():
    from boltons.iterutils import first, one, same, soft_sorted, untyped_sorted

    return [
        first([0, None, 5]),
        one([0, 7, 0]),
        same([1, 1, 1]),
        soft_sorted([3, 1, 2], first=[2]),
        untyped_sorted([1, "a", 2.5]),
    ]


def strings():
    from boltons import strutils as s

    return [
        s.slugify("First post! Hi!!!!~1    ", ascii=True),
        s.camel2under("BasicParseTest"),
        s.under2camel("complex_tokenizer"),
        s.ordinalize(23),
        s.cardinalize("baby", 2),
        s.singularize("feet"),
        s.bytes2human(128991, ndigits=1),
        s.parse_int_list("1,3,5-8,10-11,15"),
        s.format_int_list([1, 3, 5, 6, 7, 8, 10, 11, 15]),
    ]


def html_and_ansi():
    from boltons.strutils import MultiReplace, args2cmd, html2text, indent, strip_ansi, unwrap_text

    return [
        html2text("<p>a &amp; <b>b</b></p>"),
        strip_ansi("\x1b[0m\x1b[1;36mart\x1b[46;34m"),
        MultiReplace([("foo", "bar"), (r"ba\w", "baz")], regex=True).sub("foo bat"),
        args2cmd(["echo", 'a "b"']),
        indent("a\nb", "  "),
        unwrap_text("a\nb\n\nc"),
    ]


def urls():
    from boltons.urlutils import URL, find_all_links

    url = URL("http://user@Example.com:8080/a/../b?x=1&y=2&x=3#frag")
    url.normalize()
    url.query_params["z"] = "4 5"
    links = find_all_links("see https://a.org/x and www.b.com.", with_text=True)
    return [url.to_text(), url.navigate("../c?q").to_text(), [str(link) for link in links], url.path_parts, url.host]


def statistics():
    from boltons.statsutils import Stats, describe, format_histogram_counts

    values = [1, 2, 2, 3, 4, 7, 9]
    stats = Stats(values)
    return [
        stats.median,
        round(stats.std_dev, 6),
        stats.trim_relative(0.2),
        describe(values, format="text"),
        stats.get_histogram_counts(bins=3),
        format_histogram_counts(stats.get_histogram_counts(3), width=40),
    ]


def tables():
    from boltons.tableutils import Table

    table = Table.from_dict([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    return [table.to_text(), table.to_html(), Table([[1], [2]], headers=["x"]).to_text(maxlen=2)]


def func_builder():
    from boltons.funcutils import FunctionBuilder, wraps

    def deco(fn):
        @wraps(fn, injected=["b"])
        def inner(*a, **kw):
            return fn(*a, b=10, **kw)

        return inner

    @deco
    def add(a, b, c=3):
        return a + b + c

    built = FunctionBuilder("made", args=["x", "y"], defaults=(2,), body="return x * y").get_func()
    return [add(1), add(1, c=5), built(3), FunctionBuilder.from_func(built).get_arg_names()]


def partials():
    from boltons.funcutils import InstancePartial, copy_function, dir_dict, mro_items

    class A:
        def go(self, x, y):
            return (x, y)

        ready = InstancePartial(go, y=5)

    return [
        A().ready(1),
        copy_function(A.go)(None, 1, 2),
        sorted(k for k in dir_dict(A()) if "go" in k),
        len(list(mro_items(A))),
    ]


def times():
    import datetime

    from boltons.timeutils import (
        daterange,
        decimal_relative_time,
        isoparse,
        parse_timedelta,
        relative_time,
        total_seconds,
    )

    day = datetime.date(2024, 1, 28)
    a, b = datetime.datetime(2024, 1, 1), datetime.datetime(2024, 3, 1)
    return [
        str(parse_timedelta("1w 2d 3h 4.5m")),
        [str(d) for d in daterange(day, datetime.date(2024, 6, 1), step=(0, 1, 0))],
        decimal_relative_time(a, b),
        relative_time(a, b),
        str(isoparse("2024-02-03T04:05:06")),
        total_seconds(b - a),
    ]


def sets():
    from boltons.setutils import IndexedSet, complement

    s = IndexedSet(range(8))
    s -= {2, 3}
    s.discard(5)
    c = complement({1, 2})
    return [s[2], s[-1], list(s | {9}), s.index(6), 1 in c, 5 in (c & {5, 6}), list(s[1:3])]


def lists():
    from boltons.listutils import BarrelList, SplayList

    b = BarrelList(range(20))
    b.insert(3, "x")
    b.extend([1, 2])
    b.reverse()
    s = SplayList(range(5))
    s.shift(4, 1)
    return [list(b)[:6], b[-1], b.pop(2), len(b), list(s), b.index("x")]


def queues():
    from boltons.queueutils import HeapPriorityQueue, SortedPriorityQueue

    gave = []
    for queue in (HeapPriorityQueue(), SortedPriorityQueue()):
        for n, name in enumerate("abc"):
            queue.add(name, priority=n % 2)
        queue.add("a", priority=5)
        queue.remove("b")
        gave.append([queue.peek(), queue.pop(), queue.pop(default="none"), len(queue)])
    return gave


def gzip_and_encodings():
    import io

    from boltons.jsonutils import reverse_iter_lines
    from boltons.strutils import bytes2human, gunzip_bytes, gzip_bytes, is_ascii, is_uuid, iter_splitlines

    return [
        gunzip_bytes(gzip_bytes(b"abc")),
        list(iter_splitlines("a\r\nb\nc")),
        list(reverse_iter_lines(io.BytesIO(b"1\n2\n3"))),
        is_uuid("e682ccca-5a4c-4ef2-9711-73f9ad1e15ea"),
        is_ascii("é"),
        bytes2human(2048),
    ]


def tracebacks():
    from boltons.tbutils import ExceptionInfo, ParsedException

    text = 'Traceback (most recent call last):\n  File "x.py", line 2, in <module>\n    f()\nValueError: no'
    parsed = ParsedException.from_string(text)
    try:
        raise KeyError("k")
    except KeyError:
        info = ExceptionInfo.from_current()
    return [
        parsed.exc_type,
        parsed.frames,
        parsed.to_string() == text,
        info.exc_type,
        info.exc_msg,
        info.tb_info.frames[-1].func_name,
    ]


def named():
    from boltons.namedutils import namedlist, namedtuple
    from boltons.typeutils import classproperty, get_all_subclasses, make_sentinel

    P = namedtuple("P", "x y", rename=False)
    L = namedlist("L", ["x", "y"])
    one = L(1, 2)
    one.x = 5

    class A:
        @classproperty
        def name(self):
            return self.__name__

    class B(A):
        pass

    return [
        P(1, 2)._replace(x=3),
        list(one),
        repr(one),
        B.name,
        [c.__name__ for c in get_all_subclasses(A)],
        repr(make_sentinel("_GONE", var_name="_GONE")),
    ]


def math_and_format():
    from boltons.formatutils import (
        DeferredValue,
        construct_format_field_str,
        get_format_args,
        infer_positional_format_args,
    )
    from boltons.mathutils import Bits, ceil, clamp, floor

    return [
        clamp(15, 0, 10),
        ceil(3.2, options=[1, 2, 5, 8]),
        floor(3.7, options=[1, 2, 5]),
        Bits("1100").as_hex(),
        (Bits(5) << 2).as_bin(),
        infer_positional_format_args("{} {x} {}"),
        get_format_args("{a:d} {1}"),
        construct_format_field_str("a", "d", "r"),
        f"{DeferredValue(lambda: 5)}",
    ]
