"""What attrs can do, from deep entries: methods written as texts and compiled, hooks, a package that re-exports."""

import attr
import attrs
from attrs import converters, define, field, filters, frozen, mutable, setters, validators


def _raised(fn, *args, **kwargs):
    try:
        return repr(fn(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:120]


def defined():
    @define
    class P:
        x: int
        y: int = 2

    return [repr(P(1)), P(1) == P(1, 2), P(1) != P(2), _raised(setattr, P(1), "z", 3), _raised(P)]


def frozen_class():
    @frozen
    class P:
        x: int = 1

    return [hash(P()) == hash(P()), _raised(setattr, P(), "x", 2), _raised(delattr, P(), "x"), len({P(), P(), P(2)})]


def ordered():
    @define(order=True)
    class P:
        x: int
        y: str = field(order=str.lower, default="a")

    return [P(1, "A") < P(1, "b"), P(2) >= P(1), sorted([P(3), P(1)])[0].x, _raised(lambda: P(1) < 5)]


def factories():
    @define
    class P:
        xs: list = field(factory=list)
        n: int = field()

        @n.default
        def _n(self):
            return len(self.xs) + 5

    a, b = P(), P([1])
    a.xs.append(9)
    return [repr(a), repr(b), repr(P()), _raised(lambda: attr.NOTHING)]


def converted():
    @define
    class P:
        n: int = field(converter=int)
        m: object = field(converter=converters.optional(float), default=None)
        b: bool = field(converter=converters.to_bool, default="yes")
        d: list = field(converter=converters.default_if_none(factory=list), default=None)
        p: str = field(converter=converters.pipe(str, str.upper), default="x")

    one = P("3", "1.5")
    one.n = "7"
    return [repr(one), _raised(P, "x"), _raised(P, 1, b="perhaps")]


def converter_with_self():
    @define
    class P:
        base: int = 10
        n: int = field(converter=attrs.Converter(lambda value, self: value + self.base, takes_self=True), default=1)

    return [P().n, P(5, 2).n]


def validated():
    @define
    class P:
        n: int = field(validator=[validators.instance_of(int), validators.ge(1), validators.lt(10)])
        s: str = field(default="ab", validator=validators.matches_re("[a-z]+"))

    bad = P(1)
    return [_raised(P, 0), _raised(P, "x"), _raised(P, 10), _raised(P, 1, "A1"), _raised(setattr, bad, "n", 50)]


def deep_validators():
    @define
    class P:
        d: dict = field(validator=validators.deep_mapping(validators.instance_of(str), validators.instance_of(int)))
        xs: list = field(
            default=(),
            validator=validators.deep_iterable(validators.in_([1, 2]), validators.instance_of((list, tuple))),
        )
        o: object = field(
            default=None,
            validator=validators.optional(validators.or_(validators.instance_of(int), validators.min_len(2))),
        )

    return [
        _raised(P, {"a": 1}),
        _raised(P, {1: 1}),
        _raised(P, {"a": "b"}),
        _raised(P, {}, [3]),
        _raised(P, {}, [1], "a"),
        _raised(P, {}, [1], "ab"),
    ]


def validator_switch():
    @define
    class P:
        n: int = field(validator=validators.not_(validators.in_([1])))

    with validators.disabled():
        one = P(1)
    return [one.n, _raised(P, 1), validators.get_disabled(), _raised(attrs.validate, one)]


def decorated_validator():
    @define
    class P:
        n: int = field()

        @n.validator
        def _small(self, attribute, value):
            if value > 5:
                raise ValueError(f"{attribute.name} is {value}")

    return [_raised(P, 3), _raised(P, 6)]


def as_dict():
    @define
    class Q:
        v: int = 1

    @define
    class P:
        q: Q
        xs: list = field(factory=list)
        hidden: int = 3

    one = P(Q(), [Q(2), {"k": Q(3)}])
    return [
        attrs.asdict(one),
        attrs.asdict(one, recurse=False)["hidden"],
        attrs.asdict(one, filter=filters.exclude("hidden", list)),
        attrs.asdict(one, value_serializer=lambda inst, a, v: str(v) if isinstance(v, int) else v),
        attrs.astuple(one),
    ]


def evolved():
    @frozen
    class P:
        x: int
        _y: int = field(default=2, alias="why")

    return [repr(attrs.evolve(P(1), x=5)), repr(attrs.evolve(P(1), why=7)), _raised(attrs.evolve, P(1), zz=1)]


def fields_of():
    @define
    class Base:
        a: int = 1

    @define
    class P(Base):
        b: str = field(default="x", metadata={"unit": "m"})

    return [
        [f.name for f in attrs.fields(P)],
        attrs.fields_dict(P)["b"].metadata["unit"],
        attrs.fields(P).a.inherited,
        attrs.has(P),
        attrs.has(int),
        repr(attrs.fields(P).b)[:40],
    ]


def keyword_only():
    @define(kw_only=True)
    class P:
        x: int = 1
        y: int

    return [repr(P(y=2)), _raised(P, 1), _raised(P)]


def slots_and_cells():
    @define
    class P:
        x: int = 1

        def cls(self):
            return __class__.__name__

        @property
        def twice(self):
            return self.x * 2

    class Child(P):
        pass

    return [P().cls(), hasattr(P(), "__dict__"), P.__slots__, Child(3).twice, _raised(setattr, P(), "new", 1)]


def dict_class():
    @mutable(slots=False, repr=False, eq=False)
    class P:
        x: int = 1

    a = P()
    a.new = 5
    return [vars(a), a == P(), type(a).__repr__ is object.__repr__]


def setters_of():
    @define(on_setattr=[setters.convert, setters.validate])
    class P:
        n: int = field(converter=int, validator=validators.gt(0))
        fixed: int = field(default=1, on_setattr=setters.frozen)
        free: int = field(default=1, on_setattr=setters.NO_OP)

    p = P("2")
    p.n = "4"
    p.free = "any"
    return [repr(p), _raised(setattr, p, "n", "-1"), _raised(setattr, p, "fixed", 2)]


def init_hooks():
    log = []

    @define
    class P:
        x: int
        y: int = field(init=False)

        def __attrs_pre_init__(self):
            log.append("pre")

        def __attrs_post_init__(self):
            self.y = self.x + 1
            log.append("post")

    return [repr(P(1)), log]


def made():
    C = attrs.make_class("C", {"x": field(type=int), "y": field(default=3)}, bases=(), order=True)
    D = attr.make_class("D", ["a", "b"], frozen=True)
    return [repr(C(1)), C(1) < C(2), repr(D(1, b=2)), attr.fields(D).a.name]


def classic():
    @attr.s(auto_attribs=True, cmp=True, hash=True, cache_hash=True)
    class P:
        x: int = attr.ib(default=attr.Factory(lambda self: self.y, takes_self=True), init=False)
        y: int = 3

    @attr.s(these={"v": attr.ib(default=1)}, init=True, str=True)
    class Q(Exception):
        pass

    return [_raised(P), hash(Q) is not None, repr(Q()), str(Q(5))]


def transformed():
    def upper(cls, given):
        return [one.evolve(default=one.default * 2) for one in given if one.name != "skip"]

    @define(field_transformer=upper)
    class P:
        x: int = 2
        skip: int = 1

    return [repr(P()), [f.name for f in attrs.fields(P)]]


def custom_eq():
    @define
    class P:
        xs: list = field(eq=attr.cmp_using(eq=lambda a, b: len(a) == len(b)))
        skip: int = field(default=0, eq=False, repr=False)
        shown: float = field(default=0.5, repr=lambda value: f"<{value:.1f}>")

    return [P([1]) == P([2]), P([1]) == P([]), P([1], 3) == P([1]), repr(P([]))]


def resolved_types():
    @define
    class P:
        x: "int"
        y: "list[P]" = None

    attrs.resolve_types(P, globals(), locals())
    return [attrs.fields(P).x.type.__name__, "list" in str(attrs.fields(P).y.type)]


def cached_properties():
    import functools

    calls = []

    @define
    class P:
        x: int = 2

        @functools.cached_property
        def slow(self):
            calls.append(1)
            return self.x * 10

    p = P()
    return [p.slow, p.slow, calls, _raised(lambda: p.missing)]


def version_info():
    info = attr.VersionInfo._from_version_string("19.2.1.dev0")
    return [info < (20, 1), repr(info), info == (19, 2, 1, "dev0"), attr.filters.include(int)(None, 5)]
