import traceback
def h():
    raise ValueError("x")
def f():
    try:
        h()
    except ValueError:
        return traceback.format_exc().splitlines()[-3:]
