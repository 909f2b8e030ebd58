class A:
    n = 0
    def __bool__(self):
        return False

def f():
    return "yes" if A() else "no"
