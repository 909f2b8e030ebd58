def f(x="a"):
    return f"{x!r}"
