def around():
    def inner():
        return 1
    return inner
def f():
    return around().__qualname__
