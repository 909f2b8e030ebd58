from pkg import run
def f():
    return run()
