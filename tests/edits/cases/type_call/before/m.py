def go(self):
    return 1
A = type("A", (), {"go": go})
def f():
    return A().go()
