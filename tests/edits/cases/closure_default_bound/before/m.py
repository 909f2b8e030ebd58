def f():
    return [g() for g in [lambda: n for n in range(3)]]
