STOP = frozenset({"a", "c"})
def f():
    return "b" in STOP
