WIDTH = 5
def f(x=1):
    return f"{x:{WIDTH}d}"
