import inspect
def show(fn):
    return inspect.getsource(fn)
def h():
    # the number one
    return 1
def f():
    return h()
