x = 2
def f():
    return [x for x in range(3)]
