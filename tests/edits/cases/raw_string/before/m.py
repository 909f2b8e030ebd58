def f():
    return "\\d"
