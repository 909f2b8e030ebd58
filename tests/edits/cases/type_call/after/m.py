def go(self):
    return 2
A = type("A", (), {"go": go})
def f():
    return A().go()
