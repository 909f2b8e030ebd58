import inspect
class A:
    def __init__(self, x, y=1):
        pass
def f():
    return str(inspect.signature(A))
