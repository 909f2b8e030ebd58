def h():
    try:
        raise ValueError("x")
    finally:
        pass
def f():
    return h()
