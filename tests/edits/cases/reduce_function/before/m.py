from functools import reduce
def step(a, b):
    return a * 10 + b
def f():
    return reduce(step, [1, 2, 3])
