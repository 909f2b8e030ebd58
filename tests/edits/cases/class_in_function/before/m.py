def make(n):
    class Local:
        size = n + 1
    return Local
def f():
    return make(1).size
