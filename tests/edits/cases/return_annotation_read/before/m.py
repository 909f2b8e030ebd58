import inspect
def tool() -> int:
    return 1
def f():
    return inspect.signature(tool).return_annotation.__name__
