class A:
    def go(self):
        return 1
    def stop(self):
        return 3
def f():
    return A().go()
