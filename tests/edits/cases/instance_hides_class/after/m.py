class A:
    n = 1
    def __init__(self):
        pass
def f():
    return A().n
