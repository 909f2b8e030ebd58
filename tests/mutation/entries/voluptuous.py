"""What voluptuous can do, from deep entries: schemas compiled into closures, decorators that take parts of functions."""

import datetime
import enum

from voluptuous import (
    ALLOW_EXTRA,
    PREVENT_EXTRA,
    REMOVE_EXTRA,
    All,
    Any,
    Boolean,
    Clamp,
    Coerce,
    Contains,
    Date,
    Datetime,
    DefaultTo,
    Email,
    Equal,
    ExactSequence,
    Exclusive,
    Extra,
    In,
    Inclusive,
    Invalid,
    Length,
    Literal,
    Lower,
    Maybe,
    Msg,
    MultipleInvalid,
    NotIn,
    Number,
    Object,
    Optional,
    Range,
    Remove,
    Replace,
    Required,
    Schema,
    Self,
    SomeOf,
    Strip,
    Title,
    Union,
    Unique,
    Unordered,
    Url,
    message,
    raises,
    truth,
    validate,
)
from voluptuous.humanize import humanize_error, validate_with_humanized_errors


def _told(schema, *values):
    gave = []
    for value in values:
        try:
            gave.append(schema(value))
        except MultipleInvalid as error:
            gave.append(sorted(map(str, error.errors)))
    return gave


def mapping():
    schema = Schema({Required("a"): int, Optional("b", default=5): str, "c": [int]})
    return _told(schema, {"a": 1}, {"b": 2}, {"a": "x", "c": [1, "y"]}, {"a": 1, "z": 2})


def defaults():
    schema = Schema({Required("a", default=list): list, Optional("b", default="x"): str}, required=True)
    return _told(schema, {}, {"a": 3}, {"a": [1], "b": 4})


def extras():
    return [
        _told(Schema({"a": int}, extra=kind), {"a": 1, "b": 2}) for kind in (PREVENT_EXTRA, ALLOW_EXTRA, REMOVE_EXTRA)
    ]


def extra_marker():
    return _told(
        Schema({"a": int, Extra: str, Remove("gone"): object}), {"a": 1, "b": "x", "gone": 5}, {"a": 1, "b": 2}
    )


def sequences():
    return _told(Schema([int, "x", {"a": str}]), [1, "x"], [2, "y"], [{"a": 1}], "no") + _told(
        Schema((int, str)), (1, "a"), [1]
    )


def sets():
    return _told(Schema({int}), {1, 2}, {1, "a"}, [1]) + _told(Schema(frozenset({str})), frozenset("ab"), {"a"})


def exact():
    return _told(Schema(ExactSequence([int, str])), [1, "a"], [1], ["a", 1]) + _told(
        Schema(Unordered([1, "x"])), ["x", 1], [1, 1]
    )


def combining():
    schema = Schema(All(str, Length(min=2, max=4), Any("ab", "abcd", msg="neither")))
    return _told(schema, "ab", "abc", "a", "abcde", 5)


def alternatives():
    schema = Schema(Any({"kind": "a", "x": int}, {"kind": "b", "y": str}))
    return _told(schema, {"kind": "a", "x": 1}, {"kind": "b", "y": 2}, {"kind": "c"})


def discriminated():
    def by_kind(value, alternatives):
        return [one for one in alternatives if one["kind"] == value.get("kind")]

    schema = Schema(Union({"kind": "a", "x": int}, {"kind": "b", "y": str}, discriminant=by_kind))
    return _told(schema, {"kind": "b", "y": 2}, {"kind": "a", "x": 3})


def some_of():
    schema = Schema(SomeOf(min_valid=2, validators=[Range(1, 5), Range(3, 9), Any(float)]))
    return _told(schema, 4, 2, 4.5)


def ranges():
    return _told(Schema(Range(min=1, max=3, max_included=False)), 1, 3, 0, "x") + _told(
        Schema(Clamp(min=1, max=3)), 0, 2, 9, "x"
    )


def texts():
    return _told(Schema(All(str, Strip, Lower)), "  AbC ", 5) + _told(Schema(All(Title, Replace("A", "o"))), "an apple")


def addresses():
    return _told(Schema(Email()), "a@b.org", "a@", "b") + _told(Schema(Url()), "http://a.org", "a")


def dates():
    return _told(Schema(Datetime("%Y-%m-%d")), "2024-01-02", "x") + _told(
        Schema(Date()), "2024-01-02", "2024-01-02T00:00", 5
    )


def membership():
    return (
        _told(Schema(In([1, "a"])), 1, 2)
        + _told(Schema(NotIn({1})), 1, 2)
        + _told(Schema(Contains(2)), [1, 2], [3])
        + _told(Schema(Unique()), [1, 1], [1, 2], {3})
        + _told(Schema(Equal([1])), [1], [2])
        + _told(Schema(Literal({"a": 1})), {"a": 1}, {"a": 2})
    )


def coercing():
    class Colour(enum.Enum):
        RED = 1

    return [
        _told(Schema(Coerce(int)), "3", "x"),
        [repr(one) for one in _told(Schema(Coerce(Colour)), 1, 5)],
        _told(Schema(Boolean()), "yes", "off", "perhaps"),
        _told(Schema(Number(precision=4, scale=2)), "12.34", "1.2345", "x"),
        _told(Schema(Maybe(int)), None, 1, "a"),
        _told(Schema(DefaultTo(5)), None, 1),
    ]


def exclusive_groups():
    schema = Schema(
        {
            Exclusive("a", "one"): int,
            Exclusive("b", "one", msg="only one"): int,
            Inclusive("x", "both"): int,
            Inclusive("y", "both"): int,
        }
    )
    return _told(schema, {"a": 1, "x": 1, "y": 2}, {"a": 1, "b": 2}, {"x": 1})


def recursive():
    schema = Schema({"name": str, Optional("children"): [Self]})
    return _told(schema, {"name": "a", "children": [{"name": "b"}]}, {"name": "a", "children": [{"name": 1}]})


def objects():
    class Thing:
        def __init__(self, x, y):
            self.x, self.y = x, y

    gave = []
    for thing in (Thing(1, "a"), Thing("x", 2)):
        try:
            gave.append(sorted(vars(Schema(Object({"x": int, "y": str}, cls=Thing))(thing)).items()))
        except MultipleInvalid as error:
            gave.append(sorted(map(str, error.errors)))
    return gave


def messages():
    @message("must be large", cls=Invalid)
    def large(value):
        if value < 100:
            raise ValueError
        return value

    @truth
    def even(value):
        return value % 2 == 0

    return _told(Schema(All(large(), even)), 100, 101, 5) + _told(Schema(Msg([int], "a list of ints")), ["x"], 4)


def validated_function():
    @validate(a=int, __return__=str)
    def join(a, b=2):
        return f"{a}{b}"

    gave = [join(1)]
    try:
        join("x")
    except MultipleInvalid as error:
        gave.append(str(error))
    return gave


def extending():
    base = Schema({Required("a"): int, "n": {"x": int}})
    more = base.extend({"b": str, "n": {"y": int}}, required=True)
    return [
        _told(more, {"a": 1, "b": "x", "n": {"x": 1, "y": 2}}, {"b": 5}),
        base == Schema({Required("a"): int, "n": {"x": int}}),
    ]


def humanized():
    schema = Schema({"a": {"b": [int]}})
    data = {"a": {"b": [1, "x"]}, "c": datetime.date(2024, 1, 1)}
    gave = []
    try:
        schema(data)
    except MultipleInvalid as error:
        gave.append(humanize_error(data, error))
    try:
        validate_with_humanized_errors(data, schema)
    except Exception as error:
        gave.append(str(error))
    return gave


def inferred():
    schema = Schema.infer({"a": 1, "b": ["x", 2.5], "c": {"d": None}})
    with raises(MultipleInvalid):
        schema({"a": "x"})
    return [str(schema), _told(schema, {"a": 2, "b": ["y"]}, {"a": 1, "b": [b"z"]})]
