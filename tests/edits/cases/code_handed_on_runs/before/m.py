import types


def one(x):
    return x + 1


def two(x):
    return x * 2


def named(function, name):
    return types.FunctionType(function.__code__, function.__globals__, name, function.__defaults__)


first, second = named(one, "first"), named(two, "second")


def f():
    return first(3), second.__name__
