def outer():
    def inner():
        return 1
    return inner
def f():
    return outer().__qualname__
