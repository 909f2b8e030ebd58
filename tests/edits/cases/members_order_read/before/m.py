class A:
    def go(self):
        return 1
    def stop(self):
        return 2
def f():
    return [n for n in vars(A) if not n.startswith("_")]
