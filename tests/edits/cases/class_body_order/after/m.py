class Box:
    a = 1
    a = 5
    b = a + 1
def f():
    return Box.b
