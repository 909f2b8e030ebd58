class Box:
    x = 1
def f():
    try:
        with Box():
            return 1
    except TypeError:
        return 2
