import typing
import h1
def f():
    return typing.get_type_hints(h1.tool)["x"].__name__
