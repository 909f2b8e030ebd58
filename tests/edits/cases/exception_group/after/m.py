class A(Exception):
    pass
class B(Exception):
    pass
def f():
    seen = []
    try:
        raise ExceptionGroup("g", [A(), B()])
    except* A as group:
        seen += ["a" for _ in group.exceptions]
    except* Exception as group:
        seen += ["e" for _ in group.exceptions]
    return seen
