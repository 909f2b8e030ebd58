def f():
    return r"\d"
