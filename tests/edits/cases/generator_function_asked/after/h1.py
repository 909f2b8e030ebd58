def h():
    yield 1
