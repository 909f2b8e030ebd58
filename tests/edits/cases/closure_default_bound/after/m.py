def f():
    return [g() for g in [lambda n=n: n for n in range(3)]]
