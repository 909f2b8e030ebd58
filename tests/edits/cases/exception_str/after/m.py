from errors import Bad
def f():
    raise Bad()
