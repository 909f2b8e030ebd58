def f():
    return b"\x01"
