def outer():
    a = 1
    b = 2
    def inner():
        return b
    return inner
def f():
    return outer().__closure__[0].cell_contents
