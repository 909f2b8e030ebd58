def make(n):
    class Local:
        size = n + 2
    return Local
def f():
    return make(1).size
