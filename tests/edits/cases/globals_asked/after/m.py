HOOK = 1
def f():
    return "HOOK" in globals()
