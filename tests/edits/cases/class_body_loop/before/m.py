class A:
    for _name in ("x", "y"):
        locals()[_name] = _name * 2
def f():
    return A.x
