import inspect
class A:
    def __init__(self, x):
        pass
def f():
    return str(inspect.signature(A))
