def f():
    return "HOOK" in globals()
