import typing
def tool(x: "int"):
    return x
def f():
    return str(typing.get_type_hints(tool))
