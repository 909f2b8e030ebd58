def f():
    return len("é")
