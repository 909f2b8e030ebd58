class A:
    def go(self):
        return 1

def f():
    return A().go()
