class A:
    def stop(self):
        return 2
    def go(self):
        return 1
def f():
    return A().go()
