import typing
def tool(x: "list[int]"):
    return x
def f():
    return str(typing.get_type_hints(tool))
