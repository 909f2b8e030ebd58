import inspect
class A:
    def go(self):
        pass
    def halt(self):
        pass
def f():
    return [name for name, _ in inspect.getmembers(A, inspect.isfunction)]
