def f():
    return "é"
