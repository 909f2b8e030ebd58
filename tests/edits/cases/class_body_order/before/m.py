class Box:
    a = 1
    b = a + 1
    a = 5
def f():
    return Box.b
