def h():
    try:
        raise ValueError("x")
    finally:
        return 1
def f():
    return h()
