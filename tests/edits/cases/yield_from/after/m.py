from h1 import part
def whole():
    last = yield from part()
    yield last
def f():
    return list(whole())
