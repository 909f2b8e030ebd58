def f():
    return b"\x00"
