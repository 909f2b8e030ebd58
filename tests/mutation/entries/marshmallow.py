"""What marshmallow can do, from deep entries: a metaclass that collects fields, a registry of classes, hooks."""

import datetime as dt
import decimal
import enum

from marshmallow import (
    EXCLUDE,
    INCLUDE,
    Schema,
    ValidationError,
    class_registry,
    fields,
    post_dump,
    post_load,
    pre_dump,
    pre_load,
    validate,
    validates,
    validates_schema,
)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Author(Schema):
    name = fields.Str(required=True, validate=validate.Length(min=2))
    email = fields.Email()


class Book(Schema):
    title = fields.Str(data_key="Title")
    author = fields.Nested(Author)
    pages = fields.Int(strict=True)

    class Meta:
        unknown = EXCLUDE


def _errors(schema, data, **options):
    try:
        return schema.load(data, **options)
    except ValidationError as error:
        return error.normalized_messages()


def load_nested():
    return Book().load({"Title": "A", "author": {"name": "Bo", "email": "a@b.org"}, "pages": 3, "more": 1})


def dump_nested():
    return Book(many=True).dump([{"title": "A", "author": {"name": "Bo"}, "pages": 3}, {"title": "B"}])


def nested_errors():
    return _errors(Book(), {"author": {"name": "B", "email": "x"}, "pages": "three"})


def many_errors():
    return _errors(Author(many=True), [{"name": "Bo"}, {}, {"name": "Al", "x": 1}])


def partial_load():
    return [_errors(Author(), {"email": "a@b.org"}, partial=True), _errors(Author(), {}, partial=("name",))]


def only_and_exclude():
    book = {"title": "A", "author": {"name": "Bo", "email": "a@b.org"}, "pages": 1}
    return [Book(only=("title", "author.name")).dump(book), Book(exclude=("author.email", "pages")).dump(book)]


def unknown_include():
    return [_errors(Author(unknown=INCLUDE), {"name": "Bo", "z": 1}), _errors(Author(), {"name": "Bo", "z": 1})]


def hooks():
    class S(Schema):
        n = fields.Int()

        @pre_load
        def strip(self, data, **kwargs):
            return {key.strip(): value for key, value in data.items()}

        @post_load
        def make(self, data, **kwargs):
            return tuple(data.items())

        @post_dump(pass_collection=True)
        def wrap(self, data, many, **kwargs):
            return {"data": data, "many": many}

        @pre_dump
        def double(self, data, **kwargs):
            return {"n": data["n"] * 2}

    return [S().load({" n ": "3"}), S(many=True).dump([{"n": 1}]), S().dump({"n": 4})]


def schema_validators():
    class S(Schema):
        a = fields.Int()
        b = fields.Int()

        @validates("a")
        def positive(self, value, data_key):
            if value < 0:
                raise ValidationError(f"{data_key} is negative")

        @validates_schema(skip_on_field_errors=True)
        def ordered(self, data, **kwargs):
            if data["a"] > data["b"]:
                raise ValidationError({"b": ["below a"]})

    return [_errors(S(), {"a": -1, "b": 0}), _errors(S(), {"a": 2, "b": 1}), _errors(S(), {"a": 1, "b": 1})]


def numbers():
    class S(Schema):
        i = fields.Int()
        f = fields.Float(allow_nan=False)
        d = fields.Decimal(places=2, rounding=decimal.ROUND_UP, as_string=True)
        b = fields.Bool()

    return [
        S().dump({"i": "3", "f": 2, "d": "1.234", "b": "yes"}),
        _errors(S(), {"i": "x", "f": "nan", "d": "y", "b": "perhaps"}),
    ]


def dates():
    class S(Schema):
        when = fields.DateTime(format="iso")
        stamp = fields.DateTime(format="timestamp")
        day = fields.Date()
        time = fields.Time()
        span = fields.TimeDelta(precision="minutes")
        aware = fields.AwareDateTime(default_timezone=dt.UTC)

    moment = dt.datetime(2024, 1, 2, 3, 4, 5)
    dumped = S().dump(
        {
            "when": moment,
            "stamp": moment.replace(tzinfo=dt.UTC),
            "day": moment.date(),
            "time": moment.time(),
            "span": dt.timedelta(hours=1),
        }
    )
    return [dumped, repr(S().load({**dumped, "aware": "2024-01-01T00:00:00"}))]


def rfc_dates():
    class S(Schema):
        when = fields.DateTime(format="rfc")
        odd = fields.DateTime(format="%d/%m/%Y")

    return [
        repr(S().load({"when": "Tue, 02 Jan 2024 03:04:05 +0000", "odd": "03/02/2024"})),
        _errors(S(), {"when": "x", "odd": "y"}),
    ]


def containers():
    class S(Schema):
        xs = fields.List(fields.Int(validate=validate.Range(min=1, max=3)))
        d = fields.Dict(keys=fields.Str(), values=fields.Date())
        t = fields.Tuple((fields.Str(), fields.Int()))

    return [
        _errors(S(), {"xs": [0, 1, "x"], "d": {"a": "2024-01-01", "b": "x"}, "t": ["a", "b"]}),
        repr(S().load({"t": ["a", 1]})),
    ]


def enums():
    class S(Schema):
        by_name = fields.Enum(Colour)
        by_value = fields.Enum(Colour, by_value=True)

    return [
        S().dump({"by_name": Colour.RED, "by_value": Colour.BLUE}),
        repr(S().load({"by_name": "BLUE", "by_value": 1})),
        _errors(S(), {"by_name": "X", "by_value": 9}),
    ]


def texts():
    class S(Schema):
        url = fields.URL(schemes={"https"})
        uuid = fields.UUID()
        ip = fields.IPv4()
        raw = fields.Raw()

    return [
        _errors(S(), {"url": "http://a.org", "uuid": "x", "ip": "1.2.3"}),
        repr(
            S().load(
                {
                    "url": "https://a.org/x",
                    "uuid": "e682ccca-5a4c-4ef2-9711-73f9ad1e15ea",
                    "ip": "1.2.3.4",
                    "raw": {1: 2},
                }
            )
        ),
    ]


def validators():
    checks = [
        (validate.OneOf([1, 2], labels=["one", "two"]), 3),
        (validate.ContainsOnly([1, 2]), [1, 3]),
        (validate.Regexp("a+"), "b"),
        (validate.Equal(3), 4),
        (validate.NoneOf([1]), 1),
        (validate.Length(equal=2), "abc"),
        (validate.And(validate.Range(min=1), validate.Range(max=2)), 5),
        (validate.URL(relative=True), "::"),
        (validate.Email(), "a@b"),
    ]
    gave = []
    for check, value in checks:
        try:
            gave.append(check(value))
        except ValidationError as error:
            gave.append(error.messages)
    return [gave, list(checks[0][0].options()), repr(checks[5][0])]


def functions_and_methods():
    class S(Schema):
        upper = fields.Function(lambda obj: obj["a"].upper(), deserialize=lambda value: value.lower())
        size = fields.Method("get_size", deserialize="set_size")
        fixed = fields.Constant(5)

        def get_size(self, obj):
            return len(obj["a"])

        def set_size(self, value):
            return [value]

    return [S().dump({"a": "xyz"}), S().load({"upper": "ABC", "size": 2})]


def plucked():
    class S(Schema):
        author = fields.Pluck(Author, "name")
        authors = fields.Pluck("Author", "email", many=True)

    return [
        S().dump({"author": {"name": "Bo"}, "authors": [{"email": "a@b.org"}]}),
        _errors(S(), {"author": "B", "authors": ["x"]}),
    ]


def nested_by_name():
    class S(Schema):
        book = fields.Nested("Book", only=("title",))
        self_ = fields.Nested(lambda: S(exclude=("self_",)), attribute="me")

    return [
        S().dump({"book": {"title": "A", "pages": 2}, "me": {"book": None}}),
        class_registry.get_class("Book").__name__,
    ]


def from_dict():
    Made = Schema.from_dict({"a": fields.Int(load_default=4), "b": fields.Str(dump_default="x")}, name="Made")
    return [Made().load({}), Made().dump({}), Made.__name__, sorted(Made().fields)]


def inheritance():
    class Base(Schema):
        a = fields.Int()

        class Meta:
            fields = ("a", "b")

    class Child(Base):
        b = fields.Str(load_only=True)
        a = fields.Str(dump_only=True)

    return [Child().dump({"a": 1, "b": 2}), _errors(Child(), {"a": 1, "b": "x"}), sorted(Child().load_fields)]


def context_and_get():
    class S(Schema):
        x = fields.Int(attribute="inner.x")
        y = fields.Str(allow_none=True)

        def get_attribute(self, obj, attr, default):
            return super().get_attribute(obj, attr, default)

        def handle_error(self, error, data, **kwargs):
            raise ValidationError([sorted(error.messages)])

    class Thing:
        inner = {"x": 3}
        y = None

    return [S().dump(Thing()), _errors(S(), {"x": "a", "y": None})]


def json_round():
    text = Author().dumps({"name": "Bo", "email": "a@b.org"})
    return [text, Author().loads(text), Author().validate({"name": ""}), Author(many=True).validate([{"name": "B"}])]


def ordered_meta():
    class S(Schema):
        b = fields.Int()
        a = fields.Int()

        class Meta:
            dateformat = "%Y"
            include = {"c-d": fields.Date()}
            render_module = __import__("json")

    return [list(S().fields), S().dumps({"a": 1, "b": 2, "c-d": dt.date(2024, 1, 1)})]
