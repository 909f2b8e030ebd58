class Box:
    x = 1
def f():
    match Box():
        case Box(size=n):
            return n
    return None
