STOP = frozenset({"a", "b"})
def f():
    return "b" in STOP
