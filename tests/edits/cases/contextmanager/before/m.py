from h1 import opened
def f():
    log = []
    with opened(log):
        pass
    return log
