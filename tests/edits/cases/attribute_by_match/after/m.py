class Box:
    x = 1
    size = 2
def f():
    match Box():
        case Box(size=n):
            return n
    return None
