import json

X = {
    "a": 1,
    "b": [1, 2],
}


def h(x, y=2):
    return (x + y) * X["a"]


def f():
    return json.dumps([h(1), X])
