OPTIONS = {"sep": "+"}
def join(*parts, sep):
    return sep.join(parts)
def f():
    return join("a", "b", **OPTIONS)
