from h1 import (
    a,
    b,
)
def f():
    return a() + b()
